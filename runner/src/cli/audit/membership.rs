//! `smolfed audit --membership`: three models of one experiment, each asked which examples it was
//! trained on.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use super::Args;
use crate::audit::membership::{Attack, Roc};
use crate::cli::CliError;
use crate::cli::session::progress_bar;
use crate::cli::text::aligned;
use crate::config::{Config, Method};
use crate::data::DataFolders;
use crate::report;
use crate::report::plot::{Plot, stacked_file};
use crate::run::{self, Control};
use crate::run_dir::RunDir;

/// Trains three models of one experiment and attacks each.
pub(super) fn run(
    args: &Args,
    dir: Option<&RunDir>,
    config: &Config,
    folders: &DataFolders,
    out: &mut impl Write,
) -> Result<(), CliError> {
    if config.method.is_contrastive() {
        return Err(CliError::Usage(format!(
            "`method` is \"{}\", which learns an encoder without labels: --membership is for models that predict",
            config.method.name()
        )));
    }
    let mut attacks = Vec::new();
    for (model, config) in variants(config) {
        let (experiment, federation) = run::prepare(config, folders)?;
        let bar = progress_bar(u64::from(experiment.config.rounds), "round");
        let control = Control {
            stop: &AtomicBool::new(false),
            checkpoint_every: Duration::MAX,
            on_round: &mut |_| bar.inc(1),
        };
        let result = run::execute(&experiment, &federation, None, control);
        bar.finish_and_clear();
        let roc = Roc::of_model(&experiment.task, &result?.model, &federation)
            .map_err(|error| CliError::Stopped(error.to_string()))?
            .ok_or_else(|| {
                CliError::Usage(
                    "no examples to compare with: keep some training examples back with, for \
                     example, --set data.validation=0.2 (a share is drawn at random, a number takes the last \
                     rows)"
                        .to_owned(),
                )
            })?;
        let model = model.to_owned();
        attacks.push(Attack { model, roc });
    }
    if let Some(path) = &args.svg {
        draw(path, &report::roc_plot(&attacks))?;
    }
    if let Some(dir) = dir {
        dir.write_membership(&attacks)?;
        report::write(dir)?;
    }
    if args.json {
        writeln!(out, "{}", json!({ "models": attacks }))?;
        return Ok(());
    }
    let head = ["model", "area under the curve", "hits at 1 % false alarms"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(attacks.iter().map(|Attack { model, roc }| {
        vec![
            model.clone(),
            format!("{:.4}", roc.area),
            format!("{:.2} %", 100.0 * roc.hit_rate_at_1_percent),
        ]
    }));
    write!(out, "{}", aligned(&rows))?;
    if let Some(Attack { roc, .. }) = attacks.first() {
        writeln!(
            out,
            "\n{} members and {} training examples that no device held; 0.5 is guessing",
            roc.members, roc.others
        )?;
    }
    Ok(())
}

/// The experiment without noise, with noise, and with noise and smoothing.
fn variants(config: &Config) -> [(&'static str, Config); 3] {
    let mut plain = config.clone();
    // Nothing of them is released: they are trained to be attacked, by whom the data belong to.
    plain.privacy.ledger = None;
    plain.method = Method::DpFed;
    plain.server.smoothing_factor = 0.0;
    let mut open = plain.clone();
    open.privacy.epsilon = None;
    open.privacy.noise_multiplier = None;
    open.privacy.noise_std = None;
    open.privacy.max_epsilon = None;
    open.privacy.clip_norm = None;
    let mut smooth = plain.clone();
    smooth.server.smoothing_factor = config.server.smoothing_factor;
    smooth.method = Method::DpFedLs;
    if smooth.server.smoothing_factor <= 0.0 {
        smooth.server.smoothing_factor = 1.0;
    }
    [
        ("no privacy", open),
        ("DP-Fed", plain),
        ("DP-Fed-LS", smooth),
    ]
}

fn draw(path: &Path, plot: &Plot) -> Result<(), CliError> {
    std::fs::write(path, stacked_file(std::slice::from_ref(plot)))
        .map_err(|error| CliError::Stopped(format!("cannot write {}: {error}", path.display())))
}
