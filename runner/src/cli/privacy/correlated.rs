//! Correlated noise in `smolfed account` and `smolfed plan`: its flags for distance,
//! participations, staleness and family, and the planned strategies.

mod side;

use crate::cli::CliError;
use smolfed_accounting::correlated::{
    CorrelatedError, Family, MAX_ROUNDS, Participation, Strategy,
};
use smolfed_accounting::event::PrivacyEvent;
use smolfed_accounting::params::{Delta, NoiseMultiplier, SamplingRate};

pub(super) use side::Side;
use side::{Comparer, Row, refused};

/// Flags for correlated noise only.
#[derive(Debug, clap::Args)]
pub(super) struct CorrelatedArgs {
    /// Set the minimum distance in rounds between two participations of one device, for correlated.
    #[arg(long, value_name = "B")]
    separation: Option<u32>,
    /// Set the maximum number of rounds in which one device takes part, for correlated.
    ///
    /// With block-cyclic sampling, the default is as many as the separation allows.
    #[arg(long, value_name = "K")]
    participations: Option<u32>,
    /// Set the maximum number of windows between a model and its update, for correlated.
    ///
    /// Rounds are then windows of time, and an update counts up to S windows after the window of
    /// its model. A device takes part in at most ceil(rounds / (B + S)) windows.
    #[arg(long, value_name = "S")]
    staleness: Option<u32>,
    /// Use this family of noise strategies, for correlated [default: the family with the lowest
    /// RMSE].
    ///
    /// The families are identity, tree, square-root, square-root-banded, banded-optimal-mean and
    /// banded-optimal-max. Without the flag, all are compared.
    #[arg(long, value_name = "FAMILY")]
    family: Option<String>,
}

impl CorrelatedArgs {
    /// The first flag that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let separation = self.separation.map(|_| "--separation");
        let participations = self.participations.map(|_| "--participations");
        let staleness = self.staleness.map(|_| "--staleness");
        let family = self.family.as_ref().map(|_| "--family");
        separation.or(participations).or(staleness).or(family)
    }

    /// b.
    pub(super) const fn separation(&self) -> Option<u32> {
        self.separation
    }

    /// Plans the strategy, or those of all families that go with block-cyclic sampling at
    /// `sampling_rate`, if there is one.
    pub(super) fn setting(
        &self,
        rounds: Option<u64>,
        sampling_rate: Option<SamplingRate>,
    ) -> Result<Setting, CliError> {
        if self.staleness.is_some() && sampling_rate.is_some() {
            return Err(CliError::Usage(
                "--staleness is for devices that connect when they wake, not for drawn devices: \
                 leave --sampling block-cyclic out"
                    .to_owned(),
            ));
        }
        // A device may be drawn whenever its part has its turn, and counts whenever it wakes.
        let has_limit = sampling_rate.is_some() || self.staleness.is_some();
        let participations = self.participations.or(has_limit.then_some(u32::MAX));
        let (Some(rounds), Some(separation), Some(participations)) =
            (rounds, self.separation, participations)
        else {
            return Err(CliError::Usage(
                "--mechanism correlated needs --rounds N, --separation B and --participations K"
                    .to_owned(),
            ));
        };
        let Ok(rounds) = u32::try_from(rounds) else {
            return Err(CliError::Usage(format!(
                "--rounds is {rounds}: it must be from 1 to {MAX_ROUNDS}"
            )));
        };
        let invalid =
            |error: CorrelatedError| CliError::Usage(format!("--mechanism correlated: {error}"));
        let of_versions = |staleness| rounds.div_ceil(separation.saturating_add(staleness).max(1));
        let most = self.staleness.map_or(u32::MAX, of_versions);
        let participation = Participation::new(rounds, separation, participations.min(most));
        let participation = participation.map_err(invalid)?;
        let possible = participation.max_participations();
        if sampling_rate.is_some() && participations < possible {
            return Err(CliError::Usage(format!(
                "--participations is {participations}: with block-cyclic sampling a device may be \
                 drawn in {possible} rounds, which is the default"
            )));
        }
        let mut families = match &self.family {
            Some(name) => vec![name.parse().map_err(invalid)?],
            None => Family::ALL.to_vec(),
        };
        if self.family.is_none() && sampling_rate.is_some() {
            families.retain(|family| family.is_banded());
        }
        let plan = |family: &Family| {
            let strategy = Strategy::plan(*family, participation)?;
            let strategy = match sampling_rate {
                None => strategy,
                Some(rate) => strategy.block_cyclic(rate)?,
            };
            Ok((*family, strategy))
        };
        let strategies: Result<Vec<_>, _> = families.iter().map(plan).collect();
        let strategies: Vec<(Family, Strategy)> = strategies.map_err(invalid)?;
        let by_error =
            |a: &&(Family, Strategy), b: &&(Family, Strategy)| a.1.rmse().total_cmp(&b.1.rmse());
        let Some(best) = strategies.iter().min_by(by_error).cloned() else {
            return Err(CliError::Usage("--family is missing".to_owned()));
        };
        Ok(Setting {
            strategies,
            best,
            asked: self
                .participations
                .unwrap_or(participation.participations()),
            rate: None,
            has_devices: false,
        })
    }
}

