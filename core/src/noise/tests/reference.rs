//! Algorithms 1 to 3 of Canonne, Kamath, Steinke 2020 (arXiv:2004.00010), line by line, as the
//! reference for the faster sampler. Rationals are pairs of `u128`, for σ up to about 2^20.

use rand_core::Rng;

/// Draws a uniform integer in {0, ..., bound - 1}.
fn uniform(bound: u128, rng: &mut impl Rng) -> u128 {
    let zone = u128::MAX - u128::MAX % bound;
    loop {
        let draw = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        if draw < zone {
            return draw % bound;
        }
    }
}

/// Bernoulli(numerator / denominator).
fn bernoulli(numerator: u128, denominator: u128, rng: &mut impl Rng) -> bool {
    uniform(denominator, rng) < numerator
}

/// Algorithm 1: Bernoulli(exp(-γ)), γ = numerator / denominator.
pub fn bernoulli_exp(numerator: u128, denominator: u128, rng: &mut impl Rng) -> bool {
    if numerator <= denominator {
        let mut k = 1;
        while bernoulli(numerator, denominator * k, rng) {
            k += 1;
        }
        return k % 2 == 1;
    }
    for _ in 0..numerator / denominator {
        if !bernoulli_exp(1, 1, rng) {
            return false;
        }
    }
    bernoulli_exp(numerator % denominator, denominator, rng)
}

/// Algorithm 2: the discrete Laplace distribution of scale t (its s is 1).
pub fn discrete_laplace(t: u128, rng: &mut impl Rng) -> i128 {
    loop {
        let u = uniform(t, rng);
        if !bernoulli_exp(u, t, rng) {
            continue;
        }
        let mut v = 0;
        while bernoulli_exp(1, 1, rng) {
            v += 1;
        }
        let y = (u + t * v) as i128;
        let negative = bernoulli(1, 2, rng);
        if negative && y == 0 {
            continue;
        }
        return if negative { -y } else { y };
    }
}

/// Algorithm 3: the discrete Gaussian with σ = numerator / denominator.
pub fn discrete_gaussian(numerator: u64, denominator: u64, rng: &mut impl Rng) -> i64 {
    let (n, d) = (u128::from(numerator), u128::from(denominator));
    let t = n / d + 1;
    loop {
        let y = discrete_laplace(t, rng);
        // (|y| - σ²/t)² / (2σ²) = (|y| t d² - n²)² / (2 t² d² n²)
        let distance = (y.unsigned_abs() * t * d * d).abs_diff(n * n);
        if bernoulli_exp(distance * distance, 2 * t * t * d * d * n * n, rng) {
            return y as i64;
        }
    }
}
