//! The keys of correlated noise: its strategy, the participations of a device and their distance,
//! and the refusal of unsuitable timetables and of cohorts that are too large.

use std::sync::Arc;

use smolfed_accounting::Sampling;
use smolfed_accounting::correlated::{Participation, Strategy};
use smolfed_core::stream::Root;

use super::buffered;
use crate::attendance::{Attendance, Timetable};
use crate::check::{ExperimentError, of_participation, refuse};
use crate::combinations::Conflict;
use crate::combinations::rules::UNBANDED;
use crate::config::Config;
use crate::tables::CohortSampling;
use crate::tables::cohort::CohortConfig;
use crate::tables::privacy::MechanismName;
use smolfed_release::Encoding;

/// Correlated noise, as configured.
#[derive(Clone, Debug)]
pub(crate) struct Correlated {
    /// The combination of sums, and its cost.
    pub strategy: Arc<Strategy>,
}

impl Correlated {
    /// Parses the keys. Returns `None` for independent noise.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn parse(config: &Config, device_count: u32) -> Result<Option<Self>, ExperimentError> {
        let (privacy, scheme) = (&config.privacy, config.cohort.sampling);
        if privacy.mechanism != MechanismName::Correlated {
            return Ok(None);
        }
        let participation = participation(config)?;
        let strategy = Strategy::plan(privacy.family(), participation);
        let mut strategy = strategy.map_err(of_participation(config.rounds))?;
        if scheme == CohortSampling::BlockCyclic {
            strategy = drawn_in_turn(&config.cohort, strategy, device_count)?;
        }
        Ok(Some(Self {
            strategy: Arc::new(strategy),
        }))
    }

    /// Returns the accounting of cohorts, and the attendance.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key of `[cohort]`.
    pub fn cohorts(
        &self,
        config: &Config,
        device_count: u32,
    ) -> Result<(Sampling, Attendance), ExperimentError> {
        let sampling = self.strategy.sampling(device_count);
        let sampling = sampling.map_err(refuse("data.devices", device_count))?;
        if config.cohort.sampling == CohortSampling::Buffered {
            let allowed = self.strategy.participation();
            let attendance = buffered::attendance(config, allowed, device_count)?;
            return Ok((sampling, attendance));
        }
        let attendance = attendance(&config.cohort, &self.strategy, sampling, config.seed)?;
        Ok((sampling, attendance))
    }

    /// Refuses an unsuitable timetable, or too large a cohort.
    ///
    /// # Errors
    /// [`ExperimentError::Range`].
    pub fn fits(&self, attendance: &Attendance, encoding: Encoding) -> Result<(), ExperimentError> {
        self.fits_attendance(attendance)?;
        self.fits_size(attendance, encoding)
    }

    /// Refuses a timetable by which a device would come too early or too often.
    fn fits_attendance(&self, attendance: &Attendance) -> Result<(), ExperimentError> {
        let participation = self.strategy.participation();
        let (k, b) = (participation.participations(), participation.separation());
        if let Some((round, device)) = attendance.first_breach(participation) {
            return Err(ExperimentError::Range {
                key: "privacy.participations",
                value: k.to_string(),
                expected: format!(
                    "larger, or `privacy.separation`, which is {b}, smaller: with this \
                     `cohort.sampling`, device {device} would take part in round {round}, too \
                     early or once too often"
                ),
            });
        }
        Ok(())
    }

    /// Refuses cohorts whose sums could overflow an `i64`.
    pub fn fits_size(
        &self,
        attendance: &Attendance,
        encoding: Encoding,
    ) -> Result<(), ExperimentError> {
        let Some(grid) = encoding.grid() else {
            return Ok(());
        };
        let (bits, largest) = (grid.bits() as u8, attendance.largest() as u64);
        if largest <= self.strategy.max_cohort(bits) {
            return Ok(());
        }
        let fits = self.strategy.max_grid_bits(largest);
        let fits = fits.map_or("none".to_owned(), |bits| bits.to_string());
        Err(ExperimentError::Range {
            key: "privacy.grid_bits",
            value: bits.to_string(),
            expected: format!(
                "at most {fits} for cohorts of {largest} devices, or cohorts of at most {} devices \
                 with {bits} bits: combinations of their sums would not fit into 64 bits",
                self.strategy.max_cohort(bits)
            ),
        })
    }
}

