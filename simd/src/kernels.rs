//! Local training and scores of each model, with the widest vectors of this machine.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::model::{Distilled, Model, ModelError, Parametric, Softmax, WithRow};
use smolfed_core::personal::{self, Anchor, PersonalTraining, StepMemory};
use smolfed_core::samples::Samples;
use smolfed_core::stream::Stream;
use smolfed_core::train::{self, LocalTraining, TrainError, TrainReport, Workspace};

use crate::Rows;
use crate::apart::{Apart, is_affine};

/// A model whose kernels are compiled in this crate.
pub trait Kernels: Model {
    /// Runs [`train::local_update`].
    ///
    /// # Errors
    /// [`TrainError`], as for that function.
    fn local_update(
        &self,
        samples: &Rows<'_, Self::Target>,
        global: &[f32],
        settings: &LocalTraining,
        stream: &mut Stream,
        work: Workspace<'_>,
    ) -> Result<TrainReport, TrainError>;

    /// Runs [`personal::descend`] or [`personal::descend_released`]: see [`Steps`].
    ///
    /// # Errors
    /// [`TrainError`], as for those functions.
    fn descend(
        &self,
        samples: &Rows<'_, Self::Target>,
        local: &mut [f32],
        steps: Steps<'_>,
        stream: &mut Stream,
        memory: StepMemory<'_>,
    ) -> Result<TrainReport, TrainError>;

    /// Computes [`Model::batch_scores`].
    ///
    /// # Errors
    /// [`ModelError`], as for that function.
    fn row_scores(
        &self,
        parameters: &[f32],
        samples: &Rows<'_, Self::Target>,
        batch: &[u32],
        scratch: &mut [f32],
        scores: &mut [f32],
    ) -> Result<(), ModelError>;

    /// Computes the losses of samples from their scores: see [`Model::losses_in_place`].
    ///
    /// * Shape: `losses` has one entry for each of `targets`.
    fn row_losses(&self, scores: &mut [f32], targets: &[Self::Target], losses: &mut [f32]);
}

/// Settings of a personal model's local steps.
pub struct Steps<'a> {
    /// Number and size of the steps.
    pub settings: &'a PersonalTraining,
    /// Anchor that pulls the model.
    pub anchor: Option<&'a Anchor<'a>>,
    /// Release of the shared part of each gradient. The anchor is then ignored.
    pub release: Option<&'a mut GradientRelease<'a>>,
}

/// Release of the shared part of a gradient.
pub type GradientRelease<'a> = dyn FnMut(&mut [f32]) -> Result<(), TrainError> + 'a;

/// Compiles the kernels of a model.
///
/// It is a macro and not inlined, because generic functions would be compiled in the calling
/// crates. Every model is [`Apart`]: its loops share one batch.
macro_rules! kernels {
    ($model:ty) => {
        impl Kernels for $model {
            #[inline(never)]
            fn local_update(
                &self,
                samples: &Rows<'_, Self::Target>,
                global: &[f32],
                settings: &LocalTraining,
                stream: &mut Stream,
                work: Workspace<'_>,
            ) -> Result<TrainReport, TrainError> {
                Arch::new().dispatch(LocalUpdate {
                    model: &Apart(*self),
                    samples,
                    global,
                    settings,
                    stream,
                    work,
                })
            }

            #[inline(never)]
            fn descend(
                &self,
                samples: &Rows<'_, Self::Target>,
                local: &mut [f32],
                steps: Steps<'_>,
                stream: &mut Stream,
                memory: StepMemory<'_>,
            ) -> Result<TrainReport, TrainError> {
                Arch::new().dispatch(Descend {
                    model: &Apart(*self),
                    samples,
                    local,
                    steps,
                    stream,
                    memory,
                })
            }

            #[inline(never)]
            fn row_scores(
                &self,
                parameters: &[f32],
                samples: &Rows<'_, Self::Target>,
                batch: &[u32],
                scratch: &mut [f32],
                scores: &mut [f32],
            ) -> Result<(), ModelError> {
                if const { is_affine::<Self>() } {
                    let layer = Softmax::new(self.feature_count(), self.output_count());
                    let samples = samples.without_targets();
                    return affine_scores(layer, parameters, &samples, batch, scores);
                }
                Arch::new().dispatch(Scores {
                    model: self,
                    parameters,
                    samples,
                    batch,
                    scratch,
                    scores,
                })
            }

            #[inline(never)]
            fn row_losses(&self, scores: &mut [f32], targets: &[Self::Target], losses: &mut [f32]) {
                Arch::new().dispatch(Losses {
                    model: self,
                    scores,
                    targets,
                    losses,
                });
            }
        }
    };
}

