//! `smolfed device`: one device as a process.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::ledger::Ledger;
use smolfed_core::model::Model;
use smolfed_core::provision::{Record, Target, TargetKind};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Phase, Session};
use smolfed_core::stream::{Purpose, Root, StreamId};

use super::CliError;
use super::session::stop_on_ctrl_c;
use crate::config::{ModelConfig, ModelKind};
use crate::coordinator::address::{Address, Transport};
use crate::coordinator::fleet::secret;
use crate::coordinator::keys::is_private;
use crate::data::csv::{self, Columns};
use crate::data::dataset::{self, Dataset};
use crate::device::client::{Event, talk};
use crate::device::flash::FileFlash;
use crate::device::memory::SessionMemory;
use crate::task::Task;

/// Pause before a connection is tried again.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Be one device: the client that boards run, as a process.
///
/// Its number, key, secret and limits come from a record of `smolfed provision`, its data from the
/// record or a CSV file. Its ledger says in which rounds it took part: it must never be lost or put
/// back, or its random streams could be used twice. Runs until Ctrl-C, and reconnects.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed device --model softmax:64x10 --provision fleet/device-0.bin \\
      --ledger fleet/device-0.ledger --connect tcp:127.0.0.1:7000
  smolfed device --model linear:13 --provision device-7.bin --ledger device-7.ledger \\
      --data measurements.csv --label power --listen unix:/run/smolfed/device-7")]
pub(super) struct Args {
    /// The model, as KIND:FEATURES or softmax:FEATURESxCLASSES; `smolfed provision` says which.
    #[arg(long, value_name = "MODEL")]
    model: ModelName,
    /// The device's record, written by `smolfed provision`.
    #[arg(long, value_name = "FILE")]
    provision: PathBuf,
    /// The device's ledger, made by `smolfed provision`.
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// Where the coordinator is: tcp:HOST:PORT, unix:PATH or serial:PATH[@BAUD].
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    connect: Option<Address>,
    /// Where the coordinator connects to this device: tcp:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    /// The device's samples, a CSV file with numbers as they are to be trained on; classes are
    /// numbers from 0.
    #[arg(long, value_name = "FILE", requires = "label")]
    data: Option<PathBuf>,
    /// The column of the CSV file that is to be predicted.
    #[arg(long, value_name = "COLUMN", requires = "data")]
    label: Option<String>,
    /// End when the coordinator closes the connection.
    #[arg(long)]
    once: bool,
}

/// A model by its kind and size.
#[derive(Clone, Debug)]
struct ModelName(Task);

/// The name of a model on the command line.
pub(super) fn model_name(task: &Task) -> impl fmt::Display {
    let (features, outputs) = (task.feature_count(), task.output_count());
    match task.kind() {
        ModelKind::Softmax => format!("softmax:{features}x{outputs}"),
        kind => format!("{}:{features}", kind.name()),
    }
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (kind, size) = text.split_once(':')?;
            let number = |text: &str| text.parse::<u16>().ok().filter(|n| *n > 0).map(usize::from);
            let (kind, features, classes) = match (kind, size.split_once('x')) {
                ("linear", None) => (ModelKind::Linear, number(size)?, None),
                ("logistic", None) => (ModelKind::Logistic, number(size)?, Some(2)),
                ("softmax", Some((features, classes))) => (
                    ModelKind::Softmax,
                    number(features)?,
                    Some(number(classes)?),
                ),
                _ => return None,
            };
            let model = ModelConfig {
                kind: Some(kind),
                ..ModelConfig::default()
            };
            Task::new(&model, features, classes).ok()
        };
        parse().map(Self).ok_or(
            "expected linear:FEATURES, logistic:FEATURES or softmax:FEATURESxCLASSES, for example \
             softmax:64x10"
                .to_owned(),
        )
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let page = read_record(&args.provision)?;
    let record = Record::read(&page).map_err(|error| refused(&args.provision, error))?;
    let data = match (&args.data, &args.label) {
        (Some(path), Some(label)) => Some(read_csv(path, label)?),
        _ => None,
    };
    let stop = stop_on_ctrl_c()?;
    let device = Device {
        args,
        record: &record,
        data: data.as_ref(),
        stop,
    };
    match args.model.0 {
        Task::Linear(model) => device.run::<_, f32>(model),
        Task::Logistic(model) => device.run::<_, u16>(model),
        Task::Softmax(model) => device.run::<_, u16>(model),
        // Its name has three sizes, and the wire has two.
        Task::Encoder(model) => device.run::<_, u16>(model),
    }
}

