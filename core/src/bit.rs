//! The bit of adaptive clipping: one more integer that tells whether a device's update was inside
//! the ball (Andrew, Thakkar, McMahan, Ramaswamy 2021, arXiv:1905.03871, Algorithm 1).
//!
//! The bit is +½ or −½ on the grid of clip norm ½ with the bits b of the update's grid: ±2^b steps,
//! or 0 from a device without an update. So, like an update, its norm is at most 2^b steps. Under
//! local trust the device adds noise to it, from a separate stream ([`Purpose::DeviceBitNoise`]).
//!
//! [`Purpose::DeviceBitNoise`]: crate::stream::Purpose::DeviceBitNoise

use crate::{noise::Sigma, quantize::Grid, wire::pack};

/// The request of a coordinator with an adaptive clip norm, in addition to the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRequest {
    /// σ of the device's noise on its bit (local trust), or `None` if the coordinator adds the
    /// noise.
    pub noise: Option<Sigma>,
}

impl BitRequest {
    /// Returns the width of the bit in messages, for an update on a grid of `grid_bits` bits.
    pub const fn width(&self, grid_bits: u32) -> u32 {
        match self.noise {
            // Both −2^b and +2^b.
            None => grid_bits + 2,
            noise => pack::width(grid_bits, noise),
        }
    }
}

/// Returns the bit of an update with this norm before its (last) clipping: positive inside the
/// ball.
pub fn clip_bit(grid: &Grid, norm: f32) -> i64 {
    let half = 1 << grid.bits();
    // Bit patterns of non-negative numbers have the order of the numbers, and NaN is above.
    if norm.to_bits() <= grid.clip_norm().get().to_bits() {
        half
    } else {
        -half
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ClipNorm;

    #[test]
    fn a_bit_is_a_half_up_to_the_clip_norm_and_minus_a_half_beyond_it() {
        let grid = Grid::new(ClipNorm::new(0.3).unwrap(), 8).unwrap();
        for norm in [0.0, 1e-30, 0.3] {
            assert_eq!(clip_bit(&grid, norm), 256, "{norm}");
        }
        for norm in [0.3_f32.next_up(), f32::MAX, f32::INFINITY, f32::NAN] {
            assert_eq!(clip_bit(&grid, norm), -256, "{norm}");
        }
    }

    /// Without noise both values fit, and with noise the same values as for an update with that
    /// noise.
    #[test]
    fn a_bit_fits_its_width() {
        let noise = |sigma| BitRequest {
            noise: Sigma::new(sigma, 1).ok(),
        };
        for bits in [4, 20, 24] {
            let width = BitRequest { noise: None }.width(bits);
            for value in [1 << bits, -(1 << bits)] {
                let mut bytes = [0; 4];
                let used = pack::pack([value].into_iter(), width, &mut bytes).unwrap();
                let mut found = [0];
                pack::unpack(&bytes[..used], width, &mut found).unwrap();
                assert_eq!(found, [value]);
            }
        }
        // 2^20 + 12 · 2^22 < 2^26, and a sign.
        assert_eq!(noise(1 << 22).width(20), 27);
        assert_eq!(noise(1 << 52).width(24), 57);
    }
}
