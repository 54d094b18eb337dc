//! `smolfed account --verify RUN`: the comparison of the privacy statement of a run with its
//! ledger.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use smolfed_accounting::TrustModel;

use crate::cli::CliError;
use smolfed_engine::method::MethodName;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::verify::{Verification, verify};
use smolfed_engine::source::participation;
use smolfed_fleet::coordinator::FleetError;
use smolfed_fleet::fleet_file::FleetFile;
use smolfed_fleet::keys::passphrase::PassphraseSource;
use smolfed_fleet::keys::stored::Stored;
use smolfed_fleet::source::terms::ServeError;
use smolfed_release::origin::Origin;

/// Runs the command.
pub(super) fn run(path: &Path, json: bool, out: &mut impl Write) -> Result<(), CliError> {
    let dir = RunDir::open(path)?;
    let found = verify(&dir, origin(&dir)?)?;
    if json {
        writeln!(out, "{}", document(&found))?;
    }
    match disagreement(&found) {
        Some(reason) => Err(CliError::Stopped(format!("{}: {reason}", path.display()))),
        None if json => Ok(()),
        None => {
            let rounds = found.rounds;
            writeln!(
                out,
                "{}: privacy.json agrees with the ledger and the configuration ({rounds} rounds)",
                path.display()
            )?;
            Ok(())
        }
    }
}

/// Where the devices and the randomness of the run came from, as its directory has it.
fn origin(dir: &RunDir) -> Result<Origin, CliError> {
    if let Some(file) = dir.fleet::<FleetFile>()? {
        // Whether devices have a known seed, which is stated where they add the noise or masks,
        // stands beside their keys.
        let config = dir.config()?;
        let has_matrices = config.method == MethodName::Fedsc;
        let keys = match config.privacy.trust {
            trust if trust != TrustModel::Central || has_matrices => {
                let keys = Stored::read(&file.keys, None, &PassphraseSource::find(None));
                Some(keys.map_err(|error| ServeError::Fleet(FleetError::from(error)))?)
            }
            _ => None,
        };
        return Ok(Origin::Fleet {
            has_quorum: file.quorum().is_some(),
            id: file.id,
            seed: file.seed,
            device_seed: keys.and_then(|keys| keys.file.device_seed),
            simulated: file.simulated,
        });
    }
    let path = dir.participation_path();
    if !path.is_file() {
        return Ok(Origin::Simulation);
    }
    let id = participation::id(&participation::read(&path)?);
    Ok(Origin::Replay { id })
}

/// The first reason why they do not agree.
fn disagreement(found: &Verification) -> Option<String> {
    if let Some(fault) = found.faults.first() {
        return Some(format!("the ledger {fault}"));
    }
    let first = found.differences.first()?;
    let more = match found.differences.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    let value = |value: &Option<Value>| {
        let text = value.as_ref().map(Value::to_string);
        text.unwrap_or_else(|| "missing".to_owned())
    };
    Some(format!(
        "`{}` of statement {} in privacy.json is {}, but the ledger and the configuration give \
         {}{more}",
        first.key,
        first.statement + 1,
        value(&first.stated),
        value(&first.recomputed)
    ))
}

fn document(found: &Verification) -> Value {
    json!({
        "agrees": found.agrees(),
        "run": found.run,
        "rounds": found.rounds,
        "ledger_faults": found.faults,
        "differences": found.differences,
    })
}
