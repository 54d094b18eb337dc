//! A simulated device's masks and tags: what a real one computes in `smolfed_core::session`.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::{MaskRoot, RoundKey, Tag};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::wire::keys::Fingerprint;

use super::request::Attendee;
use crate::masking::Masking;
use crate::{Fault, ReleaseSettings};

/// The fingerprint of the ledgers of simulated devices, of which each has one.
pub(super) const LEDGER: Fingerprint = *b"simulate";

/// The secret of the devices of a simulation, of which each has its own masks.
#[must_use]
pub fn devices_root(root: &Root) -> Root {
    party_root(root, 0)
}

/// The root of a helper's noise in a simulation.
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

/// What devices were asked in a round, as their tags cover it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The invitation.
    pub invitation: Vec<u8>,
    /// The model.
    pub model: Vec<f32>,
}

/// What masks and tags the updates of simulated devices in a round.
pub struct DeviceMasks<'a> {
    masking: Masking,
    /// Of the devices.
    root: Root,
    /// The number that names the round's masks.
    round: u32,
    asked: &'a Asked,
    fault: Fault,
}

impl<'a> DeviceMasks<'a> {
    /// Those of a round of a simulation with this root; `None` if it has no masks.
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

    /// Adds the masks of a device to what it sends, in a sum modulo 2^w; its entry of the list.
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
