//! Exact coins: events of rational probability, and of probability e^-γ, from uniform words.
//!
//! Nothing is rounded. A uniform real U in [0, 1) is drawn digit by digit, only as far as the
//! comparison with the probability needs. 32 bits are almost always enough. If not, the next word
//! continues from there. The only input is `next_u32`, so one stream gives one outcome on every
//! machine.
//!
//! Source: Canonne, Kamath, Steinke 2020, arXiv:2004.00010, Algorithm 1.

use rand_core::CryptoRng;

use crate::integer::times;

/// Draws the next random word for rare draws. On boards this is a call, because the inlined
/// generator would take 30 bytes of flash each time.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    inline(never)
)]
pub(super) fn next_word<R: CryptoRng>(rng: &mut R) -> u32 {
    rng.next_u32()
}

/// Returns true with probability `numerator / denominator`, exactly.
///
/// Needs `numerator < denominator < 2^127`. Two random bits decide on average, so all but one call
/// in 2^32 take one word.
pub(super) fn rational<R: CryptoRng>(numerator: u128, denominator: u128, rng: &mut R) -> bool {
    rational_from(next_word(rng), numerator, denominator, rng)
}

/// Like [`rational`], with `word` as the first 32 binary digits of U.
pub(super) fn rational_from<R: CryptoRng>(
    mut word: u32,
    numerator: u128,
    denominator: u128,
    rng: &mut R,
) -> bool {
    // Long division yields the binary digits of numerator/denominator. The first digit in which U
    // differs decides U < numerator/denominator. The remainder stays below the denominator, so
    // doubling it stays below 2^128. Without a remainder U can only be equal or larger.
    let mut remainder = numerator;
    loop {
        for position in (0..u32::BITS).rev() {
            remainder *= 2;
            let digit = remainder >= denominator;
            if digit {
                remainder -= denominator;
            }
            if digit != ((word >> position) & 1 == 1) {
                return digit;
            }
        }
        if remainder == 0 {
            return false;
        }
        word = next_word(rng);
    }
}

/// Returns true with probability `1 / k` for k >= 1, exactly.
pub(super) fn one_in<R: CryptoRng>(k: u32, rng: &mut R) -> bool {
    const ONE: u64 = 1 << u32::BITS;
    let word = next_word(rng);
    // k·U in units of 2^-32 lies between `min`, included, and `min + k`, excluded.
    let min = u64::from(word) * u64::from(k);
    if min >= ONE {
        false
    } else if min + u64::from(k) <= ONE {
        true
    } else {
        rational_from(word, 1, u128::from(k), rng)
    }
}

/// Returns true with probability e^-γ for 0 <= γ <= 1. `gamma` is a coin of probability γ.
pub(super) fn exp_minus<R: CryptoRng>(rng: &mut R, gamma: impl Fn(&mut R) -> bool) -> bool {
    exp_minus_from(1, rng, gamma)
}

/// Runs Algorithm 1 from its step `first` on, and returns whether K is odd, given K >= `first`.
///
/// Algorithm 1 draws A_k with probability γ/k for k = 1, 2, ... and stops at the first k = K that
/// fails. P(K > k) = γ^k / k!, hence P(K odd) = 1 - γ + γ²/2! - ... = e^-γ. Here A_k is drawn as
/// two coins, γ and 1/k. Splitting at any odd n, into K < n and K >= n,
///
/// ```text
/// e^-γ = Σ_{i < n-1} (-γ)^i / i!  +  γ^(n-1) / (n-1)! · P(K odd | K >= n)
/// ```
///
/// so this coin is the remainder of a truncated series, relative to its next term.
pub(super) fn exp_minus_from<R: CryptoRng>(
    first: u32,
    rng: &mut R,
    gamma: impl Fn(&mut R) -> bool,
) -> bool {
    let mut k = first;
    // k grows by one with probability γ/k, so it never comes near its limit.
    while gamma(rng) && (k == 1 || one_in(k, rng)) {
        k = k.wrapping_add(1);
    }
    k % 2 == 1
}

/// Returns true with probability 1/e.
#[inline(never)]
pub(super) fn exp_minus_one<R: CryptoRng>(rng: &mut R) -> bool {
    exp_minus(rng, |_| true)
}

/// Returns true with probability 2/e = 2 (1 - 1 + 1/2! - 1/3!) + 2/4! · P(K odd | K >= 5): the
/// split of [`exp_minus_from`] at n = 5 for γ = 1, so 2/3 directly and 1/12 times the rest.
pub(super) fn two_exp_minus_one<R: CryptoRng>(rng: &mut R) -> bool {
    rational(2, 3, rng) || (one_in(4, rng) && exp_minus_from(5, rng, |_| true))
}

