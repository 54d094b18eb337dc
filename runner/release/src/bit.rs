//! The bit of adaptive clipping: it indicates whether a device's update was inside the ball, and is
//! sent as one more coordinate (Andrew, Thakkar, McMahan, Ramaswamy 2021, arXiv:1905.03871,
//! Algorithm 1).
//!
//! **Grid.** The bit is +½ or −½, on the grid of clip norm ½ with as many bits b as the grid of the
//! update: ±2^b steps, and 0 for a device that sends nothing. Like an update, it is never longer
//! than 2^b steps. A bit of 0 or 1 would be twice as long under add-remove, and no shorter under
//! replace-one. The mean of both values is subtracted because it is public.
//!
//! **Joint sensitivity.** Let z_Δ and z_b be the noise multipliers of the update and of the bit,
//! each relative to its clip norm (z_b = 2 σ_b, since the clip norm of the bit is ½). The
//! contribution of one device, divided by the noise std of each coordinate, has the squared norm
//! `Σq²/(z_Δ 2^b)² + (2^b)²/(z_b 2^b)² ≤ 1/z_Δ² + 1/z_b² = 1/z²`
//! since `Σq² ≤ 4^b` is checked. So update and bit together are one release of noise multiplier z
//! (Theorem 1). If the device's data are replaced, both parts move by at most twice their length:
//! the squared norm is `4/z²`, as for an update of noise multiplier z. Both parts come from the
//! same cohort, so sampling amplifies them together.
//!
//! **Discrete noise.** The accountants treat a discrete Gaussian of std s steps as a continuous one
//! of std √(s² − 9) ([`Mechanism`](smolfed_accounting::Mechanism)). This is conservative for two
//! parts as well: `1/(z_Δ² − e) + 1/(z_b² − e) ≤ 1/(z² − e)` with e = 9/4^b. Both sides are equal
//! at e = 0, and the right one has the larger derivative: the square of a sum instead of the sum of
//! two squares.

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::fault::Fault;
use super::split::Split;

/// How the bit is released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipBit {
    /// 2^b: ½ in steps.
    half: i64,
    /// The noise on the bit, or on the sum of the bits, in steps, and its split between the update
    /// and the bit. `None` for runs without a guarantee.
    noise: Option<(DiscreteGaussian, Split)>,
}

impl ClipBit {
    /// Creates the bit for updates on `grid`.
    #[must_use]
    pub const fn new(grid: &Grid, noise: Option<(DiscreteGaussian, Split)>) -> Self {
        Self {
            half: 1 << grid.bits(),
            noise,
        }
    }

    /// Returns the noise that a device adds to its bit, or the server to the sum.
    #[must_use]
    pub fn noise(&self) -> Option<&DiscreteGaussian> {
        self.noise.as_ref().map(|(noise, _)| noise)
    }

    /// Returns the split of the noise between the update and the bit.
    pub(super) fn split(&self) -> Option<Split> {
        self.noise.map(|(_, split)| split)
    }

    /// Adds the server's noise to the sum of the bits.
    ///
    /// It comes from a separate stream, (ServerNoise, t, 2³² − 1): the last block of a sum of 2⁴⁴
    /// coordinates, a length that no sum has.
    pub(super) fn cover(&self, sum: &mut i64, root: &Root, number: u32, fault: Fault) {
        if let Some(noise) = self.noise() {
            let id = StreamId {
                purpose: Purpose::ServerNoise,
                round: number,
                device: fault.bit_block(u32::MAX),
            };
            noise.add_to(std::slice::from_mut(sum), &mut root.stream(id));
        }
    }

    /// Returns the sum of the bits, each ±½.
    pub(super) fn value(&self, sum: i64) -> f64 {
        sum as f64 / (2 * self.half) as f64
    }
}