/// Returns (k, b). The default is as often as possible.
fn participation(config: &Config) -> Result<Participation, ExperimentError> {
    let privacy = &config.privacy;
    let separation = match (config.cohort.sampling, privacy.separation) {
        (CohortSampling::Full, None) => 1,
        (_, Some(separation)) => separation,
        (_, None) => {
            return Err(ExperimentError::Missing {
                key: "privacy.separation",
                purpose: "the number of rounds after which a device may take part again",
            });
        }
    };
    let participations = match buffered::distance(config, separation)? {
        None => privacy.participations.unwrap_or(u32::MAX),
        Some(distance) => buffered::cut(config, distance),
    };
    Participation::new(config.rounds, separation, participations)
        .map_err(of_participation(config.rounds))
}

/// Returns the strategy for parts of the devices that take turns, with the configured cohort size.
fn drawn_in_turn(
    cohort: &CohortConfig,
    strategy: Strategy,
    device_count: u32,
) -> Result<Strategy, ExperimentError> {
    let parts = strategy.participation().separation();
    let Sampling::BlockCyclic { sampling_rate, .. } =
        super::cohort::sampling(cohort, device_count, Some(parts))?
    else {
        return Ok(strategy);
    };
    let drawn = strategy.block_cyclic(sampling_rate);
    drawn.map_err(|_| Conflict::of(&UNBANDED).into())
}

/// Returns the attendance: the configured timetable, the devices drawn from it, or all devices in
/// every round.
fn attendance(
    cohort: &CohortConfig,
    strategy: &Strategy,
    sampling: Sampling,
    seed: u64,
) -> Result<Attendance, ExperimentError> {
    let participation = strategy.participation();
    let (devices, b) = (sampling.device_count(), participation.separation());
    let root = Root::from_seed(seed);
    let size = cohort_size(cohort, devices);
    match (cohort.sampling, size) {
        (CohortSampling::Arrival, None) => Err(ExperimentError::Missing {
            key: "cohort.cohort_size",
            purpose: "the largest number of devices in a round; or give `cohort.sampling_rate`",
        }),
        (CohortSampling::Arrival, Some((key, size))) => {
            let most = most_arrivals(devices, participation);
            if size == 0 || size > most {
                return Err(ExperimentError::Range {
                    key,
                    value: size.to_string(),
                    expected: format!(
                        "from 1 to {most} devices: that many of {devices} can take part in every \
                         round, each at most {} times and at least {b} rounds apart",
                        participation.participations()
                    ),
                });
            }
            let timetable = Timetable::arrival(devices, size, participation, &root);
            Ok(Attendance::Scheduled(timetable))
        }
        (CohortSampling::BlockCyclic, _) => Ok(Attendance::InTurn {
            sampling,
            parts: Timetable::rotation(devices, b, &root),
        }),
        (CohortSampling::Rotation, _) => {
            let timetable = Timetable::rotation(devices, b, &root);
            Ok(Attendance::Scheduled(timetable))
        }
        (
            CohortSampling::Full
            | CohortSampling::Uniform
            | CohortSampling::Poisson
            | CohortSampling::Buffered,
            _,
        ) => Ok(Attendance::Drawn(sampling)),
    }
}

/// Returns the largest size that every cohort can have: cohorts of b rounds are disjoint, and no
/// device is in more than k cohorts.
fn most_arrivals(devices: u32, participation: Participation) -> u32 {
    let of_all = u64::from(devices) * u64::from(participation.participations());
    let of_all = of_all / u64::from(participation.rounds());
    let of_separation = devices / participation.separation();
    of_separation.min(u32::try_from(of_all).unwrap_or(u32::MAX))
}

/// Returns S, with the key that determines it.
fn cohort_size(cohort: &CohortConfig, devices: u32) -> Option<(&'static str, u32)> {
    let of_share = |share: f64| (share * f64::from(devices)).round() as u32;
    let of_rate = || Some(("cohort.sampling_rate", of_share(cohort.sampling_rate?)));
    let size = cohort.cohort_size;
    size.map(|size| ("cohort.cohort_size", size))
        .or_else(of_rate)
}