struct Device<'a> {
    args: &'a Args,
    record: &'a Record<'a>,
    data: Option<&'a Dataset>,
    stop: &'a AtomicBool,
}

impl Device<'_> {
    fn run<M: Model<Target = T>, T: Target + Default + FromData>(
        &self,
        model: M,
    ) -> Result<(), CliError> {
        let args = self.args;
        let (features, targets) = self.samples::<T>()?;
        let samples =
            SampleSlice::new(&features, &targets, model.feature_count()).map_err(|error| {
                CliError::Usage(format!("the samples do not fit `--model`: {error}"))
            })?;
        let mut memory = SessionMemory::new(&model, samples.len());
        let nonces = Root::from_secret(secret().map_err(|e| CliError::Stopped(e.to_string()))?);
        let nonces = nonces.stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: self.record.identity.device,
        });
        let (identity, policy) = (self.record.identity.clone(), self.record.policy);
        let ledger = ledger(&args.ledger)?;
        let session = Session::new(identity, policy, model, memory.borrow(), ledger, nonces);
        let mut session = session.ok_or(CliError::Usage(
            "`--model`: an update of it has more than 65,535 chunks".to_owned(),
        ))?;
        self.connect(&mut session, &samples)
    }

    /// The samples of the file, or those of the record.
    fn samples<T: Target + FromData>(&self) -> Result<(Vec<f32>, Vec<T>), CliError> {
        if let Some(data) = self.data {
            return self.of_file(data);
        }
        let stored = &self.record.samples;
        if stored.kind() == TargetKind::None {
            let path = self.args.provision.display();
            return Err(CliError::Usage(format!(
                "{path} has no samples: give `--data FILE --label COLUMN`, or provision `--with-data`"
            )));
        }
        if stored.kind() != T::KIND {
            let path = self.args.provision.display();
            return Err(CliError::Usage(format!(
                "{path} has samples for another kind of model than `--model {}`",
                model_name(&self.args.model.0)
            )));
        }
        let targets: Vec<T> = stored.targets().collect();
        let classes = self.args.model.0.output_count().max(2);
        let is_class = |target: &T| (target.to_word() as usize) < classes;
        if T::KIND == TargetKind::Class && !targets.iter().all(is_class) {
            let path = self.args.provision.display();
            return Err(CliError::Usage(format!(
                "{path} has samples of classes that `--model {}` does not have",
                model_name(&self.args.model.0)
            )));
        }
        Ok((stored.features().collect(), targets))
    }

    fn of_file<T: FromData>(&self, data: &Dataset) -> Result<(Vec<f32>, Vec<T>), CliError> {
        let dataset::Targets::Values(values) = data.targets() else {
            return Ok((Vec::new(), Vec::new()));
        };
        let classes = self.args.model.0.output_count();
        let target = |value: &f32| {
            T::of(*value, classes).ok_or_else(|| {
                let label = self.args.label.as_deref().unwrap_or_default();
                CliError::Usage(format!(
                    "column `{label}` has {value}: expected a class, from 0 to {}",
                    classes.max(2) - 1
                ))
            })
        };
        let targets = values.iter().map(target).collect::<Result<_, _>>()?;
        Ok((data.features().to_vec(), targets))
    }

    /// Connects, talks, and connects again.
    fn connect<M: Model, F: embedded_storage::nor_flash::NorFlash, R: Rng>(
        &self,
        session: &mut Session<'_, M, F, R>,
        samples: &impl Samples<Target = M::Target>,
    ) -> Result<(), CliError> {
        let (args, device) = (self.args, self.record.identity.device);
        let budget = self.record.policy.budget.0;
        let listener = match &args.listen {
            None => None,
            Some(address) => Some(address.listen().map_err(|error| {
                CliError::Stopped(format!("cannot listen at {address}: {error}"))
            })?),
        };
        let mut report = |event| match event {
            Event::Connected => eprintln!("device {device}: in session"),
            Event::Trained { participations } => {
                eprintln!("device {device}: participation {participations} of at most {budget}");
            }
            Event::Refused(Phase::Refused(why)) => {
                eprintln!("device {device}: the coordinator refuses it: {why}");
            }
            Event::Refused(_) | Event::Idle => {}
        };
        let (mut pause, mut silent) = (BACK_OFF.0, false);
        while !self.stop.load(Ordering::Relaxed) {
            let opened = match (&listener, &args.connect) {
                (Some(listener), _) => listener.accept(),
                (None, Some(address)) => address.connect().map(Some),
                (None, None) => Ok(None),
            };
            match self.talk_once(opened, session, samples, &mut report) {
                Ok(true) if args.once => return Ok(()),
                Ok(true) => (pause, silent) = (BACK_OFF.0, false),
                Ok(false) => pause = BACK_OFF.0,
                Err(error) => {
                    if !silent {
                        let place = args.connect.as_ref().or(args.listen.as_ref());
                        let place = place.map(Address::to_string).unwrap_or_default();
                        eprintln!("device {device}: {place}: {error}; trying again");
                        silent = true;
                    }
                    pause = (2 * pause).min(BACK_OFF.1);
                }
            }
            self.sleep(pause);
        }
        Ok(())
    }

    /// Talks on a connection, if there is one; says whether there was.
    fn talk_once<M: Model, F: embedded_storage::nor_flash::NorFlash, R: Rng>(
        &self,
        opened: io::Result<Option<Box<dyn Transport>>>,
        session: &mut Session<'_, M, F, R>,
        samples: &impl Samples<Target = M::Target>,
        report: &mut dyn FnMut(Event),
    ) -> io::Result<bool> {
        let Some(mut transport) = opened? else {
            return Ok(false);
        };
        // Connections end: that is no news.
        let _ = talk(session, samples, &mut *transport, self.stop, report);
        Ok(true)
    }

    fn sleep(&self, time: Duration) {
        let end = std::time::Instant::now() + time;
        while !self.stop.load(Ordering::Relaxed) && std::time::Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20).min(time));
        }
    }
}

