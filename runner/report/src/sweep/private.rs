//! Private selection: the best of a random number of trials, by a score that each of them releases
//! with noise. Only the best leaves this file (Papernot, Steinke 2022, arXiv:2110.03620,
//! Algorithm 1 with repeated draws).
//!
//! 1. K is drawn from its distribution, and each of the K trials is a candidate, drawn uniformly,
//!    with independent randomness. All of it comes from one secret stream before the first trial.
//!    It does not depend on data, and K is never cut off. All K trials are run.
//! 2. A trial runs in memory. It releases its model and its score
//!    ([`smolfed_engine::experiment::trial`]). Of the others, nothing is kept, written or reported.
//! 3. The trial with the largest score is run again, with the same bits, into its run directory. Of
//!    equal scores the first counts: since trials are exchangeable, this breaks ties at random, as
//!    if each trial also released an independent uniform number with its score.
//! 4. A trial that fails has no score, and loses against every other.
//!
//! The stream's secret is on disk until the result is recorded, so that an interrupted selection
//! can be repeated with the same trials ([`secret`]). No other file has it, and none has the
//! randomness of a trial: both are [`Root`]s, which have no text form.
//!
//! A Poisson number may be 0. The result is then the initial model of the first candidate, which
//! does not depend on data.

pub(super) mod secret;

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use rand_core::Rng;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId, below};
use zeroize::Zeroizing;

use super::metric::Metric;
use super::results::Figures;
use super::single::{Trained, run_to_the_end};
use crate::report;
use smolfed_data::Federation;
use smolfed_engine::config::{Config, TrialSeed};
use smolfed_engine::evaluation::samples::evaluate;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::round::{RoundRecord, TrainingState};
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run_files::error::io;

/// A trial: a candidate by its number, and the randomness of its cohorts, noise and score.
#[derive(Clone, Debug)]
struct Trial {
    candidate: usize,
    randomness: Randomness,
}

/// The randomness of a trial.
#[derive(Clone, Debug)]
enum Randomness {
    /// Known, for reproductions.
    Seed(u64),
    /// From the operating system.
    Secret(Root),
}

/// Runs a private selection among `candidates` and writes the chosen run into `out`. Returns the
/// reason if there is no result.
pub(super) fn select(
    candidates: &[Config],
    federation: &Federation,
    out: &Path,
) -> Result<Trained, String> {
    let experiments = experiments(candidates, federation)?;
    let Some(first) = experiments.first() else {
        return Err("there are no candidates".to_owned());
    };
    let selection = first.config().privacy.selection.as_ref();
    let seeded = selection.is_some_and(|selection| selection.seeded);
    // If the secret exists, an interrupted selection has begun to write its choice.
    let is_interrupted = !seeded && secret::path(out).exists();
    if out.exists() && !is_interrupted {
        return Err(format!(
            "{} already exists: choose another --out; a second selection costs epsilon again",
            out.display()
        ));
    }
    let root = match seeded {
        true => Root::from_seed(first.config().seed),
        false => secret::root(out, candidates, federation)?,
    };
    let trials = draw(first, experiments.len(), &root, seeded);
    if trials.is_empty() {
        return untrained(first, federation);
    }
    let chosen = best(&trials, |trial| {
        let experiment = of_trial(&experiments[trial.candidate], trial);
        let result = run_to_the_end(&experiment, federation, None).ok()?;
        result.records.last()?.score
    });
    let (trial, score) = chosen.ok_or("no trial ended with a score")?;
    let candidate = &experiments[trial.candidate];
    write(candidate, trial, score, federation, out)
}

/// Returns the candidates, ready to run. Refuses them unless all have the same cost.
fn experiments(candidates: &[Config], federation: &Federation) -> Result<Vec<Experiment>, String> {
    let experiment = |config: &Config| {
        let mut config = config.clone();
        // Each trial sets its own.
        let selection = config.privacy.selection.as_ref();
        config.set_trial_seed(match selection.is_some_and(|of| of.seeded) {
            true => TrialSeed::Known(0),
            false => TrialSeed::SECRET,
        });
        let experiment = Experiment::new(config, federation);
        experiment.map_err(|error| error.to_string())
    };
    let experiments: Vec<Experiment> = candidates
        .iter()
        .map(experiment)
        .collect::<Result<_, _>>()?;
    // The whole table of the selection: there is one number of trials, so every candidate must
    // state its distribution, and whether it is drawn in secret.
    let cost = |experiment: &Experiment| {
        let events = experiment.privacy().events_of(experiment.config().rounds);
        let selection = experiment.config().privacy.selection.clone();
        (events, experiment.privacy().delta, selection)
    };
    // Otherwise the mixture of the candidates costs more, at each order, than the most expensive
    // one at its best order.
    let mut pairs = experiments.iter().zip(experiments.iter().skip(1));
    match pairs.all(|(one, other)| cost(one) == cost(other)) {
        true => Ok(experiments),
        false => Err(
            "the candidates of `sweep.private` differ in rounds, cohorts, noise, delta or \
             `privacy.selection`, and so in the cost of the selection: compare them in separate \
             selections, with `sweep.grid`"
                .to_owned(),
        ),
    }
}

