//! The requirements (terms) of a federation for real devices, and checks of an experiment:
//! unsupported settings, numbers of devices, quorum, interval of rounds.

use std::time::Duration;

use smolfed_accounting::event::{Adjacency, PrivacyEvent};
use smolfed_core::contrast::{ContrastRequest, MAX_SAMPLES, Recipe};
use smolfed_core::params::{ClipNorm, Penalty};
use smolfed_core::session::SETTING_LIMITS;
use smolfed_core::train::LocalTraining;
use smolfed_core::wire::message::{ModelShape, update_chunks};

use crate::coordinator::FleetError;
use crate::fleet_file::FleetFile;
use crate::keys::FleetKeys;
use crate::peer::Terms;
use crate::presence::{ExpectedCohort, PresenceError, PresenceRule};
use crate::source::over_selection::OverSelectionError;
use crate::source::tuning::fine_tuning;
use smolfed_data::federation::Federation;
use smolfed_engine::combinations::{Conflict, Setting};
use smolfed_engine::experiment::Experiment;
use smolfed_release::{Encoding, Timing};

/// Reason for refusing a large matrix of a small encoder.
const ROOM: &str = "real devices send a matrix from the memory of the update";

/// Reason for refusing variations.
const RECIPE: &str = "real devices know shifts and sizes up to 65,535 values";

/// Reason for refusing a sum of too many samples.
const SAMPLES: &str = "the matrices of real devices are sums of up to 1,048,576 samples";

/// Error when an experiment cannot be run with real devices.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Updates without a bound cannot be encoded.
    #[error(
        "`privacy.clip_norm` is missing: real devices send their updates on the grid of a clip norm"
    )]
    NoClipNorm,
    /// A number out of range, which every device declines.
    #[error("`{key}` is {value}: real devices accept numbers from 2^-30 to 2^30")]
    Setting {
        /// The key.
        key: &'static str,
        /// Its value.
        value: f32,
    },
    /// A method, model or setting unsupported on real devices.
    #[error(transparent)]
    Combination(#[from] Conflict),
    /// Settings of a method without labels that the protocol cannot describe.
    #[error("{what} is supported only in simulations: {reason}")]
    SimulationOnly {
        /// The setting.
        what: &'static str,
        /// The reason.
        reason: &'static str,
    },
    /// A model too large for the protocol.
    #[error(
        "the model has {features} features and {outputs} scores: a device can have up to 65,535 of \
         each, and an update of up to 65,535 chunks"
    )]
    TooLarge {
        /// Features.
        features: usize,
        /// Scores.
        outputs: usize,
    },
    /// A key for a device that the federation does not have.
    #[error("the keys name device {device}, but the federation has devices 0 to {last}")]
    NoSuchDevice {
        /// The device.
        device: u32,
        /// The last device of the federation.
        last: u32,
    },
    /// The numbers of real and simulated devices do not add up.
    #[error(
        "the federation has {devices} devices, {real} of which have keys: `--simulated {rest}` \
         simulates the others, and `--simulated 0` makes it a federation of {real}"
    )]
    Count {
        /// Devices of the federation.
        devices: u32,
        /// Devices with keys.
        real: u32,
        /// The difference.
        rest: u32,
    },
    /// Windows without a length.
    #[error(
        "`cohort.window` is missing: with real devices a round of \"buffered\" is a window of \
         time, for example \"1h\""
    )]
    NoWindow,
    /// Windows follow their own times.
    #[error(
        "`--round-interval {}`: with `cohort.sampling` = \"buffered\" rounds follow \
         `cohort.window`: leave it out, or change the window",
        humantime::format_duration(*.0)
    )]
    RoundInterval(Duration),
    /// A quorum that the accounting does not cover.
    #[error("`--quorum`: {reason}; leave it out, or {instead}")]
    Quorum {
        /// The reason.
        reason: &'static str,
        /// The alternative.
        instead: &'static str,
    },
    /// Wrong settings of waiting for devices.
    #[error(transparent)]
    Presence(#[from] PresenceError),
    /// Over-selection that does not fit the experiment.
    #[error(transparent)]
    OverSelection(#[from] OverSelectionError),
    /// The coordinator cannot start.
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

impl ServeError {
    /// Returns whether the input is at fault, not the run.
    #[must_use]
    pub const fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            Self::Fleet(FleetError::Listen { .. } | FleetError::Entropy(_) | FleetError::Thread(_))
        )
    }
}

