//! Direct tests: is the mechanism the one that is claimed?
//!
//! An attack shows how much is learned from all rounds together, and hardly notices one round
//! without noise among many. These tests look at each part of the mechanism instead, through the
//! same rounds: with the model's full length and with more than one block of noise, in every round.
//! Each family of tests fails by chance with a probability of at most [`ERROR`], shared by its
//! tests.
//!
//! | family | module |
//! | --- | --- |
//! | std and independence of the noise | [`noise`] |
//! | what one device can change | [`super::sensitivity`] |
//! | how often each device counts | [`super::counts`] |
//! | rate and independence of the cohorts | [`cohorts`] |
//! | what is released beside the updates | [`channels`] |
//! | masks and helpers of distributed trust | [`masks`] |
//! | what is charged; δ(ε) for other ε than the claimed one | here |

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

/// Values of noise that an audit looks at: enough for a std that is off by 1 %.
pub const VALUES: usize = 1 << 20;

/// Blocks of the server's noise that an audit looks at, whatever the length of the model: more
/// than a block that is drawn again after four, or left out, can hide behind.
const BLOCKS: usize = 6;

/// Values of noise for the direct tests of a source alone, and the rounds of each run.
pub const VALUES_OF_SOURCE: usize = 1 << 16;
const ROUNDS_OF_SOURCE: u32 = 8;

/// All direct tests of an experiment, with about so many values of noise; `seed` gives their
/// randomness.
///
/// # Errors
/// [`TargetError`] if a round breaks down.
pub fn audit(target: &Target<'_>, seed: u64, values: usize) -> Result<Vec<Check>, TargetError> {
    let charges = target.charges();
    // What is claimed is what is charged.
    let of_updates = charges
        .iter()
        .find(|(_, event)| target.is_of_updates(event));
    let claim = of_updates.map_or(target.event(), |(_, event)| *event);
    let full: usize = target.tensors().iter().sum();
    let mut lengths = vec![full];
    // Devices draw all noise of an update from one stream; the server from one a block.
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

/// The direct tests of the source itself, whose other ones look at what all sources share: who is
/// drawn, what devices add, and the noise, for updates of the model's length.
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

/// One verdict for tests of the same name: the first that fails, else the first.
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

/// Whether every release is charged once or more, each with the event that is claimed.
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

/// Whether the claim holds at other ε, with the δ that the same accounting gives for them: a
/// mechanism with a little less noise is seen there with far fewer runs. `None` where the
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
