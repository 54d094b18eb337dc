//! The bit of adaptive clipping: whether a device's update was inside the ball, as one more
//! coordinate of what it sends (Andrew, Thakkar, McMahan, Ramaswamy 2021, arXiv:1905.03871,
//! Algorithm 1).
//!
//! **Its grid.** The bit is +½ or −½, on the grid of clip norm ½ with the bits b of the update's:
//! ±2^b steps, and 0 of a device that sends nothing. Like an update, it is never longer than 2^b
//! steps. A whole bit, 0 or 1, would be twice as long under add-remove, and no shorter under
//! replace-one: the mean of both values is taken off because it is public.
//!
//! **Joint sensitivity.** With z_Δ and z_b the noise multipliers of the update and of the bit, each
//! relative to its clip norm (z_b = 2 σ_b, as the bit's is ½), what one device adds, divided by the
//! noise std of each coordinate, has the squared norm
//! `Σq²/(z_Δ 2^b)² + (2^b)²/(z_b 2^b)² ≤ 1/z_Δ² + 1/z_b² = 1/z²`
//! since `Σq² ≤ 4^b` is checked. So update and bit together are one release of noise multiplier z
//! (Theorem 1). If the device's data are replaced, both parts move by at most twice their length:
//! the squared norm is `4/z²`, as of an update of noise multiplier z. Both parts are of the same
//! cohort, so that sampling amplifies them together.
//!
//! **Discrete noise.** The accountants take a discrete Gaussian of std s steps for a continuous one
//! of std √(s² − 9) ([`Mechanism`](smolfed_accounting::Mechanism)). That is on the safe side for
//! two parts as well: `1/(z_Δ² − e) + 1/(z_b² − e) ≤ 1/(z² − e)` with e = 9/4^b, since both sides
//! are equal at e = 0, and the right one has the larger derivative, the square of a sum and not the
//! sum of two squares.

use smolfed_core::noise::DiscreteGaussian;
use smolfed_core::quantize::Grid;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::fault::Fault;
use super::split::Split;

/// How the bit is released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipBit {
    /// 2^b: what ½ is in steps.
    half: i64,
    /// The noise on the bit, or on the sum of the bits, in steps, and how it is split between the
    /// update and the bit; `None` for runs that promise nothing.
    noise: Option<(DiscreteGaussian, Split)>,
}

impl ClipBit {
    /// A bit beside updates on `grid`.
    #[must_use]
    pub const fn new(grid: &Grid, noise: Option<(DiscreteGaussian, Split)>) -> Self {
        Self {
            half: 1 << grid.bits(),
            noise,
        }
    }

    /// The noise that a device adds to its bit, or the server to the sum.
    #[must_use]
    pub fn noise(&self) -> Option<&DiscreteGaussian> {
        self.noise.as_ref().map(|(noise, _)| noise)
    }

    /// How the noise is split between the update and the bit.
    pub(super) fn split(&self) -> Option<Split> {
        self.noise.map(|(_, split)| split)
    }

    /// Adds the server's noise to the sum of the bits.
    ///
    /// It comes from a stream of its own, (ServerNoise, t, 2³² − 1): the last block of a sum of 2⁴⁴
    /// coordinates, which none has.
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

    /// The sum of the bits, each ±½.
    pub(super) fn value(&self, sum: i64) -> f64 {
        sum as f64 / (2 * self.half) as f64
    }
}