/// Returns a candidate with the randomness of a trial.
fn of_trial(candidate: &Experiment, trial: &Trial) -> Experiment {
    let candidate = candidate.clone();
    match &trial.randomness {
        Randomness::Seed(seed) => candidate.with_trial_seed(*seed),
        Randomness::Secret(root) => candidate.with_trial_secret(root.clone()),
    }
}

/// Draws the number of trials, and the candidate and the randomness of each.
fn draw(experiment: &Experiment, candidates: usize, root: &Root, seeded: bool) -> Vec<Trial> {
    /// Shift to seeds of 63 bits, which TOML can represent.
    const SEED_SHIFT: u32 = 1;
    let mut stream = root.stream(StreamId {
        purpose: Purpose::Trials,
        round: 0,
        device: 0,
    });
    let trials = experiment.trial().map(|trial| trial.trials);
    let candidates = u32::try_from(candidates).ok().and_then(NonZeroU32::new);
    let (Some(trials), Some(candidates)) = (trials, candidates) else {
        return Vec::new();
    };
    let count = trials.draw(|| stream.next_u64());
    let trial = |_| Trial {
        candidate: below(candidates, &mut stream) as usize,
        randomness: match seeded {
            true => Randomness::Seed(stream.next_u64() >> SEED_SHIFT),
            false => Randomness::Secret(secret_root(&mut stream)),
        },
    };
    (0..count).map(trial).collect()
}

/// Returns the next 32 bytes of a secret stream, as a root.
fn secret_root(stream: &mut Stream) -> Root {
    let mut bytes = Zeroizing::new([0; 32]);
    stream.fill_bytes(&mut *bytes);
    Root::from_secret(*bytes)
}

/// Returns the trial with the largest score, the first of equal ones.
fn best(trials: &[Trial], mut score: impl FnMut(&Trial) -> Option<f64>) -> Option<(&Trial, f64)> {
    let mut best: Option<(&Trial, f64)> = None;
    for trial in trials {
        if let Some(score) = score(trial)
            && best.is_none_or(|(_, known)| score > known)
        {
            best = Some((trial, score));
        }
    }
    best
}

/// Runs the chosen trial again, into its run directory.
fn write(
    candidate: &Experiment,
    trial: &Trial,
    score: f64,
    federation: &Federation,
    out: &Path,
) -> Result<Trained, String> {
    let config = of_trial(candidate, trial).config().clone();
    // Built again, so that its statement names its own seed, if known.
    let experiment = Experiment::new(config, federation).map_err(|error| error.to_string())?;
    let experiment = of_trial(&experiment, trial);
    if out.exists() {
        // From the interrupted selection: this one has the same trials, and so writes the same.
        fs::remove_dir_all(out).map_err(|error| io("delete", out)(error).to_string())?;
    }
    let dir = RunDir::create(out, experiment.config()).map_err(|error| error.to_string())?;
    let result = run_to_the_end(&experiment, federation, Some(&dir))?;
    if result.records.last().and_then(|record| record.score) != Some(score) {
        return Err("the chosen trial did not release the same when it was run again".to_owned());
    }
    report::write(&dir).map_err(|error| error.to_string())?;
    Ok(Trained::new(result, 0.0).of_selection())
}

/// Returns the result of no trial: the initial model, which does not depend on data.
fn untrained(experiment: &Experiment, federation: &Federation) -> Result<Trained, String> {
    let state = TrainingState::new(experiment);
    let task = experiment.task();
    let unit = federation.target_scale().std();
    let arithmetic = experiment.method().properties().arithmetic.name();
    let model = experiment.published(state.global);
    let test = evaluate(task, arithmetic, &model, federation.test(), unit);
    let mut record = RoundRecord::new(0, experiment.training().learning_rate);
    record.test = test.map_err(|error| error.to_string())?;
    record.test_is_simulation_only = federation.test_belongs_to_devices();
    let statements = experiment.statements(experiment.config().rounds, &[]);
    let trained = Trained {
        evaluations: vec![Figures {
            rounds: 0,
            figures: Metric::of_round(&record),
        }],
        privacy: statements.map_err(|error| error.to_string())?,
        seconds: 0.0,
    };
    Ok(trained.of_selection())
}

#[cfg(test)]
mod tests;
