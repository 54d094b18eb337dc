//! The client of a device: a model of fixed size with its training memory, without a heap.
//!
//! It owns two vectors of `P` parameters: the local model, and the gradient and update. The caller
//! holds a third one, the global model. The sizes are checked at compile time.

use rand_core::Rng;

use crate::{
    model::{FixedModel, ModelError},
    participation::Participation,
    predict::CurrentModel,
    release::{Trained, Training},
    samples::{SampleError, Samples, check_features, has_count},
    stream::Purpose,
    train::{Local, LocalTraining, TrainError, TrainReport, Workspace, local_update},
};

/// A model of `P` parameters that trains on up to `N` samples, with memory for `B` scores.
///
/// `P` is the model's number of parameters and `B` at least the scratch entries of one sample (with
/// vector registers a multiple is faster). The model's type has both:
///
/// ```
/// use smolfed_core::{Client, Const, FixedModel, Softmax};
/// type Model = Softmax<Const<64>, Const<10>>;
/// let client: Client<Model, { Model::PARAMETERS }, 50, { Model::SCRATCH }> =
///     Client::new(Softmax::new(Const, Const));
/// ```
///
/// Other sizes do not compile:
///
/// ```compile_fail
/// use smolfed_core::{Client, Const, Softmax};
/// // (64 + 1) · 10 = 650
/// let client: Client<_, 640, 50, 10> = Client::new(Softmax::new(Const::<64>, Const::<10>));
/// ```
pub struct Client<M: FixedModel, const P: usize, const N: usize, const B: usize> {
    model: M,
    local: [f32; P],
    update: [f32; P],
    order: [u32; N],
    scratch: [f32; B],
}

impl<M: FixedModel, const P: usize, const N: usize, const B: usize> Client<M, P, N, B> {
    /// Creates a client. It has no state between rounds, only its memory.
    pub const fn new(model: M) -> Self {
        const {
            assert!(
                P == M::PARAMETERS,
                "P must be the model's number of parameters"
            );
            assert!(B >= M::SCRATCH, "B must be at least what one sample needs");
        }
        Self {
            model,
            local: [0.0; P],
            update: [0.0; P],
            order: [0; N],
            scratch: [0.0; B],
        }
    }

    /// Returns the model.
    pub const fn model(&self) -> &M {
        &self.model
    }

    /// Returns the model with the parameters of `round`, for predictions. The caller keeps the
    /// parameters.
    ///
    /// # Errors
    /// [`ModelError::NotFinite`] if a parameter is not finite.
    pub fn current<'a>(
        &'a self,
        round: u32,
        global: &'a [f32; P],
    ) -> Result<CurrentModel<'a, M>, ModelError> {
        CurrentModel::new(round, &self.model, global)
    }

    /// Checks that training can use all of these samples. Call it before the ledger records a
    /// round: training on unusable samples gives an update of zeros and spends the participation.
    ///
    /// # Errors
    /// [`SampleError`] of the first unusable sample. It describes private data and must not leave
    /// the device.
    pub fn check<S: Samples<Target = M::Target>>(&self, samples: &S) -> Result<(), SampleError> {
        has_count(samples.len(), 1, N)?;
        (0..samples.len()).try_for_each(|index| {
            check_features(samples.features(index), self.model.feature_count())?;
            match self.model.has_target(samples.target(index)) {
                true => Ok(()),
                false => Err(SampleError::Target),
            }
        })
    }

    /// Trains on `samples` from the global model, as in [`crate::train`], in the round of this
    /// participation. Samples that [`Self::check`] refuses give an update of zeros.
    ///
    /// The result contains the update but reveals nothing about it, not even whether there is one.
    /// See [`Trained`].
    pub fn train<S: Samples<Target = M::Target>>(
        &mut self,
        participation: Participation,
        samples: &S,
        global: &[f32; P],
        settings: &LocalTraining,
    ) -> Trained<'_> {
        let order = &mut participation.streams().open(Purpose::BatchShuffle);
        let report = match self.check(samples) {
            Ok(()) => self.descend(samples, global, settings, order).ok(),
            Err(_) => {
                self.update = [0.0; P];
                None
            }
        };
        Trained::new(&mut self.update, &mut self.local, report, participation)
    }

    fn descend<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
        global: &[f32; P],
        settings: &LocalTraining,
        rng: &mut impl Rng,
    ) -> Result<TrainReport, TrainError> {
        let work = Workspace {
            local: &mut self.local,
            update: &mut self.update,
            order: &mut self.order,
            scratch: &mut self.scratch,
        };
        let result = local_update(&self.model, samples, global, settings, rng, work);
        if result.is_err() {
            self.update = [0.0; P];
        }
        result
    }

    /// Like [`Self::train`], in pieces.
    pub fn begin<'a: 's, 's, S: Samples<Target = M::Target>>(
        &'a mut self,
        participation: Participation,
        samples: &'s S,
        global: &'s [f32; P],
        settings: &'s LocalTraining,
    ) -> Training<'a, 's, M, S> {
        let is_usable = self.check(samples).is_ok();
        let Self {
            model,
            local,
            update,
            order,
            scratch,
        } = self;
        let work = Workspace {
            local,
            update,
            order,
            scratch,
        };
        let local: Local<'_, _, _> = Local {
            model,
            samples,
            global,
            settings,
        };
        Training::new(local, work, participation, is_usable)
    }
}

