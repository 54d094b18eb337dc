//! `smolfed device`: one device as a process.

mod data;
mod files;
mod progress;

use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use embedded_storage::nor_flash::NorFlash;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use getrandom::SysRng;
use rand_core::UnwrapErr;
use smolfed_core::contrast::{MAX_PAIRS, Projection};
use smolfed_core::model::{BATCH_GROUP, Model};
use smolfed_core::personal::store::BlockingStore;
use smolfed_core::provision::{ProvisionError, Record, Target, TargetKind};
use smolfed_core::samples::{SampleSlice, Samples};
use smolfed_core::session::{Greeter, Phase, Session, Trainable, Unlabelled, X25519};
use smolfed_core::stream::{Purpose, Root, Stream, StreamId};
use smolfed_simd::Network;
use tokio::runtime::Builder;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::CliError;
use super::session::stop_on_ctrl_c;
use smolfed_engine::combinations::HIDDEN_LAYER;
use smolfed_engine::method::contrastive::Variations;
use smolfed_engine::of_task;
use smolfed_engine::preprocessing::{self, Preprocessing};
use smolfed_engine::task::Task;
use smolfed_fleet::backoff::BackOff;
use smolfed_fleet::device::client::exchange;
use smolfed_fleet::device::memory::SessionMemory;
use smolfed_fleet::device::personal::FileStore;
use smolfed_fleet::transport::{
    Address, Listener, Options, Transport, TransportFiles, accept, read_options,
};
use smolfed_release::entropy::secret;

use data::{Data, FromData};
use files::{Files, forget_key, ledger, of_folder, record as record_of, refused};
use progress::Progress;

/// Chunks that are asked for or sent before an answer: 4 KiB, which any socket holds.
const WINDOW: u8 = 16;

/// How often the command looks whether it is to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Open files that are no connections: records, ledgers.
const OTHER_FILES: u64 = 64;

/// Run a device as a process, or many, with the same client code as on boards.
///
/// Its number, key, secret and limits come from a record written by `smolfed provision`, its data
/// from the record or a CSV file. Its ledger records the rounds it took part in: it must never be
/// lost or restored from a backup, or random streams could be reused. The first key in the record
/// is overwritten, as the ledger has its own. The personal model, of methods that have one, is a
/// safetensors file beside the ledger, device-K.personal. Runs until Ctrl-C, and reconnects if the
/// connection is lost. With a folder that `smolfed provision` wrote in the place of a record, all
/// devices in it run in one process: for tests, demonstrations and measurements.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed device --model softmax:64x10 --provision fleet/device-0.bin \\
      --ledger fleet/device-0.ledger --connect tcp:127.0.0.1:7000
  smolfed device --model softmax:64x10 --provision fleet --connect tcp:127.0.0.1:7000
  smolfed device --model linear:13 --provision device-7.bin --ledger device-7.ledger \\
      --data measurements.csv --label power --listen unix:/run/smolfed/device-7
  smolfed device --model softmax:64x10 --provision device-7.bin --ledger device-7.ledger \\
      --connect tls:fleet.example.org:7443 --tls-ca ca.pem
  smolfed device --preprocessing fleet/preprocessing.json --provision device-7.bin \
      --ledger device-7.ledger --data measurements.csv --connect tcp:10.0.0.1:7000
  grep SMOLFED:7: records.txt | smolfed device --provision - --ledger device-7.ledger \\
      --new-ledger --preprocessing preprocessing.json --data measurements.csv \\
      --connect tcp:10.0.0.1:7000")]
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
    /// The device's record, written by `smolfed provision`, also as text; - reads that from
    /// standard input. Or a folder with the records and ledgers of several devices, whose samples
    /// are in their records.
    #[arg(long, value_name = "FILE|DIR")]
    provision: PathBuf,
    /// The device's ledger, created by `smolfed provision`, or here by `--new-ledger`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Create the ledger, which must not be there: once in the device's lifetime, if its record
    /// came as text. A coordinator refuses a device that comes with a second one.
    #[arg(long)]
    new_ledger: bool,
    /// Connect to the coordinator: tcp:HOST:PORT, tls:HOST:PORT, mqtt:HOST:PORT[/PREFIX], unix:PATH
    /// or serial:PATH[@BAUD].
    #[arg(
        long,
        value_name = "ADDRESS",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    connect: Option<Address>,
    /// Accept connections from the coordinator: tcp:HOST:PORT, tls:HOST:PORT or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<Address>,
    #[command(flatten)]
    files: TransportFiles,
    /// The device's samples, a CSV file. Without `--preprocessing` its columns are the features in
    /// order, as the model reads them, and classes are numbers from 0.
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The column of the CSV file to predict; with `--preprocessing` by default that of the
    /// experiment.
    #[arg(long, value_name = "COLUMN", requires = "data")]
    label: Option<String>,
    /// Begin every session with an X25519 handshake, and open none without it: who records the
    /// connection now and gets the device's and the coordinator's keys later decrypts nothing. It
    /// needs a coordinator that knows it, and costs both a fraction of a millisecond.
    #[arg(long)]
    x25519: bool,
    /// Exit when the coordinator closes the connection.
    #[arg(long)]
    once: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
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
    let is_encoder = |preprocessing: &Preprocessing| {
        preprocessing.target == preprocessing::Target::Representation
    };
    let is_encoder = preprocessing.as_ref().is_some_and(is_encoder);
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
    let files = files(args)?;
    if files.len() > 1 && data.is_some() {
        let folder = args.provision.display();
        return Err(CliError::Usage(format!(
            "`--data`: {folder} has {} devices, whose samples are in their records: give the \
             device-K.bin of one, or leave `--data` out",
            files.len()
        )));
    }
    let (dial, listen) = (args.connect.as_slice(), args.listen.as_slice());
    if let Some(address) = listen.iter().find(|address| address.has_broker()) {
        return Err(CliError::Usage(format!(
            "`--listen {address}`: at a broker devices connect: `--connect {address}`"
        )));
    }
    let options = read_options(&args.files, dial, listen);
    let options = options.map_err(|error| CliError::Usage(error.to_string()))?;
    let progress = Progress::new(files.len());
    let devices: Vec<Device<'_>> = files
        .into_iter()
        .map(|files| Device {
            args,
            task,
            is_encoder,
            files,
            data: data.as_ref(),
            options: &options,
            progress: &progress,
        })
        .collect();
    run_all(&devices, &progress)
}

