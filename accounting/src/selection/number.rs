//! How the number of trials is drawn, so that the drawn law is the one of the theorems.
//!
//! K is drawn by its hazards: starting from the smallest number, k is taken with the probability
//! `P[K = k | K ≥ k]`, else k + 1 is next. A weight, of one product a step, has a relative error
//! below 3 k 2⁻⁵³; a sum of M positive weights, one below M 2⁻⁵³; a uniform number of 53 bits meets
//! a hazard h with an error of 2⁻⁵³, relative to h and to 1 - h. With a mean of at most 100 and a
//! shape of 0 or more, every probability is then right to within a factor 1 ± 10⁻⁹, up to numbers
//! beyond which K lies with a probability below 10⁻¹⁶. A factor 1 ± t in the law of K is one in the
//! law of what is selected: it adds at most 2 t to ε and the factor 1 + t to δ.

use super::Trials;

/// Weights that are smaller than this part of the first or a later one are left out.
const NEGLIGIBLE: f64 = 1e-290;

impl Trials {
    /// Draws K with numbers that are independent and uniform in [0, 1), multiples of 2⁻⁵³.
    ///
    /// The bounds of [`Selection`](super::Selection) hold if K, and these numbers, stay secret.
    pub fn draw(&self, mut uniform: impl FnMut() -> f64) -> u64 {
        let (first, hazards) = self.hazards();
        let drawn = hazards.iter().position(|hazard| uniform() < *hazard);
        // The last hazard is 1.
        first + drawn.unwrap_or(0) as u64
    }

    /// The smallest K, and `P[K = k | K ≥ k]` from there on.
    fn hazards(&self) -> (u64, Vec<f64>) {
        let (first, mut hazards) = self.weights();
        let mut tail = 0.0;
        for weight in hazards.iter_mut().rev() {
            tail += *weight;
            *weight /= tail;
        }
        (first, hazards)
    }

    /// The smallest K, and numbers in proportion to `P[K = k]` from there on: 1, and then each by
    /// its ratio to the one before, `(1 - γ)(k + η)/(k + 1)` (Papernot, Steinke 2022, Definition 1)
    /// or `μ/(k + 1)`.
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

    /// ln P[K = k] in closed form; the gamma functions of whole numbers alone are needed.
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

    /// 0 always stops at the smallest number; 20,000 draws from uniform numbers have the mean of
    /// the distribution to six standard errors; chance exceeds them with a probability below 1e-8.
    #[test]
    fn draws_have_the_mean_of_the_distribution() {
        for trials in distributions() {
            let (first, weights) = trials.weights();
            assert_eq!(trials.draw(|| 0.0), first);
            let total: f64 = weights.iter().sum();
            let square = |(k, weight): (u64, &f64)| (k as f64).powi(2) * weight / total;
            let second: f64 = (first..).zip(&weights).map(square).sum();
            // SplitMix64.
            let mut state = 7u64;
            let mut uniform = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
            };
            let (_, hazards) = trials.hazards();
            let draw = || first + hazards.iter().position(|h| uniform() < *h).unwrap() as u64;
            let draws = 20_000;
            let sum: u64 = std::iter::repeat_with(draw).take(draws).sum();
            let mean = sum as f64 / draws as f64;
            let error = ((second - trials.mean().powi(2)) / draws as f64).sqrt();
            let deviation = (mean - trials.mean()) / error;
            assert!(deviation.abs() < 6.0, "{trials:?} {mean}");
        }
    }
}
