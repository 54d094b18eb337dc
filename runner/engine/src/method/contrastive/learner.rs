//! A cohort of simulated devices that train an encoder without labels (FedSC, Algorithm 1).

use rayon::prelude::*;
use smolfed_core::contrast::correlation::packed_length;
use smolfed_core::contrast::{ContrastRequest, Objective, Part, Recipe, alpha};
use smolfed_core::model::Parametric;
use smolfed_core::samples::Samples;
use smolfed_core::stream::Root;
use smolfed_core::train::{TrainError, TrainReport};

use super::device::{Buffers, DeviceRound, Unlabelled};
use super::evaluate::Evaluator;
use super::matrices::{Matrices, Total};
use super::settings::{ContrastSettings, MIN_SAMPLES, Senders, Sharing};
use crate::method::contract::{
    Assignment, EvaluationError, Figures, Learner, Method, MethodProperties, SecondMessage, Store,
    Trainer, View,
};
use crate::method::remote::{MessageOutcome, MessageRequest, RoundContext};
use crate::method::state::StateError;
use crate::ranks::{Communicator, gather_parts, part};
use crate::tables::contrast::{AlphaName, ExchangeTime};
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;
use smolfed_release::sampling::draw_senders;
use smolfed_release::saved::Saved;
use smolfed_release::{Contribution, Message, ReleaseDigest};

/// A method that trains an encoder without labels, configured for an experiment.
#[derive(Debug)]
pub(super) struct Contrastive {
    pub(super) properties: MethodProperties,
    pub(super) settings: ContrastSettings,
    /// Number of rounds T, over which α falls.
    pub(super) rounds: u32,
    pub(super) max_devices: u32,
}

impl Method for Contrastive {
    fn properties(&self) -> &MethodProperties {
        &self.properties
    }

    fn second_message(&self) -> Option<&SecondMessage> {
        let sharing = self.settings.sharing.as_ref()?;
        Some(&sharing.message)
    }

    fn initial(&self, root: &Root) -> Vec<f32> {
        let mut parameters = self.settings.network.initial(root);
        parameters.truncate(self.properties.shared_count);
        parameters
    }

    fn begin<'a>(
        &'a self,
        federation: &'a Federation,
        store: Option<Store<'_>>,
    ) -> Result<Box<dyn Learner + 'a>, StateError> {
        let width = self.settings.network.output_count();
        let saved = store.and_then(|store| store.checkpoint);
        let matrices = match saved {
            None => Matrices::new(width),
            Some((_, saved)) => Matrices::restored(width, saved)?,
        };
        Ok(Box::new(ContrastiveLearner::new(
            self, federation, matrices,
        )))
    }
}

/// Simulated devices that train an encoder without labels, and the server's matrices.
pub(super) struct ContrastiveLearner<'a> {
    federation: &'a Federation,
    method: &'a Contrastive,
    matrices: Matrices,
    /// Devices that sent a matrix in this round, ascending.
    sent: Vec<u32>,
    /// Sum of the matrices for the training of this round's devices.
    total: Option<Total>,
    /// All samples, if one device holds them.
    pooled: Option<Vec<f32>>,
    /// Number of samples of the largest device.
    largest: usize,
}

impl<'a> ContrastiveLearner<'a> {
    /// Starts before a round, with the matrices of the earlier ones.
    pub(super) fn new(
        method: &'a Contrastive,
        federation: &'a Federation,
        matrices: Matrices,
    ) -> Self {
        let is_one = method.properties.has_one_participant;
        let pooled = is_one.then(|| {
            let mut buffer = DeviceBuffer::default();
            let mut features = Vec::new();
            for device in 0..federation.device_count() {
                let view = federation.device(device, &mut buffer);
                (0..view.len()).for_each(|row| features.extend_from_slice(view.features(row)));
            }
            features
        });
        let counts = (0..federation.device_count()).map(|device| federation.sample_count(device));
        let largest = match is_one {
            true => counts.sum(),
            false => counts.max().unwrap_or(0),
        };
        Self {
            federation,
            method,
            matrices,
            sent: Vec::new(),
            total: None,
            pooled,
            largest,
        }
    }

