//! Strips: the integer k >= 0 with probability proportional to w_k = exp(-k² / 128), exactly.
//!
//! The half line is cut into strips of an eighth of sigma. k is the strip and w_k the height of the
//! Gaussian at its inner edge. The law of k does not depend on sigma, so it is a table, and one
//! word finds k. The w_k are irrational, yet no probability is rounded:
//!
//! * The range [0, 2^BITS) of the word is cut into pieces of whole units. Strip k should own A_k =
//!   A_0·w_k units, which is not an integer. It gets `lower[k]` <= A_k units *for sure*, and a
//!   *window* of `upper[k] - lower[k]` units, `upper[k]` >= A_k, in which k is taken with
//!   probability `F_k = (A_k - lower[k]) / (upper[k] - lower[k])`.
//! * F_k is drawn by going down the strips ([`Strips::inside_window`]): A_k = A_{k-1}·e^-y with the
//!   rational y = (2k - 1)/128 < 1, and e^-y lies between two partial sums of its series, with one
//!   more exact coin for the rest ([`coin::exp_minus_from`]). Only rational coins remain.
//! * One unit stands for all k >= 64 ([`Strips::beyond`]): exp(-(64 + j)²/128) = e^-32·w_j·e^-j, so
//!   32 coins, the strip j from the start again, and j coins 1/e.
//! * The few units left over draw nothing: start again.
//!
//! With 31 bits a window or the last unit occurs once in millions of words. The tests make them
//! frequent with a coarse table of the same code.
//!
//! Source: the idea of strips is Karney 2016, "Sampling exactly from the normal distribution",
//! Algorithm D, with strips of one sigma drawn by coins. The table and its windows are ours.

use rand_core::CryptoRng;

use super::coin;
use crate::integer::times;

#[cfg(test)]
mod tests;

/// Strips in one sigma. More of them mean fewer rejections (4.7 % at 8) and a larger table.
pub(super) const STRIPS_PER_SIGMA: u32 = 8;

/// Strips in the table: 8 sigma. The value [`STRIPS_PER_SIGMA`] squared keeps `beyond` simple.
pub(super) const STRIP_COUNT: u32 = STRIPS_PER_SIGMA * STRIPS_PER_SIGMA;

/// 2·8², the denominator of the exponent of w_k.
const EXPONENT_DENOMINATOR: u32 = 2 * STRIP_COUNT;

/// Strips from here on (128 sigma, probability below e^-8192) are drawn again.
pub(super) const STRIP_LIMIT: u32 = 1024;

/// Terms of the series of e^-y in the lower partial sum. The upper one has one more.
const TERMS: u32 = 8;

/// 128^8 · 8!, the common denominator of the partial sums: below 2^72.
const SERIES_DENOMINATOR: u128 = series_denominator();

const LENGTH: usize = STRIP_COUNT as usize;
/// Bits that select a cell of the guide, each of 2^(BITS - 8) units. The search for k starts at the
/// strip of the cell.
const CELL_BITS: u32 = 8;

/// The table for words of `BITS` bits, 8 to 31.
pub(super) struct Strips<const BITS: u32> {
    /// End of the sure units of strip k. They begin at the end of strip k - 1.
    end: [u32; LENGTH],
    /// The strip in which a cell of units begins.
    guide: [u8; 1 << CELL_BITS],
    /// Units of each strip's window.
    window: [u8; LENGTH],
}

impl<const BITS: u32> Strips<BITS> {
    /// Creates the table in which strip 0 owns `units` units, A_0.
    ///
    /// Evaluated at compile time: an unsuitable number of units fails the build.
    pub(super) const fn new(units: u32) -> Self {
        let (mut lower, mut upper) = (units, units);
        let mut end = [units; LENGTH];
        let mut window = [0; LENGTH];
        let mut window_units = 0;
        let mut k = 1;
        while k < LENGTH {
            let (sum, next_term) = partial_sum(k as u32);
            lower = (lower as u128 * sum / SERIES_DENOMINATOR) as u32;
            upper = (upper as u128 * (sum + next_term)).div_ceil(SERIES_DENOMINATOR) as u32;
            end[k] = end[k - 1] + lower;
            assert!(upper - lower <= u8::MAX as u32);
            window[k] = (upper - lower) as u8;
            window_units += upper - lower;
            k += 1;
        }
        assert!(BITS >= CELL_BITS && BITS < u32::BITS);
        assert!(end[LENGTH - 1] + window_units < 1 << BITS);
        // The last strip has no sure units, so its index can represent "none" in the search.
        assert!(lower == 0);
        end[LENGTH - 1] = u32::MAX;

        let mut guide = [0; 1 << CELL_BITS];
        let mut cell = 0;
        let mut k = 0;
        while cell < guide.len() {
            while end[k] <= (cell as u32) << (BITS - CELL_BITS) {
                k += 1;
            }
            guide[cell] = k as u8;
            cell += 1;
        }
        Self { end, guide, window }
    }