/// Targets of samples that were read from a file.
trait FromData: Sized {
    /// The target that a number stands for; `None` if it is no class of the model.
    fn of(value: f32, classes: usize) -> Option<Self>;
}

impl FromData for f32 {
    fn of(value: f32, _: usize) -> Option<Self> {
        Some(value)
    }
}

impl FromData for u16 {
    /// Numbers of classes, not names: names would be numbered by what this device happens to have.
    fn of(value: f32, classes: usize) -> Option<Self> {
        let class = value as Self;
        let is_class = f32::from(class).to_bits() == value.to_bits();
        (is_class && usize::from(class) < classes.max(2)).then_some(class)
    }
}

fn ledger(path: &Path) -> Result<Ledger<FileFlash>, CliError> {
    // One that is not there is not made: the device may have used its random streams before.
    let flash = FileFlash::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused(
            path,
            "there is no ledger; `smolfed provision` makes it, once in a device's life",
        ),
        _ => refused(path, error),
    })?;
    Ledger::open(flash).map_err(|error| refused(path, error))
}

/// The device's record, which nobody else may read.
fn read_record(path: &Path) -> Result<Vec<u8>, CliError> {
    let mut file = File::open(path).map_err(|error| refused(path, error))?;
    if !is_private(&file).map_err(|error| refused(path, error))? {
        let path = path.display();
        return Err(CliError::Usage(format!(
            "{path} holds secrets and can be read by others: chmod 600 {path}"
        )));
    }
    let mut page = Vec::new();
    file.read_to_end(&mut page)
        .map_err(|error| refused(path, error))?;
    Ok(page)
}

fn read_csv(path: &Path, label: &str) -> Result<Dataset, CliError> {
    let bytes = std::fs::read(path).map_err(|error| refused(path, error))?;
    let columns = Columns {
        label: label.to_owned(),
        device: None,
        ignore: Vec::new(),
        task: dataset::Task::Regression,
    };
    let table = csv::parse(&bytes, &columns).map_err(|error| refused(path, error))?;
    let data = table.into_dataset().map_err(|error| refused(path, error))?;
    if !data.missing().is_empty() {
        return Err(refused(path, "values are missing"));
    }
    Ok(data)
}

fn refused(path: &Path, error: impl fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_by_kind_and_size() {
        for text in ["linear:13", "logistic:30", "softmax:64x10"] {
            let name: ModelName = text.parse().unwrap();
            assert_eq!(model_name(&name.0).to_string(), text);
        }
        for text in [
            "",
            "softmax",
            "softmax:64",
            "linear:0",
            "linear:2x3",
            "softmax:64x",
            "tree:3",
        ] {
            let error = text.parse::<ModelName>().unwrap_err();
            assert!(error.contains("softmax:64x10"), "{error}");
        }
    }
}