    const fn settings(&self) -> &'a ContrastSettings {
        &self.method.settings
    }

    fn samples<'b>(&'b self, device: u32, buffer: &'b mut DeviceBuffer) -> Unlabelled<'b> {
        match &self.pooled {
            Some(features) => Unlabelled::Pooled(features, self.settings().network.feature_count()),
            None => Unlabelled::View(self.federation.device(device, buffer)),
        }
    }

    /// Returns the devices that send a matrix: all in the first round with matrices, which counts
    /// as a release of each (docs/papers.md, F3), later the cohort. If the cohort must stay secret,
    /// an independent draw of devices sends theirs (F11). A device with too few samples has none,
    /// and a device that has reached its maximum keeps its last.
    fn senders(
        &self,
        sharing: &Sharing,
        assignment: &Assignment<'_>,
        cohort: &[u32],
        context: &RoundContext<'_>,
    ) -> Vec<u32> {
        let plan = &sharing.message.of_device;
        let mut senders = match sharing.senders {
            _ if assignment.round == plan.schedule.from => {
                (0..self.federation.device_count()).collect()
            }
            Senders::Cohort => cohort.to_vec(),
            Senders::Drawn(sampling) => draw_senders(&sampling, assignment.root, assignment.number),
        };
        // The number of samples of a real device is unknown here.
        let has_samples = |device: u32| {
            context.remote.has(device) || self.federation.sample_count(device) >= MIN_SAMPLES
        };
        senders.retain(|device| {
            has_samples(*device) && self.matrices.releases(*device) < plan.max_releases
        });
        senders
    }

    /// Collects matrices if this is their time in this round. Returns the reasons for omitted ones.
    fn exchange(
        &mut self,
        assignment: &Assignment<'_>,
        cohort: &[u32],
        time: ExchangeTime,
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        let sharing = self.settings().sharing.as_ref();
        let is_due = |sharing: &&Sharing| {
            sharing.exchange == time && sharing.message.of_device.schedule.is_in(assignment.round)
        };
        match sharing.filter(is_due) {
            Some(sharing) => {
                let senders = self.senders(sharing, assignment, cohort, context);
                let is_remote = |device: &u32| context.remote.has(*device);
                let (remote, local): (Vec<u32>, Vec<u32>) =
                    senders.into_iter().partition(is_remote);
                let mut left_out = self.collect(sharing, &local, assignment, context.ranks)?;
                self.sent = local;
                left_out.extend(self.receive(sharing, &remote, context));
                self.sent.sort_unstable();
                Ok(left_out)
            }
            None => Ok(Vec::new()),
        }
    }

    /// Computes matrices: each rank takes its part of the senders, and all ranks keep all matrices.
    /// These are public, since they carry the noise of their devices.
    fn collect(
        &mut self,
        sharing: &Sharing,
        senders: &[u32],
        assignment: &Assignment<'_>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<String>, StateError> {
        let samples = |device| self.federation.sample_count(device);
        let sums: Vec<(usize, Result<Message, String>)> = part(ranks, senders, samples)
            .par_iter()
            .map_init(
                || (Buffers::new(self.settings(), 0), DeviceBuffer::default()),
                |(buffers, buffer), device| {
                    let round = self.round(assignment, *device, buffer);
                    let matrix = round.matrix(&sharing.message.release, buffers);
                    let matrix = matrix.map_err(|error| error.to_string());
                    (round.samples.len(), matrix)
                },
            )
            .collect();
        let sums = gather_parts(ranks, Ok::<_, StateError>(sums))?;
        let mut left_out = Vec::new();
        for (device, (samples, sum)) in senders.iter().zip(sums) {
            let samples = u32::try_from(samples).unwrap_or(u32::MAX);
            match sum {
                Err(error) => left_out.push(format!("correlation matrix: {error}")),
                Ok(sum) => {
                    let release = &sharing.message.release;
                    let accepted = self.matrices.accept(*device, samples, sum, release);
                    left_out.extend(accepted.err().map(|error| error.to_string()));
                }
            }
        }
        Ok(left_out)
    }

    /// Requests the matrices of remote devices. A device that may have sent a part of it has
    /// released it.
    fn receive(
        &mut self,
        sharing: &Sharing,
        devices: &[u32],
        context: &mut RoundContext<'_>,
    ) -> Vec<String> {
        if devices.is_empty() {
            return Vec::new();
        }
        let request = MessageRequest {
            contrast: ContrastRequest {
                part: Part::Matrix,
                pairs: self.settings().pairs as u32,
                norm_bound: None,
                entries: ContrastRequest::matrix_entries(self.matrices.width()) as u32,
                max_samples: sharing.message.max_samples.max(1),
            },
            messages: &sharing.message.release,
            min_samples: MIN_SAMPLES as u32,
            tail: self.recipe(1.0).values().to_vec(),
        };
        let outcomes = context.remote.messages(&request, devices);
        let mut left_out = Vec::new();
        for (device, outcome) in outcomes {
            match outcome {
                MessageOutcome::Absent => {}
                MessageOutcome::Lost => self.matrices.count_lost([device]),
                MessageOutcome::Sent { samples, message } => {
                    let release = &sharing.message.release;
                    let accepted = self.matrices.accept(device, samples, message, release);
                    match accepted {
                        Ok(()) => self.sent.push(device),
                        Err(error) => left_out.push(error.to_string()),
                    }
                }
            }
        }
        left_out
    }

    /// Returns the recipe for a device's views, and its α.
    fn recipe(&self, alpha: f32) -> Recipe {
        Recipe {
            alpha,
            ..self.settings().variations.recipe()
        }
    }

    /// Describes a device in a round.
    fn round<'b>(
        &'b self,
        assignment: &Assignment<'b>,
        device: u32,
        buffer: &'b mut DeviceBuffer,
    ) -> DeviceRound<'b> {
        DeviceRound {
            plan: self.settings(),
            root: assignment.root,
            number: assignment.number,
            device,
            samples: self.samples(device, buffer),
            global: assignment.global,
        }
    }

    /// Returns α and the others' matrix for a device with this number of samples, or `None` as long
    /// as no other device has sent one.
    fn others(&self, device: u32, round: u32, samples: usize) -> Option<(f32, Vec<f32>)> {
        let (sharing, total) = self.settings().sharing.as_ref().zip(self.total.as_ref())?;
        let has_noise = sharing.message.release.noise.is_some();
        let (matrix, of_others) = self.matrices.of_others(total, device, has_noise)?;
        let alpha = match sharing.alpha {
            AlphaName::Decay => alpha(round, self.method.rounds),
            AlphaName::Share => (samples as f64 / (samples as f64 + of_others as f64)) as f32,
        };
        Some((alpha, matrix))
    }
}

