//! `smolfed device`: one device as a process.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand_core::Rng;
use smolfed_core::ledger::Ledger;
use smolfed_core::model::Model;
use smolfed_core::provision::{KEY, Record, Target, TargetKind};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Phase, Session};
use smolfed_core::stream::{Purpose, Root, StreamId};
use zeroize::Zeroizing;

use super::CliError;
use super::session::stop_on_ctrl_c;
use crate::data::dataset::{Targets, TaskKind};
use crate::data::table::{self, Columns, TableFormat};
use crate::device::client::{Event, exchange};
use crate::device::flash::FileFlash;
use crate::device::memory::SessionMemory;
use crate::durable::is_private;
use crate::entropy::secret;
use crate::fleet::backoff::BackOff;
use crate::fleet::transport::{Address, Transport, accept};
use crate::inference::input::{Input, Options};
use crate::inference::preprocessing::Preprocessing;
use crate::of_task;
use crate::source::combinations::HIDDEN_LAYER;
use crate::task::Task;

/// Chunks that are asked for or sent before an answer: 4 KiB, which any socket holds.
const WINDOW: u8 = 16;

/// How often the listener of a device is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Run one device as a process, with the same client code as on boards.
///
/// Its number, key, secret and limits come from a record written by `smolfed provision`, its data
/// from the record or a CSV file. Its ledger records the rounds it took part in: it must never be
/// lost or restored from a backup, or random streams could be reused. The first key in the record
/// is overwritten, as the ledger has its own. Runs until Ctrl-C, and
/// reconnects if the connection is lost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed device --model softmax:64x10 --provision fleet/device-0.bin \\
      --ledger fleet/device-0.ledger --connect tcp:127.0.0.1:7000
  smolfed device --model linear:13 --provision device-7.bin --ledger device-7.ledger \\
      --data measurements.csv --label power --listen unix:/run/smolfed/device-7
  smolfed device --preprocessing fleet/preprocessing.json --provision device-7.bin \
      --ledger device-7.ledger --data measurements.csv --connect tcp:10.0.0.1:7000")]
pub(super) struct Args {
    /// The model, as KIND:FEATURES or softmax:FEATURESxCLASSES; `smolfed provision` prints it. A
    /// network of layers needs `--preprocessing` instead.
    #[arg(
        long,
        value_name = "MODEL",
        required_unless_present = "preprocessing",
        conflicts_with = "preprocessing"
    )]
    model: Option<Task>,
    /// The model, and what becomes of the samples before it reads them: the preprocessing.json that
    /// `smolfed provision` and runs write. Columns of the CSV file are then found by their names,
    /// missing values replaced, values scaled, and classes are names.
    #[arg(long, value_name = "FILE")]
    preprocessing: Option<PathBuf>,
    /// The device's record, written by `smolfed provision`.
    #[arg(long, value_name = "FILE")]
    provision: PathBuf,
    /// The device's ledger, created by `smolfed provision`.
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// Connect to the coordinator: tcp:HOST:PORT, unix:PATH or serial:PATH[@BAUD].
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    connect: Option<Address>,
    /// Accept connections from the coordinator: tcp:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    /// The device's samples, a CSV file. Without `--preprocessing` its columns are the features in
    /// order, as the model reads them, and classes are numbers from 0.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The column of the CSV file to predict; with `--preprocessing` by default that of the
    /// experiment.
    #[arg(long, value_name = "COLUMN", requires = "data")]
    label: Option<String>,
    /// Exit when the coordinator closes the connection.
    #[arg(long)]
    once: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let page = read_record(&args.provision)?;
    let record = Record::read(&page).map_err(|error| {
        let advice = "give a device-K.bin that `smolfed provision` wrote";
        refused(&args.provision, format!("{error}; {advice}"))
    })?;
    let preprocessing = args.preprocessing.as_deref().map(Preprocessing::read);
    let preprocessing = preprocessing.transpose();
    // Whatever is wrong with it, it was given.
    let preprocessing = preprocessing.map_err(|error| CliError::Usage(error.to_string()))?;
    let task = match (&preprocessing, args.model) {
        (Some(preprocessing), _) => preprocessing.task,
        (None, Some(task)) => task,
        (None, None) => return Err(CliError::Usage("`--model` is missing".to_owned())),
    };
    if task.hidden_count().is_some() {
        return Err(CliError::Usage(format!(
            "`--preprocessing`: `model.hidden` is supported only in simulations: {HIDDEN_LAYER}"
        )));
    }
    let data = match (&args.data, &preprocessing, &args.label) {
        (None, ..) => None,
        (Some(path), Some(preprocessing), label) => {
            Some(Data::prepared(path, preprocessing, label.as_deref())?)
        }
        (Some(path), None, Some(label)) => Some(Data::as_it_is(path, label)?),
        (Some(path), None, None) => {
            let path = path.display();
            return Err(CliError::Usage(format!(
                "`--data {path}`: give `--label COLUMN`, or `--preprocessing FILE`, which knows it"
            )));
        }
    };
    let device = Device {
        args,
        task,
        record: &record,
        data: data.as_ref(),
        stop: stop_on_ctrl_c()?,
    };
    of_task!(task, model => device.run(model))
}