smolfed_core::each_model!(kernels);

/// Fine-tunes by symmetrised Kullback-Leibler divergence: [`personal::descend`] of a [`Distilled`]
/// model.
///
/// # Errors
/// [`TrainError`], as for that function.
#[inline(never)]
pub fn distil(
    model: &Distilled<'_, usize, usize>,
    samples: &Rows<'_, u16>,
    local: &mut [f32],
    settings: &PersonalTraining,
    stream: &mut Stream,
    memory: StepMemory<'_>,
) -> Result<TrainReport, TrainError> {
    Arch::new().dispatch(Descend {
        model: &Apart(*model),
        samples: &WithRow(samples),
        local,
        steps: Steps {
            settings,
            anchor: None,
            release: None,
        },
        stream,
        memory,
    })
}

/// Computes the scores `Wx + b`, which do not depend on the loss.
#[inline(never)]
fn affine_scores(
    layer: Softmax<usize, usize>,
    parameters: &[f32],
    samples: &Rows<'_, ()>,
    batch: &[u32],
    scores: &mut [f32],
) -> Result<(), ModelError> {
    Arch::new().dispatch(Scores {
        model: &layer,
        parameters,
        samples,
        batch,
        scratch: &mut [],
        scores,
    })
}

/// The arguments of [`personal::descend`].
struct Descend<'a, 's, 'm, M, S> {
    model: &'a M,
    samples: &'a S,
    local: &'a mut [f32],
    steps: Steps<'s>,
    stream: &'a mut Stream,
    memory: StepMemory<'m>,
}

impl<M: Model, S: Samples<Target = M::Target>> NullaryFnOnce for Descend<'_, '_, '_, M, S> {
    type Output = Result<TrainReport, TrainError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        let Self {
            model,
            samples,
            local,
            steps,
            stream,
            memory,
        } = self;
        match steps.release {
            Some(release) => personal::descend_released(
                model,
                samples,
                local,
                steps.settings,
                stream,
                memory,
                release,
            ),
            None => personal::descend(
                model,
                samples,
                local,
                steps.anchor,
                steps.settings,
                stream,
                memory,
            ),
        }
    }
}

/// The arguments of [`train::local_update`]. A closure would not be inlined into the code compiled
/// for wider vectors, but a method marked for inlining is.
pub(crate) struct LocalUpdate<'a, M: Model> {
    pub(crate) model: &'a M,
    pub(crate) samples: &'a Rows<'a, M::Target>,
    pub(crate) global: &'a [f32],
    pub(crate) settings: &'a LocalTraining,
    pub(crate) stream: &'a mut Stream,
    pub(crate) work: Workspace<'a>,
}

impl<M: Model<Target: Default>> NullaryFnOnce for LocalUpdate<'_, M> {
    type Output = Result<TrainReport, TrainError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        train::local_update(
            self.model,
            self.samples,
            self.global,
            self.settings,
            self.stream,
            self.work,
        )
    }
}

/// The arguments of [`Model::batch_scores`].
pub(crate) struct Scores<'a, M, T> {
    pub(crate) model: &'a M,
    pub(crate) parameters: &'a [f32],
    pub(crate) samples: &'a Rows<'a, T>,
    pub(crate) batch: &'a [u32],
    pub(crate) scratch: &'a mut [f32],
    pub(crate) scores: &'a mut [f32],
}

impl<M: Model, T: Copy + Default> NullaryFnOnce for Scores<'_, M, T> {
    type Output = Result<(), ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.model.batch_scores(
            self.parameters,
            self.samples,
            self.batch,
            self.scratch,
            self.scores,
        )
    }
}

/// The arguments of [`Model::losses_in_place`].
struct Losses<'a, M: Model> {
    model: &'a M,
    scores: &'a mut [f32],
    targets: &'a [M::Target],
    losses: &'a mut [f32],
}

impl<M: Model> NullaryFnOnce for Losses<'_, M> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let mut losses = self.losses.iter_mut();
        let each = |loss| {
            if let Some(place) = losses.next() {
                *place = loss;
            }
        };
        let targets = self.targets.iter().copied();
        self.model.losses_in_place(self.scores, targets, each);
    }
}
