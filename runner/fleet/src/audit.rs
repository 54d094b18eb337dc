//! The fleet under audit: the real coordinator, and devices in this process at the other end of
//! in-memory pipes, with the same sessions as on boards.
//!
//! A canary is a device with one sample of a logistic regression, whose features are huge at the
//! canary's coordinates. The first local step leads far along the features. After it the prediction
//! is certain and the gradient is zero, and clipping leaves the longest allowed update. The bias
//! gets too little to reach the grid. Training fails on all other devices, so they have no update.
//!
//! Under distributed trust the devices with a session mask their updates with the keys known to the
//! simulated helpers, and those helpers remove the masks from the sum. The simulated devices around
//! them send unmasked updates, as in every fleet.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use smolfed_accounting::TrustModel;
use smolfed_core::crypto::Key;
use smolfed_core::harness::Ram;
use smolfed_core::identity::Identity;
use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
use smolfed_core::model::{BATCH_GROUP, Logistic, Model};
use smolfed_core::params::NoiseMultiplier;
use smolfed_core::samples::SampleSlice;
use smolfed_core::session::{Policy, Session};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::wire::message::ModelShape;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::coordinator::{Coordinator, Endpoints};
use crate::device::client::{Sleep, exchange};
use crate::device::memory::SessionMemory;
use crate::device::pace::Pace;
use crate::keys::FleetKeys;
use crate::keys::file::{KeyFile, Secret};
use crate::keys::passphrase::PassphraseSource;
use crate::link::Link;
use crate::peer::Terms;
use crate::source::Fleet;
use crate::transport::{Options, pipe};
use smolfed_data::federation::Federation;
use smolfed_engine::audit::canaries::{Canaries, Sends};
use smolfed_engine::audit::sources::{AuditedSource, Rounds};
use smolfed_engine::audit::target::TargetError;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::run_files::records::RecordFile;
use smolfed_engine::source::SourceError;
use smolfed_release::durable::replace_private;
use smolfed_release::masked::device::devices_root;

/// Number of devices with a session, the first ones. All others are simulated.
const REAL: u32 = 8;
/// Time that a round waits for a device. Only a bug makes a device late.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Feature value of a canary, so large that the bias of an update is less than a grid step.
const FEATURE: f32 = 1e9;

/// Real devices in a fleet of mostly simulated ones.
#[derive(Clone, Copy, Debug)]
pub struct FleetDevices;

impl AuditedSource for FleetDevices {
    fn slowness(&self) -> u32 {
        500
    }

    /// Smoothed gradients do not point along the features.
    fn fits(&self, experiment: &Experiment) -> bool {
        experiment.training_in(0).gradient_smoothing.is_none()
    }

