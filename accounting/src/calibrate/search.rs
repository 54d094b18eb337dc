//! Root finders of a calibration: the smallest noise and the largest integer that meet a target.
//!
//! Both search for the zero of a gap, about ln(ε / target). The target is met if the gap is at most
//! 0.

/// Largest distance of ε below the target, relative to it.
pub const TOLERANCE: f64 = 1e-4;
/// Lower limit of the search for a noise multiplier: smaller ones have no useful guarantee.
pub(super) const MIN_NOISE: f64 = 1e-3;
/// Upper limit of the search for a noise multiplier: rounding errors exceed ε above it.
pub(super) const MAX_NOISE: f64 = 1e7;
/// Upper limit of the search for a number of rounds.
pub(super) const MAX_ROUNDS: u64 = 1_000_000_000;
/// Steps of the root finder. Bisection alone would need 60 for every digit.
const STEPS: u32 = 100;

/// Returns the largest integer in `first..=last` whose `gap` is at most 0, or `None` if the gap of
/// `first` is above 0.
///
/// Doubles the step until the gap is above 0, then alternates false position and bisection.
pub(super) fn largest(first: u64, last: u64, gap: impl Fn(u64) -> f64) -> Option<u64> {
    let point = |at: u64| Point { at, gap: gap(at) };
    let mut low = point(first);
    if low.gap > 0.0 {
        return None;
    }
    let mut step = first.div_ceil(4).max(1);
    let mut high = loop {
        if low.at == last {
            return Some(last);
        }
        let next = point(low.at.saturating_add(step).min(last));
        if next.gap > 0.0 {
            break next;
        }
        low = next;
        step = step.saturating_mul(2);
    };
    let mut is_half = false;
    while high.at - low.at > 1 {
        let share = low.gap / (low.gap - high.gap);
        let width = high.at - low.at;
        let middle = if is_half || !share.is_finite() {
            low.at.midpoint(high.at)
        } else {
            let ahead = (share * width as f64) as u64;
            low.at + ahead.clamp(1, width - 1)
        };
        is_half = !is_half;
        let found = point(middle);
        if found.gap <= 0.0 {
            low = found;
        } else {
            high = found;
        }
    }
    Some(low.at)
}

/// The start of a search for noise.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// At 1, in steps by a factor of two.
    Anywhere,
    /// At a value that meets the target, slightly above the minimum: in steps of a few percent.
    Near(f64),
}

/// Returns the smallest noise with `target (1 - TOLERANCE) <= epsilon(noise) <= target`, if ε falls
/// with the noise and the upper end meets the target.
///
/// Works on logarithms, on which ε is nearly linear: false position with the Illinois rule, and
/// bisection if an end is infinite or a step does not shrink the bracket.
pub(super) fn min_noise(target: f64, start: Start, epsilon: impl Fn(f64) -> f64) -> f64 {
    let gap = |noise: f64| (epsilon(noise) / target).ln();
    let wanted = (1.0 - 0.5 * TOLERANCE).ln();
    let Bracket { mut low, mut high } = bracket(start, &gap);
    if low.gap <= 0.0 {
        return low.at;
    }
    let (mut low_weight, mut high_weight) = (1.0, 1.0);
    for step in 0..STEPS {
        let is_close = high.gap >= (1.0 - TOLERANCE).ln();
        if is_close || high.at <= low.at * (1.0 + 1e-14) {
            break;
        }
        let (left, right) = (low.at.ln(), high.at.ln());
        let above = low_weight * (low.gap - wanted);
        let below = high_weight * (high.gap - wanted);
        let slope_step = above / (above - below);
        let is_usable = slope_step.is_finite() && slope_step > 0.0 && slope_step < 1.0;
        let share = if is_usable && step % 8 != 7 {
            slope_step
        } else {
            0.5
        };
        let noise = (left + share * (right - left)).exp();
        let found = Point {
            at: noise,
            gap: gap(noise),
        };
        // Illinois: an unchanged end loses half of its weight.
        if found.gap <= 0.0 {
            high = found;
            (low_weight, high_weight) = (low_weight * 0.5, 1.0);
        } else {
            low = found;
            (low_weight, high_weight) = (1.0, high_weight * 0.5);
        }
    }
    high.at
}

/// A tested value, and its gap.
#[derive(Clone, Copy)]
struct Point<T> {
    at: T,
    gap: f64,
}

/// The gap is above 0 at `low` and at most 0 at `high`, or `low` is the end of the range.
struct Bracket {
    low: Point<f64>,
    high: Point<f64>,
}

/// Finds neighbouring points in steps from the start.
fn bracket(start: Start, gap: &impl Fn(f64) -> f64) -> Bracket {
    let point = |noise: f64| Point {
        at: noise,
        gap: gap(noise),
    };
    let (start, mut step) = match start {
        Start::Anywhere => (point(1.0), 2.0),
        Start::Near(noise) => (point(noise.clamp(MIN_NOISE, MAX_NOISE)), 1.08),
    };
    if start.gap > 0.0 {
        let mut low = start;
        loop {
            let high = point((step * low.at).min(MAX_NOISE));
            if high.gap <= 0.0 || high.at >= MAX_NOISE {
                return Bracket { low, high };
            }
            low = high;
            step = (step * step).min(2.0);
        }
    }
    let mut high = start;
    loop {
        let low = point((high.at / step).max(MIN_NOISE));
        if low.gap > 0.0 || low.at <= MIN_NOISE {
            return Bracket { low, high };
        }
        high = low;
        step = (step * step).min(2.0);
    }
}
