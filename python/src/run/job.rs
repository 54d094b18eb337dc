//! One run in Python: its thread, the polling for signals (Ctrl-C), the time between checkpoints,
//! and its warnings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPoolBuilder;
use smolfed::config::Config;
use smolfed::data::{DataFolders, Dataset, Federation};
use smolfed::denoise::DenoiserKind;
use smolfed::divergence;
use smolfed::experiment::Experiment;
use smolfed::privacy::origin::Origin;
use smolfed::report;
use smolfed::round::RoundRecord;
use smolfed::run::directory::RunDir;
use smolfed::run::{self, Control, Ending, RunError, RunResult};

use super::config::load;
use super::outcome::Outcome;
use super::step::{Failure, own};
use crate::error::{run_error, value_error};
use crate::samples::Source;

/// Interval at which the calling thread polls for signals.
const LOOK_FOR_SIGNALS: Duration = Duration::from_millis(20);
/// Time between checkpoints of runs with a directory.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);
/// More threads than any machine has cores.
const MAX_THREADS: usize = 1024;

/// The run to perform, in a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Job<'py> {
    /// A path or a dictionary. For a resumed run, the path of its directory.
    experiment: Bound<'py, PyAny>,
    overrides: Bound<'py, PyDict>,
    samples: Option<Source<'py>>,
    out: Option<PathBuf>,
    resume: bool,
    threads: Option<usize>,
    /// Called with the number of rounds and the record of each as JSON.
    on_round: Option<Py<PyAny>>,
    /// The server's step, if it is a Python function.
    server_step: Option<Py<PyAny>>,
    /// The arguments that a resumed run needs again, by name.
    resume_with: Vec<String>,
}

/// Runs the job. Also returns the warnings about privacy, and one about diverged training.
#[pyfunction(name = "run")]
pub(crate) fn run_job(
    py: Python<'_>,
    job: Job<'_>,
) -> PyResult<(Outcome, Vec<String>, Option<String>)> {
    let threads = job.threads.unwrap_or(0);
    if job
        .threads
        .is_some_and(|threads| threads == 0 || threads > MAX_THREADS)
    {
        return Err(value_error(format!(
            "`threads` is {threads}: it must be from 1 to {MAX_THREADS}; without it there is one \
             per core"
        )));
    }
    let (config, folders, dir) = place(&job)?;
    let data = job.samples.as_ref().map(Source::dataset).transpose()?;
    let (mut experiment, federation) = py
        .detach(|| prepare(config, data, &folders))
        .map_err(run_error)?;
    let warnings = warnings(&experiment, &federation);
    let stop = Arc::new(AtomicBool::new(false));
    let failure = Failure::default();
    if let Some(function) = job.server_step {
        refuse_two_denoisers(experiment.config())?;
        let layout = experiment.shared_layout();
        let step = own(function, layout, Arc::clone(&stop), failure.clone());
        experiment = experiment.with_own_step(step);
    }
    // Writes nothing before the experiment has been checked.
    let dir = match (dir, job.out) {
        (Some(dir), _) => Some(dir),
        (None, Some(out)) => Some(new_dir(&out, &experiment)?),
        (None, None) => None,
    };
    let work = Work {
        experiment: &experiment,
        federation: &federation,
        dir: dir.as_ref(),
        stop: &stop,
        failure: &failure,
        on_round: job.on_round.as_ref(),
    };
    let result = work.execute(py, threads)?;
    let done = result.records.len();
    let was_interrupted = matches!(result.ending, Ending::Interrupted);
    if let Some(dir) = &dir {
        py.detach(|| report::write(dir)).map_err(value_error)?;
    }
    if let Some(error) = failure.take() {
        return Err(named(
            py,
            error,
            was_interrupted,
            done,
            &experiment,
            dir.as_ref()
                .map(|dir| resume_command(dir, &job.resume_with)),
        ));
    }
    let path = dir.map(|dir| dir.path().to_path_buf());
    let diverged = divergence::of_simulation(&experiment, &federation, &result.records);
    let outcome = Outcome::new(py, &experiment, &federation, result, path)?;
    Ok((outcome, warnings, diverged))
}

/// Returns the experiment, the folder of its files, and the directory to resume.
fn place(job: &Job<'_>) -> PyResult<(Config, DataFolders, Option<RunDir>)> {
    if job.resume {
        let path: PathBuf = job.experiment.extract()?;
        let dir = RunDir::resume(&path).map_err(value_error)?;
        let config = dir.config().map_err(value_error)?;
        let folders = DataFolders::of_experiment(Some(&RunDir::config_path(&path)));
        return Ok((config, folders, Some(dir)));
    }
    let config = load(&job.experiment, &job.overrides)?;
    let path = job.experiment.extract::<PathBuf>().ok();
    let folders = DataFolders::of_experiment(path.as_deref());
    Ok((config, folders, None))
}

