//! The accountants named after a paper (DP-Fed-LS, PMTL, DPFedMTL, FedSC): their formulas, and the
//! notes on their status.

use crate::accountant::estimate::{Estimate, EstimateKind};
use crate::accountant::name::AccountingError;
use crate::accountant::query::Query;
use crate::event::{Exposure, Mechanism};
use crate::gdp;
use crate::params::{NoiseMultiplier, SamplingRate};
use crate::pld::pld_epsilon;
use crate::published;
use crate::rdp::{Conversion, rdp_epsilon};
use crate::theorem::{Theorem, TheoremSetting};

impl Query<'_> {
    /// Returns the printed figure, by the classic conversion. For uniform sampling the noise is
    /// divided by L, although replacing a device moves the sum by 2L.
    pub fn dp_fed_ls_as_printed(&self) -> Result<Estimate, AccountingError> {
        let event = self.single()?;
        let printed = match event.exposure() {
            Exposure::Uniform {
                sampling_rate,
                count,
                ..
            } => Exposure::Uniform {
                sampling_rate,
                noise_to_sensitivity: event.mechanism.continuous_multiplier(),
                count,
            },
            exposure @ Exposure::Poisson { .. } => exposure,
            Exposure::PoissonUsers { .. } | Exposure::UniformUsers { .. } => {
                return self.refuse(Self::ONE_DEVICE);
            }
            Exposure::Gaussian { .. } => {
                return self.refuse("its tables cover only uniform and Poisson sampling below 1");
            }
        };
        let found = rdp_epsilon(&[printed], self.delta, Conversion::Classic);
        let Exposure::Uniform {
            sampling_rate,
            noise_to_sensitivity,
            count,
        } = event.exposure()
        else {
            let note = "As `rdp-classic`, which is a bound.".to_owned();
            return Ok(self.figure(found.epsilon, EstimateKind::AsPublished, vec![note]));
        };
        let mut note =
            "It divides the noise by L, but replacing a device moves the sum by 2L".to_owned();
        // One device at +L and the others at -L, against all at -L: Poisson sampling at that noise.
        let attained = Exposure::Poisson {
            sampling_rate,
            noise_to_sensitivity,
            count,
        };
        match pld_epsilon(&[attained], self.delta) {
            Ok(attained) if attained.epsilon_low > found.epsilon => note.push_str(&format!(
                "; one pair of federations costs at least {}.",
                lower(attained.epsilon_low)
            )),
            _ => note.push('.'),
        }
        Ok(self.figure(found.epsilon, EstimateKind::AsPublished, vec![note]))
    }

    pub fn theorem(&self, theorem: Theorem) -> Result<Estimate, AccountingError> {
        let event = self.single_device()?;
        let (sampling_rate, rounds) = match (theorem, event.exposure()) {
            (
                Theorem::One,
                Exposure::Uniform {
                    sampling_rate,
                    count,
                    ..
                },
            )
            | (
                Theorem::Two,
                Exposure::Poisson {
                    sampling_rate,
                    count,
                    ..
                },
            ) => (sampling_rate, count),
            (Theorem::One, _) => {
                return self.refuse("it is stated for uniform sampling below 1, central trust");
            }
            (Theorem::Two, _) => {
                return self.refuse("it is stated for Poisson sampling below 1, central trust");
            }
        };
        let (Ok(sampling_rate), Ok(noise_multiplier)) = (
            SamplingRate::new(sampling_rate),
            NoiseMultiplier::new(event.mechanism.continuous_multiplier()),
        ) else {
            return self.refuse("the numbers are out of its range");
        };
        let setting = TheoremSetting {
            theorem,
            sampling_rate,
            rounds,
            delta: self.delta,
        };
        let Some(epsilon) = setting.min_epsilon(noise_multiplier) else {
            return self.refuse(
                "infeasible: its side conditions do not hold at this noise and sampling rate",
            );
        };
        let note = match theorem {
            Theorem::One => "A real order in a bound proved for integers; certify with `rdp`.",
            Theorem::Two => "Eq. 21 of its proof is false for much noise; certify with `rdp`.",
        };
        Ok(self.figure(epsilon, EstimateKind::AsPublished, vec![note.to_owned()]))
    }

    pub fn pmtl_theorem_1(&self) -> Result<Estimate, AccountingError> {
        let Exposure::Gaussian { count, .. } = self.single_device()?.exposure() else {
            return self.refuse("its constants are known for full participation only");
        };
        let multiplier = self.single()?.mechanism.continuous_multiplier();
        match published::pmtl_theorem_1(multiplier, count as f64, self.delta) {
            Some(epsilon) => Ok(self.bound(
                epsilon,
                vec!["Sound by two errors that cancel; about twice the noise needed.".to_owned()],
            )),
            None => {
                self.refuse("it needs epsilon <= 2 ln(1/delta), which this noise does not give")
            }
        }
    }

    pub fn dpfedmtl(&self, as_printed: bool) -> Result<Estimate, AccountingError> {
        let Exposure::Poisson {
            sampling_rate,
            noise_to_sensitivity,
            count,
        } = self.single_device()?.exposure()
        else {
            return self.refuse("it is stated for Poisson sampling below 1, central trust");
        };
        let rounds = count as f64;
        let mu = if as_printed {
            published::dpfedmtl_mu_as_printed(sampling_rate, noise_to_sensitivity, rounds)
        } else {
            gdp::poisson_limit_mu(sampling_rate, noise_to_sensitivity, rounds)
        };
        let epsilon = gdp::epsilon(mu, self.delta);
        Ok(if as_printed {
            let note = format!("mu = {mu:.6} counts the square root of the rounds twice.");
            self.figure(epsilon, EstimateKind::AsPublished, vec![note])
        } else {
            let note = format!("mu = {mu:.6}, a limit and not a bound.");
            self.figure(epsilon, EstimateKind::Approximation, vec![note])
        })
    }

    pub fn fedsc(&self, as_printed: bool) -> Result<Estimate, AccountingError> {
        let event = self.single_device()?;
        let is_correlation = matches!(event.mechanism, Mechanism::CorrelationMatrix { .. });
        let (
            true,
            Exposure::Gaussian {
                count,
                noise_to_sensitivity,
            },
        ) = (is_correlation, event.exposure())
        else {
            return self.refuse("it is stated for correlation matrices of all examples");
        };
        let only = "Covers only the correlation matrices, not the model sent with them.";
        if as_printed {
            let multiplier = event.mechanism.continuous_multiplier();
            let epsilon = published::fedsc_prop_6_6(1.0, multiplier, count as f64, self.delta);
            let note = "Its sensitivity ignores that a replaced example also adds a term.";
            let notes = vec![note.to_owned(), only.to_owned()];
            return Ok(self.figure(epsilon, EstimateKind::AsPublished, notes));
        }
        let epsilon =
            published::fedsc_prop_6_6(1.0, noise_to_sensitivity, count as f64, self.delta);
        Ok(self.bound(epsilon, vec![only.to_owned()]))
    }
}

/// Returns `value` with four significant digits, rounded down, so that a printed lower bound stays
/// one.
fn lower(value: f64) -> f64 {
    let scale = libm::pow(10.0, 3.0 - libm::log10(value).floor());
    (value * scale).floor() / scale
}
