//! A device as a process: its record, its samples, and the session of its model.

use std::pin::Pin;

use getrandom::SysRng;
use rand_core::UnwrapErr;
use smolfed_core::contrast::{MAX_PAIRS, Projection};
use smolfed_core::model::{BATCH_GROUP, Model};
use smolfed_core::provision::{ProvisionError, Record, Target, TargetKind};
use smolfed_core::recipe::{MAX_RECIPE_BYTES, Recipe};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{QuestionPolicy, Session, Trainable, Unlabelled, X25519};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_engine::method::contrastive::Variations;
use smolfed_engine::of_task;
use smolfed_engine::task::Task;
use smolfed_release::entropy::secret;
use smolfed_simd::Network;
use tokio_util::sync::CancellationToken;

use super::DeviceError;
use super::files::{DeviceFiles, forget_key, ledger, record as record_of, refused};
use super::held::HeldFile;
use super::line::{Line, LineOptions};
use super::memory::SessionMemory;
use super::personal::FileStore;

/// A device that takes part in rounds.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<(), DeviceError>> + 'a>>;

/// Samples of a file, in the form that the model reads.
#[derive(Default)]
pub struct DeviceSamples {
    /// Features, row after row.
    pub features: Vec<f32>,
    /// Values, or numbers of classes.
    pub targets: Vec<f32>,
    /// The column of the targets.
    pub label: String,
}

impl std::fmt::Debug for DeviceSamples {
    /// Count only: device data never reach a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DeviceSamples({})", self.targets.len())
    }
}

/// A device that runs as a process.
#[derive(Debug)]
pub struct DeviceProcess<'a> {
    /// The model that it trains.
    pub task: Task,
    /// Whether it learns without labels.
    pub is_encoder: bool,
    /// Paths of its record and its ledger.
    pub files: DeviceFiles,
    /// Whether to create the ledger, which must not exist.
    pub has_new_ledger: bool,
    /// Whether its updates survive the process, in a file next to the ledger.
    pub holds_updates: bool,
    /// Whether each session begins with an X25519 handshake.
    pub has_handshake: bool,
    /// Questions that it answers. `None` for the ones that the record allows.
    pub questions: Option<QuestionPolicy>,
    /// Its samples. `None` for the samples of the record.
    pub samples: Option<&'a DeviceSamples>,
    /// How the features of these samples were computed, if they were.
    pub recipe: Option<Recipe>,
    /// Its connection.
    pub line: LineOptions<'a>,
}

