//! The events that each accountant accepts, and the status of its ε. A new accountant needs a file
//! below this one with its method of [`Query`], an arm of [`estimate`], and a line in `name.rs`.

mod papers;

use super::estimate::{Estimate, EstimateKind};
use super::name::{Accountant, AccountingError};
use super::query::Query;
use crate::event::{Exposure, PrivacyEvent};
use crate::gdp;
use crate::params::Delta;
use crate::pld::{PldEpsilon, PldError, pld_epsilon, upper_epsilon};
use crate::rdp::{Conversion, rdp_epsilon};
use crate::theorem::Theorem;
use crate::uniform_profile::uniform_profile_epsilon;

/// Returns the estimate of `accountant` for events with the same guarantee, each with one or more
/// rounds.
pub(super) fn estimate(
    accountant: Accountant,
    events: &[PrivacyEvent],
    delta: Delta,
) -> Result<Estimate, AccountingError> {
    let query = Query {
        accountant,
        events,
        delta,
    };
    if events.is_empty() {
        return Ok(query.bound(0.0, vec!["Nothing was released.".to_owned()]));
    }
    if query.exposures().iter().any(Exposure::is_unprotected) {
        let note = "Something was released without noise: no epsilon holds.".to_owned();
        return Ok(query.bound(f64::INFINITY, vec![note]));
    }
    match accountant {
        Accountant::Pld => query.composed(pld_epsilon),
        Accountant::UniformProfile => query.composed(uniform_profile_epsilon),
        Accountant::Rdp => Ok(query.rdp(Conversion::Improved)),
        Accountant::RdpClassic => Ok(query.rdp(Conversion::Classic)),
        Accountant::Gdp => query.gdp(),
        Accountant::AnalyticGaussian => query.analytic_gaussian(),
        Accountant::DpFedLsAsPrinted => query.dp_fed_ls_as_printed(),
        Accountant::Theorem1 => query.theorem(Theorem::One),
        Accountant::Theorem2 => query.theorem(Theorem::Two),
        Accountant::PmtlTheorem1 => query.pmtl_theorem_1(),
        Accountant::DpfedmtlGdp => query.dpfedmtl(false),
        Accountant::DpfedmtlGdpAsPrinted => query.dpfedmtl(true),
        Accountant::FedscProp66 => query.fedsc(false),
        Accountant::FedscProp66AsPrinted => query.fedsc(true),
    }
}

/// Returns an ε at least as large as [`estimate`] gives, for searches: as fast as the accountant
/// can.
pub(super) fn quick_epsilon(
    accountant: Accountant,
    events: &[PrivacyEvent],
    delta: Delta,
) -> Result<f64, AccountingError> {
    let with_uniform = match accountant {
        Accountant::Pld => false,
        Accountant::UniformProfile => true,
        _ => return Ok(estimate(accountant, events, delta)?.epsilon),
    };
    let exposures: Vec<Exposure> = events.iter().map(PrivacyEvent::exposure).collect();
    match upper_epsilon(&exposures, delta, with_uniform) {
        // Only searches that begin with the Rényi bound know it.
        Ok(epsilon) => Ok(epsilon),
        Err(_) => Ok(estimate(accountant, events, delta)?.epsilon),
    }
}

/// A function that returns the ε of a composed loss.
type Ask = fn(&[Exposure], Delta) -> Result<PldEpsilon, PldError>;

