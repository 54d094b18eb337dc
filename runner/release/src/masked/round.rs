//! The coordinator's side of a masked sum: it asks local or remote helpers, and subtracts their
//! answers.

use std::collections::BTreeMap;

use smolfed_core::mask::{MaskRoot, Terms};
use smolfed_core::stream::Root;

use super::device::{Asked, devices_root, helper_root};
use super::party::HelperParty;
use super::policy::HelperPolicy;
use super::request::{Attendee, HelperAnswer, HelperRequest, Listed};
use crate::Fault;
use crate::masked::error::HelperError;
use crate::saved::Saved;

/// A round whose masks are to be removed, as the coordinator knows it.
#[derive(Clone, Debug)]
pub struct MaskedRound {
    /// The number that names the masks of the round.
    pub number: u32,
    /// Grid, width and number of helpers.
    pub terms: Terms,
    /// The request to the devices.
    pub asked: Asked,
    /// Number of entries of an update.
    pub entries: u32,
    /// The devices whose masked updates are in the sum, in ascending order.
    pub attendees: Vec<Attendee>,
    /// The earlier rounds whose sums are combined with the sum of this round, the latest first.
    pub earlier: Vec<u32>,
}

impl MaskedRound {
    /// Returns the request to one helper.
    #[must_use]
    pub fn request(&self, helper: u8) -> HelperRequest {
        let listed = |attendee: &Attendee| Listed {
            device: attendee.device,
            ledger: attendee.ledger,
            // Without a tag the helper refuses.
            tag: attendee
                .tags
                .get(usize::from(helper))
                .copied()
                .unwrap_or_default(),
        };
        HelperRequest {
            round: self.number,
            terms: self.terms,
            invitation: self.asked.invitation.clone(),
            model: self.asked.model.clone(),
            entries: self.entries,
            devices: self.attendees.iter().map(listed).collect(),
            earlier: self.earlier.clone(),
        }
    }
}

/// The helpers of a run, in this process or in others.
pub trait Helpers: Send {
    /// Called before a round is charged. Returns when all helpers are available, if the
    /// implementation waits for them, or when the run is to stop.
    ///
    /// # Errors
    /// [`HelperError`] ends the run before the round.
    fn ready(&mut self) -> Result<(), HelperError> {
        Ok(())
    }

    /// Asks all helpers. Returns one answer from each, in the order of their numbers.
    ///
    /// # Errors
    /// [`HelperError`]: the round is lost.
    fn unmask(&mut self, round: &MaskedRound) -> Result<Vec<HelperAnswer>, HelperError>;

    /// Reports that a round was lost for this reason.
    fn lost(&mut self, _: HelperError) {}

    /// Adds the state of helpers in this process to a checkpoint.
    fn save(&self, _: &mut Saved) {}

    /// Restores the state written by [`Self::save`].
    ///
    /// # Errors
    /// The reason, if the checkpoint has no valid state.
    fn restore(&mut self, _: &Saved) -> Result<(), String> {
        Ok(())
    }
}

/// The helpers of a simulation, in this process.
#[derive(Debug)]
pub struct LocalHelpers(Vec<HelperParty>);

/// The names in checkpoints: the sums of masks of helper `.J`, and their rounds.
const SUMS: &str = "helper.sums";
const ROUNDS: &str = "helper.rounds";

impl LocalHelpers {
    /// Creates all helpers of a simulation of `devices` devices, with keys and noise of its root.
    #[must_use]
    pub fn new(policy: &HelperPolicy, devices: u32, root: &Root, fault: Fault) -> Self {
        let secret = devices_root(root);
        let party = |helper: u8| {
            let key = |device| (device, MaskRoot::new(&secret, device).helper(helper));
            let keys: BTreeMap<_, _> = (0..devices).map(key).collect();
            HelperParty::new(helper, policy.clone(), keys, helper_root(root, helper))
                .with_fault(fault)
        };
        Self((0..policy.helpers).map(party).collect())
    }
}

impl Helpers for LocalHelpers {
    fn unmask(&mut self, round: &MaskedRound) -> Result<Vec<HelperAnswer>, HelperError> {
        let ask = |party: &mut HelperParty| {
            let helper = party.number();
            let refused = |refusal| HelperError::Refused { helper, refusal };
            party.answer(&round.request(helper)).map_err(refused)
        };
        self.0.iter_mut().map(ask).collect()
    }

    fn save(&self, saved: &mut Saved) {
        for party in &self.0 {
            let length = party.sums().next().map_or(0, |(_, sum)| sum.len());
            let entries = party.sums().flat_map(|(_, sum)| sum);
            let rounds: Vec<u32> = party.sums().map(|(round, _)| round).collect();
            let number = party.number();
            let shape = [rounds.len(), length];
            saved.put(&format!("{SUMS}.{number}"), shape, entries.copied());
            saved.put(&format!("{ROUNDS}.{number}"), [rounds.len()], rounds);
        }
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), String> {
        for party in &mut self.0 {
            let number = party.number();
            let words: Vec<i64> = saved.get(&format!("{SUMS}.{number}"))?;
            let rounds: Vec<u32> = saved.get(&format!("{ROUNDS}.{number}"))?;
            let length = words.len().checked_div(rounds.len()).unwrap_or(0);
            if length * rounds.len() != words.len() {
                return Err(format!(
                    "`{SUMS}.{number}` does not contain the sums of rounds"
                ));
            }
            let vectors = words.chunks(length.max(1)).map(<[i64]>::to_vec);
            party.restore(rounds.into_iter().zip(vectors).collect());
        }
        Ok(())
    }
}
