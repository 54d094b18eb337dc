//! A device that only infers, as a process (`smolfed receive`): its connection, the requests for a
//! new model, and growing pauses. Its slots are a file, which is replaced whenever it has installed
//! a version.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::pin::pin;

use getrandom::SysRng;
use rand_core::UnwrapErr;
use smolfed_core::delivery::slots::flash_bytes;
use smolfed_core::delivery::{Accepted, ModelSlots, Receiver};
use smolfed_core::provision::Recipient;
use smolfed_core::session::Phase;
use smolfed_release::durable::write_atomically;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep, sleep_until};

use crate::backoff::BackOff;
use crate::device::DeviceError;
use crate::device::files::{STANDARD_INPUT, record as record_of, refused};
use crate::device::flash::PAGE;
use crate::device::image::Image;
use crate::device::line::Direction;
use crate::link::Link;
use crate::transport::{Options, Transport};

/// Chunks requested at once: 4 KiB, which any socket holds.
const WINDOW: u8 = 16;

/// Bytes per read: a few frames.
const READ_BYTES: usize = 1024;

/// Maximum factor by which a pause grows.
const MAX_FACTOR: u32 = 64;

/// The slots of a process, in memory.
type Slots = ModelSlots<Image<Vec<u8>>>;

/// A device that runs as a process.
pub struct InferDevice<'a> {
    /// Its record.
    pub record: PathBuf,
    /// The file of its slots.
    pub slots: PathBuf,
    /// The files that it accepts.
    pub accepted: Accepted,
    /// The coordinator's address, or the device's.
    pub direction: &'a Direction,
    /// Credentials and time limits of connections.
    pub transport: &'a Options,
    /// Speed of the link.
    pub link: Link,
    /// Whether to end as soon as the device has the offered version.
    pub once: bool,
    /// Shows a sentence about the device.
    pub report: &'a (dyn Fn(u32, String) + Sync),
}

impl std::fmt::Debug for InferDevice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InferDevice").field(&self.record).finish()
    }
}

