//! Keyword arguments of `smolfed.accounting.event` in Python: noise, sampling, and δ as a number or
//! a text.

use pyo3::prelude::*;
use smolfed_accounting::correlated::Participation;
use smolfed_accounting::{
    Delta, DeltaSpec, Mechanism, NoiseMultiplier, ParamError, PrivacyEvent, PrivacyUnit, Sampling,
    SamplingRate, TrustModel,
};

use crate::error::value_error;

/// The keyword arguments of `smolfed.accounting.event`, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Release {
    noise_multiplier: f64,
    sampling: Option<String>,
    sampling_rate: Option<f64>,
    cohort_size: Option<u32>,
    devices: Option<u32>,
    max_participations: Option<u32>,
    rounds: u64,
    mechanism: String,
    grid_bits: u8,
    trust: String,
    unit: String,
    devices_per_user: u32,
}

impl Release {
    /// Returns the event.
    ///
    /// # Errors
    /// `ValueError` for the first missing, superfluous or out-of-range argument.
    pub(crate) fn event(&self) -> PyResult<PrivacyEvent> {
        let noise_multiplier = NoiseMultiplier::new(self.noise_multiplier).map_err(value_error)?;
        let mechanism = match self.mechanism.as_str() {
            "gaussian" => Mechanism::Gaussian { noise_multiplier },
            "discrete-gaussian" => Mechanism::DiscreteGaussian {
                noise_multiplier,
                grid_bits: self.grid_bits,
            },
            "correlation-matrix" => Mechanism::CorrelationMatrix { noise_multiplier },
            other => {
                return Err(value_error(format!(
                    "`mechanism` is \"{other}\": it must be \"gaussian\", \"discrete-gaussian\" or \
                     \"correlation-matrix\"; correlated noise is an event of a `Strategy`"
                )));
            }
        };
        if self.rounds == 0 {
            return Err(value_error("`rounds` is 0: nothing would be released"));
        }
        let trust: TrustModel = self.trust.parse().map_err(value_error)?;
        let unit = match self.unit.as_str() {
            "device" => PrivacyUnit::Device,
            "example" => PrivacyUnit::Example,
            other => {
                return Err(value_error(format!(
                    "`unit` is \"{other}\": it must be \"device\" or \"example\""
                )));
            }
        };
        let is_matrix = matches!(mechanism, Mechanism::CorrelationMatrix { .. });
        if is_matrix && (unit == PrivacyUnit::Device || trust != TrustModel::Local) {
            return Err(value_error(
                "`mechanism` = \"correlation-matrix\" protects one example of a device, which adds \
                 the noise itself: give `unit` = \"example\" and `trust` = \"local\"",
            ));
        }
        let event = PrivacyEvent {
            trust,
            unit,
            ..PrivacyEvent::new(mechanism, self.sampling()?, self.rounds)
        };
        let event = event.with_devices_per_user(self.devices_per_user);
        event.map_err(value_error)
    }

    /// Returns the sampling scheme of devices.
    fn sampling(&self) -> PyResult<Sampling> {
        // Without a number, uses the smallest possible one. Nothing else depends on it.
        let devices = self.devices.unwrap_or(self.devices_per_user.max(1));
        let has_size = self.sampling_rate.is_some() || self.cohort_size.is_some();
        let scheme = match &self.sampling {
            Some(scheme) => scheme.as_str(),
            None if has_size => "poisson",
            None => {
                return Err(value_error(
                    "the sampling is missing: give `sampling_rate`, or `sampling` = \"full\" if \
                     all devices take part in every round",
                ));
            }
        };
        if self.max_participations.is_some() && scheme != "unsampled" {
            return Err(value_error(
                "`max_participations` belongs to `sampling` = \"unsampled\"",
            ));
        }
        match scheme {
            "poisson" => Sampling::poisson(devices, self.rate()?).map_err(value_error),
            "uniform" => {
                Sampling::uniform(self.needed_devices()?, self.size()?).map_err(value_error)
            }
            "full" | "unsampled" if has_size => Err(value_error(
                "`sampling_rate` and `cohort_size` belong to `sampling` = \"poisson\" or \
                 \"uniform\"",
            )),
            "full" => Sampling::full(devices).map_err(value_error),
            "unsampled" => {
                let most = self.max_participations.ok_or_else(|| {
                    value_error(
                        "`sampling` = \"unsampled\" needs `max_participations`, a limit that the \
                         devices enforce",
                    )
                })?;
                Sampling::unsampled(devices, most).map_err(value_error)
            }
            other => Err(value_error(format!(
                "`sampling` is \"{other}\": it must be \"poisson\", \"uniform\", \"full\" or \
                 \"unsampled\"; block-cyclic sampling belongs to a `Strategy`"
            ))),
        }
    }

    fn needed_devices(&self) -> PyResult<u32> {
        self.devices.ok_or_else(|| {
            value_error("`devices` is missing: the number of devices in the federation")
        })
    }

    /// Returns τ of Poisson sampling.
    fn rate(&self) -> PyResult<SamplingRate> {
        let rate = match (self.sampling_rate, self.cohort_size) {
            (Some(_), Some(_)) => return Err(two_sizes()),
            (Some(rate), None) => rate,
            (None, Some(size)) => {
                let devices = self.needed_devices()?;
                Sampling::uniform(devices, size).map_err(value_error)?;
                f64::from(size) / f64::from(devices)
            }
            (None, None) => return Err(no_size("poisson")),
        };
        SamplingRate::new(rate).map_err(value_error)
    }

    /// Returns S of uniform sampling.
    fn size(&self) -> PyResult<u32> {
        match (self.sampling_rate, self.cohort_size) {
            (Some(_), Some(_)) => Err(two_sizes()),
            (None, Some(size)) => Ok(size),
            (Some(rate), None) => {
                let rate = SamplingRate::new(rate).map_err(value_error)?.get();
                let size = rate * f64::from(self.needed_devices()?);
                Ok((size.round() as u32).max(1))
            }
            (None, None) => Err(no_size("uniform")),
        }
    }
}

fn two_sizes() -> PyErr {
    value_error("give either `cohort_size` or `sampling_rate`")
}

fn no_size(scheme: &str) -> PyErr {
    value_error(format!(
        "`sampling` = \"{scheme}\" needs `cohort_size` or `sampling_rate`"
    ))
}

/// δ: a number, or a text such as "1/N^1.1".
#[derive(FromPyObject)]
pub(crate) enum DeltaArgument {
    #[pyo3(transparent)]
    Number(f64),
    #[pyo3(transparent)]
    Text(String),
}

impl DeltaArgument {
    /// Returns δ for events about this number of devices, if it is known.
    ///
    /// # Errors
    /// `ValueError` for an invalid δ.
    pub(crate) fn resolve(&self, events: &[PrivacyEvent]) -> PyResult<Delta> {
        let devices = || {
            events
                .last()
                .map_or(1, |event| event.sampling.device_count())
        };
        let delta: Result<Delta, ParamError> = match self {
            Self::Number(value) => Delta::new(*value),
            Self::Text(text) => text
                .parse()
                .and_then(|spec: DeltaSpec| spec.resolve(devices())),
        };
        delta.map_err(value_error)
    }
}

/// Returns (k, b) participation from Python's numbers.
///
/// # Errors
/// `ValueError` for a number outside its range.
pub(crate) fn participation(
    rounds: u32,
    separation: u32,
    participations: u32,
) -> PyResult<Participation> {
    Participation::new(rounds, separation, participations).map_err(value_error)
}
