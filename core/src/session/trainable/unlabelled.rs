//! Encoders without labels in a session: their training, their matrix with noise, and the checks of
//! their invitations. The method is FedSC (Jing et al. 2024, arXiv:2405.03949, Algorithm 1).

use core::marker::PhantomData;

use super::{Course, Learned, LocalRound, RoundParts, Trainable};
use crate::{
    clip::clip_l2,
    contrast::{
        Augmented, BatchMemory, ContrastRequest, ContrastTraining, FromRecipe, Objective, Part,
        RECIPE_LENGTH, Recipe, Representation, TrainingMemory,
        correlation::{SumMemory, packed_length, sensitivity_in_steps, sum_samples},
        descend,
    },
    lanes,
    noise::Sigma,
    params::{ClipNorm, NoiseMultiplier},
    release::{halves, patterns_mut, whole},
    samples::{SampleError, Samples, check_features},
    session::{memory::Memory, policy::Policy},
    stream::Purpose,
    train::{TrainReport, Workspace},
    wire::message::{Decline, Invitation, ModelShape},
};

/// An encoder that a device learns without labels, with views of type `A`.
///
/// In a round the device receives the encoder, a [`Recipe`] and, if the coordinator has it, the
/// correlation matrix R̄ of the other devices. It sends an update or, in a separate part of the
/// round, its correlation matrix with noise and its number of samples, which is public.
#[derive(Clone, Copy, Debug)]
pub struct Unlabelled<E, A> {
    encoder: E,
    augment: PhantomData<fn() -> A>,
}

impl<E: Representation, A: FromRecipe> Unlabelled<E, A> {
    /// Creates a trainable encoder.
    pub const fn new(encoder: E) -> Self {
        Self {
            encoder,
            augment: PhantomData,
        }
    }

    /// Returns the scratch entries for batches of `views` views: 2V times the samples of a batch.
    pub fn scratch_for(&self, views: usize) -> usize {
        let encoder = &self.encoder;
        let width = encoder.output_count();
        let matrices = 2 * packed_length(width);
        let values = encoder.feature_count() + encoder.hidden_count() + 2 * width + matrices;
        views.saturating_mul(width).saturating_add(values)
    }