    fn run(
        &self,
        experiment: &Experiment,
        canaries: &Canaries,
        federation: &Federation,
        rounds: &mut Rounds<'_>,
    ) -> Result<(), TargetError> {
        let dir = tempfile::tempdir().map_err(failed)?;
        let model = Logistic::new(canaries.coordinates.saturating_sub(1));
        let shape = ModelShape::of(&model).ok_or_else(|| failed("the model is too large"))?;
        let terms = Terms {
            shape,
            local_noise: experiment.privacy().event().trust == TrustModel::Local,
            handshake: false,
            recipe: None,
        };
        let devices = 0..REAL.min(federation.device_count());
        let (addresses, ends): (Vec<_>, Vec<_>) = devices.clone().map(|_| pipe()).unzip();
        let keys = keys(dir.path(), devices.clone()).map_err(failed)?;
        let records = RecordFile::open(&dir.path().join("participation.jsonl"), 0);
        let records = records.map_err(SourceError::from)?;
        let (root, policy) = (root(experiment)?, policy(experiment));
        let stop = CancellationToken::new();
        std::thread::scope(|scope| {
            let _stopped = stop.clone().drop_guard();
            for (device, end) in devices.zip(ends) {
                let sample = Sample::new(canaries, device);
                let (identity, stop) = (
                    Identity {
                        device,
                        root: root.clone(),
                    },
                    &stop,
                );
                scope.spawn(move || sample.take_part(model, identity, policy, end, stop));
            }
            let endpoints = Endpoints {
                link: Link::default(),
                round_interval: Duration::ZERO,
                dial: addresses,
                listen: Vec::new(),
                options: Options::default(),
                timeout: TIMEOUT,
                max_connections: None,
                in_flight: REAL as usize,
                strikes: 0,
                requires_x25519: false,
            };
            let fleet = Coordinator::new(keys, terms, &endpoints).map_err(failed)?;
            let fleet = Fleet::new(fleet, federation, terms, 0, 0, records);
            rounds(&mut fleet.of_experiment(experiment, &[]))
        })
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TargetError {
    SourceError::Fleet(error.into()).into()
}

/// Returns the root of the devices. Under distributed trust, the helpers of a simulation derive the
/// mask keys from it.
fn root(experiment: &Experiment) -> Result<Root, TargetError> {
    let root = experiment.root()?;
    Ok(match experiment.release().masking {
        Some(_) => devices_root(&root),
        None => root,
    })
}

/// Returns the policy of the devices, which require as many helpers as the experiment has.
fn policy(experiment: &Experiment) -> Policy {
    let masking = experiment.release().masking;
    Policy {
        limits: Limits {
            budget: Budget(u32::MAX),
            separation: Separation::NONE,
            max_jump: MaxJump::DEFAULT,
        },
        min_noise_multiplier: NoiseMultiplier::NONE,
        min_matrix_noise_multiplier: NoiseMultiplier::NONE,
        max_epochs: u32::MAX,
        hides_number: false,
        helpers: masking.map_or(0, |masking| masking.helpers),
    }
}

/// Returns the key of a device.
fn secret(device: u32) -> [u8; 32] {
    [device as u8 + 1; 32]
}

/// Returns the keys of the devices in the form that a coordinator reads.
fn keys(
    dir: &Path,
    devices: impl Iterator<Item = u32>,
) -> Result<FleetKeys, Box<dyn std::error::Error + Send + Sync>> {
    let keys: BTreeMap<u32, Secret> = devices
        .map(|device| (device, Secret::new(secret(device))))
        .collect();
    let file = KeyFile {
        keys,
        ..KeyFile::default()
    };
    let path = dir.join("keys.toml");
    replace_private(&path, file.to_toml().as_bytes())?;
    Ok(FleetKeys::open(&path, PassphraseSource::find(None))?)
}

/// The only sample of a device.
struct Sample {
    features: Vec<f32>,
    class: u16,
}

impl Sample {
    /// Returns the sample from which the device learns its assigned update.
    fn new(canaries: &Canaries, device: u32) -> Self {
        let length = canaries.coordinates.saturating_sub(1);
        let canary = canaries.canary_of(device);
        let class = match canary.map(|canary| canary.sends) {
            Some(Sends::Update) => 1,
            Some(Sends::Opposite) => 0,
            Some(Sends::Zero | Sends::Nothing) | None => {
                let features = vec![f32::INFINITY; length];
                return Self { features, class: 0 };
            }
        };
        let mut features = vec![0.0; length];
        let support = canary.map(|canary| canary.support.clone());
        let mut support = support.unwrap_or_default();
        // The last coordinate is the bias.
        support.end = support.end.min(length);
        if let Some(features) = features.get_mut(support) {
            features.fill(FEATURE);
        }
        Self { features, class }
    }

    /// Takes part in rounds with the session of a board.
    fn take_part(
        &self,
        model: Logistic<usize>,
        identity: Identity,
        policy: Policy,
        mut end: DuplexStream,
        stop: &CancellationToken,
    ) {
        let (device, targets) = (identity.device, [self.class]);
        let nonces = identity.root.stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device,
        });
        let scratch = model.scratch_count(BATCH_GROUP);
        let mut memory = SessionMemory::new(&model, targets.len(), scratch);
        // If one of these fails, the round has no answer from this device, and the audit fails.
        let Ok(samples) = SampleSlice::new(&self.features, &targets, self.features.len()) else {
            return;
        };
        let key = Key::from_secret(secret(device));
        let Ok(ledger) = Ledger::create(Ram::blank(), [3; 8], key) else {
            return;
        };
        let session = Session::new(identity, policy, model, memory.borrow(), ledger, nonces);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        if let (Ok(mut session), Ok(runtime)) = (session, runtime) {
            session.set_window(16);
            let report = &mut |_| {};
            // The pipe breaks when the coordinator has ended.
            let (sleep, pace) = (&mut Sleep::default(), &mut Pace::new(Link::default()));
            let session = &mut session;
            let ended = exchange(session, &samples, &mut end, sleep, pace, stop, report);
            let _ = runtime.block_on(ended);
        }
    }
}

#[cfg(test)]
mod tests;
