//! `smolfed serve`: one experiment with real devices, from its checks to fine-tuning and the
//! report, and the message about its end.

mod args;
mod helpers;
mod setup;

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smolfed_core::stream::Root;
use smolfed_data::{DataFolders, Federation, recipe};

use super::operation::Watch;
use super::run::{Print, Ran};
use super::screen::{self, Screen};
use super::session::{in_pool, warn_of};
use super::style::warn;
use super::{CliError, answers};
pub(super) use args::{Args, FleetArgs, TrainingArgs};
use helpers::{begin, links};
use setup::fleet_error;
pub(super) use setup::{Setup, seed};
use smolfed_engine::config::{Config, Override};
use smolfed_engine::experiment::Experiment;
use smolfed_engine::method::MethodName;
use smolfed_engine::preprocessing::Preprocessing;
use smolfed_engine::round::TrainingState;
use smolfed_engine::run::directory::RunDir;
use smolfed_engine::run::{self, Control, Ending, Run, RunError, RunResult};
use smolfed_engine::run_files::error::RunDirError;
use smolfed_engine::run_files::records::RecordFile;
use smolfed_engine::source::participation::{self, AnswerRecord};
use smolfed_fleet::coordinator::Coordinator;
use smolfed_fleet::fleet_file::FleetFile;
use smolfed_fleet::peer::Terms;
use smolfed_fleet::presence::PresenceRule;
use smolfed_fleet::quorum::Quorum;
use smolfed_fleet::source::Fleet;
use smolfed_fleet::source::open::window_rule;
use smolfed_fleet::source::terms::{
    ServeError, check_devices, check_interval, check_quorum, presence, terms,
};
use smolfed_fleet::source::tuning::Delivered;
use smolfed_fleet::status::Table;
use smolfed_release::entropy::secret;
use smolfed_release::ledger::Ledger;

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (fleet, training) = (&args.fleet, &args.training);
    let read = |given: &[Override]| {
        let overrides = [&args.overrides, given].concat();
        Ok(Config::load(args.file.as_deref(), &overrides)?)
    };
    let folders = DataFolders::of_experiment(args.file.as_deref());
    let setup = match &args.resume {
        Some(dir) => Setup::resumed(fleet, training, dir)?,
        None => Setup::new(fleet, training, &read, folders)?,
    };
    let watch = fleet.operation.watch()?;
    in_pool(args.threads, || {
        let served = setup.train(args.out.as_deref(), args.json, watch)?;
        let print = Print::of(false, args.json, true);
        served.conclude(|ran, result| match ran.experiment.config().method {
            MethodName::Ask => answers::show(ran, result, args.json),
            _ => ran.summarise(result, print),
        })
    })?
}

/// A run with real devices that has ended.
pub(super) struct Served {
    experiment: Experiment,
    federation: Federation,
    dir: RunDir,
    result: Result<RunResult, RunError>,
    started: Instant,
    watch: Watch,
}

impl Served {
    /// Writes the report, shows the results, and says how the run ended. One that a signal stopped
    /// has not failed.
    pub(super) fn conclude(
        self,
        show: impl FnOnce(&Ran<'_>, &RunResult) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let ran = Ran {
            experiment: &self.experiment,
            federation: &self.federation,
            dir: &self.dir,
            started: self.started,
        };
        let result = self.result;
        let is_stopped = matches!(&result, Ok(run) if matches!(run.ending, Ending::Interrupted));
        let concluded = ran.conclude(result, "serve", |result| show(&ran, result));
        match concluded {
            Err(CliError::Stopped(sentence)) if is_stopped => self.watch.stopped(sentence),
            concluded => concluded,
        }
    }
}