    /// Returns views of the samples. The matrix and the first pass of training use the same ones.
    fn views<'s, S: Samples>(
        &self,
        samples: &'s S,
        round: &LocalRound<'_>,
        request: &ContrastRequest,
    ) -> Option<Augmented<'s, S, A>> {
        let augment = A::from_recipe(&self.recipe(round.global)?)?;
        let stream = round.streams.open(Purpose::Augmentation);
        let pairs = request.pairs as usize;
        Some(Augmented::new(samples, augment, pairs, stream))
    }

    fn recipe(&self, global: &[f32]) -> Option<Recipe> {
        let first = self.encoder.parameter_count();
        Recipe::read(global.get(first..first + RECIPE_LENGTH)?)
    }

    /// Returns R̄ of the other devices, if it came down.
    fn others<'g>(&self, global: &'g [f32]) -> &'g [f32] {
        let first = self.encoder.parameter_count() + RECIPE_LENGTH;
        let last = first + packed_length(self.encoder.output_count());
        global.get(first..last).unwrap_or_default()
    }

    /// Computes the sum of the samples' matrices and the number of samples, in two halves.
    #[inline(never)]
    fn matrix<S: Samples>(
        &self,
        samples: &S,
        request: &ContrastRequest,
        round: LocalRound<'_>,
    ) -> Result<(), Decline> {
        let views = self.views(samples, &round, request);
        let views = views.ok_or(Decline::Settings)?;
        let LocalRound {
            invitation,
            global,
            work:
                Workspace {
                    local,
                    update,
                    scratch,
                    ..
                },
            ..
        } = round;
        let parameters = global.get(..self.encoder.parameter_count());
        let entries = request.entries as usize;
        let (low, high) = (patterns_mut(update), patterns_mut(local));
        let (low, high) = (
            low.get_mut(..entries).unwrap_or_default(),
            high.get_mut(..entries).unwrap_or_default(),
        );
        low.fill(0);
        high.fill(0);
        let mut add = |place: usize, steps: i64| {
            if let (Some(low), Some(high)) = (low.get_mut(place), high.get_mut(place)) {
                (*low, *high) = halves(whole(*low, *high).wrapping_add(steps));
            }
        };
        // Behind the last entry of the matrix.
        add(entries.saturating_sub(1), samples.len() as i64);
        let mut scratch = Pieces(scratch);
        let memory = &mut SumMemory {
            view: scratch.take(self.encoder.feature_count()),
            hidden: scratch.take(self.encoder.hidden_count()),
            representation: scratch.take(self.encoder.output_count()),
            matrix: scratch.take(packed_length(self.encoder.output_count())),
        };
        let parameters = parameters.unwrap_or_default();
        let grid = &invitation.grid;
        let is_whole = sum_samples(&self.encoder, parameters, &views, grid, memory, add)
            .map_err(|_| Decline::NoSamples)?;
        match is_whole || invitation.noise.is_some() {
            true => Ok(()),
            false => Err(Decline::Diverged),
        }
    }

    /// Trains from the encoder of the round, and clips the update once. Returns the training
    /// report.
    #[inline(never)]
    fn update<S: Samples>(
        &self,
        samples: &S,
        request: &ContrastRequest,
        round: LocalRound<'_>,
    ) -> Result<TrainReport, Decline> {
        if samples.len() < Self::MIN_SAMPLES {
            return Err(Decline::NoSamples);
        }
        let views = self.views(samples, &round, request);
        let mut views = views.ok_or(Decline::Settings)?;
        let recipe = self.recipe(round.global).ok_or(Decline::Settings)?;
        let LocalRound {
            streams,
            invitation,
            global,
            work:
                Workspace {
                    local,
                    update,
                    order,
                    scratch,
                },
            ..
        } = round;
        let (width, count) = (self.encoder.output_count(), self.encoder.parameter_count());
        let batch = order.len().min(invitation.batch_size.get() as usize);
        let start = global.get(..count).unwrap_or_default();
        for (w, start) in local.iter_mut().zip(start) {
            *w = *start;
        }
        let mut scratch = Pieces(scratch);
        let alone = scratch.take(packed_length(width));
        alone.fill(0.0);
        let has_others = request.part == Part::Training { has_others: true };
        let objective = Objective {
            alpha: recipe.alpha,
            others: match has_others {
                true => self.others(global),
                false => alone,
            },
            norm_bound: request.norm_bound,
        };
        let settings = ContrastTraining::from(&invitation.own_training());
        let memory = &mut TrainingMemory {
            order,
            batch: BatchMemory {
                representations: scratch.take(2 * request.pairs as usize * batch * width),
                view: scratch.take(self.encoder.feature_count()),
                hidden: scratch.take(self.encoder.hidden_count()),
                pair: scratch.take(2 * width),
                matrix: scratch.take(packed_length(width)),
                gradient: &mut *update,
            },
        };
        let rng = &mut streams.open(Purpose::BatchShuffle);
        let steps = samples.len().div_ceil(settings.batch_size.get() as usize) as u32;
        let last_loss = descend(
            &self.encoder,
            local,
            &mut views,
            &objective,
            &settings,
            rng,
            memory,
        )
        .map_err(|_| Decline::Diverged)?;
        for (update, (w, start)) in update.iter_mut().zip(local.iter().zip(start)) {
            *update = w - start;
        }
        let steps = settings.epochs.saturating_mul(steps);
        clipped(update, invitation.grid.clip_norm(), steps, last_loss)
    }
}

impl<E: Representation, A: FromRecipe> Trainable for Unlabelled<E, A> {
    type Target = ();
    type Parts = Parts;
    type Descent = ();
    /// The loss compares samples with each other.
    const MIN_SAMPLES: usize = 2;
    const HAS_REQUESTS: bool = true;

    fn shape(&self) -> Option<ModelShape> {
        ModelShape::of_encoder(&self.encoder)
    }

    fn parameter_count(&self) -> usize {
        self.encoder.parameter_count()
    }

    fn global_count(&self) -> usize {
        let matrix = packed_length(self.encoder.output_count());
        self.encoder.parameter_count() + RECIPE_LENGTH + matrix
    }

    fn received_count(&self, invitation: &Invitation) -> usize {
        let all = self.global_count();
        match invitation.contrast().map(|request| request.part) {
            Some(Part::Training { has_others: true }) => all,
            _ => all - packed_length(self.encoder.output_count()),
        }
    }

    fn scratch_count(&self) -> usize {
        self.scratch_for(2 * Self::MIN_SAMPLES)
    }

    fn accepts(
        &self,
        invitation: &Invitation,
        policy: &Policy,
        memory: &Memory<'_>,
    ) -> Result<(), Decline> {
        let Some(request) = invitation.contrast() else {
            return Err(Decline::Shape);
        };
        let Workspace {
            order,
            update,
            scratch,
            ..
        } = &memory.work;
        // The largest possible number of samples, which is public: the firmware has one number for
        // all.
        let batch = order.len().min(invitation.batch_size.get() as usize);
        let views = (2 * request.pairs as usize).saturating_mul(batch);
        let needs_views = !request.is_matrix();
        if request.is_matrix() && !accepts_matrix(policy, invitation, request, &self.encoder) {
            Err(Decline::Noise)
        } else if request.entries as usize > update.len()
            || (needs_views && self.scratch_for(views) > scratch.len())
        {
            Err(Decline::Memory)
        } else {
            Ok(())
        }
    }

