//! The adaptive clip norm: a geometric step towards a quantile of the norms of the updates (Andrew,
//! Thakkar, McMahan, Ramaswamy 2021, arXiv:1905.03871, Algorithm 1 and equation 2).
//!
//! `L ← L · exp(−η (f − γ))`: f is the share of the cohort whose update was inside the ball of
//! radius L, γ the target share. f is known with its noise only ([`Released::unclipped_excess`]),
//! so the next clip norm is post-processing.

use smolfed_core::params::ClipNorm;
use smolfed_core::session::SETTING_LIMITS;

use crate::check::{ExperimentError, number, out_of_range};
use crate::tables::privacy::AdaptiveConfig;
use smolfed_release::Released;
use smolfed_release::number::significant;

/// The largest ratio of the clip norm to the initial one, in both directions. Where noise hides the
/// share of clipped updates, the clip norm takes a random walk, and the noise on the sum of updates
/// grows with it.
const FURTHEST: f32 = 100.0;

/// A clip norm this many times the initial one is worth a warning: close to the limit, and farther
/// than norms of updates usually are from a sensible initial value.
const FAR: f32 = 10.0;

/// Changes of the clip norm from round to round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveClip {
    /// L of the first round.
    pub initial: ClipNorm,
    quantile: f64,
    learning_rate: f64,
    /// Expected number of updates, the divisor of the sum of bits.
    updates: f64,
}

impl AdaptiveClip {
    /// Reads the keys, for rounds with this expected number of updates.
    ///
    /// # Errors
    /// [`ExperimentError`] for the first invalid key.
    pub fn new(config: &AdaptiveConfig, updates: f64) -> Result<Self, ExperimentError> {
        let initial = number("privacy.adaptive.initial", config.initial, ClipNorm::new)?;
        if !SETTING_LIMITS.contains(&initial.get()) {
            let expected = "from 2^-30 to 2^30";
            let (key, value) = ("privacy.adaptive.initial", config.initial);
            return Err(out_of_range(key, value, expected));
        }
        let quantile = config.quantile;
        if !(quantile > 0.0 && quantile < 1.0) {
            let key = "privacy.adaptive.quantile";
            return Err(out_of_range(key, quantile, "above 0 and below 1"));
        }
        let learning_rate = config.learning_rate;
        if !(learning_rate > 0.0 && learning_rate <= 10.0) {
            let key = "privacy.adaptive.learning_rate";
            return Err(out_of_range(key, learning_rate, "above 0 and at most 10"));
        }
        Ok(Self {
            initial,
            quantile,
            learning_rate,
            updates,
        })
    }

    /// Returns the noisy share of the cohort whose update was inside the ball. It may be outside 0
    /// to 1. `None` if no bits were released.
    #[must_use]
    pub fn unclipped_share(&self, released: &Released) -> Option<f64> {
        let excess = released.unclipped_excess()?;
        Some(excess / self.updates + 0.5)
    }

    /// Returns the clip norm of the next round: at least a hundredth of the initial one, and at
    /// most a hundred times that. A share outside 0 to 1 is due to noise, and counts as 0 or 1.
    #[must_use]
    pub fn next(&self, clip_norm: ClipNorm, unclipped_share: f64) -> ClipNorm {
        let share = unclipped_share.clamp(0.0, 1.0);
        // From `libm`, for the same bits on every machine.
        let factor = libm::exp(-self.learning_rate * (share - self.quantile));
        let [floor, cap] = self.limits().map(f64::from);
        let next = (f64::from(clip_norm.get()) * factor).clamp(floor, cap) as f32;
        ClipNorm::new(next).unwrap_or(clip_norm)
    }

    /// Returns a warning if a round's clip norm is far above the initial one, or at one of its
    /// limits, or `None` otherwise.
    ///
    /// The clip norm follows from noisy shares alone (module text). It is post-processing of the
    /// releases, and the warning reveals nothing more.
    #[must_use]
    pub fn caution(&self, round: u32, clip_norm: f32) -> Option<String> {
        let initial = self.initial.get();
        let [floor, cap] = self.limits();
        let is_far = clip_norm > initial && clip_norm >= (initial * FAR).min(cap);
        let grown = "and the noise on the sum of updates has grown with it";
        let (place, outcome) = match clip_norm {
            now if is_far && now >= cap => ("its upper limit, 100 times".to_owned(), grown),
            now if is_far => (format!("{:.0} times", now / initial), grown),
            now if now < initial && now <= floor => {
                let outcome = "and hardly anything of an update is left";
                ("its lower limit, a hundredth of".to_owned(), outcome)
            }
            _ => return None,
        };
        let [clip_norm, initial] = [clip_norm, initial].map(|norm| significant(norm.into(), 3));
        Some(format!(
            "round {}: the adaptive clip norm is {clip_norm}, {place} its initial value of \
             {initial}, {outcome}. With few devices it follows noise instead of updates: set \
             `privacy.clip_norm` to a number. With many devices, set `privacy.adaptive.initial` \
             closer to the norms of updates",
            round + 1,
        ))
    }