struct Device<'a> {
    args: &'a Args,
    task: Task,
    record: &'a Record<'a>,
    data: Option<&'a Data>,
    stop: &'a AtomicBool,
}

/// Samples of a file, as the model reads them.
struct Data {
    /// Row after row.
    features: Vec<f32>,
    /// Values, or numbers of classes.
    targets: Vec<f32>,
    /// The column of the targets.
    label: String,
}

impl Device<'_> {
    fn run<M: Model<Target: Target + Default + FromData>>(&self, model: M) -> Result<(), CliError> {
        let args = self.args;
        let (features, targets) = self.samples::<M::Target>()?;
        let samples =
            SampleSlice::new(&features, &targets, model.feature_count()).map_err(|_| {
                let found = features.len() / targets.len().max(1);
                CliError::Usage(format!(
                    "the samples have {found} features each, but the model reads {}",
                    model.feature_count()
                ))
            })?;
        let mut memory = SessionMemory::new(&model, samples.len());
        let nonces = Root::from_secret(*secret().map_err(|e| CliError::Stopped(e.to_string()))?);
        let nonces = nonces.stream(StreamId {
            purpose: Purpose::SessionNonces,
            round: 0,
            device: self.record.identity.device,
        });
        let (identity, policy) = (self.record.identity.clone(), self.record.policy);
        let ledger = ledger(&args.ledger)?;
        if self.record.key.is_some() {
            forget_key(&args.provision);
        }
        let session = Session::new(identity, policy, model, memory.borrow(), ledger, nonces);
        let mut session =
            session.map_err(|error| CliError::Usage(format!("`--model`: {error}")))?;
        session.set_window(WINDOW);
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
                "{path} has no samples: give `--data FILE --label COLUMN`, or provision with \
                 `--with-data`"
            )));
        }
        if stored.kind() != T::KIND {
            let path = self.args.provision.display();
            return Err(CliError::Usage(format!(
                "{path} contains samples for another kind of model than `--model {}`",
                self.task
            )));
        }
        let targets: Vec<T> = stored.targets().collect();
        let classes = self.task.output_count().max(2);
        let is_class = |target: &T| (target.to_word() as usize) < classes;
        if T::KIND == TargetKind::Class && !targets.iter().all(is_class) {
            let path = self.args.provision.display();
            return Err(CliError::Usage(format!(
                "{path} contains samples of classes that `--model {}` does not have",
                self.task
            )));
        }
        Ok((stored.features().collect(), targets))
    }

    fn of_file<T: FromData>(&self, data: &Data) -> Result<(Vec<f32>, Vec<T>), CliError> {
        let classes = self.task.output_count();
        let target = |value: &f32| {
            T::of(*value, classes).ok_or_else(|| {
                CliError::Usage(format!(
                    "column `{}` contains {value}: expected a class from 0 to {}",
                    data.label,
                    classes.max(2) - 1
                ))
            })
        };
        let targets = data.targets.iter().map(target).collect::<Result<_, _>>()?;
        Ok((data.features.clone(), targets))
    }

    /// Connects and takes part in rounds; reconnects when the connection breaks.
    fn connect<M: Model, F: embedded_storage::nor_flash::NorFlash, R: Rng>(
        &self,
        session: &mut Session<'_, M, F, R>,
        samples: &impl Samples<Target = M::Target>,
    ) -> Result<(), CliError> {
        let (args, device) = (self.args, self.record.identity.device);
        let budget = self.record.policy.limits.budget.0;
        let listener = match &args.listen {
            None => None,
            Some(address) => Some(address.listen().map_err(|error| {
                CliError::Stopped(format!("cannot listen at {address}: {error}"))
            })?),
        };
        let mut report = |event| match event {
            Event::Connected => eprintln!("device {device}: connected"),
            Event::Trained { participations } => {
                eprintln!("device {device}: participation {participations} of at most {budget}");
            }
            Event::Refused(Phase::Refused(why)) => {
                eprintln!("device {device}: refused by the coordinator: {why}");
            }
            Event::Refused(_) | Event::Idle => {}
        };
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        while !self.stop.load(Ordering::Relaxed) {
            let opened = match (&listener, &args.connect) {
                (Some(listener), _) => accept(&**listener),
                (None, Some(address)) => address.connect().map(Some),
                (None, None) => Ok(None),
            };
            match self.serve(opened, session, samples, &mut report) {
                Ok(true) if args.once => return Ok(()),
                Ok(true) => (back_off, is_reported) = (BackOff::new(), false),
                Ok(false) => {
                    std::thread::sleep(POLL_INTERVAL);
                    continue;
                }
                Err(error) => {
                    if !is_reported {
                        let address = args.connect.as_ref().or(args.listen.as_ref());
                        let address = address.map(Address::to_string).unwrap_or_default();
                        eprintln!("device {device}: {address}: {error}; retrying");
                        is_reported = true;
                    }
                }
            }
            back_off.wait(self.stop);
        }
        Ok(())
    }

    /// Serves a connection until it ends; returns whether there was one.
    fn serve<M: Model, F: embedded_storage::nor_flash::NorFlash, R: Rng>(
        &self,
        opened: io::Result<Option<Box<dyn Transport>>>,
        session: &mut Session<'_, M, F, R>,
        samples: &impl Samples<Target = M::Target>,
        report: &mut dyn FnMut(Event),
    ) -> io::Result<bool> {
        let Some(mut transport) = opened? else {
            return Ok(false);
        };
        // Connections end at any time: that is not reported.
        let _ = exchange(session, samples, &mut *transport, self.stop, report);
        Ok(true)
    }
}

