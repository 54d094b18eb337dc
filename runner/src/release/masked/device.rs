//! A simulated device's masks and tags: what a real one computes in `smolfed_core::session`.

use serde::{Deserialize, Serialize};
use smolfed_core::mask::{MaskRoot, RoundKey, Tag, Terms};
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::wire::keys::Fingerprint;

use super::error::HelperError;
use super::request::Attendee;
use super::ring::Ring;
use crate::release::{Fault, Release};

/// The fingerprint of the ledgers of simulated devices, of which each has one.
pub(super) const LEDGER: Fingerprint = *b"simulate";

/// How the updates of a run are masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masking {
    /// Helpers, from 1 to [`MAX_HELPERS`](smolfed_core::mask::MAX_HELPERS).
    pub helpers: u8,
    /// b.
    pub grid_bits: u8,
    /// Where entries are added up.
    pub ring: Ring,
    /// The largest number of devices in a round.
    pub max_devices: u32,
    /// The largest norm of a sum, or of a combination of sums, that honest devices can have, in
    /// steps of the grid of what is released.
    pub largest_norm: u64,
}

impl Masking {
    /// What every tag covers.
    #[must_use]
    pub const fn terms(&self) -> Terms {
        Terms {
            grid_bits: self.grid_bits,
            width: self.ring.width(),
            helpers: self.helpers,
        }
    }

    /// The same, as real devices are invited to it; `None` for a ring that the protocol does not
    /// know, which there is none of.
    #[must_use]
    pub const fn of_devices(&self) -> Option<smolfed_core::mask::Masking> {
        smolfed_core::mask::Masking::new(self.helpers, self.ring.width())
    }

    /// Whether the sum of so many updates fits.
    ///
    /// # Errors
    /// [`HelperError::Crowd`].
    pub fn has_room_for(&self, found: usize) -> Result<(), HelperError> {
        let most = self.max_devices as usize;
        match found <= most {
            true => Ok(()),
            false => Err(HelperError::Crowd { found, most }),
        }
    }

    /// Whether integers can be those of an honest sum with noise of std `noise_std` in all, in
    /// steps: their norm is at most `largest_norm + σ √(d + 2 √(72 d) + 144)`.
    ///
    /// A sum of discrete Gaussians is sub-Gaussian with their variances added up, so that honest
    /// noise is longer with probability at most e^-72 (Hsu, Kakade, Zhang 2012, "A tail inequality
    /// for quadratic forms of subgaussian random vectors", Theorem 1). The answer of a helper that
    /// does not belong to the sum leaves uniform integers, whose norm is about 2^w √(d / 12): at
    /// least √(d / 3) times the largest norm and at least 6.9 √d times σ, since w leaves room for
    /// 12 σ. So they are found from some 20 entries on; an offset that a helper chooses is not.
    #[must_use]
    pub fn is_plausible(&self, integers: &[i64], noise_std: f64) -> bool {
        /// -ln of the probability of a false alarm.
        const CERTAINTY: f64 = 72.0;
        let d = integers.len() as f64;
        let noise = noise_std * (d + 2.0 * (CERTAINTY * d).sqrt() + 2.0 * CERTAINTY).sqrt();
        // At most 2^56 each.
        let norm = integers
            .iter()
            .map(|x| (*x as f64) * (*x as f64))
            .sum::<f64>();
        norm.sqrt() <= self.largest_norm as f64 + noise
    }
}

/// The secret of the devices of a simulation, of which each has its own masks.
#[must_use]
pub(super) fn devices_root(root: &Root) -> Root {
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
    pub fn of(release: &Release, root: &Root, round: u32, asked: &'a Asked) -> Option<Self> {
        release.masking_here().map(|masking| Self {
            masking,
            root: devices_root(root),
            round,
            asked,
            fault: release.fault,
        })
    }

    /// Adds the masks of a device to what it sends, in a sum modulo 2^w; its entry of the list.
    pub(in crate::release) fn add(&self, device: u32, sum: &mut [i64]) -> Attendee {
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
