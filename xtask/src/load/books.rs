//! Consistency of the records of a coordinator that is repeatedly killed under load.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::{Fleet, Shares};
use super::options::{INTERVAL, Options, PATIENCE};
use super::process::{lines, rounded};
use crate::federation::Running;

/// Minimum number of rounds completed between two kills.
const ROUNDS_BETWEEN: u32 = 2;

/// Rounds per kill, more than the coordinator completes before its restart.
const ROUNDS_A_KILL: u32 = 30;

/// Kills a coordinator `kills` times, resumes it, lets it finish, and checks its output.
pub(super) fn measure(options: &Options, kills: u32) -> Result<Value, Box<dyn Error>> {
    let options = &Options {
        rounds: options.rounds.max(ROUNDS_A_KILL * (kills + 1)),
        quorum: None,
        ..options.clone()
    };
    let fleet = Fleet::provision(options, &options.experiment())?;
    let Shares { served, .. } = fleet.shares(options.devices, 0)?;
    let mut server = fleet.serve(&["--timeout", &options.timeout])?;
    let clients: Result<Vec<Running>, _> = served.iter().map(|share| fleet.client(share)).collect();
    let clients = clients?;
    let done = || done(&fleet.run.join("metrics.jsonl"));
    let mut away = Vec::new();
    for kill in 0..kills {
        let until = done() + ROUNDS_BETWEEN as usize;
        wait_until(|| done() >= until || has_ended(&mut server))?;
        // At different moments of a round: 37 and 100 have no common factor.
        sleep(Duration::from_millis(u64::from(kill) * 37 % 100));
        if has_ended(&mut server) {
            return Err(format!("the run ended after {kill} kills: ask for more rounds").into());
        }
        let killed = Instant::now();
        drop(server);
        server = fleet.resume()?;
        let before = done();
        wait_until(|| done() > before || has_ended(&mut server))?;
        away.push(killed.elapsed().as_secs_f64());
    }
    wait_until(|| has_ended(&mut server))?;
    drop(clients);
    let mut measured = check(&fleet, options)?;
    away.sort_by(f64::total_cmp);
    if let Some(fields) = measured.as_object_mut() {
        let longest = away.last().copied().unwrap_or_default();
        let median = away.get(away.len() / 2).copied().unwrap_or_default();
        fields.insert("kills".to_owned(), kills.into());
        fields.insert(
            "seconds_to_next_round_median".to_owned(),
            rounded(median, 2).into(),
        );
        fields.insert(
            "seconds_to_next_round_longest".to_owned(),
            rounded(longest, 2).into(),
        );
    }
    Ok(measured)
}

/// Returns the number of completed rounds, without those burned at a restart.
fn done(metrics: &Path) -> usize {
    let text = fs::read_to_string(metrics).unwrap_or_default();
    let whole = text
        .lines()
        .filter(|line| !line.contains("\"burned\":true"));
    whole.count()
}

fn has_ended(server: &mut Running) -> bool {
    server.0.try_wait().is_ok_and(|status| status.is_some())
}

fn wait_until(mut condition: impl FnMut() -> bool) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while !condition() {
        if begun.elapsed() > PATIENCE {
            return Err("nothing happened for 15 minutes".into());
        }
        sleep(INTERVAL);
    }
    Ok(())
}

/// Checks that the ledger, the round numbers and the records agree. An error names a mismatch.
fn check(fleet: &Fleet, options: &Options) -> Result<Value, Box<dyn Error>> {
    let participation = lines(&fleet.run.join("participation.jsonl"))?;
    let metrics = lines(&fleet.run.join("metrics.jsonl"))?;
    let ledger = lines(&fleet.run.join("ledger.jsonl"))?;
    let rounds = options.all_rounds() as usize;
    let charged = ledger
        .iter()
        .filter(|line| line["event"].is_object())
        .count();
    for (what, count) in [
        ("rounds in participation.jsonl", participation.len()),
        ("rounds in metrics.jsonl", metrics.len()),
        ("charged rounds in ledger.jsonl", charged),
    ] {
        if count != rounds {
            return Err(format!("{what}: {count} of {rounds}").into());
        }
    }
    let numbers = participation.iter().map(|round| round["number"].as_u64());
    let numbers: Vec<u64> = numbers
        .collect::<Option<_>>()
        .ok_or("a round has no number")?;
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(format!("a round number came twice: {numbers:?}").into());
    }
    let next = fs::read_to_string(fleet.beside_keys(".round"))?;
    if next.trim().parse().ok() != numbers.last().map(|last| last + 1) {
        return Err(format!("the next number is {next}, after {numbers:?}").into());
    }
    let (mut burned, mut answered, mut missing) = (0, 0, 0);
    for (metrics, round) in metrics.iter().zip(&participation) {
        let updates = round["answered"].as_array().map_or(0, Vec::len);
        let others = round["missing"].as_object().map_or(0, serde_json::Map::len);
        let is_burned = round["burned"] == true;
        let expected = if is_burned {
            0
        } else {
            options.devices as usize
        };
        if metrics["burned"] != round["burned"] || updates + others != expected {
            return Err(format!("a round is not accounted for: {round}").into());
        }
        burned += usize::from(is_burned);
        answered += updates;
        missing += others;
    }
    let mut verify = fleet.smolfed();
    let verified = verify
        .args(["account", "--verify"])
        .arg(&fleet.run)
        .output()?;
    if !verified.status.success() {
        return Err(String::from_utf8_lossy(&verified.stderr).into());
    }
    Ok(json!({
        "devices": options.devices,
        "rounds": rounds,
        "rounds_charged": charged,
        "rounds_burned": burned,
        "round_numbers_used_twice": 0,
        "updates": answered,
        "lost": missing,
    }))
}