/// Functions for simulators and tests only.
#[cfg(any(test, feature = "hazmat"))]
impl<M: FixedModel, const P: usize, const N: usize, const B: usize> Client<M, P, N, B> {
    /// Trains on `samples` from the global model with any generator and without a ledger record.
    /// See [`local_update`]. Needs the feature `hazmat`.
    ///
    /// # Errors
    /// [`TrainError`]. The update is then zero, and the device must sit the round out.
    pub fn train_unrecorded<S: Samples<Target = M::Target>>(
        &mut self,
        samples: &S,
        global: &[f32; P],
        settings: &LocalTraining,
        rng: &mut impl Rng,
    ) -> Result<TrainReport, TrainError> {
        self.descend(samples, global, settings, rng)
    }

    /// Returns the update of the last training, clipped but without noise: it must not leave the
    /// device in this form. Needs the feature `hazmat`.
    pub const fn update(&self) -> &[f32; P] {
        &self.update
    }

    /// Returns the map from the update to the integer grid, with `Σq² ≤ 4^b` guaranteed. Needs the
    /// feature `hazmat`.
    ///
    /// # Errors
    /// [`QuantizeError`](crate::quantize::QuantizeError) if the update was not clipped to the
    /// grid's clip norm.
    pub fn quantizer(
        &self,
        grid: &crate::quantize::Grid,
    ) -> Result<crate::quantize::Quantizer, crate::quantize::QuantizeError> {
        grid.quantizer(&self.update)
    }
}

