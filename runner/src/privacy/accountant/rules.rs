//! Which accountant takes which events, and what its figure is worth.

use crate::number::lower;

use super::{Accountant, AccountingError, Estimate, EstimateKind};
use crate::privacy::event::{Exposure, Mechanism, PrivacyEvent};
use crate::privacy::gdp;
use crate::privacy::params::{Delta, NoiseMultiplier, SamplingRate};
use crate::privacy::pld::{PldEpsilon, PldError, pld_epsilon, upper_epsilon};
use crate::privacy::published;
use crate::privacy::rdp::{Conversion, rdp_epsilon};
use crate::privacy::theorem::{Theorem, TheoremSetting};
use crate::privacy::uniform_profile::uniform_profile_epsilon;

/// The figure of `accountant` for events of the same guarantee, none of them of no rounds.
pub(super) fn estimate(
    accountant: Accountant,
    events: &[PrivacyEvent],
    delta: Delta,
) -> Result<Estimate, AccountingError> {
    let books = Books {
        accountant,
        events,
        delta,
    };
    if events.is_empty() {
        return Ok(books.bound(0.0, vec!["Nothing was released.".to_owned()]));
    }
    if books.exposures().iter().any(Exposure::is_unprotected) {
        let note = "Something was released without noise: no epsilon holds.".to_owned();
        return Ok(books.bound(f64::INFINITY, vec![note]));
    }
    match accountant {
        Accountant::Pld => books.composed(pld_epsilon),
        Accountant::UniformProfile => books.composed(uniform_profile_epsilon),
        Accountant::Rdp => Ok(books.rdp(Conversion::Improved)),
        Accountant::RdpClassic => Ok(books.rdp(Conversion::Classic)),
        Accountant::Gdp => books.gdp(),
        Accountant::AnalyticGaussian => books.analytic_gaussian(),
        Accountant::DpFedLsAsPrinted => books.dp_fed_ls_as_printed(),
        Accountant::Theorem1 => books.theorem(Theorem::One),
        Accountant::Theorem2 => books.theorem(Theorem::Two),
        Accountant::PmtlTheorem1 => books.pmtl_theorem_1(),
        Accountant::DpfedmtlGdp => books.dpfedmtl(false),
        Accountant::DpfedmtlGdpAsPrinted => books.dpfedmtl(true),
        Accountant::FedscProp66 => books.fedsc(false),
        Accountant::FedscProp66AsPrinted => books.fedsc(true),
    }
}

/// An ε that is at least that of [`estimate`], for searches: as quick as the accountant can.
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
        // The Rényi bound is known only to searches that begin with it.
        Ok(epsilon) => Ok(epsilon),
        Err(_) => Ok(estimate(accountant, events, delta)?.epsilon),
    }
}

/// A composed loss, asked for its ε.
type Ask = fn(&[Exposure], Delta) -> Result<PldEpsilon, PldError>;

/// One question to one accountant.
struct Books<'a> {
    accountant: Accountant,
    events: &'a [PrivacyEvent],
    delta: Delta,
}