impl Setup {
    /// Checks that real devices can run the experiment. Returns the requirements for them, the
    /// number of updates that ends a round, and the number of devices that begins one.
    fn checked(
        &self,
        experiment: &Experiment,
        federation: &Federation,
    ) -> Result<(Terms, Option<Quorum>, PresenceRule), CliError> {
        check_devices(federation, &self.keys, self.file.simulated)?;
        let terms = Terms {
            recipe: recipe::of(&experiment.config().data, federation),
            ..terms(experiment)?
        };
        let quorum = checked_quorum(&self.file, experiment)?;
        check_interval(self.endpoints.round_interval, experiment)?;
        let timeout = self.endpoints.timeout;
        let presence = presence(&self.file, experiment, federation, timeout)?;
        Ok((terms, quorum, presence))
    }

    /// Runs the experiment, with the run in the directory `out`.
    pub(super) fn train(
        self,
        out: Option<&Path>,
        is_json: bool,
        mut watch: Watch,
    ) -> Result<Served, CliError> {
        let started = Instant::now();
        let (origin, helper_settings) = (self.origin(), self.helper_settings());
        let (experiment, federation) =
            run::prepare_from(self.config.clone(), &self.folders, origin)?;
        let (terms, quorum, presence) = self.checked(&experiment, &federation)?;
        let links = links(&experiment, &self.keys, &self.helpers)?;
        let timeout = self.endpoints.timeout;
        warn_of(&experiment, &federation);
        let name = run::name(experiment.config(), &federation, experiment.origin())?;
        let paid = match &self.resumed {
            Some(dir) => paid(&experiment, dir, &name)?,
            None => 0,
        };
        // Neither rounds that were paid for, with their questions, nor numbers that the fleet has
        // used are begun again.
        let unused = (self.keys.next_round()).saturating_sub(experiment.number_of(paid));
        let first_number = self.file.first_number.max(unused);
        let real = self.keys.members().len();
        let fleet =
            Coordinator::new(self.keys, terms, &self.endpoints).map_err(ServeError::Fleet)?;
        let fleet = fleet.stopped_by(Arc::clone(watch.signals.stopping()));
        let mut fleet = fleet.waiting_for(presence);
        let dir = match self.resumed {
            Some(dir) => dir,
            None => RunDir::create_of_fleet(out, experiment.config(), &self.file)?,
        };
        // Devices may need it before the first round.
        dir.write_preprocessing(&Preprocessing::new(&experiment, &federation))?;
        watch.reload_on_hangup(&mut fleet, &self.endpoints.options)?;
        let done = done(&experiment, &dir, &name)?;
        print_restart_note(&experiment, done, paid);
        let (service, records) = (fleet.service(), dir.participation(done)?);
        let rounds = participation::read(&dir.participation_path())?;
        let mut served = Fleet::new(fleet, &federation, terms, first_number, paid, records)
            .resumed_after(done.max(paid))
            .of_experiment(&experiment, &rounds)
            .with_answers(answers(&experiment, &dir, done)?)
            .with_quorum(quorum)
            .with_windows(window_rule(&experiment, real), &rounds);
        let mut screen = Screen::new(experiment.config().rounds, Arc::clone(&service), &watch.log);
        watch.begin(served.fleet(), &experiment, &dir, done, timeout)?;
        let helpers = begin(&experiment, &helper_settings, links, &watch, &service)?;
        let control = Control {
            stop: watch.signals.stopping().flag(),
            // Each round is on disk before the next one begins.
            checkpoint_every: Duration::ZERO,
            on_round: &mut |record| {
                service.monitor().round_done(record);
                screen.round_done(&experiment, record);
            },
        };
        let run = Run {
            experiment: &experiment,
            federation: &federation,
            dir: Some(&dir),
            root: root(self.file.seed)?,
            helpers,
        };
        watch.signals.run_begins();
        let result = run.execute(&mut served, control);
        deliver(&mut served, &experiment, &result);
        let table = Table::new(&service);
        drop(served);
        screen.close();
        write_devices(&table, &dir, result.is_ok(), is_json)?;
        Ok(Served {
            experiment,
            federation,
            dir,
            result,
            started,
            watch,
        })
    }
}