    /// Returns floor and cap of the clip norm: a hundredth of the initial one and a hundred times
    /// that, within [`SETTING_LIMITS`], which devices accept.
    fn limits(&self) -> [f32; 2] {
        let (min, max) = (*SETTING_LIMITS.start(), *SETTING_LIMITS.end());
        let initial = self.initial.get();
        [(initial / FURTHEST).max(min), (initial * FURTHEST).min(max)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptive(quantile: f64, learning_rate: f64) -> AdaptiveClip {
        AdaptiveClip {
            initial: ClipNorm::new(0.1).unwrap(),
            quantile,
            learning_rate,
            updates: 200.0,
        }
    }

    /// Norms k/100 for k = 1 to 200: their quantile γ is 2γ, up to a hundredth. Without noise the
    /// share is a step function, so the clip norm ends within one step of it.
    #[test]
    fn without_noise_it_ends_at_the_quantile_of_the_norms() {
        let norms: Vec<f32> = (1..=200).map(|k| k as f32 / 100.0).collect();
        for (quantile, initial) in [(0.5, 0.1), (0.5, 9.0), (0.2, 1e-3), (0.9, 0.5)] {
            let adaptive = adaptive(quantile, 0.2);
            let mut clip_norm = ClipNorm::new(initial).unwrap();
            for _ in 0..400 {
                let inside = norms.iter().filter(|norm| **norm <= clip_norm.get());
                clip_norm = adaptive.next(clip_norm, inside.count() as f64 / 200.0);
            }
            let expected = 2.0 * quantile;
            let found = f64::from(clip_norm.get());
            assert!((found / expected - 1.0).abs() < 0.02, "{quantile}: {found}");
        }
    }

    #[test]
    fn a_step_is_that_of_the_paper_and_the_share_that_of_the_bits() {
        let adaptive = adaptive(0.5, 0.2);
        // 150 of 200 inside: the excess is 75 − 25 halves.
        let released = Released::for_test(&[], 1.0, 200).with_unclipped_excess(50.0);
        assert_eq!(adaptive.unclipped_share(&released), Some(0.75));
        let next = adaptive.next(ClipNorm::new(2.0).unwrap(), 0.75);
        let expected = 2.0 * (-0.05_f64).exp();
        assert!((f64::from(next.get()) - expected).abs() < 1e-6);
        assert_eq!(
            adaptive.unclipped_share(&Released::for_test(&[], 1.0, 200)),
            None
        );
    }

    #[test]
    fn whatever_the_noise_is_the_clip_norm_stays_near_the_initial_one() {
        for initial in [0.1, *SETTING_LIMITS.start(), *SETTING_LIMITS.end()] {
            let mut adaptive = adaptive(0.5, 10.0);
            adaptive.initial = ClipNorm::new(initial).unwrap();
            for share in [f64::MIN, -1e9, -3.0, 7.0, 1e9, f64::MAX] {
                let mut clip_norm = adaptive.initial;
                for _ in 0..3 {
                    clip_norm = adaptive.next(clip_norm, share);
                    let clip_norm = clip_norm.get();
                    assert!(
                        SETTING_LIMITS.contains(&clip_norm),
                        "{share}: devices accept it"
                    );
                    assert!(
                        (initial / 101.0..=initial * 101.0).contains(&clip_norm),
                        "{share}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_clip_norm_far_above_the_initial_one_or_at_a_limit_is_worth_a_warning() {
        let adaptive = adaptive(0.5, 0.2);
        for ordinary in [0.1, 0.99, 0.0011] {
            assert_eq!(adaptive.caution(0, ordinary), None, "{ordinary}");
        }
        let [floor, cap] = adaptive.limits();
        for (clip_norm, words) in [
            (
                1.0,
                "is 1, 10 times its initial value of 0.1, and the noise",
            ),
            (
                cap,
                "is 10, its upper limit, 100 times its initial value of 0.1, and",
            ),
            (
                floor,
                "is 0.001, its lower limit, a hundredth of its initial value",
            ),
        ] {
            let sentence = adaptive.caution(6, clip_norm).unwrap();
            assert!(sentence.starts_with("round 7: "), "{sentence}");
            for words in [words, "set `privacy.clip_norm` to a number"] {
                assert!(sentence.contains(words), "{sentence}");
            }
        }
        // If the limit of devices is equal to the first clip norm, it is at a limit but not far.
        let mut adaptive = adaptive;
        for limit in [*SETTING_LIMITS.start(), *SETTING_LIMITS.end()] {
            adaptive.initial = ClipNorm::new(limit).unwrap();
            assert_eq!(adaptive.caution(0, limit), None);
        }
    }

    /// The noise on the number of clipped updates has three times the size of the cohort, as for 15
    /// devices at ε = 1. A share outside 0 to 1 counts as 0 or 1.
    #[test]
    fn a_round_whose_bits_are_noise_changes_the_clip_norm_by_a_tenth() {
        let adaptive = adaptive(0.5, 0.2);
        for share in [-3.0, 4.0, 1e3] {
            let next = adaptive.next(adaptive.initial, share).get() / 0.1;
            assert!((0.9..1.11).contains(&next), "{share}: {next}");
        }
    }
}