/// Draws a uniform integer below `bound >= 1`: draws just enough bits until the value is below.
pub(super) fn below<R: CryptoRng>(bound: u128, rng: &mut R) -> u128 {
    let spare_bits = (bound - 1).leading_zeros();
    loop {
        let mut value = 0;
        let mut needed = u128::BITS - spare_bits;
        while needed > 0 {
            let taken = needed.min(u32::BITS);
            // A shift by at least one bit and at most 32.
            value = 2 * times(value, 1 << (taken - 1));
            value |= u128::from(next_word(rng) >> (u32::BITS - taken));
            needed -= taken;
        }
        if value < bound {
            return value;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::CryptoRng;

    use super::super::tests::statistics::{Script, assert_frequency, stream};
    use super::*;

    /// Returns the outcome of a coin for scripted words, and the number of unused words.
    fn scripted(words: &[u32], coin: impl Fn(&mut Script) -> bool) -> (bool, usize) {
        let mut rng = Script::new(words.iter().copied());
        let outcome = coin(&mut rng);
        (outcome, rng.left())
    }

    /// Asserts the probability of a coin in 200,000 throws: false alarm 7e-8.
    fn assert_probability(test: u32, probability: f64, coin: impl Fn(&mut dyn CryptoRng) -> bool) {
        let mut rng = stream(test);
        let hits = (0..200_000).filter(|_| coin(&mut rng)).count();
        assert_frequency(hits as u64, 200_000, probability);
    }

    #[test]
    fn first_word_decides_unless_it_ties() {
        // 1/3 = 0.01010101... in binary: 0x5555_5555 is its first word, and its second.
        let third = |rng: &mut Script| rational(1, 3, rng);
        assert_eq!(scripted(&[0x5555_5554, 9], third), (true, 1));
        assert_eq!(scripted(&[0x5555_5556, 9], third), (false, 1));
        assert_eq!(scripted(&[0x5555_5555, 0x5555_5554], third), (true, 0));
        assert_eq!(scripted(&[0x5555_5555, 0x5555_5556], third), (false, 0));
        assert_eq!(scripted(&[0x5555_5555, 0x5555_5555, 0], third), (true, 0));
        let quarter_of_word = |rng: &mut Script| rational(1, 1 << 34, rng);
        assert_eq!(scripted(&[1], quarter_of_word), (false, 0));
        assert_eq!(scripted(&[0, 1 << 30, 9], quarter_of_word), (false, 1));
        assert_eq!(scripted(&[0, (1 << 30) - 1], quarter_of_word), (true, 0));
    }

    #[test]
    fn zero_never_happens() {
        assert_eq!(scripted(&[0], |rng| rational(0, 5, rng)), (false, 0));
    }

    #[test]
    fn largest_ratio_does_not_overflow() {
        let limit = (1 << 127) - 1;
        assert_eq!(
            scripted(&[u32::MAX - 1], |rng| rational(limit - 1, limit, rng)),
            (true, 0)
        );
        // (limit - 1)/limit = 1 - 2^-127 - ...: 126 ones, a zero, and ones again.
        let ones = [u32::MAX; 4];
        assert_eq!(
            scripted(&ones, |rng| rational(limit - 1, limit, rng)),
            (false, 0)
        );
        assert_eq!(
            scripted(&[u32::MAX, u32::MAX, u32::MAX, u32::MAX - 3], |rng| {
                rational(limit - 1, limit, rng)
            }),
            (true, 0)
        );
    }

    #[test]
    fn one_in_k_agrees_with_the_ratio_on_either_side_of_its_tie() {
        for k in [2, 3, 5, 7, 8, 1000, 65_537, u32::MAX - 4, u32::MAX] {
            let threshold = ((1_u64 << 32) / u64::from(k)) as u32;
            for word in [
                0,
                threshold.wrapping_sub(1),
                threshold,
                threshold.wrapping_add(1),
            ] {
                for next in [0, 1 << 31, u32::MAX - 1] {
                    let words = [word, next, 0x5A5A_5A5A];
                    assert_eq!(
                        scripted(&words, |rng| one_in(k, rng)).0,
                        scripted(&words, |rng| rational(1, u128::from(k), rng)).0,
                        "1/{k} of {word} {next}"
                    );
                }
            }
        }
    }

    /// False alarm 2e-7.
    #[test]
    fn rationals_have_their_probability() {
        assert_probability(200, 2.0 / 7.0, |mut rng| rational(2, 7, &mut rng));
        assert_probability(201, 0.999, |mut rng| rational(999, 1000, &mut rng));
        assert_probability(202, 0.2, |mut rng| one_in(5, &mut rng));
    }

    /// False alarm 5e-7.
    #[test]
    fn exponentials_have_their_probability() {
        let e = core::f64::consts::E;
        assert_probability(210, 1.0 / e, |mut rng| exp_minus_one(&mut rng));
        assert_probability(211, 2.0 / e, |mut rng| two_exp_minus_one(&mut rng));
        for (test, thirds) in (212..).zip(0..=3_u8) {
            let probability = (-f64::from(thirds) / 3.0).exp();
            assert_probability(test, probability, |mut rng| {
                exp_minus(&mut rng, |rng| rational(u128::from(thirds), 3, rng))
            });
        }
    }

    /// For γ = 1/2 and n = 3: 1 - γ + γ²/2 · P(true) = e^-γ. False alarm 7e-8.
    #[test]
    fn later_start_is_the_rest_of_the_series() {
        let rest = ((-0.5_f64).exp() - 0.5) * 8.0;
        assert_probability(220, rest, |mut rng| {
            exp_minus_from(3, &mut rng, |rng| rational(1, 2, rng))
        });
    }

    #[test]
    fn below_takes_the_leading_bits_and_refuses_what_is_too_large() {
        let draw = |bound, words: &[u32]| {
            let mut rng = Script::new(words.iter().copied());
            (below(bound, &mut rng), rng.left())
        };
        assert_eq!(draw(1, &[]), (0, 0));
        assert_eq!(draw(5, &[7 << 29, 5 << 29, (4 << 29) + 12345]), (4, 0));
        assert_eq!(draw(1 << 33, &[0x8000_0001, 1 << 31]), (0x1_0000_0003, 0));
        let all = u32::MAX;
        assert_eq!(draw(u128::MAX, &[all, all, all, all, 0, 0, 0, 2]), (2, 0));
    }
}