    fn check(
        &self,
        invitation: &Invitation,
        global: &[f32],
        samples: usize,
    ) -> Result<(), Decline> {
        let recipe = self.recipe(global);
        let is_known = recipe.is_some_and(|recipe| A::from_recipe(&recipe).is_some());
        let request = invitation.contrast();
        let most = request.filter(|request| request.is_matrix());
        let is_too_many = |request: &ContrastRequest| samples > request.max_samples as usize;
        // A model that is unfit for training is refused whatever the samples are.
        if !is_known || !lanes::norm(global).is_finite() {
            Err(Decline::Settings)
        } else if most.is_some_and(is_too_many) {
            Err(Decline::Work)
        } else {
            Ok(())
        }
    }

    fn check_sample<S>(&self, samples: &S, index: usize) -> Result<(), SampleError>
    where
        S: Samples<Target = ()>,
    {
        check_features(samples.features(index), self.encoder.feature_count())
    }

    /// Trains without pieces.
    fn train<S>(
        &self,
        samples: &S,
        round: LocalRound<'_>,
        _: &mut Course<()>,
        _: usize,
    ) -> Result<Learned, Decline>
    where
        S: Samples<Target = ()>,
    {
        let Some(request) = round.invitation.contrast() else {
            return Err(Decline::Shape);
        };
        if request.is_matrix() {
            self.matrix(samples, request, round)?;
            return Ok(Learned::Integers);
        }
        self.update(samples, request, round).map(Learned::Update)
    }
}

/// Clips the update once, and returns the report of training with `steps` steps and this final
/// loss.
fn clipped(
    update: &mut [f32],
    bound: ClipNorm,
    steps: u32,
    last_loss: f32,
) -> Result<TrainReport, Decline> {
    let norm = clip_l2(update, bound.get()).map_err(|_| Decline::Diverged)?;
    let mut report = TrainReport {
        steps,
        last_loss,
        ..TrainReport::default()
    };
    report.clipped(norm, bound);
    Ok(report)
}

/// Whether a matrix has the noise that the device requires: σ ≥ z/√2 sensitivities.
///
/// It hides one example, not the device. A device that requires noise on its updates, which hides
/// the device, sends no matrix.
fn accepts_matrix<E: Representation>(
    policy: &Policy,
    invitation: &Invitation,
    request: &ContrastRequest,
    encoder: &E,
) -> bool {
    if policy.min_noise_multiplier > NoiseMultiplier::NONE {
        return false;
    }
    let (numerator, denominator) = invitation.noise.map_or((0, 1), Sigma::ratio);
    let multiplier = policy.min_matrix_noise_multiplier.units() as f64 / (1_u64 << 32) as f64;
    let (bits, pairs) = (invitation.grid.bits(), request.pairs as usize);
    let sensitivity = sensitivity_in_steps(bits, encoder.output_count(), pairs);
    let least = multiplier * core::f64::consts::FRAC_1_SQRT_2 * sensitivity;
    numerator as f64 >= least * denominator as f64
}

/// Working memory that is handed out piece by piece.
struct Pieces<'a>(&'a mut [f32]);

impl<'a> Pieces<'a> {
    /// Takes the next `count` entries, or none if there are not enough.
    fn take(&mut self, count: usize) -> &'a mut [f32] {
        let rest = core::mem::take(&mut self.0);
        match rest.split_at_mut_checked(count) {
            Some((piece, rest)) => {
                self.0 = rest;
                piece
            }
            None => &mut [],
        }
    }
}

/// The last recorded round, and the part of it that may follow.
///
/// The ledger lets a device begin a round number once. One of two parts begins with it, and the
/// other part may follow once, as long as the device remembers the round. Each random stream of a
/// round is therefore used for one thing: noise of the matrix, noise of the update and order of the
/// samples have separate streams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    round: u32,
    /// The part that may follow, if any: true for the matrix.
    open: Option<bool>,
}

impl RoundParts for Parts {
    fn has(&self, round: u32, invitation: &Invitation) -> bool {
        self.open == Some(invitation.is_matrix()) && self.round == round
    }

    fn take(&mut self, round: u32, invitation: &Invitation) {
        let was_open = self.has(round, invitation);
        *self = Self {
            round,
            open: (!was_open).then_some(!invitation.is_matrix()),
        };
    }
}
