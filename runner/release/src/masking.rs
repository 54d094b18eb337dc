//! Masking of the updates of a run, the possible range of an honest sum, and the largest number of
//! devices in a round.

pub mod ring;

use smolfed_core::mask::Terms;

pub use ring::Ring;

/// There are more devices than the integers have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{found} devices sent an update, but the integers have room for {most}")]
pub struct Crowd {
    /// Number of devices.
    pub found: usize,
    /// Largest allowed number.
    pub most: usize,
}

/// Masking of the updates of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masking {
    /// Helpers, from 1 to [`MAX_HELPERS`](smolfed_core::mask::MAX_HELPERS).
    pub helpers: u8,
    /// b: bits of the grid.
    pub grid_bits: u8,
    /// The ring in which entries are added up.
    pub ring: Ring,
    /// The largest number of devices in a round.
    pub max_devices: u32,
    /// The largest norm of a sum, or of a combination of sums, of honest devices, in steps of the
    /// grid of the release.
    pub largest_norm: u64,
}

impl Masking {
    /// Returns the terms that every tag covers.
    #[must_use]
    pub const fn terms(&self) -> Terms {
        Terms {
            grid_bits: self.grid_bits,
            width: self.ring.width(),
            helpers: self.helpers,
        }
    }

    /// Returns the masking as sent to real devices. `None` for a ring outside the protocol, which
    /// does not occur.
    #[must_use]
    pub const fn of_devices(&self) -> Option<smolfed_core::mask::Masking> {
        smolfed_core::mask::Masking::new(self.helpers, self.ring.width())
    }

    /// Checks that the sum of this many updates fits.
    ///
    /// # Errors
    /// [`Crowd`].
    pub fn has_room_for(&self, found: usize) -> Result<(), Crowd> {
        let most = self.max_devices as usize;
        match found <= most {
            true => Ok(()),
            false => Err(Crowd { found, most }),
        }
    }

    /// Returns whether integers can be an honest sum with noise of total std `noise_std`, in steps:
    /// their norm is at most `largest_norm + σ √(d + 2 √(72 d) + 144)`.
    ///
    /// A sum of discrete Gaussians is sub-Gaussian with the sum of their variances, so honest noise
    /// is longer with probability at most e^-72 (Hsu, Kakade, Zhang 2012, "A tail inequality for
    /// quadratic forms of subgaussian random vectors", Theorem 1). A helper's answer that does not
    /// belong to the sum leaves uniform integers, whose norm is about 2^w √(d / 12): at least
    /// √(d / 3) times the largest norm and at least 6.9 √d times σ, since w leaves room for 12 σ.
    /// The check therefore detects them from about 20 entries on. It cannot detect an offset that a
    /// helper chooses.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn masking() -> Masking {
        Masking {
            helpers: 2,
            grid_bits: 8,
            ring: Ring::new(20).unwrap(),
            max_devices: 3,
            largest_norm: 100,
        }
    }

    #[test]
    fn devices_are_invited_to_the_same_masks() {
        let of_devices = masking().of_devices().unwrap();
        let terms = masking().terms();
        assert_eq!(of_devices.helpers(), terms.helpers);
        assert_eq!(of_devices.width(), terms.width);
    }

    /// With eight entries and noise of std 10 the bound is 100 + 10 √(8 + 2 √(72 · 8) + 144) =
    /// 241.4.
    #[test]
    fn a_norm_is_plausible_up_to_what_noise_can_add() {
        let is_plausible = |entry| masking().is_plausible(&[0, 0, 0, entry, 0, 0, 0, 0], 10.0);
        assert!(is_plausible(241) && is_plausible(-241));
        assert!(!is_plausible(242) && !is_plausible(-242));
    }
}