/// The strategies in question.
#[derive(Debug)]
pub(super) struct Setting {
    /// One, or those of all families.
    strategies: Vec<(Family, Strategy)>,
    /// The one with the least rmse, which the statement is about.
    best: (Family, Strategy),
    /// k as it was given.
    asked: u32,
    /// τ of the Poisson sampling to compare with. Without it, τ gives the same number of
    /// participations.
    rate: Option<SamplingRate>,
    /// Whether the number of devices is given. No figure depends on it.
    has_devices: bool,
}

impl Setting {
    /// The strategy that the statement is about.
    pub(super) const fn best(&self) -> &Strategy {
        &self.best.1
    }

    /// The same, to be compared with Poisson sampling at this rate, for a known number of devices
    /// or not.
    pub(super) fn beside(self, rate: Option<SamplingRate>, has_devices: bool) -> Self {
        Self {
            rate,
            has_devices,
            ..self
        }
    }

    /// Checks that the sums of a cohort, times the coefficients, fit into 64 bits.
    pub(super) fn fits(&self, cohort: Option<u32>, grid_bits: u8) -> Result<(), CliError> {
        let (family, strategy) = &self.best;
        let largest = strategy.max_cohort(grid_bits);
        let Some(cohort) = cohort.filter(|cohort| u64::from(*cohort) > largest) else {
            return Ok(());
        };
        let bits = strategy.max_grid_bits(u64::from(cohort));
        let bits = bits.map_or("no grid".to_owned(), |bits| format!("--grid-bits {bits}"));
        Err(CliError::Usage(format!(
            "--cohort is {cohort}: with --grid-bits {grid_bits} and `{family}`, sums of rounds \
             times their coefficients fit into 64 bits for cohorts of at most {largest}; this \
             cohort needs {bits} or less"
        )))
    }

    /// Sets everything side by side, for noise of this multiplier and devices as in `event`.
    pub(super) fn side(
        self,
        event: &PrivacyEvent,
        noise: NoiseMultiplier,
        delta: Delta,
    ) -> Result<Side, CliError> {
        let participation = self.best().participation();
        let (rounds, k) = (participation.rounds(), participation.participations());
        let mut notes = Vec::new();
        if k < self.asked {
            notes.push(format!(
                "At most {k} of {rounds} rounds are {} apart: {} participations count as {k}.",
                participation.separation(),
                self.asked
            ));
        }
        let rate = match self.rate {
            Some(rate) => rate,
            None => SamplingRate::new(f64::from(k) / f64::from(rounds)).map_err(refused)?,
        };
        let comparison = Comparer {
            event: *event,
            noise,
            delta,
            rate,
        };
        let rows: Result<Vec<Row>, CliError> = self
            .strategies
            .into_iter()
            .map(|(family, strategy)| comparison.row(family, strategy))
            .collect();
        Ok(Side {
            rows: rows?,
            chosen: self.best,
            asked: self.asked,
            has_devices: self.has_devices,
            noise,
            rate,
            notes,
        })
    }
}
