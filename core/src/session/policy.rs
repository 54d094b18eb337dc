//! Who a device is, and what it agrees to whatever a coordinator asks for.

use crate::{
    crypto::{Key, joined},
    integer::Wide,
    ledger::{LedgerNonce, Limits},
    params::Penalty,
    personal::PersonalRequest,
    stream::{Purpose, Root, Stream, StreamId},
    wire::message::Invitation,
};

/// Clip norms and learning rates that a device accepts: 2⁻³⁰ to 2³⁰. Weight decay and proximal term
/// are at most the upper limit.
///
/// Nobody trains beyond, and inside no square of a norm comes near the limits of `f32`: only a
/// coordinator that looks for the ends of the arithmetic asks for more.
pub const SETTING_LIMITS: core::ops::RangeInclusive<f32> = MIN_SETTING..=MAX_SETTING;

const MIN_SETTING: f32 = 1.0 / MAX_SETTING;
const MAX_SETTING: f32 = (1 << 30) as f32;

/// Local steps that a device takes at most for each epoch that it agrees to, where an invitation
/// counts steps.
pub const STEPS_PER_EPOCH: u32 = 1024;

/// Who the device is.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its number, which also names its random streams.
    pub device: u32,
    /// The root of its random streams, which nobody else knows.
    pub root: Root,
}

/// Before the nonce of a ledger in what the root of its streams derives from.
const STREAMS_LABEL: &[u8; 8] = b"streams ";

impl Identity {
    /// Replaces the root by that of the streams of this ledger:
    /// HChaCha20(root; "streams " ‖ nonce).
    ///
    /// HChaCha20 is a pseudo-random function: for somebody who does not know the root, the
    /// roots of two nonces are independent uniform keys, and so are the ChaCha20 streams under
    /// them. The root itself keys nothing else. So a device whose ledger is new, because its flash
    /// was erased, never draws from a stream again.
    ///
    /// A seeded root ([`Root::from_seed`]) stays: it names the streams of a simulation, which are
    /// no secret and have to be the same on every board. No secret of 32 random bytes is taken for
    /// one, but with probability 2⁻¹⁹².
    // Its keys leave the stack at once.
    #[inline(never)]
    pub fn bind(&mut self, nonce: &LedgerNonce) {
        if !self.root.is_seeded() {
            let root = Key::from_secret(*self.root.secret());
            let root = root.derive(&joined(STREAMS_LABEL, nonce));
            self.root = Root::from_secret(*root.secret());
        }
    }

    /// The device's stream for this purpose in this round, from its beginning.
    pub(super) fn stream(&self, purpose: Purpose, round: u32) -> Stream {
        self.root.stream(StreamId {
            purpose,
            round,
            device: self.device,
        })
    }
}

/// What the device agrees to, whatever a coordinator asks for.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// How often it takes part, how far apart and how far ahead.
    pub limits: Limits,
    /// Smallest noise multiplier of its own noise, in units of 2⁻³²: of its update, or of its
    /// update and the bit of adaptive clipping together. 0 trusts the coordinator to add the noise.
    pub min_noise_multiplier: u64,
    /// Smallest noise multiplier of its correlation matrices, in units of 2⁻³²: the std of the
    /// noise over μ, the largest norm of an example's matrix. 0 sends them without noise, too. A
    /// device with a `min_noise_multiplier` sends none: their noise hides an example, not the
    /// device.
    pub min_matrix_noise_multiplier: u64,
    /// Epochs in a round, at most. Without labels an epoch looks at up to 64 views of each sample.
    pub max_epochs: u32,
    /// Whether the device greets under a pseudonym, which changes with its chain key, and not under
    /// its number.
    pub hides_number: bool,
    /// How many helpers mask its updates, at most [`MAX_HELPERS`](crate::mask::MAX_HELPERS): it
    /// declines rounds of any other number. 0 sends updates without masks, and none with.
    pub helpers: u8,
}

impl Policy {
    /// Whether the numbers of a round are within [`SETTING_LIMITS`].
    #[inline(always)]
    pub(super) fn accepts_settings(
        invitation: &Invitation,
        personal: Option<&PersonalRequest>,
    ) -> bool {
        // The patterns of positive numbers have the order of the numbers, and take no
        // floating-point comparison.
        let (min, max) = (MIN_SETTING.to_bits(), MAX_SETTING.to_bits());
        let clip_norm = invitation.grid.clip_norm().get();
        let positive = [clip_norm, invitation.learning_rate.get()];
        let pull = personal.and_then(PersonalRequest::pull);
        let pull = pull.unwrap_or(Penalty::NONE);
        let penalties = [invitation.weight_decay, invitation.proximal, pull].map(Penalty::get);
        // A penalty of −0 is 0.
        positive.iter().all(|x| (min..=max).contains(&x.to_bits()))
            && penalties.iter().all(|x| x.to_bits() << 1 <= max << 1)
    }

    /// Whether the device does so much work. Where steps are counted, an epoch stands for
    /// [`STEPS_PER_EPOCH`] of them: the answer must not depend on the number of samples.
    #[inline(always)]
    pub(super) const fn accepts_work(
        &self,
        epochs: u32,
        personal: Option<&PersonalRequest>,
    ) -> bool {
        match personal {
            Some(PersonalRequest {
                steps: Some(steps), ..
            }) => steps.get() <= self.max_epochs.saturating_mul(STEPS_PER_EPOCH),
            _ => epochs <= self.max_epochs,
        }
    }

    /// Whether update and bit together cost no more than an update under the smallest noise
    /// multiplier z: 1/z_Δ² + 1/z_b² ≤ 1/z² (Andrew, Thakkar, McMahan, Ramaswamy 2021,
    /// arXiv:1905.03871, Theorem 1). Without a bit that is z_Δ ≥ z.
    ///
    /// Exactly, in integers, whatever the invitation carries. With z = m/2³², z_Δ = n/(d 2^b) and
    /// z_b = n_b/(d_b 2^b), and both sides times 2⁶⁴ (m n n_b)²:
    /// `4^b m² (d² n_b² + d_b² n²) ≤ 2⁶⁴ n² n_b²`.
    /// m < 2⁶⁴, n ≤ 2⁵², d ≤ 2⁴⁸ and b ≤ 24: each summand of the left side is below 2³⁷⁷.
    pub(super) fn accepts_noise(&self, invitation: &Invitation) -> bool {
        let Some(noise) = &invitation.noise else {
            return self.min_noise_multiplier == 0;
        };
        let (m, (n, d)) = (self.min_noise_multiplier, noise.sigma());
        // No bit costs what one under infinite noise would, and one without noise everything.
        let (bit_n, bit_d) = match invitation.bit.map(|bit| bit.noise) {
            None => (1, 0),
            Some(None) => (0, 1),
            Some(Some(noise)) => noise.sigma(),
        };
        let scale = 1 << invitation.grid.bits();
        let mut left = Wide::square(&[n, bit_n, 1 << 32]);
        let mut pays = |(d, other_n)| left.subtract(&Wide::square(&[m, d, other_n, scale]));
        [(d, bit_n), (bit_d, n)].into_iter().all(&mut pays)
    }
}
