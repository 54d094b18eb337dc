//! Drawing the random number of trials of a private selection from the distribution of the
//! theorems.
//!
//! K is drawn by its hazards: starting from the smallest number, k is accepted with the probability
//! `P[K = k | K ≥ k]`, otherwise k + 1 is next.
//!
//! * **Drawing.** The uniform number has 53 bits after its leading zeros, however many these are,
//!   so it is below each hazard, as a number of 53 bits, with exactly the probability of the
//!   hazard. With 53 bits in total it would be 0, and so below every hazard, with a probability of
//!   2⁻⁵³, far above the `e^-100` of no trial among 100.
//! * **Hazards.** A weight, with one product per step, has a relative error below 3 k 2⁻⁵³, and a
//!   sum of M positive weights has one below M 2⁻⁵³. With a mean of at most 100 and a shape from 0
//!   to 10 there are M < 450,000 weights, so a hazard h is accurate to within a factor 1 ± 2 ·
//!   10⁻¹⁰, and 1 - h to within that part of h / (1 - h). The sum of `h / (1 - h)` up to k is about
//!   the logarithm of `1 / P[K > k]`, at most 670 (for Poisson numbers up to 9,000, with M < 600).
//!   Every probability is then accurate to within a factor 1 ± t with t = 1.5 · 10⁻⁷, and so is the
//!   distribution of the selected result. The Rényi divergence of order α grows by at most
//!   `(α ln(1 + t) - (α - 1) ln(1 - t)) / (α - 1)`, and ε at the same δ by as much: 9.1 · 10⁻⁷ at
//!   the smallest order, 1.25.
//! * **Truncation.** The omitted numbers, of weights below 10⁻²⁹⁰, have a probability below 10⁻²⁸⁵.
//!   This is additive: δ grows by at most e^ε 10⁻²⁸⁵. With ε ≤ 400 and δ ≥ 10⁻¹⁰⁰ it is a part of
//!   10⁻¹¹ of δ, which costs less than 10⁻¹⁰ in ε. Outside this range, nothing is claimed.

use super::Trials;

/// Weights smaller than this part of the first or a later one are omitted.
const NEGLIGIBLE: f64 = 1e-290;

impl Trials {
    /// Draws K with independent uniform words.
    ///
    /// The bounds of [`Selection`](super::Selection) hold if K and these words stay secret.
    pub fn draw(&self, mut words: impl FnMut() -> u64) -> u64 {
        let (first, hazards) = self.hazards();
        let drawn = hazards
            .iter()
            .position(|hazard| uniform(&mut words) < *hazard);
        // The last hazard is 1.
        first + drawn.unwrap_or(0) as u64
    }

    /// Returns the smallest K, and `P[K = k | K ≥ k]` from there on.
    fn hazards(&self) -> (u64, Vec<f64>) {
        let (first, mut hazards) = self.weights();
        let mut tail = 0.0;
        for weight in hazards.iter_mut().rev() {
            tail += *weight;
            *weight /= tail;
        }
        (first, hazards)
    }

    /// Returns the smallest K, and numbers in proportion to `P[K = k]` from there on: 1, and then
    /// each by its ratio to the previous one, `(1 - γ)(k + η)/(k + 1)` (Papernot, Steinke 2022,
    /// Definition 1) or `μ/(k + 1)`.
    fn weights(&self) -> (u64, Vec<f64>) {
        let first = match self {
            Self::NegativeBinomial { .. } => 1,
            Self::Poisson { .. } => 0,
        };
        let ratio = |k: f64| match *self {
            Self::NegativeBinomial { shape, rate } => (1.0 - rate) * ((k + shape) / (k + 1.0)),
            Self::Poisson { mean } => mean / (k + 1.0),
        };
        let (mut k, mut weight, mut largest) = (first as f64, 1.0, 1.0f64);
        let mut weights = Vec::new();
        while weight > NEGLIGIBLE * largest {
            weights.push(weight);
            weight *= ratio(k);
            largest = largest.max(weight);
            k += 1.0;
        }
        (first, weights)
    }
}