/// Locks a record, or all records in a folder, so that no other process runs these devices.
///
/// A folder has one lock: thousands of devices need their open files for connections.
///
/// # Errors
/// [`DeviceError`].
pub fn lock_devices(path: &Path) -> Result<Vec<File>, DeviceError> {
    if path == Path::new(STANDARD_INPUT) {
        let why = "the models of the device are stored next to its record, so give a file";
        return Err(refused(path, why));
    }
    if path.is_dir() {
        return Ok(vec![locked(path, File::try_lock)?]);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    Ok(vec![
        locked(path, File::try_lock)?,
        locked(folder, File::try_lock_shared)?,
    ])
}

/// Opens a file or a folder, and locks it.
fn locked(
    path: &Path,
    lock: impl FnOnce(&File) -> Result<(), TryLockError>,
) -> Result<File, DeviceError> {
    let file = File::open(path).map_err(|error| refused(path, error))?;
    match lock(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(refused(path, "another process runs this device")),
        Err(TryLockError::Error(error)) => Err(refused(path, error)),
    }
}

/// Opens the slots in a file, which may not exist yet.
///
/// # Errors
/// [`DeviceError`].
pub fn open_slots(path: &Path, accepted: &Accepted) -> Result<Slots, DeviceError> {
    let length = flash_bytes(accepted.shape.parameters(), PAGE) as usize;
    let bytes = match std::fs::read(path) {
        Ok(bytes) if bytes.len() == length => bytes,
        Ok(_) => return Err(refused(path, "the file has the slots of another model")),
        Err(error) if error.kind() == ErrorKind::NotFound => vec![0xff; length],
        Err(error) => return Err(refused(path, error)),
    };
    ModelSlots::open(Image(bytes), *accepted).map_err(|error| refused(path, error))
}

/// Writes the slots to their file.
///
/// # Errors
/// [`DeviceError`].
pub fn save_slots(path: &Path, slots: &mut Slots) -> Result<(), DeviceError> {
    let written = write_atomically(path, &slots.flash().0);
    written.map_err(|error| DeviceError::Stopped(format!("{}: {error}", path.display())))
}

impl InferDevice<'_> {
    /// Fetches models, until the future is dropped.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub async fn run(&self) -> Result<(), DeviceError> {
        let page = record_of(&self.record)?;
        let recipient = Recipient::read(&page);
        let Recipient { device, chain } = recipient.map_err(|error| {
            let advice = "give a device-K.bin of `smolfed provision --infer`";
            refused(&self.record, format!("{error}; {advice}"))
        })?;
        drop(page);
        let slots = open_slots(&self.slots, &self.accepted)?;
        let mut receiver = Receiver::new(device, chain, UnwrapErr(SysRng), slots);
        receiver.set_window(WINDOW);
        self.tell(&receiver);
        let mut listener = self.direction.listener(self.transport)?;
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        loop {
            let opened = self.direction.open(listener.as_deref_mut(), self.transport);
            match opened.await {
                Ok(mut transport) => {
                    match self.talk(&mut receiver, &mut *transport).await {
                        Ok(()) => return Ok(()),
                        Err(Interruption::Connection) => {}
                        Err(Interruption::Device(error)) => return Err(error),
                    }
                    (back_off, is_reported) = (BackOff::new(), false);
                }
                Err(error) if !is_reported => {
                    let address = self.direction.address();
                    let why = address.why(&error);
                    (self.report)(device, format!("{address}: {why}; retrying"));
                    is_reported = true;
                }
                Err(_) => {}
            }
            sleep(back_off.next_pause()).await;
        }
    }

    fn tell(&self, receiver: &InferReceiver) {
        let sentence = match receiver.version() {
            0 => "no model yet".to_owned(),
            version => format!("version {version}"),
        };
        (self.report)(receiver.device(), sentence);
    }

    /// Saves and reports a version that was installed since `before`, and reports a refusal.
    fn follow(
        &self,
        receiver: &mut InferReceiver,
        before: (u32, Phase),
    ) -> Result<(), DeviceError> {
        if receiver.version() != before.0 {
            save_slots(&self.slots, receiver.slots())?;
            self.tell(receiver);
        }
        let sentence = match (receiver.phase(), receiver.refused()) {
            (phase, _) if phase == before.1 => return Ok(()),
            (Phase::Refused(why), _) => format!("refused by the service: {why}"),
            (Phase::Idle, Some((version, error))) => {
                format!("version {version} is refused: {error}")
            }
            _ => return Ok(()),
        };
        let device = receiver.device();
        if self.once {
            return Err(DeviceError::Stopped(format!("device {device}: {sentence}")));
        }
        (self.report)(device, sentence);
        Ok(())
    }

    /// Moves bytes between a connection and the receiver, until it breaks, or the device has the
    /// offered version and needs no other.
    async fn talk(
        &self,
        receiver: &mut InferReceiver,
        transport: &mut dyn Transport,
    ) -> Result<(), Interruption> {
        // A zero ends truncated frames, in both directions. A new connection is a new session.
        self.link.write(transport, &[0]).await?;
        receiver.reconnect();
        let (mut factor, mut last_received) = (1, Instant::now());
        let mut timer = pin!(sleep_until(last_received));
        let mut buffer = [0; READ_BYTES];
        loop {
            while !receiver.outgoing().is_empty() {
                self.link.write(transport, receiver.outgoing()).await?;
                receiver.sent();
            }
            if self.once && receiver.phase() == Phase::Idle {
                return Ok(());
            }
            let idle_end = last_received + self.link.idle_timeout();
            let due = Instant::now() + self.link.invite_pause * factor;
            timer.as_mut().reset(due.min(idle_end));
            let count = tokio::select! {
                () = &mut timer => None,
                read = transport.read(&mut buffer) => Some(read?),
            };
            let Some(count) = count else {
                if last_received.elapsed() >= self.link.idle_timeout() {
                    return Err(Interruption::Connection);
                }
                receiver.timeout();
                factor = (2 * factor).min(MAX_FACTOR);
                continue;
            };
            if count == 0 {
                return Err(Interruption::Connection);
            }
            (factor, last_received) = (1, Instant::now());
            let mut rest = buffer.get(..count).unwrap_or_default();
            while !rest.is_empty() {
                let before = (receiver.version(), receiver.phase());
                let taken = receiver.receive(rest).max(1);
                rest = rest.get(taken..).unwrap_or_default();
                // Before the device names a version to the service.
                self.follow(receiver, before)?;
                while !receiver.outgoing().is_empty() {
                    self.link.write(transport, receiver.outgoing()).await?;
                    receiver.sent();
                }
            }
        }
    }
}

type InferReceiver = Receiver<Image<Vec<u8>>, UnwrapErr<SysRng>>;

/// What ends a conversation early.
enum Interruption {
    /// The connection broke. Connections end at any time, so this is not reported.
    Connection,
    /// The device cannot continue.
    Device(DeviceError),
}

impl From<io::Error> for Interruption {
    fn from(_: io::Error) -> Self {
        Self::Connection
    }
}

impl From<DeviceError> for Interruption {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}
