//! The privacy statement in plain words, and in one line: meaning of ε, assumptions, trusted
//! parties, and the warning about a large δ.

use std::fmt::Write;

use smolfed_accounting::Parties;

use crate::SamplingScheme;
use crate::condition::Effect;
use crate::number::{lower, upper};

use super::{Adjacency, EstimateKind, PrivacyStatement, PrivacyUnit, Subject, TrustModel};

/// A δ above this is named in the line of a statement.
const LARGE_DELTA: f64 = 1e-2;

impl PrivacyStatement {
    /// Returns the statement as a few sentences for a reader who does not know the formulas.
    #[must_use]
    pub fn in_words(&self) -> String {
        let is_nothing_released = self.releases_per_round == Some(0) && self.rounds > 0;
        let mut sentences = vec![self.figure()];
        if !is_nothing_released {
            // A figure without proof bounds no attack.
            if !self.is_without_proof() {
                sentences.push(self.meaning());
                sentences.extend(self.outsiders());
                sentences.extend(self.replacement());
            }
            sentences.push(self.assumptions());
        }
        sentences.extend(self.notes.iter().cloned());
        sentences.join(" ")
    }

    /// Returns one line with ε, δ, the unit, the trust model, the status of the figure and its
    /// conditions. Only [`Self::in_words`] has the notes.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let about = match self.subject {
            Subject::Updates => "",
            Subject::CorrelationMatrices => "correlation matrices: ",
            Subject::Answers => "answers: ",
        };
        let unit = self.protected();
        let trust = match self.trust {
            _ if self.subject == Subject::CorrelationMatrices => "the server is not trusted",
            TrustModel::Central => "the server is trusted",
            TrustModel::Local => "the server is not trusted",
            TrustModel::Distributed(_) => "no party sees an update",
        };
        let (delta, caution) = (upper(self.delta.get(), 4), self.caution());
        let (accountant, adjacency) = (&self.accountant, self.adjacency.name());
        let basis = format!("`{accountant}`, {adjacency}");
        let figure = match self.epsilon.is_infinite() {
            true => {
                format!("no finite epsilon holds at delta = {delta}{caution} for one {unit}")
            }
            false => format!(
                "epsilon = {} at delta = {delta}{caution} for one {unit}, {}{}",
                upper(self.epsilon, 5),
                self.worth(),
                self.conditions_in_brief()
            ),
        };
        format!("{about}{figure}, {trust} ({basis})")
    }

    /// Returns a warning if δ is too large for its ε to be meaningful: with probability δ, there is
    /// no guarantee. `1/N^1.1` is that large for few devices.
    fn caution(&self) -> &'static str {
        let is_dangerous =
            self.unit == PrivacyUnit::Device && self.delta.is_dangerous(self.devices);
        match (self.delta.get() > LARGE_DELTA, is_dangerous) {
            (false, false) => "",
            // Below 1/N for fewer than 1,000 devices.
            _ if self.devices < 1000 => " (large: set `privacy.delta` to 1e-3 or less)",
            _ => " (large: set `privacy.delta` to \"1/N^1.1\" or less)",
        }
    }

    /// Returns the conditions, to follow the status of the figure: the conditions of a bound, or
    /// the parts that a figure does not cover.
    #[must_use]
    pub fn conditions_in_brief(&self) -> String {
        let of = |effect, separator| self.conditions.in_brief(effect, separator);
        if let Some(uncovered) = of(Effect::NoBound, "; ") {
            return format!(" (not covered: {uncovered})");
        }
        let stated = of(Effect::Stated, " and ");
        match (stated, self.conditions.any(Effect::NeedsSchedule)) {
            (None, _) => String::new(),
            (Some(stated), true) => format!(" and {stated}"),
            (Some(stated), false) => format!(" if {stated}"),
        }
    }

    /// Returns the protected unit.
    pub fn protected(&self) -> String {
        match (self.unit, self.devices_per_user) {
            (PrivacyUnit::Device, None) => "device".to_owned(),
            (PrivacyUnit::Device, Some(devices)) => {
                format!("user with up to {devices} devices")
            }
            (PrivacyUnit::Example, _) => "example".to_owned(),
        }
    }

    /// Returns whether a proved figure bounds only a part of the releases: private rows were read,
    /// or rounds repeated under the same noise, and a note says which.
    pub fn is_without_proof(&self) -> bool {
        let is_proved = self.is_upper_bound() || self.is_bound_of_schedule();
        self.kind == EstimateKind::UpperBound && !is_proved
    }

    /// Returns ε, δ, the adjacency, and the status of the figure.
    fn figure(&self) -> String {
        let Self {
            delta, accountant, ..
        } = self;
        let adjacency = self.adjacency.name();
        let worth = self.worth();
        let about = match self.subject {
            Subject::Updates => "",
            Subject::CorrelationMatrices => "Correlation matrices: ",
            Subject::Answers => "Answers: ",
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
        if let Some(planned) = self.rounds_planned {
            // Writing to a String cannot fail.
            let _ = write!(text, " {}", self.plan(planned));
        }
        text
    }

    /// Returns the cost of the whole plan of a stopped run.
    fn plan(&self, planned: u64) -> String {
        let rounds = self.rounds;
        let stopped = format!(
            "The run stopped after {rounds} of {planned} planned rounds, and the reason may depend \
             on the data."
        );
        match self.epsilon_planned.filter(|_| self.is_bound_of_schedule()) {
            Some(epsilon) => format!(
                "{stopped} The epsilon of all planned rounds, {}, is proved in any case.",
                upper(epsilon, 5)
            ),
            None => stopped,
        }
    }

    /// Returns the limits of an attacker.
    fn meaning(&self) -> String {
        let seen = match self.trust {
            _ if self.subject == Subject::CorrelationMatrices => {
                "Someone who sees every correlation matrix, the server included,"
            }
            TrustModel::Central if self.subject == Subject::Answers => {
                "Someone who sees every released answer"
            }
            TrustModel::Central => "Someone who sees every released model",
            TrustModel::Local => "Someone who sees every upload, the server included,",
            TrustModel::Distributed(parties) if parties.colluding() > 1 => {
                "A coalition of the coordinator and helpers, who see the participants and all that \
                 is released,"
            }
            TrustModel::Distributed(_) => {
                "The coordinator, or a helper, who sees the participants and all that is released"
            }
        };
        let unit = self.protected();
        let question = match self.adjacency {
            Adjacency::AddRemove if self.compares_with_zeros() => {
                format!("whether one {unit} sent its update or zeros")
            }
            Adjacency::AddRemove => format!("whether one {unit} took part"),
            Adjacency::ReplaceOne if self.unit == PrivacyUnit::Example => {
                "which of two given examples a device used".to_owned()
            }
            Adjacency::ReplaceOne if self.devices_per_user.is_some() => {
                format!("which of two given versions of the data of one {unit} was used")
            }
            Adjacency::ReplaceOne => {
                format!("which of two given versions of one {unit}'s data was used")
            }
        };
        if self.epsilon.is_infinite() {
            return format!("{seen} may be able to tell {question} with certainty.");
        }
        let (advantage, hits) = (
            percent_up(self.advantage),
            percent_up(self.hit_rate_at_1_percent),
        );
        let rates = "true-positive minus false-positive rate";
        match self.is_upper_bound() {
            true => format!(
                "{seen} and knows all other data can tell {question} with advantage at most \
                 {advantage:.1} % ({rates}); at a false-positive rate of 1 %, the true-positive \
                 rate is at most {hits:.1} %."
            ),
            // Consequences of an unproved figure are unproved as well.
            false => format!(
                "By this figure, someone who knows all other data could tell {question} with an \
                 advantage of about {advantage:.1} % ({rates}), and with a true-positive rate of \
                 about {hits:.1} % at a false-positive rate of 1 %: neither is a bound."
            ),
        }
    }

    /// Returns the guarantee against outsiders.
    fn outsiders(&self) -> Option<String> {
        Some(format!(
            "Against everybody else, who sees only the released models and thus the noise of all \
             parties, epsilon is {}.",
            upper(self.epsilon_outsiders?, 5)
        ))
    }

    /// Returns the cost of replacing the data of one device, if ε compares with zeros.
    fn replacement(&self) -> Option<String> {
        if let TrustModel::Distributed(_) = self.trust {
            return Some(format!(
                "Replacing a device's data by other data, instead of its update by zeros, has up \
                 to twice the sensitivity: epsilon is then {} (`pld`, replace-one).",
                upper(self.epsilon_replace_one?, 5)
            ));
        }
        Some(format!(
            "Local differential privacy usually hides which of two given versions of its data a \
             device used. This has up to twice the sensitivity: epsilon is then {} (`pld`, \
             replace-one).",
            upper(self.epsilon_replace_one?, 5)
        ))
    }

    /// Returns the assumptions.
    fn assumptions(&self) -> String {
        if self.subject == Subject::CorrelationMatrices {
            return self.assumptions_of_matrices();
        }
        if let (Some(sensitivity), Some(separation)) = (self.sensitivity, self.separation) {
            return self.assumptions_of_correlated_noise(sensitivity, separation);
        }
        let noise = match self.trust {
            TrustModel::Central => "the noise on the sum",
            TrustModel::Distributed(parties) if parties.honest() == 1 => "each party's noise",
            TrustModel::Distributed(_) => "the combined noise of all parties that do not collude",
            TrustModel::Local => "each device's noise",
        };
        let amount = match self.noise_split {
            None if self.subject == Subject::Answers => format!(
                "{} times the bound on one device's answer",
                lower(self.noise_multiplier, 5)
            ),
            None => format!("{} times the clip norm", lower(self.noise_multiplier, 5)),
            Some(split) => format!(
                "{} times the clip norm of the round, and {} on the number of clipped updates",
                lower(split.update, 5),
                lower(split.bit_std, 5)
            ),
        };
        format!(
            "This holds if {}; {}; and the standard deviation of {noise} is {amount}.",
            self.participation(),
            self.trusted(),
        )
    }

    /// Describes which devices take part, and how often they release something.
    fn participation(&self) -> String {
        let rate = self.sampling_rate.unwrap_or(1.0);
        let (devices, rounds) = (self.devices, self.rounds);
        let every_round = match rounds {
            1 => "the only round".to_owned(),
            _ => format!("each of {rounds} rounds"),
        };
        let secrecy = match self.trust {
            TrustModel::Central => ", in secret",
            TrustModel::Distributed(_) => {
                " (the coordinator and the helpers see the cohort, so against them sampling does \
                 not amplify privacy, and each round counts in full)"
            }
            TrustModel::Local => {
                " (the server sees the cohort, so sampling does not amplify privacy, and each \
                 round counts in full)"
            }
        };
        let mut text = match self.sampling {
            SamplingScheme::Uniform => format!(
                "{every_round} draws a cohort of fixed size, the fraction {rate} of \
                 {devices} devices, uniformly without replacement{secrecy}"
            ),
            SamplingScheme::Poisson => format!(
                "in {every_round}, each of {devices} devices is drawn independently with \
                 probability {rate}{secrecy}"
            ),
            SamplingScheme::BlockCyclic => {
                let parts = self
                    .separation
                    .map_or(String::new(), |parts| parts.to_string());
                format!(
                    "the {devices} devices are split into {parts} parts, which are fixed \
                     beforehand, may be public and take turns; in {every_round}, each device of \
                     the round's part is drawn independently with probability {rate}{secrecy}, so \
                     nobody learns which devices were drawn"
                )
            }
            SamplingScheme::Full => {
                format!("all {devices} devices take part in {every_round}")
            }
            SamplingScheme::Unsampled => {
                let most = self.max_participations.map_or(rounds, u64::from);
                match self.staleness {
                    None => format!(
                        "no device takes part in more than {most} of {rounds} rounds; the times of \
                         its participations need not be random, but must not depend on its data"
                    ),
                    Some(staleness) => format!(
                        "no device counts in more than {most} of {rounds} windows, and {}",
                        windows_in_words(staleness)
                    ),
                }
            }
        };
        // Writing to a String cannot fail.
        if let Some(releases) = self.releases_per_round {
            let _ = write!(
                text,
                ", and a device makes {releases} releases in a round, all of which are counted"
            );
        }
        text
    }

    /// Describes the trust in each party.
    fn trusted(&self) -> String {
        match self.trust {
            TrustModel::Central => {
                "the server is trusted to add the noise and to keep the updates \
                 and the cohorts secret"
                    .to_owned()
            }
            TrustModel::Local => {
                "each device adds the full noise to its own update and trusts no other party"
                    .to_owned()
            }
            TrustModel::Distributed(parties) => trusted_parties(parties),
        }
    }

    /// Returns the assumptions of correlated noise: none about participation, or random draws from
    /// parts that take turns.
    fn assumptions_of_correlated_noise(&self, sensitivity: f64, separation: u32) -> String {
        let times = match self.max_participations {
            None | Some(1) => "once".to_owned(),
            Some(participations) => {
                format!("{participations} times and at least {separation} rounds apart")
            }
        };
        let (who, of_what) = match self.sampling {
            SamplingScheme::BlockCyclic => {
                let participation = self.participation();
                (
                    format!("if {participation}"),
                    "sensitivity to one round of a device",
                )
            }
            _ => {
                let rounds = self.rounds;
                let who = format!(
                    "for all {rounds} rounds, whichever devices take part, in any order, at most \
                     {times}, as enforced by the server and by each device provisioned for it"
                );
                (who, "sensitivity")
            }
        };
        let windows = self.staleness.map_or(String::new(), |staleness| {
            let rule = windows_in_words(staleness);
            format!("; if {rule}")
        });
        format!(
            "This holds {who}{windows}; if {}; and if the standard deviation of the noise on each \
             release is {} times the {of_what}, which is {} times the clip norm. It also holds if \
             the server restarts and has lost the sums of earlier rounds: the noise starts again.",
            self.trusted(),
            lower(self.noise_multiplier, 5),
            upper(sensitivity, 5),
        )
    }

    /// Returns the assumptions of correlation matrices, to which a device adds its own noise.
    fn assumptions_of_matrices(&self) -> String {
        let releases = match self.max_participations {
            Some(max) => u64::from(max).min(self.rounds),
            None => self.rounds,
        };
        let noun = if releases == 1 { "matrix" } else { "matrices" };
        format!(
            "This holds if a device sends at most {releases} {noun} in this run; each device adds \
             all of its own noise and trusts no other party; the standard deviation of the noise \
             on the sum over a device's examples is {} times the largest norm of one example's \
             matrix; and the encoder of each round is public: information about their training \
             examples in the encoders themselves is not covered.",
            lower(self.noise_multiplier, 5)
        )
    }
}

/// Returns the assumptions on a coordinator and its helpers.
fn trusted_parties(parties: Parties) -> String {
    let colluding = match (parties.helpers(), parties.colluding()) {
        (1, _) => "the coordinator and the helper do not collude".to_owned(),
        (_, 1) => "no two of the coordinator and the helpers collude".to_owned(),
        (helpers, colluding) => format!(
            "of the coordinator and the {helpers} helpers, no more than {colluding} collude"
        ),
    };
    format!(
        "{colluding}; no helper can read what devices send to the coordinator; and each of them \
         adds its noise and keeps the noise and the mask keys or masked updates secret"
    )
}

/// Returns a share in percent, rounded up to a tenth, so that the words never promise more than the
/// proof.
fn percent_up(share: f64) -> f64 {
    (share * 1000.0).ceil().min(1000.0) / 10.0
}

/// Returns the assumptions of rounds that are windows of time.
fn windows_in_words(staleness: u32) -> String {
    format!(
        "rounds are windows of time whose end depends on the clock alone, an update counts in the \
         window in which it arrives, at most {staleness} after its model's window, and \
         participation and its times, which are not protected, do not depend on data (a device \
         that cannot train counts as an update of zeros)"
    )
}