/// The devices to be run: one, or all of a folder.
fn files(args: &Args) -> Result<Vec<Files>, CliError> {
    let record = &args.provision;
    let ledger = match (record.is_dir(), &args.ledger) {
        (false, Some(ledger)) => ledger.clone(),
        (false, None) => {
            return Err(CliError::Usage(
                "`--ledger` is missing: the file device-K.ledger beside the record".to_owned(),
            ));
        }
        (true, None) => return of_folder(record),
        (true, Some(_)) => {
            let folder = record.display();
            return Err(CliError::Usage(format!(
                "`--ledger`: the devices of the folder {folder} have their ledgers in it"
            )));
        }
    };
    Ok(vec![Files {
        record: record.clone(),
        ledger,
    }])
}

/// Runs all devices until Ctrl-C, on as many threads as there are cores, each with its share.
fn run_all(devices: &[Device<'_>], progress: &Progress) -> Result<(), CliError> {
    let asked = stop_on_ctrl_c()?;
    let stop = CancellationToken::new();
    check_open_files(devices.len())?;
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let share = devices.len().div_ceil(threads).max(1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) {
                    stop.cancel();
                }
                progress.show();
                std::thread::sleep(POLL_INTERVAL);
            }
        });
        let run = |share| run_share(share, &stop).inspect_err(|_| stop.cancel());
        let shares: Vec<_> = devices
            .chunks(share)
            .map(|share| scope.spawn(move || run(share)))
            .collect();
        let results: Vec<_> = shares.into_iter().map(ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        for result in results {
            // A panic goes on where it came from.
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok(())
    })
}

/// Refuses more devices than the system allows open files for: a socket and a ledger each.
fn check_open_files(devices: usize) -> Result<(), CliError> {
    let needed = 2 * devices as u64 + OTHER_FILES;
    // Without an answer of the system the devices say what fails.
    let allowed = rlimit::increase_nofile_limit(needed).unwrap_or(needed);
    if allowed >= needed {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "{devices} devices need {needed} open files and the system allows {allowed}: raise it with \
         `ulimit -n {needed}`, or run them in several processes"
    )))
}

/// Runs devices side by side on this thread.
fn run_share(devices: &[Device<'_>], stop: &CancellationToken) -> Result<(), CliError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Stopped(error.to_string()))?;
    runtime.block_on(async {
        let mut running: FuturesUnordered<_> =
            devices.iter().map(|device| device.boxed(stop)).collect();
        while let Some(result) = running.next().await {
            result?;
        }
        Ok(())
    })
}

/// A device that takes part.
type Running<'a> = Pin<Box<dyn Future<Output = Result<(), CliError>> + 'a>>;

/// One device, and what it has been given.
struct Device<'a> {
    args: &'a Args,
    task: Task,
    /// Whether it learns without labels.
    is_encoder: bool,
    files: Files,
    data: Option<&'a Data>,
    options: &'a Options,
    progress: &'a Progress,
}

