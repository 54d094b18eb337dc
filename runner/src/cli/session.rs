//! Common parts of commands that train: threads, Ctrl-C, the progress bar, and warnings about the
//! experiment and its rounds.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::CliError;
use super::style::warn;
use crate::launch::Launch;
use smolfed_data::Federation;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::ranks::Communicator;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::run_files::error::RunDirError;
use smolfed_engine::source::ranks::compare;

/// More threads than any machine has cores for take minutes to start.
const MAX_THREADS: usize = 1024;

/// A pool of threads, by default one per core.
pub(super) fn pool(threads: Option<NonZeroUsize>) -> Result<ThreadPool, CliError> {
    let threads = threads.map_or(0, NonZeroUsize::get);
    if threads > MAX_THREADS {
        return Err(CliError::Usage(format!(
            "`--threads {threads}`: at most {MAX_THREADS}; without it there is one per core"
        )));
    }
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| CliError::Usage(format!("`--threads {threads}`: {error}")))
}

/// Runs `work` on a pool of threads.
pub(super) fn in_pool<T: Send>(
    threads: Option<NonZeroUsize>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, CliError> {
    Ok(pool(threads)?.install(work))
}

/// The ranks that this process was started with. Says so where a launcher started several that do
/// not know of each other.
pub(super) fn connect() -> Result<Box<dyn Communicator + Send>, CliError> {
    let ranks = crate::connect::connect()?;
    if let Some(launch) = Launch::of_this_process()
        && ranks.count() < launch.count
        && launch.rank == 0
    {
        warn(launch.warning());
    }
    Ok(ranks)
}

/// Returns the prepared value of this rank if the values of all ranks have the same `name`. Returns
/// `None` on a rank with nothing to do because another rank failed, which rank 0 reports.
pub(super) fn agreed<T>(
    ranks: &dyn Communicator,
    prepared: Result<T, CliError>,
    name: impl Fn(&T) -> Result<String, RunDirError>,
) -> Result<Option<T>, CliError> {
    if ranks.count() == 1 {
        return prepared.map(Some);
    }
    let named = match &prepared {
        Ok(prepared) => name(prepared).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match (compare(ranks, named), ranks.rank()) {
        (Ok(()), _) => prepared.map(Some),
        (Err(sentence), 0) => prepared.and(Err(CliError::Usage(sentence))),
        (Err(_), _) => Ok(None),
    }
}

/// What was warned of in earlier rounds.
#[derive(Default)]
pub(super) struct Warned {
    clip_norm: bool,
    grid: bool,
}

impl Warned {
    /// Warns once of an adaptive clip norm that is far from where it began, and of a model that its
    /// grid cuts off.
    pub(super) fn see(&mut self, experiment: &Experiment, record: &RoundRecord) {
        let of_clip_norm = |clip_norm| experiment.clip_norm_caution(record.round, clip_norm);
        let cautions = [
            (&mut self.clip_norm, record.clip_norm.and_then(of_clip_norm)),
            (&mut self.grid, record.grid_caution(experiment.model_grid())),
        ];
        for (is_warned, caution) in cautions {
            if !*is_warned && let Some(sentence) = caution {
                *is_warned = true;
                warn(sentence);
            }
        }
    }
}

/// Warns of what a reader of the result may not expect: no noise where an ε is written, and what
/// was done to the data. The counts are private.
pub(super) fn warn_of(experiment: &Experiment, federation: &Federation) {
    let privacy = &experiment.config().privacy;
    let amounts = [privacy.epsilon, privacy.noise_multiplier, privacy.noise_std];
    if privacy.epsilon == Some(f64::INFINITY) {
        warn("`privacy.epsilon` is inf: updates get no noise, and nothing protects them");
    } else if privacy.clip_norm.is_some() && amounts.iter().all(Option::is_none) {
        // Updates are clipped for noise that never comes, as after `--set privacy.epsilon=`.
        warn(
            "`privacy.epsilon` is not set, nor another amount of noise: updates get no noise, and \
             nothing protects them",
        );
    }
    if experiment.privacy().mechanism.sampler.is_some() {
        for read in federation.reads() {
            warn(format!(
                "`data.{}`: {} from the devices' rows, which no epsilon covers; `smolfed data \
                 inspect` shows alternatives",
                read.key(),
                read.what()
            ));
        }
    }
    let beyond = federation.beyond_bounds();
    if let [(feature, _), more @ ..] = beyond.as_slice() {
        let total: u64 = beyond.iter().map(|(_, count)| count).sum();
        let more = match more.len() {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        warn(format!(
            "`data.scale`: {total} values are beyond the bounds and were clipped to them: of \
             {feature}{more}"
        ));
    }
    match federation.unnamed_columns() {
        0 => {}
        1 => warn("a column without a name was left out; name it in the header if it is data"),
        count => warn(format!(
            "{count} columns without a name were left out; name them in the header if they are data"
        )),
    }
    let dropped = federation.dropped_rows();
    if dropped > 0 {
        warn(format!(
            "`data.unknown_labels`: {dropped} rows of other classes were left out"
        ));
    }
    federation.remarks().iter().for_each(warn);
    let small = federation.small_devices();
    if small > 0 {
        warn(format!(
            "`data.min_samples`: {small} devices with fewer samples were left out"
        ));
    }
}

/// A flag that Ctrl-C, SIGTERM and SIGHUP set. A second signal exits at once.
pub(super) fn stop_on_ctrl_c() -> Result<&'static AtomicBool, CliError> {
    static STOP: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(|error| CliError::Usage(format!("cannot handle Ctrl-C: {error}")))?;
    Ok(&STOP)
}

/// A bar of `length` steps on a terminal, nothing elsewhere.
pub(super) fn progress_bar(length: u64, step: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let template = format!("{step} {{pos}}/{{len}} {{bar:30}} {{msg}} [{{elapsed}}]");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
