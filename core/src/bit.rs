//! The bit of adaptive clipping: whether a device's update was inside the ball, as one more integer
//! that it sends (Andrew, Thakkar, McMahan, Ramaswamy 2021, arXiv:1905.03871, Algorithm 1).
//!
//! The bit is +½ or −½ on the grid of clip norm ½ with the bits b of the update's grid: ±2^b steps,
//! and 0 of a device that has no update. So like an update it is never longer than 2^b steps. Under
//! local trust the device adds noise to it, from a stream of its own ([`Purpose::DeviceBitNoise`]).
//!
//! [`Purpose::DeviceBitNoise`]: crate::stream::Purpose::DeviceBitNoise

use crate::{noise::Sigma, quantize::Grid, wire::pack};

/// What a coordinator whose clip norm is adaptive asks for beside the update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitRequest {
    /// σ of the noise that the device adds to its bit (local trust); `None` if the coordinator adds
    /// it.
    pub noise: Option<Sigma>,
}

impl BitRequest {
    /// Bits of the bit on the line, beside an update on a grid of `grid_bits` bits.
    pub const fn width(&self, grid_bits: u32) -> u32 {
        match self.noise {
            // Both −2^b and +2^b.
            None => grid_bits + 2,
            noise => pack::width(grid_bits, noise),
        }
    }
}

/// The bit of an update of this norm before its (last) clipping: positive inside the ball.
pub fn clip_bit(grid: &Grid, norm: f32) -> i64 {
    let half = 1 << grid.bits();
    // Patterns of numbers that are not negative have their order, and what is no number is above.
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

    /// Without noise both values fit, and with noise what fits an update with that noise.
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
