//! The masks and tags of simulated devices. Real devices compute them in `smolfed_core::session`.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::{MaskRoot, RoundKey, Tag};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::wire::keys::Fingerprint;

use super::request::Attendee;
use crate::masking::Masking;
use crate::{Fault, ReleaseSettings};

/// The ledger fingerprint of all simulated devices.
pub(super) const LEDGER: Fingerprint = *b"simulate";

/// Returns the secret of the devices of a simulation. Each device derives its own masks from it.
#[must_use]
pub fn devices_root(root: &Root) -> Root {
    party_root(root, 0)
}

/// Returns the root of a helper's noise in a simulation.
#[must_use]
pub fn helper_root(root: &Root, helper: u8) -> Root {
    party_root(root, u32::from(helper) + 1)
}

fn party_root(root: &Root, party: u32) -> Root {
    use rand_core::Rng;
    let mut secret = [0; 32];
    let id = StreamId {
        purpose: Purpose::PartyRoots,
        round: 0,
        device: party,
    };
    root.stream(id).fill_bytes(&mut secret);
    Root::from_secret(secret)
}

/// The request to the devices in a round, as their tags cover it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The invitation.
    pub invitation: Vec<u8>,
    /// The model.
    pub model: Vec<f32>,
}

/// The masks and tags for the updates of simulated devices in a round.
pub struct DeviceMasks<'a> {
    masking: Masking,
    /// The root of the devices.
    root: Root,
    /// The number that names the round's masks.
    round: u32,
    asked: &'a Asked,
    fault: Fault,
}

impl<'a> DeviceMasks<'a> {
    /// Returns the masks of a round of a simulation with this root. `None` if it has no masks.
    #[must_use]
    pub fn for_round(
        release: &ReleaseSettings,
        root: &Root,
        round: u32,
        asked: &'a Asked,
    ) -> Option<Self> {
        release.masking_here().map(|masking| Self {
            masking,
            root: devices_root(root),
            round,
            asked,
            fault: release.fault,
        })
    }

    /// Adds the masks of a device to its update, in a sum modulo 2^w. Returns its entry of the
    /// list.
    pub(crate) fn add(&self, device: u32, sum: &mut [i64]) -> Attendee {
        let (ring, terms) = (self.masking.ring, self.masking.terms());
        let keys = MaskRoot::new(&self.root, device);
        let round = self.fault.mask_round(self.round);
        let tag = |helper: u8| -> Tag {
            let key: RoundKey = keys.helper(helper).round(round, &LEDGER);
            let mut masks = key.masks(ring.width().into());
            for entry in &mut *sum {
                *entry = ring.reduce(entry.wrapping_add(masks.next_mask().cast_signed()));
            }
            key.tag(&terms, &self.asked.invitation, &self.asked.model)
        };
        Attendee {
            device,
            ledger: LEDGER,
            tags: (0..self.masking.helpers).map(tag).collect(),
        }
    }
}