fn prepare(
    config: Config,
    data: Option<(Dataset, usize)>,
    folders: &DataFolders,
) -> Result<(Experiment, Federation), RunError> {
    let Some((data, test_rows)) = data else {
        return run::prepare(config, folders);
    };
    let federation = Federation::of_samples(data, test_rows, &config.data, config.seed)?;
    run::prepare_on(config, federation, folders, Origin::Simulation)
}

/// Refuses a configured denoiser if a step function replaces it.
fn refuse_two_denoisers(config: &Config) -> PyResult<()> {
    let key = match (config.server.smoothing_factor > 0.0, config.server.denoiser) {
        (true, _) => "server.smoothing_factor",
        (false, DenoiserKind::None) => return Ok(()),
        (false, _) => "server.denoiser",
    };
    Err(value_error(format!(
        "`{key}` cannot be combined with your own denoiser or server step: leave one out"
    )))
}

fn new_dir(out: &Path, experiment: &Experiment) -> PyResult<RunDir> {
    RunDir::set_aside(out).map_err(value_error)?;
    RunDir::create_for(Some(out), experiment.config()).map_err(value_error)
}

/// Returns warnings that a reader of the result may not expect.
fn warnings(experiment: &Experiment, federation: &Federation) -> Vec<String> {
    let mut sentences = Vec::new();
    if experiment.config().privacy.epsilon == Some(f64::INFINITY) {
        sentences.push(
            "`privacy.epsilon` is inf: updates get no noise, and nothing protects them".to_owned(),
        );
    }
    if experiment.privacy().mechanism.sampler.is_some() {
        let reads = federation.reads().iter();
        sentences.extend(reads.map(|read| {
            format!(
                "`data.{}`: {} from the devices' rows, which no epsilon covers",
                read.key(),
                read.what()
            )
        }));
    }
    sentences
}

/// Returns the error that stopped a run, with instructions to continue.
fn named(
    py: Python<'_>,
    error: PyErr,
    was_interrupted: bool,
    done: usize,
    experiment: &Experiment,
    resume: Option<String>,
) -> PyErr {
    if !was_interrupted || !error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return error;
    }
    let rounds = experiment.config().rounds;
    let resume = resume.map_or(String::new(), |command| format!("; resume with: {command}"));
    PyKeyboardInterrupt::new_err(format!("stopped after {done} of {rounds} rounds{resume}"))
}

/// Returns the call that continues a run, with the arguments that it needs again.
fn resume_command(dir: &RunDir, needed: &[String]) -> String {
    let arguments: String = needed
        .iter()
        .map(|name| format!(", {name}={name}"))
        .collect();
    let command = format!("smolfed.resume({:?}{arguments})", dir.path());
    match needed.is_empty() {
        true => command,
        false => format!("{command}, with the same {}", needed.join(" and ")),
    }
}

/// A run in progress.
struct Work<'a> {
    experiment: &'a Experiment,
    federation: &'a Federation,
    dir: Option<&'a RunDir>,
    stop: &'a AtomicBool,
    failure: &'a Failure,
    on_round: Option<&'a Py<PyAny>>,
}

impl Work<'_> {
    /// Trains on a separate thread, while this one waits and polls for signals.
    fn execute(&self, py: Python<'_>, threads: usize) -> PyResult<RunResult> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(value_error)?;
        let is_done = AtomicBool::new(false);
        let caller = thread::current();
        let result = thread::scope(|scope| {
            let trained = scope.spawn(|| {
                let result = pool.install(|| self.train());
                is_done.store(true, Ordering::Release);
                caller.unpark();
                result
            });
            while !is_done.load(Ordering::Acquire) && !trained.is_finished() {
                py.detach(|| thread::park_timeout(LOOK_FOR_SIGNALS));
                // Only Python's main thread receives signals.
                if let Err(error) = py.check_signals() {
                    self.failure.keep(error);
                    self.stop.store(true, Ordering::Relaxed);
                }
            }
            py.detach(|| trained.join())
        });
        match result {
            Ok(result) => result.map_err(run_error),
            Err(_) => Err(PyRuntimeError::new_err("the thread of the run panicked")),
        }
    }

    fn train(&self) -> Result<RunResult, RunError> {
        let control = Control {
            stop: self.stop,
            checkpoint_every: CHECKPOINT_EVERY,
            on_round: &mut |record| self.report(record),
        };
        run::execute(self.experiment, self.federation, self.dir, control)
    }

    /// Reports a round to Python.
    fn report(&self, record: &RoundRecord) {
        let Some(function) = self.on_round else {
            return;
        };
        let text = serde_json::to_string(record).unwrap_or_default();
        let rounds = self.experiment.config().rounds;
        let called = Python::attach(|py| function.call1(py, (rounds, text)).map(|_| ()));
        if let Err(error) = called {
            self.failure.keep(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}