/// Checks that the keyed and the simulated devices add up to the federation.
///
/// # Errors
/// [`ServeError::NoSuchDevice`], [`ServeError::Count`].
pub fn check_devices(
    federation: &Federation,
    keys: &FleetKeys,
    simulated: u32,
) -> Result<(), ServeError> {
    let devices = federation.device_count();
    let real = keys.members().len() as u32;
    if let Some(device) = keys.members().iter().find(|device| **device >= devices) {
        return Err(ServeError::NoSuchDevice {
            device: *device,
            last: devices.saturating_sub(1),
        });
    }
    if real.checked_add(simulated) != Some(devices) {
        return Err(ServeError::Count {
            devices,
            real,
            rest: devices.saturating_sub(real),
        });
    }
    Ok(())
}

/// Returns the presence rule of the federation, for rounds that take up to `timeout`.
///
/// # Errors
/// [`ServeError::Presence`].
pub fn presence(
    file: &FleetFile,
    experiment: &Experiment,
    federation: &Federation,
    timeout: Duration,
) -> Result<PresenceRule, ServeError> {
    let cohort = ExpectedCohort {
        size: experiment.attendance().expected_size(),
        device_count: federation.device_count(),
    };
    let mut settings = file.presence();
    if experiment.attendance().windows().is_some() {
        // Sleeping devices are seldom connected together, so the first one begins the run.
        settings.min_devices = settings.min_devices.or(Some(1));
    }
    Ok(PresenceRule::new(settings, cohort, timeout)?)
}

/// Returns the requirements of the federation for its devices.
///
/// # Errors
/// [`ServeError::NoClipNorm`], [`ServeError::Setting`], [`ServeError::TooLarge`],
/// [`ServeError::SimulationOnly`].
pub fn terms(experiment: &Experiment) -> Result<Terms, ServeError> {
    let is_trained = experiment.method().properties().timing != Timing::Never;
    // The invitation to an answer has the settings of training, too.
    let encodings = match is_trained {
        true => vec![&experiment.release().encoding],
        false => experiment
            .questions()
            .iter()
            .map(|asked| &asked.release.encoding)
            .collect(),
    };
    let last = experiment.config().rounds.saturating_sub(1);
    for encoding in encodings {
        let Encoding::Clipped(grid) = encoding else {
            return Err(ServeError::NoClipNorm);
        };
        for round in [0, last] {
            check_settings(experiment, &experiment.training_in(round), grid.clip_norm())?;
        }
    }
    experiment.fits_source(Setting::RealDevices)?;
    let config = &experiment.config().cohort;
    if experiment.attendance().windows().is_some() && config.window.is_none() {
        return Err(ServeError::NoWindow);
    }
    if let Some((what, reason)) = refusal_without_labels(experiment) {
        return Err(ServeError::SimulationOnly { what, reason });
    }
    let shape = shape(experiment).ok_or(ServeError::TooLarge {
        features: experiment.task().feature_count(),
        outputs: experiment.task().output_count(),
    })?;
    let privacy = experiment.privacy();
    Ok(Terms {
        shape,
        // Answers without training have noise without a sampler of the rounds.
        local_noise: privacy.mechanism.is_local()
            && (privacy.mechanism.sampler.is_some() || !is_trained),
        // The coordinator's operator decides.
        handshake: false,
        // The federation decides.
        recipe: None,
    })
}