    /// Returns the strip selected by the uniform `word` of `BITS` bits. Draws more words only in
    /// rare cases.
    ///
    /// Each k below [`STRIP_LIMIT`] has probability A_k / 2^BITS. The rest is `None`.
    #[inline]
    pub(super) fn draw<R: CryptoRng>(&self, word: u32, rng: &mut R) -> Option<u32> {
        let k = self.search(word);
        if k < LENGTH - 1 {
            Some(k as u32)
        } else {
            self.draw_rare(word, rng)
        }
    }

    /// Returns the strip whose sure units contain `word`, or the last one if none does.
    #[inline]
    fn search(&self, word: u32) -> usize {
        const CELL_MASK: usize = (1 << CELL_BITS) - 1;
        let mut k = usize::from(self.guide[(word >> (BITS - CELL_BITS)) as usize & CELL_MASK]);
        // Ends at the latest at the last strip, whose end is above every word.
        while word >= self.end[k % LENGTH] {
            k += 1;
        }
        k
    }

    /// [`Strips::draw`] for a word after all sure units: the last unit, a window or nothing.
    #[cold]
    #[inline(never)]
    fn draw_rare<R: CryptoRng>(&self, word: u32, rng: &mut R) -> Option<u32> {
        let mut word = word;
        let mut beyond = 0;
        // The strip or window for a word. A word on the last unit requires another one.
        let mut k = loop {
            let k = self.search(word);
            if k < LENGTH - 1 {
                break k as u32;
            }
            let [.., sure, _] = self.end;
            match self.rare_piece(word - sure)? {
                Rare::Window(k) if self.inside_window(k, rng) => break k,
                Rare::Window(_) => return None,
                Rare::Beyond => {
                    if !Self::beyond(rng) {
                        return None;
                    }
                    beyond += 1;
                    word = coin::next_word(rng) >> (u32::BITS - BITS);
                }
            }
        };
        for _ in 0..beyond {
            // j = k: accepted with e^-j, it becomes 64 + j.
            for _ in 0..k {
                if !coin::exp_minus_one(rng) {
                    return None;
                }
            }
            k += STRIP_COUNT;
            if k >= STRIP_LIMIT {
                return None;
            }
        }
        Some(k)
    }

    /// Returns the piece `offset` units after the last sure unit: one unit for the strips beyond
    /// the table, then the windows in order, then nothing.
    fn rare_piece(&self, offset: u32) -> Option<Rare> {
        let Some(mut offset) = offset.checked_sub(1) else {
            return Some(Rare::Beyond);
        };
        for (k, window) in (0..).zip(&self.window) {
            match offset.checked_sub(u32::from(*window)) {
                None => return Some(Rare::Window(k)),
                Some(rest) => offset = rest,
            }
        }
        None
    }

    /// Returns true with probability 2^BITS·e^-32, the share of the strips beyond the table in
    /// their unit.
    fn beyond<R: CryptoRng>(rng: &mut R) -> bool {
        (0..BITS).all(|_| coin::two_exp_minus_one(rng))
            && (BITS..STRIP_COUNT / 2).all(|_| coin::exp_minus_one(rng))
    }

    /// Returns true with probability `F_k = (A_k - lower[k]) / (upper[k] - lower[k])`.
    ///
    /// With e^-y = S + s·θ (S the lower partial sum, s the next term, θ an exact coin) and
    /// `A_{k-1} = lower[k-1] + width[k-1]·F_{k-1}`, where width = upper - lower,
    ///
    /// ```text
    /// A_k - lower[k] = (lower[k-1]·S - lower[k])  +  lower[k-1]·s·θ
    ///                +  width[k-1]·S·F_{k-1}      +  width[k-1]·s·θ·F_{k-1}
    /// ```
    ///
    /// Every factor before the coins is rational and, by the rounding in [`Strips::new`], none is
    /// negative and their sum is at most `width[k]`. So F_k is a mixture: one of the four terms, or
    /// "no", is chosen with its rational probability, then its coins are thrown. The last two lead
    /// one strip down, and end at strip 0, where lower = upper and they have no weight.
    fn inside_window<R: CryptoRng>(&self, k: u32, rng: &mut R) -> bool {
        for k in (1..=k).rev() {
            let (_, width) = self.bounds(k);
            let choice = coin::below(times(SERIES_DENOMINATOR, width), rng);
            match self.term(k, choice) {
                Term::Sure => return true,
                Term::Theta => return theta(k, rng),
                Term::Before => {}
                Term::ThetaBefore => {
                    if !theta(k, rng) {
                        return false;
                    }
                }
                Term::None => return false,
            }
            // F_{k-1} remains.
        }
        false
    }

