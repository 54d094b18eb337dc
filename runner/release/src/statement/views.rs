//! The views of the parties of masked sums, and the ε against each.

use serde::{Deserialize, Serialize};

use smolfed_accounting::accountant::Accountant;
use smolfed_accounting::distributed::{Parties, ln_of_term};
use smolfed_accounting::event::{Mechanism, PrivacyEvent, TrustModel};
use smolfed_accounting::params::Delta;

/// The view of one party, several parties, or an outsider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The party.
    pub who: String,
    /// The data that it sees.
    pub sees: String,
    /// The assumption under which ε holds.
    pub assuming: String,
    /// ε against it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
}

impl View {
    fn new(who: &str, sees: &str, assuming: &str, epsilon: Option<f64>) -> Self {
        Self {
            who: who.to_owned(),
            sees: sees.to_owned(),
            assuming: assuming.to_owned(),
            epsilon,
        }
    }
}

/// Returns the views of a run: `epsilon` holds against each allowed coalition and `outsiders`
/// against everybody else. There are none under another trust model.
pub(super) fn views(trust: TrustModel, epsilon: f64, outsiders: Option<f64>) -> Vec<View> {
    let TrustModel::Distributed(parties) = trust else {
        return Vec::new();
    };
    let epsilon = Some(epsilon).filter(|epsilon| epsilon.is_finite());
    let (helpers, colluding) = (parties.helpers(), parties.colluding());
    let mut views = vec![
        View::new(
            "coordinator",
            "the participants, each masked update, the helpers' answers, its own noise, and all \
             that is released",
            "helpers add their noise and keep it and their mask keys to themselves",
            epsilon,
        ),
        View::new(
            "helper",
            "the participants, the masks it shares with them, its own noise, and all that is \
             released",
            "it cannot read what devices send to the coordinator, which adds its noise and keeps \
             it to itself",
            epsilon,
        ),
    ];
    if colluding > 1 {
        views.push(View::new(
            &format!("any {colluding} of them together"),
            "all that each of them sees",
            "the others add their noise, and keep it and their secrets shared with devices to \
             themselves",
            epsilon,
        ));
    }
    views.push(View::new(
        "everybody else",
        "all that is released",
        "participation is secret, if devices are drawn at random",
        outsiders,
    ));
    let all = match (helpers, colluding == helpers) {
        (1, _) => "coordinator and helper together".to_owned(),
        (_, true) => "coordinator and all helpers together".to_owned(),
        (_, false) => format!("more than {colluding} of them together"),
    };
    let sees = match colluding == helpers {
        true => "each update",
        false => "each update, if all of them collude, and otherwise sums with less noise",
    };
    views.push(View::new(&all, sees, "nothing", None));
    views
}

/// Returns ε against anyone who sees only the releases, by the tightest accountant. `None` under
/// another trust model, and if no finite bound exists.
pub(super) fn outsiders(events: &[PrivacyEvent], delta: Delta) -> Option<f64> {
    let events: Option<Vec<PrivacyEvent>> = events.iter().map(PrivacyEvent::outsiders).collect();
    let events = events?;
    let accountant = Accountant::tightest_for(&events);
    let estimate = accountant.epsilon(&events, delta).ok()?;
    Some(estimate.epsilon).filter(|epsilon| epsilon.is_finite() && estimate.is_upper_bound())
}

/// Returns the term by which sums of several discrete Gaussians differ from one, if there are any.
pub(super) fn term(event: &PrivacyEvent) -> Option<String> {
    /// Maximum number of entries of a model times rounds.
    const RELEASES: f64 = 1e17;
    /// A number of digits that every accepted grid reaches.
    const DIGITS: f64 = 17_000.0;
    let TrustModel::Distributed(parties) = event.trust else {
        return None;
    };
    let steps = steps_of_one(&event.mechanism, parties)?;
    let ln = ln_of_term(parties.count(), steps) + RELEASES.ln();
    let digits = (-ln / std::f64::consts::LN_10).floor().min(DIGITS);
    (digits > 0.0).then(|| {
        format!(
            "The sum of the discrete noise of several parties counts as one discrete Gaussian: for \
             up to 10^10 parameters and 10^7 rounds that changes no epsilon by more than \
             10^-{digits}, which is not added."
        )
    })
}

/// Returns the std of the noise of one party, in steps of its grid.
fn steps_of_one(mechanism: &Mechanism, parties: Parties) -> Option<f64> {
    let of_one = parties.of_each(mechanism.noise_multiplier());
    mechanism
        .with_noise_multiplier(of_one)
        .noise_steps()
        .filter(|steps| *steps > 0.0)
}
