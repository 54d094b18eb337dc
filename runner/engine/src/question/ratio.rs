//! Ratios of released sums, and their uncertainty.
//!
//! **The interval.** A sum of answers has Gaussian noise of a known std. Fieller's interval of a
//! ratio N / D is the set of all θ for which N − θ D is not further from 0 than its own deviation
//! allows. It needs no division by a noisy number, and is the whole range if D cannot be
//! distinguished from 0 (Fieller 1954, "Some Problems in Interval Estimation").
//!
//! **Its two parts.** The first is the noise: in N − θ D it has the variance v |n − θ d|², with n
//! and d the coefficients of the sums. The second is the spread across devices, as only some were
//! asked. A device adds a number between (lowest − θ) d_i and (highest − θ) d_i with d_i from 0 to
//! 1, whose variance is at most `(highest − θ) (θ − lowest) E[d_i]` if its mean is 0. The bound is
//! taken at the tested θ, and never from private values. If `asked` devices out of `population` are
//! drawn without replacement, the spread is multiplied by 1 − asked / population.

/// A ratio of two sums of released entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Entries of the numerator, with their coefficients.
    pub numerator: Vec<(usize, f64)>,
    /// Entries of the denominator, with their coefficients: a sum over devices of numbers from 0 to
    /// 1.
    pub denominator: Vec<(usize, f64)>,
    /// Lower bound on the ratio of each device.
    pub lowest: f64,
    /// Upper bound on the ratio of each device.
    pub highest: f64,
}

/// An estimate and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Noise in released sums, and size of the population.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Std in each entry, in units of the bound on one device's answer.
    pub std: f64,
    /// Number of devices in the federation.
    pub population: f64,
}

impl Noise {
    /// Returns the remaining share of the spread across devices after `answered` of them have
    /// answered.
    #[must_use]
    pub fn unseen_share(&self, answered: f64) -> f64 {
        (1.0 - answered / self.population).clamp(0.0, 1.0)
    }
}

/// Released entries, in units of the bound on one device's answer.
#[derive(Clone, Debug)]
pub struct Sums<'a> {
    /// The entries.
    pub values: &'a [f64],
    /// Noise of the entries, and size of the population.
    pub noise: Noise,
}

impl Ratio {
    /// Returns the share of the devices' weights in some entries, relative to all weights in
    /// others.
    #[must_use]
    pub fn share(
        part: impl IntoIterator<Item = usize>,
        whole: impl IntoIterator<Item = usize>,
    ) -> Self {
        let ones = |entry| (entry, 1.0);
        Self {
            numerator: part.into_iter().map(ones).collect(),
            denominator: whole.into_iter().map(ones).collect(),
            lowest: 0.0,
            highest: 1.0,
        }
    }

    /// Returns the ratio with its interval, `deviates` standard deviations to either side.
    #[must_use]
    pub fn of(&self, sums: &Sums<'_>, deviates: f64) -> Interval {
        let totals = self.totals(sums);
        totals.interval(sums.noise, [self.lowest, self.highest], deviates)
    }

    fn totals(&self, sums: &Sums<'_>) -> Totals {
        let square = |of: &[(usize, f64)]| of.iter().map(|(_, x)| x * x).sum::<f64>();
        let both = self.numerator.iter().map(|(entry, x)| {
            let other = self.denominator.iter().find(|(of, _)| of == entry);
            other.map_or(0.0, |(_, y)| x * y)
        });
        Totals {
            n: sums.total(&self.numerator),
            d: sums.total(&self.denominator),
            nn: square(&self.numerator),
            nd: both.sum(),
            dd: square(&self.denominator),
        }
    }
}

/// A ratio N / D of sums, and |n|², n · d and |d|² of their coefficients.
struct Totals {
    n: f64,
    d: f64,
    nn: f64,
    nd: f64,
    dd: f64,
}

impl Totals {
    /// Returns the ratio with its interval between these limits.
    fn interval(&self, noise: Noise, [lowest, highest]: [f64; 2], deviates: f64) -> Interval {
        let whole = |value| Interval {
            value,
            low: lowest,
            high: highest,
        };
        let Self { n, d, nn, nd, dd } = *self;
        if d <= 0.0 {
            return whole((lowest + highest) / 2.0);
        }
        let value = (n / d).clamp(lowest, highest);
        let variance = noise.std.powi(2);
        let spread = noise.unseen_share(d) * d;
        // (N - θ D)² <= k² (v |n - θ d|² + s (highest - θ) (θ - lowest)), in powers of θ.
        let k = deviates.powi(2);
        let a = d * d - k * (variance * dd - spread);
        let b = -2.0 * n * d + k * (2.0 * variance * nd - spread * (lowest + highest));
        let c = n * n - k * (variance * nn - spread * lowest * highest);
        let discriminant = b * b - 4.0 * a * c;
        // If the ratio is possible, only rounding makes it negative.
        let is_possible = (lowest..=highest).contains(&(n / d));
        if a <= 0.0 || (discriminant < 0.0 && !is_possible) {
            return whole(value);
        }
        let root = discriminant.max(0.0).sqrt();
        Interval {
            value,
            low: ((-b - root) / (2.0 * a)).clamp(lowest, value),
            high: ((-b + root) / (2.0 * a)).clamp(value, highest),
        }
    }
}

impl Sums<'_> {
    /// Returns the sum of some entries with coefficients.
    #[must_use]
    pub fn total(&self, entries: &[(usize, f64)]) -> f64 {
        let value = |(entry, x): &(usize, f64)| x * self.values.get(*entry).unwrap_or(&0.0);
        entries.iter().map(value).sum()
    }

    /// Returns a non-negative sum with the interval of its noise.
    #[must_use]
    pub fn sum(&self, entries: &[(usize, f64)], deviates: f64) -> Interval {
        let total = self.total(entries);
        let squares: f64 = entries.iter().map(|(_, x)| x * x).sum();
        let reach = deviates * self.noise.std * squares.sqrt();
        Interval {
            value: total.max(0.0),
            low: (total - reach).max(0.0),
            high: (total + reach).max(0.0),
        }
    }
}

/// Returns the share of each of the first `count` entries in all of them.
#[must_use]
pub fn shares_of_all(count: usize, sums: &Sums<'_>, deviates: f64) -> Vec<Interval> {
    let entries = sums.values.get(..count).unwrap_or_default();
    let d = entries.iter().sum();
    let (nn, nd, dd) = (1.0, 1.0, count as f64);
    let share = |n: &f64| {
        Totals {
            n: *n,
            d,
            nn,
            nd,
            dd,
        }
        .interval(sums.noise, [0.0, 1.0], deviates)
    };
    entries.iter().map(share).collect()
}

/// Projects onto the nearest point with non-negative shares that add up to 1 (Duchi et al. 2008,
/// "Efficient Projections onto the l1-Ball", Figure 1).
#[must_use]
pub fn onto_simplex(shares: &[f64]) -> Vec<f64> {
    let mut sorted = shares.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (count, share) in (1..).zip(&sorted) {
        sum += share;
        let candidate = (sum - 1.0) / f64::from(count);
        if share - candidate > 0.0 {
            shift = candidate;
        }
    }
    shares
        .iter()
        .map(|share| (share - shift).max(0.0))
        .collect()
}

/// Returns the number of standard deviations around the mean of a Gaussian with this probability.
#[must_use]
pub fn deviates(confidence: f64) -> f64 {
    let outside = |x: f64| libm::erfc(x / std::f64::consts::SQRT_2);
    let (mut low, mut high) = (0.0, 40.0);
    // To the last bit.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match outside(middle) > 1.0 - confidence {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}
