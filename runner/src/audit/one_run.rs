//! One run with many canaries: each takes part by the toss of a coin, and the attacker guesses the
//! coins.
//!
//! Source: Steinke, Nasr, Jagielski 2023, "Privacy auditing with one (1) training run"
//! (arXiv:2305.08846).

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::Finding;
use super::bounds::from_guesses;
use super::target::{Release, Target};
use crate::privacy::params::Delta;

/// Shares of the canaries that are guessed; the rest is passed over. More guesses prove more where
/// ε is small, the surest ones where it is large.
const SHARES: [f64; 4] = [1.0, 0.5, 0.2, 0.05];
/// Ways to score a canary.
const STATISTICS: usize = 2;

/// Attacks one run with up to `canaries` canaries; bounds fail with probability at most `error`
/// together.
///
/// The coins come from `seed` as the run's randomness does; they have streams of their own.
#[must_use]
pub fn audit(target: &Target, seed: u64, canaries: u32, delta: Delta, error: f64) -> Vec<Finding> {
    let canaries = canaries.min(target.device_count()) as usize;
    let root = Root::from_seed(seed);
    // Training does not happen here, so that the shuffles' streams are free for the coins.
    let id = StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: u32::MAX,
    };
    let mut rng = root.stream(id);
    let is_in: Vec<bool> = (0..canaries).map(|_| rng.next_u32() & 1 == 1).collect();
    let releases = target.releases(&root, &is_in, canaries);
    let error = error / (STATISTICS * SHARES.len()) as f64;
    [
        best("mean over rounds", &is_in, delta, error, |canary| {
            mean(&releases, canary)
        }),
        best("spread over rounds", &is_in, delta, error, |canary| {
            spread(&releases, canary)
        }),
    ]
    .to_vec()
}

/// The largest bound over the shares of guesses, with canaries ranked by a score.
fn best(
    statistic: &'static str,
    is_in: &[bool],
    delta: Delta,
    error: f64,
    score: impl Fn(usize) -> f64,
) -> Finding {
    let mut ranked: Vec<(f64, bool)> = is_in
        .iter()
        .enumerate()
        .map(|(canary, is_in)| (score(canary), *is_in))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut finding = Finding {
        test: "one run, many canaries",
        statistic,
        epsilon_low: 0.0,
        evidence: String::new(),
    };
    for share in SHARES {
        let each_way = (ranked.len() as f64 * share / 2.0) as usize;
        let lowest = ranked.iter().take(each_way).filter(|(_, is_in)| !is_in);
        let highest = ranked
            .iter()
            .rev()
            .take(each_way)
            .filter(|(_, is_in)| *is_in);
        let right = (lowest.count() + highest.count()) as u64;
        let guesses = 2 * each_way as u64;
        let bound = from_guesses(is_in.len() as u64, guesses, right, delta.get(), error);
        if finding.evidence.is_empty() || bound > finding.epsilon_low {
            finding.epsilon_low = bound;
            finding.evidence = format!(
                "{right} of {guesses} guesses right on {} canaries",
                is_in.len()
            );
        }
    }
    finding
}

fn values(releases: &[Release], coordinate: usize) -> impl Iterator<Item = f64> {
    let at = move |release: &Release| release.average.get(coordinate).map(|x| f64::from(*x));
    releases.iter().filter_map(at)
}

/// The best score where rounds differ in nothing but their noise and their cohort.
pub(super) fn mean(releases: &[Release], coordinate: usize) -> f64 {
    values(releases, coordinate).sum::<f64>() / releases.len().max(1) as f64
}

/// Sees canaries that come and go where the noise stays.
pub(super) fn spread(releases: &[Release], coordinate: usize) -> f64 {
    let fold = |start, pick: fn(f64, f64) -> f64| values(releases, coordinate).fold(start, pick);
    fold(f64::NEG_INFINITY, f64::max) - fold(f64::INFINITY, f64::min)
}