impl Learner for ContrastiveLearner<'_> {
    fn before(
        &mut self,
        assignment: &Assignment<'_>,
        cohort: &[u32],
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        self.sent.clear();
        let left_out = self.exchange(assignment, cohort, ExchangeTime::BeforeTraining, context)?;
        let sharing = self.settings().sharing.as_ref();
        self.total = sharing.map(|sharing| self.matrices.total(&sharing.message.release.grid));
        Ok(left_out)
    }

    fn tail_for_device(&self, assignment: &Assignment<'_>, device: u32) -> Vec<f32> {
        let samples = match self.matrices.samples(device) {
            // The device may have another number of samples than the federation has here.
            0 => self.federation.sample_count(device).max(MIN_SAMPLES),
            said => said as usize,
        };
        let others = self.others(device, assignment.round, samples);
        let (alpha, others) = others.unwrap_or_else(|| (1.0, Vec::new()));
        [&self.recipe(alpha).values()[..], &others].concat()
    }

    /// Counts a lost matrix of all devices, which may have sent one.
    fn burned(&mut self, round: u32) {
        let message = self.method.second_message();
        if message.is_some_and(|message| message.of_device.schedule.is_in(round)) {
            self.matrices.count_lost(0..self.federation.device_count());
        }
    }

    fn trainer<'a>(&'a self, assignment: &'a Assignment<'a>) -> Box<dyn Trainer + 'a> {
        // No batch is larger than the largest device.
        let batch_size = assignment.training.batch_size.get() as usize;
        let batch_size = self.largest.min(batch_size);
        Box::new(ContrastiveTrainer {
            learner: self,
            assignment,
            memory: Buffers::new(self.settings(), batch_size),
            buffer: DeviceBuffer::default(),
        })
    }

    fn after(
        &mut self,
        assignment: &Assignment<'_>,
        cohort: &[u32],
        context: &mut RoundContext<'_>,
    ) -> Result<Vec<String>, StateError> {
        self.exchange(assignment, cohort, ExchangeTime::WithUpdate, context)
    }

    fn evaluate(&self, view: &View<'_>) -> Result<Figures, EvaluationError> {
        let evaluator = Evaluator {
            plan: self.settings(),
            parameters: view.global,
            federation: self.federation,
        };
        Ok(evaluator.figures(view, self.method.max_devices))
    }

    fn save(&mut self, _: &str) -> Result<Saved, StateError> {
        Ok(match self.settings().sharing {
            Some(_) => self.matrices.saved(),
            None => Saved::default(),
        })
    }

    fn write_messages(&self, digest: &mut ReleaseDigest) {
        for device in &self.sent {
            digest.message(*device, self.matrices.last(*device));
        }
    }
}

/// Working memory of one thread.
struct ContrastiveTrainer<'a> {
    learner: &'a ContrastiveLearner<'a>,
    assignment: &'a Assignment<'a>,
    memory: Buffers,
    buffer: DeviceBuffer,
}

impl Trainer for ContrastiveTrainer<'_> {
    fn train(
        &mut self,
        device: u32,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, String> {
        let learner = self.learner;
        let round = learner.round(self.assignment, device, &mut self.buffer);
        let count = round.samples.len();
        if count < MIN_SAMPLES {
            return Err(format!(
                "{count} sample: without labels a device compares samples, and needs {MIN_SAMPLES}"
            ));
        }
        // Alone, as long as no other device has sent a matrix.
        let alone = || (1.0, vec![0.0; packed_length(learner.matrices.width())]);
        let others = learner.others(device, self.assignment.round, count);
        let (alpha, others) = others.unwrap_or_else(alone);
        let norm_bound = learner.settings().norm_bound;
        let objective = Objective {
            alpha,
            others: &others,
            norm_bound,
        };
        let training = &self.assignment.training;
        round
            .train(training, &objective, &mut self.memory, contribution)
            .map_err(|error| match (error, norm_bound) {
                (TrainError::Diverged, None) => format!(
                    "{error}; `contrast.norm_bound = {}` keeps representations in bounds",
                    learner.matrices.width() as f64 / 2.0
                ),
                _ => error.to_string(),
            })
    }
}