impl Books<'_> {
    fn exposures(&self) -> Vec<Exposure> {
        self.events.iter().map(PrivacyEvent::exposure).collect()
    }

    fn figure(&self, epsilon: f64, kind: EstimateKind, notes: Vec<String>) -> Estimate {
        Estimate {
            epsilon,
            delta: self.delta,
            kind,
            epsilon_low: None,
            accountant: self.accountant,
            notes,
        }
    }

    fn bound(&self, epsilon: f64, notes: Vec<String>) -> Estimate {
        self.figure(epsilon, EstimateKind::UpperBound, notes)
    }

    fn refuse<T>(&self, reason: &str) -> Result<T, AccountingError> {
        Err(AccountingError::Refused {
            accountant: self.accountant,
            reason: reason.to_owned(),
        })
    }

    fn single(&self) -> Result<&PrivacyEvent, AccountingError> {
        match self.events {
            [event] => Ok(event),
            _ => self.refuse("it knows one kind of round, repeated, and no mixture"),
        }
    }

    fn rdp(&self, conversion: Conversion) -> Estimate {
        let exposures = self.exposures();
        let found = rdp_epsilon(&exposures, self.delta, conversion);
        let is_uniform = exposures
            .iter()
            .any(|e| matches!(e, Exposure::Uniform { .. }));
        let theorem = if is_uniform {
            "Theorem 9 of Wang, Balle, Kasiviswanathan 2019 or, if less, without sampling"
        } else {
            "Mironov, Talwar, Zhang 2019"
        };
        self.bound(
            found.epsilon,
            vec![format!("At Rényi order {}, by {theorem}.", found.order)],
        )
    }

    /// The bracket of a composed loss; its upper end is the Rényi bound where that is less.
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
            notes.push("The Rényi bound, which is less here, is given.".to_owned());
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
        let percent = 100.0 * (found.epsilon - low) / found.epsilon;
        match self.accountant {
            Accountant::UniformProfile => format!(
                "One concrete pair of federations attains {low:.6}: the bound is at most \
                 {percent:.2} % above the true epsilon."
            ),
            _ => format!("The true epsilon is at least {low:.6}: within {percent:.3} % below."),
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
            };
            mu_squared += mu * mu;
        }
        let mu = mu_squared.sqrt();
        let epsilon = gdp::epsilon(mu, self.delta);
        let mut note = vec![format!("mu = {mu:.6}.")];
        if is_exact {
            let mut exact = self.bound(epsilon, note);
            // The root finder stops within 1e-13 above the exact value.
            exact.epsilon_low = Some(epsilon * (1.0 - 1e-12));
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
                let epsilon = gdp::epsilon(1.0 / noise_to_sensitivity, self.delta);
                let mut exact = self.bound(epsilon, Vec::new());
                exact.epsilon_low = Some(epsilon * (1.0 - 1e-12));
                Ok(exact)
            }
            Exposure::Gaussian { .. } => {
                self.refuse("it knows one release; `gdp` composes several exactly")
            }
            Exposure::Poisson { .. } | Exposure::Uniform { .. } => {
                self.refuse("it knows no sampling; use `pld` or `uniform-profile`")
            }
        }
    }

    /// Classic conversion, and for uniform sampling the noise over L where replacing a device moves
    /// the sum by 2L.
    fn dp_fed_ls_as_printed(&self) -> Result<Estimate, AccountingError> {
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
            Exposure::Gaussian { .. } => {
                return self.refuse("its tables have uniform and Poisson sampling below 1 only");
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
        // One device at +L, the others at -L, against all at -L: Poisson sampling at that noise.
        let attained = Exposure::Poisson {
            sampling_rate,
            noise_to_sensitivity,
            count,
        };
        match pld_epsilon(&[attained], self.delta) {
            Ok(attained) if attained.epsilon_low > found.epsilon => note.push_str(&format!(
                "; one pair of federations costs at least {}.",
                lower(attained.epsilon_low, 4)
            )),
            _ => note.push('.'),
        }
        Ok(self.figure(found.epsilon, EstimateKind::AsPublished, vec![note]))
    }

    fn theorem(&self, theorem: Theorem) -> Result<Estimate, AccountingError> {
        let event = self.single()?;
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
        let Some(epsilon) = setting.least_epsilon(noise_multiplier) else {
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

    fn pmtl_theorem_1(&self) -> Result<Estimate, AccountingError> {
        let Exposure::Gaussian { count, .. } = self.single()?.exposure() else {
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

    fn dpfedmtl(&self, as_printed: bool) -> Result<Estimate, AccountingError> {
        let Exposure::Poisson {
            sampling_rate,
            noise_to_sensitivity,
            count,
        } = self.single()?.exposure()
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

    fn fedsc(&self, as_printed: bool) -> Result<Estimate, AccountingError> {
        let event = self.single()?;
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
        let only = "Covers the correlation matrices only, not the model that is sent beside them.";
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