impl Query<'_> {
    fn rdp(&self, conversion: Conversion) -> Estimate {
        let exposures = self.exposures();
        let found = rdp_epsilon(&exposures, self.delta, conversion);
        let theorem = if exposures
            .iter()
            .any(|e| matches!(e, Exposure::UniformUsers { .. }))
        {
            "quasi-convexity, without amplification for users with several devices"
        } else if exposures
            .iter()
            .any(|e| matches!(e, Exposure::PoissonUsers { .. }))
        {
            "integrals of the mixtures of Ganesh 2024"
        } else if exposures.iter().any(Exposure::is_uniform) {
            "Theorem 9 of Wang, Balle, Kasiviswanathan 2019 or, if less, without sampling"
        } else {
            "Mironov, Talwar, Zhang 2019"
        };
        self.bound(
            found.epsilon,
            vec![format!("At Rényi order {}, by {theorem}.", found.order)],
        )
    }

    /// Returns the bracket of a composed loss. Its upper end is the Rényi bound if that is smaller.
    fn composed(&self, ask: Ask) -> Result<Estimate, AccountingError> {
        let exposures = self.exposures();
        let renyi = rdp_epsilon(&exposures, self.delta, Conversion::Improved).epsilon;
        let (found, note) = match ask(&exposures, self.delta) {
            Ok(found) => (found, self.width_note(&found)),
            Err(error @ PldError::OutOfRange) => {
                let none = PldEpsilon {
                    epsilon: f64::INFINITY,
                    epsilon_low: 0.0,
                };
                (none, format!("No bracket: {error}."))
            }
            Err(error) => return self.refuse(&error.to_string()),
        };
        let mut notes = vec![note];
        if renyi < found.epsilon {
            notes.push("The Rényi bound is given, as it is smaller here.".to_owned());
        }
        let mut estimate = self.bound(found.epsilon.min(renyi), notes);
        estimate.epsilon_low = (found.epsilon.is_finite()).then_some(found.epsilon_low);
        Ok(estimate)
    }

    fn width_note(&self, found: &PldEpsilon) -> String {
        let low = found.epsilon_low;
        if found.epsilon <= 0.0 {
            return "Even epsilon 0 holds at this delta.".to_owned();
        }
        match self.accountant {
            Accountant::UniformProfile if low <= 0.0 => {
                "No known pair of federations attains an epsilon above 0.".to_owned()
            }
            Accountant::UniformProfile => format!(
                "One concrete pair of federations attains {low:.6}: the bound is at most {:.2} % \
                 above the true epsilon.",
                percent_up(found.epsilon - low, low, 2)
            ),
            _ => format!(
                "The true epsilon of the counted rounds is at least {low:.6}: within {:.3} % \
                 below.",
                percent_up(found.epsilon - low, found.epsilon, 3)
            ),
        }
    }

    fn gdp(&self) -> Result<Estimate, AccountingError> {
        let mut mu_squared = 0.0;
        let mut is_exact = true;
        for exposure in self.exposures() {
            let rounds = exposure.count() as f64;
            let mu = match exposure {
                Exposure::Gaussian {
                    noise_to_sensitivity,
                    ..
                } => rounds.sqrt() / noise_to_sensitivity,
                Exposure::Poisson {
                    sampling_rate,
                    noise_to_sensitivity,
                    ..
                } => {
                    is_exact = false;
                    gdp::poisson_limit_mu(sampling_rate, noise_to_sensitivity, rounds)
                }
                Exposure::Uniform {
                    sampling_rate,
                    noise_to_sensitivity,
                    ..
                } => {
                    is_exact = false;
                    gdp::uniform_limit_mu(sampling_rate, noise_to_sensitivity, rounds)
                }
                Exposure::PoissonUsers { .. } | Exposure::UniformUsers { .. } => {
                    return self.refuse(Self::ONE_DEVICE);
                }
            };
            mu_squared += mu * mu;
        }
        let mu = mu_squared.sqrt();
        let epsilon = gdp::epsilon(mu, self.delta);
        let mut note = vec![format!("mu = {mu:.6}.")];
        if is_exact {
            let mut exact = self.bound(epsilon, note);
            exact.epsilon_low = Some(gdp::epsilon_low(mu, self.delta));
            return Ok(exact);
        }
        note.push("The limit of many rounds; often below the true epsilon.".to_owned());
        Ok(self.figure(epsilon, EstimateKind::Approximation, note))
    }

    fn analytic_gaussian(&self) -> Result<Estimate, AccountingError> {
        match self.single()?.exposure() {
            Exposure::Gaussian {
                noise_to_sensitivity,
                count: 1,
            } => {
                let mu = 1.0 / noise_to_sensitivity;
                let mut exact = self.bound(gdp::epsilon(mu, self.delta), Vec::new());
                exact.epsilon_low = Some(gdp::epsilon_low(mu, self.delta));
                Ok(exact)
            }
            Exposure::Gaussian { .. } => {
                self.refuse("it accounts for a single release; `gdp` composes several exactly")
            }
            Exposure::Poisson { .. }
            | Exposure::Uniform { .. }
            | Exposure::PoissonUsers { .. }
            | Exposure::UniformUsers { .. } => {
                self.refuse("it does not account for sampling; use `pld` or `uniform-profile`")
            }
        }
    }
}

/// Returns a share in percent with `decimals` decimals, rounded up: no note claims more than the
/// proof.
fn percent_up(part: f64, whole: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    (100.0 * part / whole * scale).ceil() / scale
}
