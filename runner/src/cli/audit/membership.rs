//! `smolfed audit --membership`: a membership inference attack on three models of one experiment.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;

use crate::cli::CliError;
use crate::cli::session::progress_bar;
use crate::cli::text::aligned;
use smolfed_data::DataFolders;
use smolfed_engine::config::Config;
use smolfed_engine::membership::{Attack, Roc};
use smolfed_engine::method::MethodName;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Control};
use smolfed_release::provenance::Provenance;
use smolfed_report::report;
use smolfed_report::report::plot::{Plot, stacked_file};

/// What is attacked, and where the curves go.
pub(super) struct Request<'a> {
    /// The experiment.
    pub(super) config: &'a Config,
    /// Where its data are.
    pub(super) folders: &'a DataFolders,
    /// A run whose report shows the curves.
    pub(super) dir: Option<&'a RunDir>,
    /// A file for the curves.
    pub(super) svg: Option<&'a Path>,
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// Trains three models of one experiment and attacks each.
pub(super) fn run(request: &Request<'_>, out: &mut impl Write) -> Result<(), CliError> {
    let Request {
        config, folders, ..
    } = *request;
    let variants = variants(config);
    predicts(config, &variants[0].1, folders)?;
    let mut attacks = Vec::new();
    for (model, config) in variants {
        let (experiment, federation) = run::prepare(config, folders)?;
        let bar = progress_bar(u64::from(experiment.config().rounds), "round");
        let control = Control {
            stop: &AtomicBool::new(false),
            checkpoint_every: Duration::MAX,
            on_round: &mut |_| bar.inc(1),
        };
        let result = run::execute(&experiment, &federation, None, control);
        bar.finish_and_clear();
        let roc = Roc::of_model(experiment.task(), &result?.model, &federation)
            .map_err(|error| CliError::Stopped(error.to_string()))?
            .ok_or_else(|| {
                CliError::Usage(
                    "there are no non-members: hold out training examples with, for example, \
                     --set data.validation=0.2 (a fraction is drawn at random, a whole number \
                     takes the last rows)"
                        .to_owned(),
                )
            })?;
        let model = model.to_owned();
        attacks.push(Attack { model, roc });
    }
    if let Some(path) = request.svg {
        draw(path, &report::roc_plot(&attacks))?;
    }
    if let Some(dir) = request.dir {
        dir.write_membership(&attacks)?;
        report::write(dir)?;
    }
    if request.json {
        let origin = json!({ "models": Provenance::SimulationOnly });
        writeln!(out, "{}", json!({ "models": attacks, "origin": origin }))?;
        return Ok(());
    }
    let head = [
        "model",
        "area under the curve",
        "true positives at 1 % false positives",
    ];
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
            "\n{} members and {} training examples that no device held; an area of 0.5 is \
             guessing\nsimulation only: all figures are of losses on private samples of devices",
            roc.members, roc.others
        )?;
    }
    Ok(())
}

/// Refuses a method whose models predict nothing. `open` is the experiment without privacy.
fn predicts(config: &Config, open: &Config, folders: &DataFolders) -> Result<(), CliError> {
    let config = Config {
        method: config.method,
        ..open.clone()
    };
    let method = config.method.name();
    let (experiment, _) = run::prepare(config, folders)?;
    match experiment.method().properties().uses_labels {
        true => Ok(()),
        false => Err(CliError::Usage(format!(
            "`method` is \"{method}\", which learns an encoder without labels: --membership needs \
             a model that predicts"
        ))),
    }
}

/// The experiment without noise, with noise, and with noise and smoothing.
fn variants(config: &Config) -> [(&'static str, Config); 3] {
    let mut plain = config.clone();
    // None of them is released: whoever holds the data trains them only to attack them.
    plain.privacy.ledger = None;
    plain.method = MethodName::DpFed;
    plain.server.smoothing_factor = 0.0;
    let mut open = plain.clone();
    open.privacy.epsilon = None;
    open.privacy.noise_multiplier = None;
    open.privacy.noise_std = None;
    open.privacy.max_epsilon = None;
    open.privacy.clip_norm = None;
    open.privacy.adaptive = None;
    // A selection is among trials with noise. The others keep it, and therefore the trial's noise.
    open.privacy.selection = None;
    let mut smooth = plain.clone();
    smooth.server.smoothing_factor = config.server.smoothing_factor;
    smooth.method = MethodName::DpFedLs;
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

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_data::Federation;
    use smolfed_engine::experiment::Experiment;

    /// The configuration of a run that a private selection chose can be attacked: its models with
    /// noise have that of the chosen trial.
    #[test]
    fn the_models_of_a_chosen_run_can_be_trained() {
        let changes = [
            "privacy.selection={seeded=true,seed=3}",
            "privacy.epsilon=4",
            "data.device_validation=0.2",
        ];
        let changes = changes.map(|text| text.parse().unwrap());
        let text = smolfed_engine::config::DEFAULT;
        let config = Config::parse(text, "the built-in experiment", &changes).unwrap();
        let folders = DataFolders::new(Vec::new());
        let federation = Federation::new(&config.data, &folders, config.seed).unwrap();
        let noise = |config: &Config| {
            let experiment = Experiment::new(config.clone(), &federation);
            experiment.unwrap().privacy().multiplier().get()
        };
        let chosen = noise(&config);
        let [open, plain, smooth] = variants(&config).map(|(_, config)| noise(&config));
        assert!(open.abs() < f64::MIN_POSITIVE);
        assert_eq!([plain.to_bits(), smooth.to_bits()], [chosen.to_bits(); 2]);
    }
}