impl DeviceProcess<'_> {
    /// Takes part in rounds until `stop` is cancelled. Has the same type for all models.
    pub fn run<'a>(&'a self, stop: &'a CancellationToken) -> Running<'a> {
        if self.is_encoder {
            return self.run_encoder(stop);
        }
        of_task!(self.task, model => self.run_model(model, stop))
    }

    fn run_model<'a, M: Model<Target: Target + Default + FromNumber> + 'a>(
        &'a self,
        model: M,
        stop: &'a CancellationToken,
    ) -> Running<'a> {
        let (features, scratch) = (model.feature_count(), model.scratch_count(BATCH_GROUP));
        let scratch = move |_: &M, _| scratch;
        let samples = |record: &Record<'_>| self.labelled_samples::<M::Target>(record);
        Box::pin(self.run_session(model, features, scratch, samples, stop))
    }

    fn run_encoder<'a>(&'a self, stop: &'a CancellationToken) -> Running<'a> {
        let (features, width) = (self.task.feature_count(), self.task.output_count());
        let network = match self.task {
            Task::Sequential(network) => Network::Layers(network),
            _ => Network::Linear(Projection::new(features, width)),
        };
        let encoder = Unlabelled::<_, Variations>::new(network);
        // Room for the largest possible request, so that no answer depends on the number of
        // samples. Pages that no batch reaches are never touched.
        let scratch = |encoder: &Unlabelled<_, _>, samples: usize| {
            encoder.scratch_for((2 * MAX_PAIRS as usize).saturating_mul(samples.max(2)))
        };
        let samples = |record: &Record<'_>| {
            let features = self.features(record)?;
            let count = features.len() / self.task.feature_count().max(1);
            Ok((features, vec![(); count]))
        };
        Box::pin(self.run_session(encoder, features, scratch, samples, stop))
    }

    async fn run_session<M: Trainable<Target: Default>>(
        &self,
        model: M,
        feature_count: usize,
        scratch: impl Fn(&M, usize) -> usize,
        samples: impl FnOnce(&Record<'_>) -> Result<(Vec<f32>, Vec<M::Target>), DeviceError>,
        stop: &CancellationToken,
    ) -> Result<(), DeviceError> {
        let page = record_of(&self.files.record)?;
        let record = Record::read(&page).map_err(|error| {
            let advice = match error {
                ProvisionError::Element => "a process is provisioned without `--element`",
                _ => "give a device-K.bin that `smolfed provision` wrote",
            };
            refused(&self.files.record, format!("{error}; {advice}"))
        })?;
        let mut bytes = [0; MAX_RECIPE_BYTES];
        let recipe = self.recipe(&record, &mut bytes)?;
        let (features, targets) = samples(&record)?;
        let samples = SampleSlice::new(&features, &targets, feature_count).map_err(|_| {
            let found = features.len() / targets.len().max(1);
            DeviceError::Usage(format!(
                "the samples have {found} features each, but the model reads {feature_count}"
            ))
        })?;
        let most = self.max_samples(samples.len())?;
        let scratch = scratch(&model, most);
        let mut memory = SessionMemory::new(&model, most, scratch);
        let (identity, policy) = (record.identity.clone(), record.policy);
        let questions = self.questions.unwrap_or(record.questions);
        let device = identity.device;
        let ledger = ledger(&self.files.ledger, self.has_new_ledger, &record)?;
        forget_key(&self.files.record, &page);
        let store = FileStore::beside(&self.files.ledger);
        let entries = model.parameter_count();
        let held = self.holds_updates;
        let held = held.then(|| HeldFile::beside(&self.files.ledger, entries));
        let memory = memory.borrow();
        let line = Line {
            options: &self.line,
            device,
            budget: policy.limits.budget.0,
            stop,
        };
        let wrong = |error| DeviceError::Usage(format!("`--model`: {error}"));
        // Two types, so that a session of one kind never becomes one of the other.
        if self.has_handshake {
            // Not from a stream: its key would reveal all sessions of this process.
            let keys = X25519::new(UnwrapErr(SysRng));
            let session = Session::with_store(identity, policy, model, memory, ledger, keys, store);
            let mut session = session.map_err(wrong)?;
            session.set_recipe(recipe);
            session.set_questions(questions);
            line.take_part(session, &samples, held).await
        } else {
            let nonces = nonces(device)?;
            let session =
                Session::with_store(identity, policy, model, memory, ledger, nonces, store);
            let mut session = session.map_err(wrong)?;
            session.set_recipe(recipe);
            session.set_questions(questions);
            line.take_part(session, &samples, held).await
        }
    }

    /// Returns the number of samples for which the device has memory. For a sleeping device it is a
    /// public number, since declines depend on it.
    fn max_samples(&self, samples: usize) -> Result<usize, DeviceError> {
        let Some(awake) = &self.line.awake else {
            return Ok(samples);
        };
        let most = awake.max_samples.get();
        match usize::try_from(most) {
            Ok(most) if samples > most => Err(DeviceError::Usage(format!(
                "`--max-samples {most}`: the device has {samples} samples; give the largest number \
                 that any device of the fleet may have"
            ))),
            most => Ok(most.unwrap_or(samples)),
        }
    }

    /// Returns how the device computes features of its samples, from the record if it says so.
    fn recipe<'a>(
        &self,
        record: &Record<'_>,
        bytes: &'a mut [u8; MAX_RECIPE_BYTES],
    ) -> Result<&'a [u8], DeviceError> {
        let own = match &self.recipe {
            Some(recipe) => recipe.write(bytes),
            None => &[],
        };
        let asked = record.samples.recipe();
        if asked.is_empty() || asked == own {
            return Ok(own);
        }
        let words = Recipe::read(asked);
        let words = words.map_or_else(|| "features".to_owned(), |recipe| recipe.to_string());
        let (path, own) = (self.files.record.display(), self.recipe);
        Err(DeviceError::Usage(match own {
            None => format!(
                "{path} is for firmware that computes {words}: give `--data FILE` and the \
                 experiment's `--preprocessing FILE`, or provision without `--raw`"
            ),
            Some(own) => format!("{path} asks for {words}, but `--preprocessing` for {own}"),
        }))
    }

    /// Returns the samples of the file or the record, without their targets.
    fn features(&self, record: &Record<'_>) -> Result<Vec<f32>, DeviceError> {
        if let Some(samples) = self.samples {
            return Ok(samples.features.clone());
        }
        match record.samples.kind() {
            TargetKind::None => Err(self.no_samples()),
            _ => Ok(record.samples.features().collect()),
        }
    }

    fn no_samples(&self) -> DeviceError {
        let path = self.files.record.display();
        DeviceError::Usage(format!(
            "{path} has no samples: give `--data FILE --label COLUMN`, or provision with \
             `--with-data`"
        ))
    }

    /// Returns the samples of the file or the record.
    fn labelled_samples<T: Target + FromNumber>(
        &self,
        record: &Record<'_>,
    ) -> Result<(Vec<f32>, Vec<T>), DeviceError> {
        if let Some(samples) = self.samples {
            return self.samples_of_file(samples);
        }
        let stored = &record.samples;
        if stored.kind() == TargetKind::None {
            return Err(self.no_samples());
        }
        if stored.kind() != T::KIND {
            let path = self.files.record.display();
            return Err(DeviceError::Usage(format!(
                "{path} contains samples for another kind of model than `--model {}`",
                self.task
            )));
        }
        let targets: Vec<T> = stored.targets().collect();
        let classes = self.task.output_count().max(2);
        let is_class = |target: &T| (target.to_word() as usize) < classes;
        if T::KIND == TargetKind::Class && !targets.iter().all(is_class) {
            let path = self.files.record.display();
            return Err(DeviceError::Usage(format!(
                "{path} contains samples of classes that `--model {}` does not have",
                self.task
            )));
        }
        Ok((stored.features().collect(), targets))
    }

    fn samples_of_file<T: FromNumber>(
        &self,
        samples: &DeviceSamples,
    ) -> Result<(Vec<f32>, Vec<T>), DeviceError> {
        let classes = self.task.output_count();
        let target = |value: &f32| {
            T::from_number(*value, classes).ok_or_else(|| {
                DeviceError::Usage(format!(
                    "column `{}` contains {value}: expected a class from 0 to {}",
                    samples.label,
                    classes.max(2) - 1
                ))
            })
        };
        let targets = samples.targets.iter().map(target);
        Ok((samples.features.clone(), targets.collect::<Result<_, _>>()?))
    }
}

/// Returns session nonces that never repeat: a stream under a fresh secret.
fn nonces(device: u32) -> Result<Stream, DeviceError> {
    let secret = secret().map_err(|error| DeviceError::Stopped(error.to_string()))?;
    Ok(Root::from_secret(*secret).stream(StreamId {
        purpose: Purpose::SessionNonces,
        round: 0,
        device,
    }))
}

/// A target that can be read from a CSV file.
trait FromNumber: Sized {
    /// Converts a number to a target. `None` if it is not a class of the model.
    fn from_number(value: f32, classes: usize) -> Option<Self>;
}

impl FromNumber for f32 {
    fn from_number(value: f32, _: usize) -> Option<Self> {
        Some(value)
    }
}

impl FromNumber for u16 {
    /// Class numbers, not names: devices would number names differently, by their samples.
    fn from_number(value: f32, classes: usize) -> Option<Self> {
        let class = value as Self;
        let is_class = f32::from(class).to_bits() == value.to_bits();
        (is_class && usize::from(class) < classes.max(2)).then_some(class)
    }
}
