//! One run with many canaries: a coin decides whether each takes part, and the attacker guesses the
//! coins.
//!
//! Source: Steinke, Nasr, Jagielski 2023, "Privacy auditing with one (1) training run"
//! (arXiv:2305.08846).

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::bounds::{Guesses, from_guesses};
use super::target::{Observation, Target, TargetError};
use super::{Confidence, Finding};

/// Fractions of the canaries that are guessed, those with the most extreme scores. Many guesses
/// give the better bound for small ε, a few certain ones for large ε.
const SHARES: [f64; 4] = [1.0, 0.5, 0.2, 0.05];
/// Ways to score a canary.
const STATISTICS: usize = 2;

/// Attacks one run with up to `canaries` canaries. The coins follow from `seed`, as the randomness
/// of the run does, in a separate stream.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn audit(
    target: &Target<'_>,
    seed: u64,
    canaries: u32,
    confidence: Confidence,
) -> Result<Vec<Finding>, TargetError> {
    let canaries = canaries.min(target.device_count()) as usize;
    let root = Root::from_seed(seed);
    // Canaries do not train, so that the streams of the shuffles are free for the coins.
    let id = StreamId {
        purpose: Purpose::BatchShuffle,
        round: 0,
        device: u32::MAX,
    };
    let mut rng = root.stream(id);
    let is_in: Vec<bool> = (0..canaries).map(|_| rng.next_u32() & 1 == 1).collect();
    let releases = target.observe(&root, &is_in, canaries)?;
    let confidence = confidence.of_each(STATISTICS * SHARES.len());
    Ok(vec![
        best("mean over rounds", &is_in, confidence, |canary| {
            mean(&releases, canary)
        }),
        best("spread over rounds", &is_in, confidence, |canary| {
            spread(&releases, canary)
        }),
    ])
}

/// The largest bound over the fractions of guesses, with canaries ranked by a score.
fn best(
    statistic: &'static str,
    is_in: &[bool],
    confidence: Confidence,
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
        let all = Guesses {
            canaries: is_in.len() as u64,
            guesses,
            right,
        };
        let bound = from_guesses(all, confidence.delta.get(), confidence.error);
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

fn values(releases: &[Observation], coordinate: usize) -> impl Iterator<Item = f64> {
    let at = move |release: &Observation| release.average.get(coordinate).map(|x| f64::from(*x));
    releases.iter().filter_map(at)
}

/// The best score where rounds differ only in their noise and their cohort.
pub(super) fn mean(releases: &[Observation], coordinate: usize) -> f64 {
    values(releases, coordinate).sum::<f64>() / releases.len().max(1) as f64
}

/// Finds canaries that are in some rounds only, where the noise is the same in all.
pub(super) fn spread(releases: &[Observation], coordinate: usize) -> f64 {
    let fold = |start, pick: fn(f64, f64) -> f64| values(releases, coordinate).fold(start, pick);
    fold(f64::NEG_INFINITY, f64::max) - fold(f64::INFINITY, f64::min)
}
