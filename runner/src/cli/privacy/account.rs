//! `smolfed account`: the privacy cost of rounds, by every accountant that applies.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use super::correlated::Setting;
use super::document::{Adaptive, Document, cost_table};
use super::mechanism::{MechanismArgs, ParsedFlags};
use super::verify;
use crate::cli::CliError;
use smolfed_accounting::adaptive::Odometer;
use smolfed_accounting::comparison::Comparison;
use smolfed_accounting::params::NoiseMultiplier;
use smolfed_release::condition::Effect;
use smolfed_release::ledger::{self, Ledger};

/// Compute the epsilon of a number of rounds with every accountant that applies.
///
/// Below the table, the command prints the privacy statement for the tightest proved bound: the
/// protected unit, the adversary, the assumptions, and bounds on any attack.
#[derive(Debug, clap::Args)]
#[command(
    allow_negative_numbers = true,
    after_help = "Examples:
  smolfed account --devices 2000 --sampling poisson --sampling-rate 0.05 --rounds 200 \\
      --noise-multiplier 1
  smolfed account --devices 1000 --sampling uniform --cohort 50 --rounds 30 \\
      --noise-std 0.808 --clip-norm 0.3 --svg cost.svg
  smolfed account --devices 50 --sampling unsampled --max-participations 20 --rounds 400 \\
      --noise-multiplier 8 --delta 1e-5
  smolfed account --devices 2000 --sampling poisson --sampling-rate 0.05 --rounds 200 \\
      --noise-multiplier 2 --devices-per-user 3
  smolfed account --mechanism correlated --rounds 2052 --separation 342 --participations 6 \\
      --noise-multiplier 2 --delta 1e-6
  smolfed account --ledger runs/digits-1700000000/ledger.jsonl
  smolfed account --verify runs/digits-1700000000"
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    mechanism: MechanismArgs,
    /// Compute epsilon from this privacy ledger of one or more runs.
    ///
    /// With --unit example, it counts only the events that protect one example.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "devices", "sampling", "rounds", "noise_multiplier", "noise_std",
    ])]
    ledger: Option<PathBuf>,
    /// Recompute the privacy.json of a run, and compare it with the file.
    ///
    /// The command uses the ledger and the configuration of the run. It also needs the data of the
    /// run, because the ledger names the run by a checksum of its configuration and data.
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "ledger", "devices", "sampling", "rounds", "noise_multiplier", "noise_std",
    ])]
    verify: Option<PathBuf>,
}

/// Runs the command.
pub(in crate::cli) fn run(
    args: &Args,
    out: &mut (impl Write + IsTerminal),
) -> Result<(), CliError> {
    let flags = &args.mechanism;
    if let Some(path) = &args.verify {
        return verify::run(path, flags.json, out);
    }
    let mut runs = None;
    let (events, delta, clip_norm) = match &args.ledger {
        Some(path) => {
            let charges = Ledger::read(path)?;
            let events = flags.of_unit(path, ledger::events(&charges))?;
            let names: BTreeSet<&str> = charges.iter().map(|charge| charge.run.as_str()).collect();
            runs = Some((names.len(), ledger::conditions(&charges, flags.unit())));
            let devices = events.iter().map(|event| event.sampling.device_count());
            let Some(devices) = devices.max() else {
                let path = path.display();
                return Err(CliError::Usage(format!(
                    "{path} is empty: nothing was released"
                )));
            };
            (events, flags.delta(devices)?, flags.clip_norm()?)
        }
        None => {
            let mut parsed = flags.parse()?;
            if let Some(setting) = parsed.correlated.take() {
                return correlated(flags, &parsed, setting, out);
            }
            if !parsed.has_noise {
                return Err(CliError::Usage(
                    "the noise is missing: give --noise-multiplier, or --noise-std and \
                     --clip-norm (`smolfed plan` finds the noise for an epsilon)"
                        .to_owned(),
                ));
            }
            if !parsed.has_rounds || !parsed.has_cohort {
                return Err(CliError::Usage(
                    "the releases are not specified: give --rounds, and --cohort or \
                     --sampling-rate if devices are drawn"
                        .to_owned(),
                ));
            }
            (vec![parsed.event], parsed.delta, parsed.clip_norm)
        }
    };
    let comparison = Comparison::of_events(&flags.accountants()?, &events, delta);
    let is_all = runs
        .as_ref()
        .is_none_or(|(_, conditions)| !conditions.any(Effect::NoBound));
    let mut document = Document::new(&comparison, &events, clip_norm)?;
    if let Some((runs, conditions)) = runs {
        let odometer = Odometer::read(&events, delta);
        let odometer = odometer.map_err(|error| CliError::Usage(error.to_string()))?;
        document = document.of_ledger(Adaptive { runs, odometer }, conditions);
    }
    document.draw(flags.svg.as_deref())?;
    if flags.json {
        writeln!(out, "{}", document.to_json())?;
    } else {
        let table = cost_table(&comparison, is_all);
        write!(out, "{}", document.to_text(&table, out.is_terminal()))?;
    }
    Ok(())
}

/// What a noise multiplier of correlated noise costs, 1 if none is given.
pub(super) fn correlated(
    flags: &MechanismArgs,
    parsed: &ParsedFlags,
    setting: Setting,
    out: &mut (impl Write + IsTerminal),
) -> Result<(), CliError> {
    let noise = match parsed.has_noise {
        true => parsed.event.mechanism.noise_multiplier(),
        false => NoiseMultiplier::new(1.0).map_err(|error| CliError::Usage(error.to_string()))?,
    };
    let event = parsed.event.with_noise_multiplier(noise);
    let comparison = Comparison::of_events(&flags.accountants()?, &[event], parsed.delta);
    let side = setting.side(&event, noise, parsed.delta)?;
    let document = Document::new(&comparison, &[event], parsed.clip_norm)?;
    let document = document.with(side.notes.clone(), vec![side.plot()]);
    document.draw(flags.svg.as_deref())?;
    if flags.json {
        let mut value = document.to_json();
        if let Some(fields) = value.as_object_mut() {
            side.insert(fields);
        }
        writeln!(out, "{value}")?;
    } else {
        let table = side.table() + &cost_table(&comparison, true);
        write!(out, "{}", document.to_text(&table, out.is_terminal()))?;
    }
    Ok(())
}