/// Refuses an interval between rounds if rounds are windows of time.
///
/// # Errors
/// [`ServeError::RoundInterval`].
pub fn check_interval(interval: Duration, experiment: &Experiment) -> Result<(), ServeError> {
    match experiment.attendance().windows() {
        Some(_) if !interval.is_zero() => Err(ServeError::RoundInterval(interval)),
        _ => Ok(()),
    }
}

/// Checks that the accounting covers rounds that end with a share of the cohort's answers. See
/// [`crate::quorum`].
///
/// # Errors
/// [`ServeError::Quorum`].
pub fn check_quorum(experiment: &Experiment) -> Result<(), ServeError> {
    let refuse = |reason, instead| Err(ServeError::Quorum { reason, instead });
    if experiment.privacy().mechanism.is_local() {
        return Ok(());
    }
    let events = experiment.events_in(0);
    let is_covered = |event: &PrivacyEvent| event.adjacency() == Adjacency::ReplaceOne;
    if !events.iter().all(is_covered) {
        return refuse(
            "a device that answers early displaces another one, and the sum moves by up to twice \
             the clip norm, but add-remove adjacency counts it once",
            "use `cohort.sampling` = \"uniform\", or local trust",
        );
    }
    Ok(())
}

/// Refuses settings that devices decline. The learning rate falls from the first round to the last.
fn check_settings(
    experiment: &Experiment,
    training: &LocalTraining,
    clip_norm: ClipNorm,
) -> Result<(), ServeError> {
    let request = experiment.method().properties().personal_request();
    let pull = request.and_then(|request| request.pull());
    let tuning = fine_tuning(experiment);
    let pull = pull.map_or(0.0, Penalty::get);
    let positive = [
        ("privacy.clip_norm", clip_norm.get()),
        ("train.learning_rate", training.learning_rate.get()),
    ];
    let penalties = [
        ("train.weight_decay", training.weight_decay.get()),
        ("train.proximal", training.proximal.get()),
        ("personalise.lambda", pull),
        (
            "personalise.fine_tune_lambda",
            tuning.map_or(0.0, |(pull, _)| pull.get()),
        ),
    ];
    let is_below = |(_, value): &(_, f32)| value < SETTING_LIMITS.start();
    let is_above = |(_, value): &(_, f32)| value > SETTING_LIMITS.end();
    let too_small = positive.into_iter().find(is_below);
    let declined = too_small.or_else(|| positive.into_iter().chain(penalties).find(is_above));
    match declined {
        None => Ok(()),
        Some((key, value)) => Err(ServeError::Setting { key, value }),
    }
}

/// Returns what real devices cannot do of a method without labels, and the reason.
fn refusal_without_labels(experiment: &Experiment) -> Option<(&'static str, &'static str)> {
    let properties = experiment.method().properties();
    let message = experiment.method().second_message();
    let is_unknown = |recipe: Recipe| Recipe::read(&recipe.values()).is_none();
    let has_room = |shape: ModelShape| {
        shape.parameters() >= ContrastRequest::matrix_entries(shape.outputs.into())
    };
    if message.is_some() && !properties.model_shape.is_none_or(has_room) {
        Some((
            "an encoder with fewer parameters than a matrix has entries",
            ROOM,
        ))
    } else if properties.recipe.is_some_and(is_unknown) {
        Some(("`contrast.augment`", RECIPE))
    } else if message.is_some_and(|message| message.max_samples > MAX_SAMPLES) {
        Some(("a device with that many samples", SAMPLES))
    } else {
        None
    }
}

/// Returns the model in the protocol's form, if possible.
fn shape(experiment: &Experiment) -> Option<ModelShape> {
    let properties = experiment.method().properties();
    let shape = properties.model_shape?;
    // The widest update has values of 57 bits.
    u16::try_from(update_chunks(shape.parameters(), 57)).ok()?;
    let integer = properties.arithmetic.feature_format();
    Some(ModelShape { integer, ..shape })
}