impl<M: FixedModel, const P: usize, const N: usize, const B: usize> core::fmt::Debug
    for Client<M, P, N, B>
{
    /// Shape only: device data never reach a log.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Client({P} parameters, {N} samples)")
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU32;

    use super::*;
    use crate::{
        model::{Const, Linear, Parametric},
        params::{ClipNorm, LearningRate},
        quantize::Grid,
        samples::SampleSlice,
        stream::{Root, StreamId},
    };

    fn settings(rate: f32) -> LocalTraining {
        let clip_norm = ClipNorm::new(0.5).unwrap();
        LocalTraining::new(LearningRate::new(rate).unwrap(), clip_norm)
            .with_epochs(3)
            .with_batch_size(NonZeroU32::new(2).unwrap())
    }

    #[test]
    fn a_client_trains_and_its_update_fits_the_grid() {
        let mut client: Client<_, 3, 4, 1> = Client::new(Linear::new(Const::<2>));
        let features = [1.0, 0.5, -0.5, 2.0, 0.25, -1.0];
        let samples = SampleSlice::new(&features, &[1.0f32, 2.0, -3.0], 2).unwrap();
        let id = StreamId {
            purpose: Purpose::BatchShuffle,
            round: 0,
            device: 0,
        };
        let mut rng = Root::from_seed(3).stream(id);
        let report = client
            .train_unrecorded(&samples, &[0.0; 3], &settings(0.1), &mut rng)
            .unwrap();
        assert_eq!(report.steps, 6);
        let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 16).unwrap();
        let quantizer = client.quantizer(&grid).unwrap();
        assert_eq!(
            grid.check(&client.update().map(|x| quantizer.get(x))),
            Ok(())
        );
        assert_eq!(
            std::format!("{client:?}"),
            "Client(3 parameters, 4 samples)"
        );
        assert_eq!(client.model().feature_count(), 2);

        let error = client.train_unrecorded(&samples, &[f32::NAN; 3], &settings(0.1), &mut rng);
        assert_eq!(error, Err(TrainError::Diverged));
        assert_eq!(client.update(), &[0.0; 3], "nothing is left to be sent");
    }

    /// Unusable samples give zeros under the noise, as for a device without samples.
    #[test]
    fn damaged_samples_are_refused_and_give_an_update_of_zeros() {
        use crate::{params::NoiseMultiplier, release::Release};
        let features = [1.0, 0.5, -0.5, 2.0, 0.25, -1.0, 0.0, 1.0, 2.0, 3.0];
        let values = [1.0f32, 2.0, -3.0, 0.5, 1.0];
        let good = SampleSlice::new(&features[..8], &values[..4], 2).unwrap();
        let mut broken = features;
        broken[5] = f32::NAN;
        let broken = SampleSlice::new(&broken[..8], &values[..4], 2).unwrap();
        let many = SampleSlice::new(&features, &values, 2).unwrap();
        let none = SampleSlice::new(&[], &[], 2).unwrap();
        let targets = [1.0, f32::INFINITY];
        let targets = SampleSlice::new(&features[..4], &targets, 2).unwrap();
        let mut client: Client<_, 3, 4, 1> = Client::new(Linear::new(Const::<2>));
        let grid = Grid::new(ClipNorm::new(0.5).unwrap(), 16).unwrap();
        let multiplier = NoiseMultiplier::new(1.0).unwrap();
        assert_eq!(client.check(&good), Ok(()));
        let released = |client: &mut Client<_, 3, 4, 1>, samples: &SampleSlice<'_, f32>| {
            let trained = client.train(
                Participation::new(1, Root::from_seed(5), 2),
                samples,
                &[0.5; 3],
                &settings(0.1),
            );
            let released = trained.noise(&grid, multiplier).unwrap();
            released.values().collect::<std::vec::Vec<i64>>()
        };
        let update = released(&mut client, &good);
        let zeros = released(&mut client, &none);
        assert_ne!(update, zeros);
        for (samples, error) in [
            (&broken, SampleError::NotFinite { feature: 1 }),
            (&targets, SampleError::Target),
        ] {
            assert_eq!(client.check(samples), Err(error));
        }
        assert!(matches!(
            client.check(&many),
            Err(SampleError::Count { found: 5, .. })
        ));
        for samples in [&broken, &many, &targets] {
            assert_eq!(released(&mut client, samples), zeros);
            let participation = Participation::new(1, Root::from_seed(5), 2);
            let settings = settings(0.1);
            let training = client.begin(participation, samples, &[0.5; 3], &settings);
            let trained = training.finish().noise(&grid, multiplier).unwrap();
            assert_eq!(trained.values().collect::<std::vec::Vec<i64>>(), zeros);
        }
    }
}