    /// Returns the term of strip k selected by a number below width·128^8·8!. A separate function
    /// keeps its wide integers off the stack while coins are thrown.
    #[inline(never)]
    fn term(&self, k: u32, choice: u128) -> Term {
        let (lower, _) = self.bounds(k);
        let (lower_before, width_before) = self.bounds(k - 1);
        let (sum, next_term) = partial_sum(k);
        // The four weights, one after the other from lower[k] on. All ends stay below 2^31·2^72.
        let mut choice = choice + times(SERIES_DENOMINATOR, lower);
        if is_within(&mut choice, &sum, lower_before) {
            Term::Sure
        } else if is_within(&mut choice, &next_term, lower_before) {
            Term::Theta
        } else if is_within(&mut choice, &sum, width_before) {
            Term::Before
        } else if is_within(&mut choice, &next_term, width_before) {
            Term::ThetaBefore
        } else {
            Term::None
        }
    }

    /// Returns the sure units of strip k and the width of its window.
    fn bounds(&self, k: u32) -> (u32, u32) {
        let k = k as usize % LENGTH;
        // The last strip has no sure units: its end represents "none".
        let sure = match k.checked_sub(1) {
            None => self.end[k],
            Some(_) if k == LENGTH - 1 => 0,
            Some(before) => self.end[k] - self.end[before],
        };
        (sure, u32::from(self.window[k]))
    }
}

/// Returns whether a choice lies within a weight of `factor` times `units`. If not, subtracts the
/// weight from the choice.
#[inline(never)]
fn is_within(choice: &mut u128, factor: &u128, units: u32) -> bool {
    let left = choice.checked_sub(times(*factor, units));
    *choice = left.unwrap_or(*choice);
    left.is_none()
}

/// Draws θ of strip k, see [`Strips::inside_window`]: e^-y = S + s·θ for y = (2k - 1)/128.
#[inline(never)]
fn theta<R: CryptoRng>(k: u32, rng: &mut R) -> bool {
    let y = u128::from(2 * k - 1);
    coin::exp_minus_from(TERMS + 1, rng, |rng| {
        coin::rational(y, u128::from(EXPONENT_DENOMINATOR), rng)
    })
}

/// A piece of the word's range after the sure units.
enum Rare {
    /// The window of this strip.
    Window(u32),
    /// The unit of all strips beyond the table.
    Beyond,
}

/// The terms of A_k - lower[k] and their coins, see [`Strips::inside_window`].
enum Term {
    /// Rational, without a coin.
    Sure,
    /// θ.
    Theta,
    /// F_{k-1}.
    Before,
    /// θ·F_{k-1}.
    ThetaBefore,
    /// The rest of `width[k]`.
    None,
}

/// Returns, for y = (2k - 1)/128, 1 <= k < 64, and times 128^8·8!: the sum of the first 8 terms of
/// e^-y, which is below e^-y, and the ninth term y^8/8!, with which it is above.
const fn partial_sum(k: u32) -> (u128, u128) {
    let y = 2 * k - 1;
    // Horner's rule without division: 1 - y/1 (1 - y/2 (... (1 - y/7))).
    let mut scale = 1;
    let mut sum = 1;
    let mut next_term = y as u128;
    let mut term = TERMS - 1;
    while term > 0 {
        scale = times(scale, EXPONENT_DENOMINATOR * term);
        sum = scale - times(sum, y);
        next_term = times(next_term, y);
        term -= 1;
    }
    (times(sum, EXPONENT_DENOMINATOR * TERMS), next_term)
}

/// Returns the product of 128·i for i = 1, ..., 8.
const fn series_denominator() -> u128 {
    let mut product = 1;
    let mut term = 1;
    while term <= TERMS {
        product *= (EXPONENT_DENOMINATOR * term) as u128;
        term += 1;
    }
    product
}
