//! The attacked view under distributed trust. A coalition knows who takes part and subtracts its
//! own noise from every release. An outsider has the releases alone.

use smolfed_accounting::{Parties, PrivacyEvent, TrustModel};
use smolfed_core::stream::Root;

use crate::experiment::Experiment;
use smolfed_release::PrivacyStatement;
use smolfed_release::masked::Party;
use smolfed_release::{ReleaseSettings, Released};

/// The party that observes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Anyone with all releases, and with each upload under local trust.
    #[default]
    Releases,
    /// The coordinator, and as many helpers as may collude with it.
    Coordinator,
    /// As many helpers as may collude.
    Helpers,
}

impl View {
    /// Returns the views that an audit of this experiment attacks, the strongest first.
    #[must_use]
    pub fn for_experiment(experiment: &Experiment) -> Vec<Self> {
        match experiment.release.mechanism.trust() {
            TrustModel::Distributed(_) => vec![Self::Coordinator, Self::Helpers, Self::Releases],
            TrustModel::Central | TrustModel::Local => vec![Self::Releases],
        }
    }

    /// Returns a name for readers, or `None` if there is only one view.
    #[must_use]
    pub fn name(self, trust: TrustModel) -> Option<&'static str> {
        let TrustModel::Distributed(parties) = trust else {
            return None;
        };
        Some(match (self, parties.colluding()) {
            (Self::Releases, _) => "outsider",
            (Self::Coordinator, 1) => "coordinator",
            (Self::Coordinator, _) => "coordinator and helpers",
            (Self::Helpers, 1) => "helper",
            (Self::Helpers, _) => "helpers",
        })
    }

    /// Returns whether the party knows who takes part, whatever the sampling.
    #[must_use]
    pub const fn knows_cohorts(self) -> bool {
        matches!(self, Self::Coordinator | Self::Helpers)
    }

    /// Returns the claim against this view, given the experiment's event.
    #[must_use]
    pub fn event(self, event: PrivacyEvent) -> PrivacyEvent {
        match self {
            Self::Coordinator | Self::Helpers => event,
            Self::Releases => event.outsiders().unwrap_or(event),
        }
    }

    /// Returns the claimed ε against this view.
    #[must_use]
    pub fn epsilon(self, claim: &PrivacyStatement) -> f64 {
        match (self, claim.trust) {
            (Self::Releases, TrustModel::Distributed(_)) => {
                claim.epsilon_outsiders.unwrap_or(f64::INFINITY)
            }
            _ => claim.epsilon,
        }
    }

    /// Returns this view of a release with this number, in a simulation of `experiment` with this
    /// root: updates, or answers to one of its questions.
    #[must_use]
    pub fn of_release(
        self,
        released: Released,
        experiment: &Experiment,
        release: &ReleaseSettings,
        root: &Root,
        number: u32,
    ) -> Released {
        let (TrustModel::Distributed(parties), Some(policy)) = (
            experiment.release.mechanism.trust(),
            experiment.helper_policy(0),
        ) else {
            return released;
        };
        let length = released.integer_count();
        self.members(parties).fold(released, |released, party| {
            released.less(&party.noise(release, &policy, root, number, length))
        })
    }

    /// Returns the parties whose noise it knows.
    fn members(self, parties: Parties) -> impl Iterator<Item = Party> {
        let has_coordinator = self == Self::Coordinator;
        let helpers = match self {
            Self::Releases => 0,
            Self::Helpers => parties.colluding(),
            Self::Coordinator => parties.colluding() - 1,
        };
        let coordinator = has_coordinator.then_some(Party::Coordinator);
        coordinator
            .into_iter()
            .chain((0..helpers).map(Party::Helper))
    }
}