/// Returns a uniform number in (0, 1) with 53 significant bits. It is below a number h with
/// probability exactly h, if h is at most 1, at least 2⁻⁹⁰⁰ and has at most 53 significant bits.
fn uniform(words: &mut impl FnMut() -> u64) -> f64 {
    /// The stored exponent of numbers from ½ to 1.
    const HALF: u64 = 1022;
    let (mut zeros, mut word) = (0, words());
    // The limit keeps the number normal.
    while word == 0 && zeros < 896 {
        zeros += 64;
        word = words();
    }
    let zeros = zeros + u64::from(word.leading_zeros());
    f64::from_bits(((HALF - zeros) << 52) | (words() >> 12))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distributions() -> Vec<Trials> {
        let some = [(0.0, 8.0), (0.0, 100.0), (1.0, 3.0), (2.0, 50.0)];
        let some =
            some.map(|(shape, mean)| Trials::negative_binomial_of_mean(shape, mean).unwrap());
        let poisson = [1.0, 10.0, 100.0].map(|mean| Trials::poisson(mean).unwrap());
        some.into_iter().chain(poisson).collect()
    }

    /// Returns ln P[K = k] in closed form, with gamma functions of integers only.
    fn ln_probability(trials: &Trials, k: u64) -> f64 {
        let ln_factorial = |n: u64| (2..=n).map(|i| (i as f64).ln()).sum::<f64>();
        let real = k as f64;
        match *trials {
            Trials::Poisson { mean } => real * mean.ln() - mean - ln_factorial(k),
            Trials::NegativeBinomial { shape, rate } => {
                let power = real * (1.0 - rate).ln();
                if shape < 0.5 {
                    power - real.ln() - (-rate.ln()).ln()
                } else {
                    let rising: f64 = (0..k).map(|i| (i as f64 + shape).ln()).sum();
                    power + rising - ln_factorial(k) - (-shape * rate.ln()).exp_m1().ln()
                }
            }
        }
    }

    #[test]
    fn hazards_give_the_probabilities_of_the_theorems() {
        for trials in distributions() {
            let (first, hazards) = trials.hazards();
            let (mut ln_tail, mut mean, mut total) = (0.0, 0.0, 0.0);
            for (k, hazard) in (first..).zip(&hazards) {
                let probability = hazard * f64::exp(ln_tail);
                mean += k as f64 * probability;
                total += probability;
                let found = ln_tail + hazard.ln();
                if k < 400 && found > -40.0 {
                    let error = found - ln_probability(&trials, k);
                    assert!(error.abs() < 1e-9, "{trials:?} {k} {error}");
                }
                ln_tail += (-hazard).ln_1p();
            }
            assert!((total - 1.0).abs() < 1e-9, "{trials:?} {total}");
            assert!(
                (mean / trials.mean() - 1.0).abs() < 1e-8,
                "{trials:?} {mean}"
            );
            assert_eq!(hazards.last(), Some(&1.0));
        }
    }

    #[test]
    fn the_mean_is_the_one_that_was_asked_for() {
        for (shape, mean) in [
            (0.0, 1.5),
            (0.0, 8.0),
            (1.0, 20.0),
            (3.0, 100.0),
            (-0.5, 9.0),
        ] {
            let found = Trials::negative_binomial_of_mean(shape, mean)
                .unwrap()
                .mean();
            assert!((found / mean - 1.0).abs() < 1e-12, "{shape} {mean} {found}");
        }
        for mean in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(
                Trials::negative_binomial_of_mean(0.0, mean).is_err(),
                "{mean}"
            );
        }
        assert!(Trials::negative_binomial_of_mean(-1.0, 8.0).is_err());
    }

    /// Returns the words of SplitMix64.
    fn words(mut state: u64) -> impl FnMut() -> u64 {
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    /// Leading zeros, across words, halve the number, and all further bits are independent of them.
    /// The mean of 20,000 is within six standard errors of ½, which are exceeded by chance with a
    /// probability below 1e-8.
    #[test]
    fn uniform_numbers_keep_their_bits_however_small_they_are() {
        for zeros in 0..900u32 {
            let of = |rest: u64| {
                let whole = (zeros / 64) as usize;
                let mut words = vec![0; whole];
                words.extend([1 << (63 - zeros % 64), rest]);
                let mut words = words.into_iter();
                uniform(&mut || words.next().unwrap())
            };
            let low = 0.5f64.powi(zeros as i32 + 1);
            assert_eq!(of(0).to_bits(), low.to_bits());
            assert_eq!(of(u64::MAX).to_bits(), (2.0 * low).next_down().to_bits());
        }
        assert!(uniform(&mut || 0) > 0.0);
        let mut words = words(3);
        let sum: f64 = (0..20_000).map(|_| uniform(&mut words)).sum();
        let error = f64::sqrt(1.0 / (12.0 * 20_000.0));
        assert!((sum / 20_000.0 - 0.5).abs() < 6.0 * error, "{sum}");
    }

    /// A first word of 0 has a probability of 2⁻⁶⁴, no trial one of e⁻¹⁰⁰ < 2⁻¹⁴⁴.
    #[test]
    fn a_small_hazard_is_not_met_by_one_word_of_zeros() {
        let trials = Trials::poisson(100.0).unwrap();
        let mut words = [0, 1 << 63, 0].into_iter();
        assert!(trials.draw(|| words.next().unwrap_or(u64::MAX)) > 0);
    }

    /// 0 always stops at the smallest number. 500 draws from uniform numbers have the mean of the
    /// distribution to six standard errors. They are exceeded by chance with a probability below
    /// 1e-6, since numbers of trials are skewed.
    #[test]
    fn draws_have_the_mean_of_the_distribution() {
        for trials in distributions() {
            let (first, weights) = trials.weights();
            assert_eq!(trials.draw(|| 0), first);
            let total: f64 = weights.iter().sum();
            let square = |(k, weight): (u64, &f64)| (k as f64).powi(2) * weight / total;
            let second: f64 = (first..).zip(&weights).map(square).sum();
            let mut words = words(7);
            let draw = || trials.draw(&mut words);
            let draws = 500;
            let sum: u64 = std::iter::repeat_with(draw).take(draws).sum();
            let mean = sum as f64 / draws as f64;
            let error = ((second - trials.mean().powi(2)) / draws as f64).sqrt();
            let deviation = (mean - trials.mean()) / error;
            assert!(deviation.abs() < 6.0, "{trials:?} {mean}");
        }
    }
}
