//! Arithmetics of simulated devices in local training: the choice among `f32`, `fast` and
//! `integer`, and the notes about the bits of a result.
//!
//! | module | contents |
//! | --- | --- |
//! | `contract` | the traits of an arithmetic |
//! | `direct` | `f32`: the code and the bits of boards |
//! | `fast` | training in the span of a device's samples, on desktops only |
//! | `integer` | in integers: the code and the bits of boards without a floating-point unit |
//! | `kept` | the Gram matrices that `fast` caches within its memory |
//!
//! The arithmetic is local to training: privacy rests on the integer check of the update on its
//! grid ([`smolfed_release`]), which all arithmetics share. A new arithmetic needs a name in
//! [`ArithmeticName`], a file here and its line in [`Local::begin`].

mod contract;
mod direct;
mod fast;
mod integer;
mod integer_buffers;
mod kept;
pub mod steps;

use smolfed_core::fixed_point::FeatureFormat;
use smolfed_core::personal::Effort;

use crate::check::{ExperimentError, contradiction};
use crate::tables::simulation::{ArithmeticName, SimulationConfig};
use crate::tables::train::TrainConfig;
use crate::task::Task;
use smolfed_data::federation::Federation;

pub use contract::{Arithmetic, Buffers, Device};
pub use integer::words;

/// The arithmetic of an experiment, and its effect on the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Local(Kind);

/// An arithmetic with its properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    F32,
    Fast {
        /// Memory for cached device data, in bytes.
        memory: u64,
        /// Number of devices that train in the span of their samples.
        in_span: u32,
    },
    Integer {
        /// Storage format of features.
        format: FeatureFormat,
        /// Number of features outside the format's range, and number of features inspected.
        saturated: (u64, u64),
    },
}

impl Local {
    /// Chooses the arithmetic for devices that train this model for `effort` in a round.
    /// `is_pulled` says whether another model pulls theirs.
    ///
    /// # Errors
    /// [`ExperimentError`] if the arithmetic does not support the model or the training.
    pub fn new(
        config: &SimulationConfig,
        train: &TrainConfig,
        federation: &Federation,
        task: &Task,
        effort: Effort,
        is_pulled: bool,
    ) -> Result<Self, ExperimentError> {
        Ok(Self(match config.arithmetic {
            ArithmeticName::F32 => Kind::F32,
            ArithmeticName::Integer => {
                let Some(format) = config.integer.checked() else {
                    return Err(contradiction(
                        "simulation.arithmetic",
                        "simulation.integer.fraction",
                        "at most 7 places for \"i8\" and 15 for \"i16\"",
                    ));
                };
                let saturated = integer::saturated(format, federation);
                Kind::Integer { format, saturated }
            }
            ArithmeticName::Fast => {
                let way = fast::Way::new(task, effort, train.batch_size, is_pulled);
                let devices = 0..federation.device_count();
                let in_span = |device: &u32| way.is_span(federation.sample_count(*device));
                Kind::Fast {
                    memory: config.memory.0,
                    in_span: devices.filter(in_span).count() as u32,
                }
            }
        }))
    }

    /// Returns the name of the arithmetic.
    #[must_use]
    pub const fn name(&self) -> ArithmeticName {
        match self.0 {
            Kind::F32 => ArithmeticName::F32,
            Kind::Fast { .. } => ArithmeticName::Fast,
            Kind::Integer { .. } => ArithmeticName::Integer,
        }
    }

    /// Returns the number of devices that train in the span of their samples, with `fast`.
    #[must_use]
    pub const fn in_span(&self) -> u32 {
        match self.0 {
            Kind::Fast { in_span, .. } => in_span,
            Kind::F32 | Kind::Integer { .. } => 0,
        }
    }

    /// Returns the storage format of features on real devices, if they train in integers.
    #[must_use]
    pub const fn feature_format(&self) -> Option<FeatureFormat> {
        match self.0 {
            Kind::Integer { format, .. } => Some(format),
            Kind::F32 | Kind::Fast { .. } => None,
        }
    }

    /// Starts the arithmetic for a run, with an empty cache.
    #[must_use]
    pub fn begin(&self) -> Box<dyn Arithmetic> {
        match self.0 {
            Kind::F32 => Box::new(direct::Direct),
            Kind::Fast { memory, .. } => Box::new(fast::Fast::new(memory)),
            Kind::Integer { format, .. } => Box::new(integer::Integer::new(format)),
        }
    }

    /// Returns a note for readers of the result with this number of devices, or `None` if the bits
    /// are those of boards.
    #[must_use]
    pub fn note(&self, devices: u32) -> Option<String> {
        if let Kind::Integer { saturated, .. } = self.0 {
            let (saturated, looked_at) = saturated;
            return Some(format!(
                "\"integer\" arithmetic: {saturated} of {looked_at} features do not fit their \
                 format and are saturated"
            ));
        }
        let (name, in_span) = (self.name(), self.in_span());
        let (caution, name) = (name.caution()?, name.name());
        let direct = match devices - in_span {
            0 => "",
            _ => {
                "; the others train directly, with the bits of \"f32\", which takes fewer \
                  operations for their numbers of samples, features and steps"
            }
        };
        Some(format!(
            "\"{name}\" arithmetic: {caution}; {in_span} of {devices} devices train in the span of \
             their samples{direct}"
        ))
    }
}

/// Returns what the bits of a run depend on besides its configuration, data and version: nothing,
/// or the vector width of this machine with `fast`. A stopped run must not resume with other bits:
/// a repeated round would be released twice, with the same noise.
#[must_use]
pub fn bits(name: ArithmeticName) -> Option<String> {
    match name {
        ArithmeticName::F32 | ArithmeticName::Integer => None,
        ArithmeticName::Fast => Some(format!("fast{}", smolfed_simd::span::lanes())),
    }
}

#[cfg(test)]
mod tests;