impl Device<'_> {
    /// [`Self::run`] as one type for all models.
    fn boxed<'a>(&'a self, stop: &'a CancellationToken) -> Running<'a> {
        if self.is_encoder {
            return self.boxed_encoder(stop);
        }
        of_task!(self.task, model => self.boxed_model(model, stop))
    }

    fn boxed_model<'a, M: Model<Target: Target + Default + FromData> + 'a>(
        &'a self,
        model: M,
        stop: &'a CancellationToken,
    ) -> Running<'a> {
        let (features, scratch) = (model.feature_count(), model.scratch_count(BATCH_GROUP));
        let scratch = move |_: &M, _| scratch;
        let samples = |record: &Record<'_>| self.samples::<M::Target>(record);
        Box::pin(self.run(model, features, scratch, samples, stop))
    }

    fn boxed_encoder<'a>(&'a self, stop: &'a CancellationToken) -> Running<'a> {
        let (features, width) = (self.task.feature_count(), self.task.output_count());
        let network = match self.task {
            Task::Sequential(network) => Network::Layers(network),
            _ => Network::Linear(Projection::new(features, width)),
        };
        let encoder = Unlabelled::<_, Variations>::new(network);
        // Room for all that can be asked for, so that no answer depends on how many samples there
        // are. Pages that no batch reaches are never touched.
        let scratch = |encoder: &Unlabelled<_, _>, samples: usize| {
            encoder.scratch_for((2 * MAX_PAIRS as usize).saturating_mul(samples.max(2)))
        };
        let samples = |record: &Record<'_>| {
            let features = self.features(record)?;
            let count = features.len() / self.task.feature_count().max(1);
            Ok((features, vec![(); count]))
        };
        Box::pin(self.run(encoder, features, scratch, samples, stop))
    }

    async fn run<M: Trainable<Target: Default>>(
        &self,
        model: M,
        feature_count: usize,
        scratch: impl Fn(&M, usize) -> usize,
        samples: impl FnOnce(&Record<'_>) -> Result<(Vec<f32>, Vec<M::Target>), CliError>,
        stop: &CancellationToken,
    ) -> Result<(), CliError> {
        let page = record_of(&self.files.record)?;
        let record = Record::read(&page).map_err(|error| {
            let advice = match error {
                ProvisionError::Element => "a process is provisioned without `--element`",
                _ => "give a device-K.bin that `smolfed provision` wrote",
            };
            refused(&self.files.record, format!("{error}; {advice}"))
        })?;
        let (features, targets) = samples(&record)?;
        let samples = SampleSlice::new(&features, &targets, feature_count).map_err(|_| {
            let found = features.len() / targets.len().max(1);
            CliError::Usage(format!(
                "the samples have {found} features each, but the model reads {feature_count}"
            ))
        })?;
        let scratch = scratch(&model, samples.len());
        let mut memory = SessionMemory::new(&model, samples.len(), scratch);
        let (identity, policy) = (record.identity.clone(), record.policy);
        let device = identity.device;
        let ledger = ledger(&self.files.ledger, self.args.new_ledger, &record)?;
        forget_key(&self.files.record, &page);
        let store = FileStore::beside(&self.files.ledger);
        let memory = memory.borrow();
        let line = Line {
            args: self.args,
            options: self.options,
            device,
            budget: policy.limits.budget.0,
            progress: self.progress,
            stop,
        };
        let wrong = |error| CliError::Usage(format!("`--model`: {error}"));
        // Two types, so that no session of the one kind becomes one of the other.
        if self.args.x25519 {
            // Not of a stream: its key would give away all sessions of this process.
            let keys = X25519::new(UnwrapErr(SysRng));
            let session = Session::with_store(identity, policy, model, memory, ledger, keys, store);
            line.take_part(session.map_err(wrong)?, &samples).await
        } else {
            let nonces = nonces(device)?;
            let session =
                Session::with_store(identity, policy, model, memory, ledger, nonces, store);
            line.take_part(session.map_err(wrong)?, &samples).await
        }
    }

    /// The samples of the file, or those of the record, without their targets.
    fn features(&self, record: &Record<'_>) -> Result<Vec<f32>, CliError> {
        if let Some(data) = self.data {
            return Ok(data.features.clone());
        }
        match record.samples.kind() {
            TargetKind::None => Err(self.no_samples()),
            _ => Ok(record.samples.features().collect()),
        }
    }

    fn no_samples(&self) -> CliError {
        let path = self.files.record.display();
        CliError::Usage(format!(
            "{path} has no samples: give `--data FILE --label COLUMN`, or provision with \
             `--with-data`"
        ))
    }

    /// The samples of the file, or those of the record.
    fn samples<T: Target + FromData>(
        &self,
        record: &Record<'_>,
    ) -> Result<(Vec<f32>, Vec<T>), CliError> {
        if let Some(data) = self.data {
            return self.of_file(data);
        }
        let stored = &record.samples;
        if stored.kind() == TargetKind::None {
            return Err(self.no_samples());
        }
        if stored.kind() != T::KIND {
            let path = self.files.record.display();
            return Err(CliError::Usage(format!(
                "{path} contains samples for another kind of model than `--model {}`",
                self.task
            )));
        }
        let targets: Vec<T> = stored.targets().collect();
        let classes = self.task.output_count().max(2);
        let is_class = |target: &T| (target.to_word() as usize) < classes;
        if T::KIND == TargetKind::Class && !targets.iter().all(is_class) {
            let path = self.files.record.display();
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
            T::from_number(*value, classes).ok_or_else(|| {
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
}

/// Nonces of sessions that never repeat: those of a stream under a fresh secret.
fn nonces(device: u32) -> Result<Stream, CliError> {
    let secret = secret().map_err(|error| CliError::Stopped(error.to_string()))?;
    Ok(Root::from_secret(*secret).stream(StreamId {
        purpose: Purpose::SessionNonces,
        round: 0,
        device,
    }))
}

/// The connection of a device, made again whenever it breaks.
struct Line<'a> {
    args: &'a Args,
    options: &'a Options,
    device: u32,
    budget: u32,
    progress: &'a Progress,
    stop: &'a CancellationToken,
}

impl Line<'_> {
    /// Takes part in rounds until the command ends.
    async fn take_part<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
        &self,
        mut session: Session<'_, M, F, R, K>,
        samples: &impl Samples<Target = M::Target>,
    ) -> Result<(), CliError> {
        session.set_window(WINDOW);
        let mut listener = match &self.args.listen {
            None => None,
            Some(address) => Some(address.listen(self.options).map_err(|error| {
                CliError::Stopped(format!("cannot listen at {address}: {error}"))
            })?),
        };
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        let mut has_greeted = false;
        while !self.stop.is_cancelled() {
            let opened = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                opened = self.open(listener.as_deref_mut()) => opened,
            };
            match opened {
                Ok(mut transport) => {
                    let mut report = |event| self.progress.note(self.device, self.budget, event);
                    // Connections end at any time: that is not reported.
                    let _ = exchange(
                        &mut session,
                        samples,
                        &mut *transport,
                        self.stop,
                        &mut report,
                    )
                    .await;
                    self.report_tls(session.phase(), &mut has_greeted);
                    if self.args.once {
                        return Ok(());
                    }
                    (back_off, is_reported) = (BackOff::new(), false);
                }
                Err(error) if !is_reported => {
                    let address = self.args.connect.as_ref().or(self.args.listen.as_ref());
                    let why = |address: &Address| format!("{address}: {}", address.why(&error));
                    let (device, why) = (self.device, address.map(why).unwrap_or_default());
                    self.progress
                        .print(format!("device {device}: {why}; retrying"));
                    is_reported = true;
                }
                Err(_) => {}
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = sleep(back_off.next_pause()) => {}
            }
        }
        Ok(())
    }

    /// Says, once, what it may mean if a device gets no answer from a port at which something
    /// listens.
    fn report_tls(&self, phase: Phase, has_greeted: &mut bool) {
        let is_first = !std::mem::replace(has_greeted, true);
        let is_stopping = self.stop.is_cancelled();
        let address = self.args.connect.as_ref();
        let address = address.filter(|address| address.scheme() == "tcp");
        if let Some(address) = address
            && is_first
            && !is_stopping
            && phase == Phase::Greeting
        {
            let device = self.device;
            self.progress.print(format!(
                "device {device}: {address}: the connection was closed before a session was \
                 opened; if the coordinator listens at a tls: address, connect with tls:; retrying"
            ));
        }
    }

    /// The next connection.
    async fn open(
        &self,
        listener: Option<&mut (dyn Listener + 'static)>,
    ) -> io::Result<Box<dyn Transport>> {
        match (listener, &self.args.connect) {
            (Some(listener), _) => accept(listener).await?.opening.await,
            (None, Some(address)) => address.connect(self.options).await,
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }
}
