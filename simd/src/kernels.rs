//! Local training and scores of each model, with the widest vectors of this machine.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::model::{Linear, Logistic, Model, ModelError, Softmax};
use smolfed_core::stream::Stream;
use smolfed_core::train::{self, LocalTraining, TrainError, TrainReport, Workspace};

use crate::Rows;

/// A model whose kernels are compiled here.
pub trait Kernels: Model {
    /// [`train::local_update`].
    ///
    /// # Errors
    /// [`TrainError`], as there.
    fn local_update(
        &self,
        samples: &Rows<'_, Self::Target>,
        global: &[f32],
        settings: &LocalTraining,
        stream: &mut Stream,
        work: Workspace<'_>,
    ) -> Result<TrainReport, TrainError>;

    /// [`Model::batch_scores`].
    ///
    /// # Errors
    /// [`ModelError`], as there.
    fn row_scores(
        &self,
        parameters: &[f32],
        samples: &Rows<'_, Self::Target>,
        batch: &[u32],
        scores: &mut [f32],
    ) -> Result<(), ModelError>;
}

/// Compiles the kernels of a model.
///
/// A macro, because generic functions would be compiled in the crates that call them; and not
/// inlined for the same reason.
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
                    model: self,
                    samples,
                    global,
                    settings,
                    stream,
                    work,
                })
            }

            #[inline(never)]
            fn row_scores(
                &self,
                parameters: &[f32],
                samples: &Rows<'_, Self::Target>,
                batch: &[u32],
                scores: &mut [f32],
            ) -> Result<(), ModelError> {
                Arch::new().dispatch(Scores {
                    model: self,
                    parameters,
                    samples,
                    batch,
                    scores,
                })
            }
        }
    };
}

kernels!(Linear<usize>);
kernels!(Logistic<usize>);
kernels!(Softmax<usize, usize>);

/// The arguments of [`train::local_update`]. A closure would not be inlined into the code that is
/// compiled for wider vectors; a method marked to be inlined is.
struct LocalUpdate<'a, M: Model> {
    model: &'a M,
    samples: &'a Rows<'a, M::Target>,
    global: &'a [f32],
    settings: &'a LocalTraining,
    stream: &'a mut Stream,
    work: Workspace<'a>,
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
struct Scores<'a, M: Model> {
    model: &'a M,
    parameters: &'a [f32],
    samples: &'a Rows<'a, M::Target>,
    batch: &'a [u32],
    scores: &'a mut [f32],
}

impl<M: Model<Target: Default>> NullaryFnOnce for Scores<'_, M> {
    type Output = Result<(), ModelError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.model
            .batch_scores(self.parameters, self.samples, self.batch, self.scores)
    }
}