/// Has the devices fine-tune the final model of a run that is done, if the experiment says so. The
/// run is complete without them, whatever fails here: resuming it asks again.
fn deliver(served: &mut Fleet<'_>, experiment: &Experiment, result: &Result<RunResult, RunError>) {
    let run = match result {
        Ok(run) if matches!(run.ending, Ending::Done) => run,
        _ => return,
    };
    match served.fine_tune(experiment, &run.model) {
        Ok(None) => {}
        Ok(Some(Delivered { tuned, asked })) => tracing::info!(
            reason = "fine-tuned",
            tuned,
            asked,
            "{tuned} of {asked} devices have fine-tuned the final model; `smolfed serve --resume` \
             asks them again"
        ),
        Err(error) => tracing::error!(
            reason = "fine-tuned",
            "no device was asked to fine-tune the final model: {error}; `smolfed serve --resume` \
             asks them"
        ),
    }
}

/// The record of who answers questions, if the experiment asks any.
fn answers(
    experiment: &Experiment,
    dir: &RunDir,
    rounds: u32,
) -> Result<Option<RecordFile<AnswerRecord>>, RunDirError> {
    let has_questions = !experiment.questions().is_empty();
    has_questions.then(|| dir.answers(rounds)).transpose()
}

/// How many updates end a round, if that is not the whole cohort and the accounting covers it.
fn checked_quorum(file: &FleetFile, experiment: &Experiment) -> Result<Option<Quorum>, CliError> {
    let quorum = file.quorum();
    if quorum.is_some() {
        check_quorum(experiment)?;
    }
    Ok(quorum)
}

/// Writes the table of devices, and shows it on a terminal.
fn write_devices(table: &Table, dir: &RunDir, is_ok: bool, is_json: bool) -> Result<(), CliError> {
    match (is_ok, dir.write_devices(table)) {
        (true, written) => written?,
        // Why the run failed comes first: on a full disk, the file that it needed.
        (false, written) => written.unwrap_or_else(warn),
    }
    if !is_json && std::io::stderr().is_terminal() {
        eprint!("{}", screen::text(table));
    }
    Ok(())
}

/// The root of the server's random streams, which is not stored unless there is a seed.
fn root(seed: Option<u64>) -> Result<Root, CliError> {
    Ok(match seed {
        Some(seed) => Root::from_seed(seed),
        None => Root::from_secret(*secret().map_err(fleet_error)?),
    })
}

/// Says what it means for correlated noise that `done` rounds were run and `paid` charged before.
fn print_restart_note(experiment: &Experiment, done: u32, paid: u32) {
    let Some(last) = done.max(paid).checked_sub(1) else {
        return;
    };
    let has_history = experiment.release().mechanism.strategy.is_some();
    if !has_history {
        return;
    }
    let burned = match paid.saturating_sub(done) {
        0 => String::new(),
        rounds => format!(
            " {rounds} of the rounds had no result, and count for all devices that may have taken \
             part."
        ),
    };
    eprintln!(
        "note: the exact sums up to round {last} were lost with the process that held them: \
         correlated noise starts again, and its errors add to those of the earlier rounds; epsilon \
         is the same.{burned}"
    );
}

/// Rounds in the last checkpoint of the run.
fn done(experiment: &Experiment, dir: &RunDir, name: &str) -> Result<u32, CliError> {
    let parameters = experiment.method().properties().shared_count;
    let saved = TrainingState::load(&dir.checkpoint(), name, parameters)?;
    Ok(saved.map_or(0, |state| state.round))
}

/// Rounds of the run that are charged in its ledger.
fn paid(experiment: &Experiment, dir: &RunDir, name: &str) -> Result<u32, CliError> {
    let shared = experiment.config().privacy.ledger.clone();
    let path = shared.unwrap_or_else(|| dir.ledger());
    if !path.is_file() {
        return Ok(0);
    }
    let charges = Ledger::read(&path)?;
    let own = charges.iter().filter(|charge| charge.run == name);
    Ok(own
        .map(|charge| charge.round.saturating_add(1))
        .max()
        .unwrap_or(0))
}