impl Data {
    /// Numbers in the order of the columns, without any preprocessing.
    fn as_it_is(path: &Path, label: &str) -> Result<Self, CliError> {
        let bytes = std::fs::read(path).map_err(|error| refused(path, error))?;
        let columns = Columns {
            label: label.to_owned(),
            task: Some(TaskKind::Regression),
            ..Columns::default()
        };
        let table = table::parse(TableFormat::Csv, &bytes, &columns);
        let table = table.map_err(|error| refused(path, error))?;
        let data = table.into_dataset().map_err(|error| refused(path, error))?;
        if !data.missing().is_empty() {
            return Err(refused(
                path,
                "values are missing, which `--preprocessing` would replace",
            ));
        }
        let Targets::Values(targets) = data.targets() else {
            return Err(refused(path, "its targets are no numbers"));
        };
        Ok(Self {
            features: data.features().to_vec(),
            targets: targets.clone(),
            label: label.to_owned(),
        })
    }

    /// Rows as the experiment prepares them.
    fn prepared(
        path: &Path,
        preprocessing: &Preprocessing,
        label: Option<&str>,
    ) -> Result<Self, CliError> {
        let options = Options {
            has_targets: true,
            label,
            labels: None,
            id: None,
            has_header: true,
        };
        let mut input = Input::open(path, preprocessing, options)?;
        let mut data = Self {
            features: Vec::new(),
            targets: Vec::new(),
            label: label
                .or(preprocessing.target_column())
                .unwrap_or_default()
                .to_owned(),
        };
        while let Some(part) = input.next(usize::MAX)? {
            let samples = part.samples();
            for row in 0..samples.len() {
                data.features.extend(samples.features(row));
                data.targets.push(samples.value(row));
            }
        }
        Ok(data)
    }
}

/// A target that can be read from a CSV file.
trait FromData: Sized {
    /// The target for a number; `None` if it is not a class of the model.
    fn of(value: f32, classes: usize) -> Option<Self>;
}

impl FromData for f32 {
    fn of(value: f32, _: usize) -> Option<Self> {
        Some(value)
    }
}

impl FromData for u16 {
    /// Class numbers, not names: devices would number names differently, by the samples they have.
    fn of(value: f32, classes: usize) -> Option<Self> {
        let class = value as Self;
        let is_class = f32::from(class).to_bits() == value.to_bits();
        (is_class && usize::from(class) < classes.max(2)).then_some(class)
    }
}

fn ledger(path: &Path) -> Result<Ledger<FileFlash>, CliError> {
    // A missing one is not created: the device may have used its random streams before.
    let flash = FileFlash::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused(
            path,
            "there is no ledger; `smolfed provision` creates it, once in the lifetime of a device",
        ),
        _ => refused(path, error),
    })?;
    Ledger::open(flash).map_err(|error| refused(path, error))
}

/// Overwrites the first chain key in a record: the ledger has it, and replaces it. What was
/// recorded of the line before stays secret from who reads the record later.
fn forget_key(path: &Path) {
    let overwrite = || {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::Start(KEY.start as u64))?;
        file.write_all(&[0; KEY.end - KEY.start])?;
        file.sync_all()
    };
    if let Err(error) = overwrite() {
        let path = path.display();
        eprintln!(
            "warning: the first key cannot be overwritten in {path}, where it is of no use: {error}"
        );
    }
}

/// The device's record, which only its owner may be able to read; overwritten when it is dropped.
fn read_record(path: &Path) -> Result<Zeroizing<Vec<u8>>, CliError> {
    if path.is_dir() {
        return Err(refused(path, "is a folder: give the device-K.bin in it"));
    }
    let mut file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            refused(path, "there is no record; `smolfed provision` writes it")
        }
        _ => refused(path, error),
    })?;
    if !is_private(&file).map_err(|error| refused(path, error))? {
        let path = path.display();
        return Err(CliError::Usage(format!(
            "{path} contains secrets and can be read by others: run `chmod 600 {path}`"
        )));
    }
    // Room for all of it: a vector that grows leaves copies behind.
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let mut page = Zeroizing::new(Vec::with_capacity(length as usize + 1));
    file.read_to_end(&mut page)
        .map_err(|error| refused(path, error))?;
    Ok(page)
}

fn refused(path: &Path, error: impl fmt::Display) -> CliError {
    CliError::Usage(format!("{}: {error}", path.display()))
}
