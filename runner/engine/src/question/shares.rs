//! Estimates of the question `histogram`: the share of samples in each bin or class (their
//! distribution), and quantiles of values.

use smolfed_core::question::{Bins, Dimensions};

use super::answer::Estimate;
use super::count::answered_by;
use super::ratio::{Interval, Ratio, Sums, onto_simplex, shares_of_all};

/// Quantiles of a histogram, with their names.
const QUANTILES: [(&str, f64); 3] = [
    ("median", 0.5),
    ("lower quartile", 0.25),
    ("upper quartile", 0.75),
];

/// Returns the share of samples in each bin, with equal weights of devices. For values, also
/// returns the quartiles: linear within a bin, and open where they may lie beyond the outermost
/// edges.
pub(super) fn estimates(
    bins: &Bins,
    of: &Dimensions,
    sums: &Sums<'_>,
    deviates: f64,
) -> (Estimate, Vec<Estimate>) {
    let count = bins.count(of);
    let names = names(bins, of);
    let found = of_entries(count, sums, deviates);
    let shares = names.into_iter().zip(&found);
    let shares = shares.map(|(name, share)| Estimate::of(name, *share, |x| x));
    let estimates = match edges(bins) {
        None => shares.collect(),
        Some(edges) => {
            let below = |bin: usize| Ratio::share(0..=bin, 0..count).of(sums, deviates);
            let below: Vec<Interval> = (0..edges.len()).map(below).collect();
            let quantile = |(name, q): (&str, f64)| quantile(name, q, edges, &found, &below);
            QUANTILES.map(quantile).into_iter().chain(shares).collect()
        }
    };
    (answered_by(count, sums, deviates), estimates)
}

/// Returns the share of each of the first entries in all of them, projected onto shares that add up
/// to 1.
pub(super) fn of_entries(count: usize, sums: &Sums<'_>, deviates: f64) -> Vec<Interval> {
    let found = shares_of_all(count, sums, deviates);
    let values: Vec<f64> = found.iter().map(|share| share.value).collect();
    let projected = onto_simplex(&values).into_iter();
    let at = |(share, value): (Interval, f64)| Interval {
        value,
        low: share.low.min(value),
        high: share.high.max(value),
    };
    found.into_iter().zip(projected).map(at).collect()
}

/// Returns the edges of bins of values.
pub(super) fn edges(bins: &Bins) -> Option<&[f32]> {
    match bins {
        Bins::Classes => None,
        Bins::Target(edges) | Bins::Feature(_, edges) => Some(edges.as_slice()),
    }
}

/// Returns the names of the bins.
pub(super) fn names(bins: &Bins, of: &Dimensions) -> Vec<String> {
    let Some(edges) = edges(bins) else {
        return (0..of.classes)
            .map(|class| format!("class {class}"))
            .collect();
    };
    let inner = edges.windows(2).map(|pair| match pair {
        [from, to] => format!("{from} to {to}"),
        _ => String::new(),
    });
    let first = edges.first().map(|edge| format!("below {edge}"));
    let last = edges.last().map(|edge| format!("{edge} and above"));
    first.into_iter().chain(inner).chain(last).collect()
}

/// Returns the value below which a share q of all samples lies. The interval reaches from the last
/// edge with certainly less below it to the first one with certainly more.
fn quantile(name: &str, q: f64, edges: &[f32], bins: &[Interval], below: &[Interval]) -> Estimate {
    let at = |index: usize| edges.get(index).map(|edge| f64::from(*edge));
    let low = below.iter().rposition(|share| share.high < q);
    let high = below.iter().position(|share| share.low >= q);
    let mut before = 0.0;
    let mut value = None;
    for (bin, share) in bins.iter().enumerate() {
        if before + share.value >= q {
            let left = bin.checked_sub(1).and_then(at);
            value = match (left, at(bin)) {
                (Some(left), Some(right)) if share.value > 0.0 => {
                    Some(left + (right - left) * (q - before) / share.value)
                }
                // Nothing is known beyond the outermost edge.
                (left, right) => left.or(right),
            };
            break;
        }
        before += share.value;
    }
    Estimate {
        name: name.to_owned(),
        value,
        interval: [low.and_then(at), high.and_then(at)],
    }
}
