//! Direct tests: does the mechanism match the claim?
//!
//! An attack measures the leakage of all rounds together, and hardly notices one round without
//! noise among many. These tests inspect each part of the mechanism instead, through the same
//! rounds: with the model's full length and with more than one block of noise, in every round. Each
//! family of tests fails by chance with a probability of at most [`ERROR`], shared by its tests.
//!
//! | family | module |
//! | --- | --- |
//! | std and independence of the noise | [`noise`] |
//! | effect of one device | [`super::sensitivity`] |
//! | how often each device counts | [`super::counts`] |
//! | rate and independence of the cohorts | [`cohorts`] |
//! | releases besides the updates | [`channels`] |
//! | masks and helpers of distributed trust | [`masks`] |
//! | the charged events, and δ(ε) for other ε than the claimed one | here |

pub mod cohorts;
pub mod masks;
pub mod noise;

use smolfed_accounting::{Delta, PrivacyEvent};

use super::attack::{Attack, CURVE};
use super::bounds::{PairRule, ln_mean_exp};
use super::channels;
use super::check::{Check, ERROR};
use super::counts;
use super::sensitivity;
use super::target::{Target, TargetError};
use cohorts::Cohorts;
use noise::{Layout, Noise, STREAM_BLOCK};

/// Number of noise values in an audit, enough for a std that is off by 1 %.
pub const VALUES: usize = 1 << 20;

/// Number of noise blocks of the server in an audit, whatever the length of the model. A block that
/// is missing, or repeated after four others, cannot hide.
const BLOCKS: usize = 6;

/// Number of noise values for the direct tests of a source alone, and rounds of each run.
pub const VALUES_OF_SOURCE: usize = 1 << 16;
const ROUNDS_OF_SOURCE: u32 = 8;

/// Runs all direct tests of an experiment, with about `values` values of noise. `seed` gives their
/// randomness.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn audit(target: &Target<'_>, seed: u64, values: usize) -> Result<Vec<Check>, TargetError> {
    let charges = target.charges();
    // The claim is the charged event.
    let of_updates = charges
        .iter()
        .find(|(_, event)| target.is_of_updates(event));
    let claim = of_updates.map_or(target.event(), |(_, event)| *event);
    let full: usize = target.tensors().iter().sum();
    let mut lengths = vec![full];
    // A device draws all noise of an update from one stream. The server has one stream per block.
    let blocks = if target.is_local() { 2 } else { BLOCKS };
    if full <= blocks * STREAM_BLOCK {
        lengths.push(blocks * STREAM_BLOCK + full);
    }
    let mut checks = Vec::new();
    let mut cohorts = Cohorts::new(claim.sampling, target.rounds());
    for length in lengths {
        let layout = Layout::new(target, &claim, length, values);
        let noise = Noise::observe(target, &layout, seed, &mut cohorts)?;
        checks.extend(noise.checks(&layout));
    }
    let mut checks = joined(checks);
    checks.push(sensitivity::check(target, seed, full)?);
    checks.push(counts::check(target, seed)?);
    checks.extend(cohorts.checks());
    checks.push(charged(target, &charges));
    checks.extend(masks::checks(target, seed));
    for channel in channels::of_updates(target) {
        checks.extend(channel.checks(seed, values)?);
    }
    Ok(checks)
}

/// Runs the direct tests of the source itself: the draw, the weights of devices, and the noise, for
/// updates of the model's length. The other tests cover code that all sources share.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn of_source(target: &Target<'_>, seed: u64, values: usize) -> Result<Vec<Check>, TargetError> {
    let target = &target.shortened(ROUNDS_OF_SOURCE);
    let claim = target.event();
    let length = target.tensors().iter().sum();
    let mut cohorts = Cohorts::new(claim.sampling, target.rounds());
    let layout = Layout::new(target, &claim, length, values);
    let noise = Noise::observe(target, &layout, seed, &mut cohorts)?;
    let mut checks = noise.checks(&layout);
    checks.push(sensitivity::check(target, seed, length)?);
    checks.push(counts::check(target, seed)?);
    checks.extend(cohorts.checks());
    Ok(checks)
}

/// Merges tests of the same name into one verdict: the first failure, or else the first test.
fn joined(checks: Vec<Check>) -> Vec<Check> {
    let mut all: Vec<Check> = Vec::new();
    for check in checks {
        match all.iter_mut().find(|other| other.test == check.test) {
            Some(other) if other.is_as_claimed && !check.is_as_claimed => *other = check,
            Some(_) => {}
            None => all.push(check),
        }
    }
    all
}

/// Checks whether every release is charged at least once, each with the claimed event.
fn charged(target: &Target<'_>, charges: &[(u32, PrivacyEvent)]) -> Check {
    let claims = target.claims();
    let paid = claims
        .iter()
        .filter(|claim| charges.contains(claim))
        .count();
    Check {
        test: "charges of the ledger",
        is_as_claimed: paid == claims.len(),
        evidence: format!(
            "{paid} of {} releases are charged as is claimed, with {} charges",
            claims.len(),
            charges.len()
        ),
    }
}

/// Checks whether the claim holds at other ε, with the δ that the same accounting gives for them. A
/// mechanism with slightly too little noise shows there with far fewer runs. Returns `None` if the
/// accountant has no δ(ε).
#[must_use]
pub fn curve(target: &Target<'_>, attack: &Attack, delta: Delta) -> Option<Check> {
    let loss = target.loss(delta)?;
    let ln_e_value = |(epsilon, pairs): (f64, _)| {
        let rule = PairRule {
            canaries: attack.canaries,
            max_found: 2 * attack.canaries,
            delta: loss.delta(epsilon),
        };
        rule.ln_e_value(epsilon, pairs)
    };
    let points: Vec<f64> = CURVE
        .into_iter()
        .zip(&attack.curve)
        .map(ln_e_value)
        .collect();
    let ln_e = ln_mean_exp(&points);
    Some(Check {
        test: "delta at other epsilon",
        is_as_claimed: ln_e < -ERROR.ln(),
        evidence: format!(
            "the e-value of the claim at epsilon 0 to 4 is 1e{:.0}",
            ln_e / std::f64::consts::LN_10
        ),
    })
}
