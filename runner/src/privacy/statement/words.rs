//! The statement in plain words.

use std::fmt::Write;

use crate::number::{lower, upper};

use super::{Adjacency, EstimateKind, PrivacyStatement, PrivacyUnit, Subject, TrustModel};

impl PrivacyStatement {
    /// The statement as a few sentences for a reader who knows no formulas.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = self.figure();
        if self.releases_per_round == Some(0) && self.rounds > 0 {
            for note in &self.notes {
                text.push(' ');
                text.push_str(note);
            }
            return text;
        }
        text.push(' ');
        text.push_str(&self.meaning());
        text.push(' ');
        text.push_str(&self.assumptions());
        for note in &self.notes {
            text.push(' ');
            text.push_str(note);
        }
        text
    }

    /// ε, δ, adjacency, and what the figure is worth.
    fn figure(&self) -> String {
        let Self {
            delta, accountant, ..
        } = self;
        let adjacency = self.adjacency.name();
        let worth = match self.kind {
            EstimateKind::UpperBound => "a proved upper bound",
            EstimateKind::Approximation => "an approximation and NOT a guarantee",
            EstimateKind::AsPublished => "a figure as published and NOT a guarantee",
        };
        let about = match self.subject {
            Subject::Updates => "",
            Subject::CorrelationMatrices => "Correlation matrices: ",
        };
        if self.epsilon.is_infinite() {
            return format!(
                "{about}No finite epsilon holds at delta = {} (`{accountant}`, {adjacency}).",
                upper(delta.get(), 4)
            );
        }
        let mut text = format!(
            "{about}epsilon = {} at delta = {}, {worth} (`{accountant}`, {adjacency}",
            upper(self.epsilon, 5),
            upper(delta.get(), 4)
        );
        if let Some(low) = self.epsilon_low {
            // Writing to a String cannot fail.
            let _ = write!(text, "; the true value is at least {}", lower(low, 5));
        }
        text.push_str(").");
        text
    }

    /// What an attacker can and cannot do.
    fn meaning(&self) -> String {
        let seen = match self.trust {
            _ if self.subject == Subject::CorrelationMatrices => {
                "Someone who sees every correlation matrix, the server included,"
            }
            TrustModel::Central => "Someone who sees every released model",
            TrustModel::Local => "Someone who sees every upload, the server included,",
            TrustModel::Distributed { .. } => {
                "Someone who sees every masked sum and every cohort, the server included,"
            }
        };
        let unit = match self.unit {
            PrivacyUnit::Device => "device",
            PrivacyUnit::Example => "example",
        };
        let question = match self.adjacency {
            Adjacency::AddRemove => format!("whether one {unit} took part"),
            Adjacency::ReplaceOne if self.unit == PrivacyUnit::Example => {
                "which of two given examples a device used".to_owned()
            }
            Adjacency::ReplaceOne => {
                format!("which of two given versions of one {unit}'s data was used")
            }
        };
        if self.epsilon.is_infinite() {
            return format!("{seen} may be able to tell {question} with certainty.");
        }
        format!(
            "{seen} and knows all other data can tell {question} with advantage at most \
             {:.1} % (hit rate less false-alarm rate); at a false-alarm rate of 1 % they catch at \
             most {:.1} %.",
            percent_up(self.advantage),
            percent_up(self.hit_rate_at_1_percent)
        )
    }

    /// Under which assumptions.
    fn assumptions(&self) -> String {
        if self.subject == Subject::CorrelationMatrices {
            return self.assumptions_of_matrices();
        }
        let rate = self.sampling_rate.unwrap_or(1.0);
        let (devices, rounds) = (self.devices, self.rounds);
        let sampling = match (self.sampling.as_str(), self.max_participations) {
            ("uniform", _) => format!(
                "each of {rounds} rounds draws a fixed share {rate} of {devices} devices without \
                 replacement, at random and in secret"
            ),
            ("poisson", _) => format!(
                "in each of {rounds} rounds each of {devices} devices joins with probability \
                 {rate}, at random and in secret"
            ),
            (_, Some(most)) => format!(
                "no device takes part in more than {most} of {rounds} rounds; its coming need not \
                 be random, but does not depend on its data"
            ),
            _ => format!("all of {devices} devices take part in each of {rounds} rounds"),
        };
        let sampling = match self.releases_per_round {
            Some(releases) => format!(
                "{sampling}, and a device releases something {releases} times in a round, which all \
                 count"
            ),
            None => sampling,
        };
        let sampling = if matches!(self.trust, TrustModel::Central) {
            sampling
        } else {
            format!(
                "{sampling} (which hides nothing from the server, so each round counts in full)"
            )
        };
        let trust = match self.trust {
            TrustModel::Central => "the server is trusted to add the noise and to keep the \
                                    updates and the cohorts to itself"
                .to_owned(),
            TrustModel::Local => {
                "each device adds all of its own noise and trusts nobody".to_owned()
            }
            TrustModel::Distributed { honest } => format!(
                "the server sees masked sums only, and at least {:.0} % of the noise shares are \
                 honest",
                100.0 * honest.get()
            ),
        };
        format!(
            "This holds if {sampling}; {trust}; and the noise multiplier is {} of the clip norm on \
             the sum.",
            lower(self.noise_multiplier, 5)
        )
    }

    /// Of correlation matrices, to which a device adds its own noise.
    fn assumptions_of_matrices(&self) -> String {
        let releases = match self.max_participations {
            Some(most) => u64::from(most).min(self.rounds),
            None => self.rounds,
        };
        let times = if releases == 1 { "matrix" } else { "matrices" };
        format!(
            "This holds if a device sends no more than {releases} {times} in this run; each device adds all of its own \
             noise and trusts nobody; the noise multiplier is {} of the largest matrix of an example, on the sum over \
             the device's examples; and the encoder of each round is taken as known: what encoders tell, which \
             learned from the same examples, is not in it.",
            lower(self.noise_multiplier, 5)
        )
    }
}

/// A share in percent, rounded up to a tenth, so that the words never promise more than is proved.
fn percent_up(share: f64) -> f64 {
    (share * 1000.0).ceil().min(1000.0) / 10.0
}
