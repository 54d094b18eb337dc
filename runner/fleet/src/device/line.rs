//! The connection of a device to its coordinator, which reconnects whenever it breaks: attempts,
//! time awake, and the messages about it.

use std::io;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::personal::store::BlockingStore;
use smolfed_core::samples::Samples;
use smolfed_core::session::{Greeter, Phase, Session, Trainable};
use tokio::time::{Instant, sleep as pause, sleep_until};
use tokio_util::sync::CancellationToken;

use super::DeviceError;
use super::awake::Awake;
use super::client::{Event, Sleep, exchange};
use super::held::HeldFile;
use super::pace::Pace;
use crate::backoff::BackOff;
use crate::link::Link;
use crate::transport::{Address, Listener, Options, Transport, accept};

/// Chunks requested or sent before an answer: 4 KiB, which any socket holds.
const WINDOW: u8 = 16;

/// Display for the events of devices.
pub trait Watcher: Sync {
    /// Shows an event of a device that may take part `budget` times.
    fn note(&self, device: u32, budget: u32, event: Event);

    /// Shows a sentence about a device.
    fn print(&self, sentence: String);
}

/// Direction in which a connection is made.
#[derive(Clone, Debug)]
pub enum Direction {
    /// The device connects to the coordinator.
    Connect(Address),
    /// The device accepts connections from the coordinator.
    Listen(Address),
}

impl Direction {
    pub(crate) fn address(&self) -> &Address {
        match self {
            Self::Connect(address) | Self::Listen(address) => address,
        }
    }

    /// Returns the listener of a device that accepts connections.
    pub(crate) fn listener(
        &self,
        options: &Options,
    ) -> Result<Option<Box<dyn Listener>>, DeviceError> {
        let Self::Listen(address) = self else {
            return Ok(None);
        };
        let listener = address.listen(options);
        listener
            .map(Some)
            .map_err(|error| DeviceError::Stopped(format!("cannot listen at {address}: {error}")))
    }

    /// Returns the next connection.
    pub(crate) async fn open(
        &self,
        listener: Option<&mut (dyn Listener + 'static)>,
        options: &Options,
    ) -> io::Result<Box<dyn Transport>> {
        match listener {
            Some(listener) => accept(listener).await?.opening.await,
            None => self.address().connect(options).await,
        }
    }
}

/// Connection settings of a device.
#[derive(Clone)]
pub struct LineOptions<'a> {
    /// The coordinator's address, or the device's.
    pub direction: &'a Direction,
    /// Credentials and time limits of connections.
    pub transport: &'a Options,
    /// Speed of the link.
    pub link: Link,
    /// Whether to end when the coordinator closes the connection.
    pub once: bool,
    /// End of the wake, and the speed until then.
    pub awake: Option<Awake>,
    /// Display for the events.
    pub watcher: &'a dyn Watcher,
}

impl std::fmt::Debug for LineOptions<'_> {
    /// Only the direction, since the options have credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LineOptions").field(self.direction).finish()
    }
}

/// The connection of one device.
pub(super) struct Line<'a> {
    pub(super) options: &'a LineOptions<'a>,
    pub(super) device: u32,
    pub(super) budget: u32,
    pub(super) stop: &'a CancellationToken,
}

impl Line<'_> {
    /// Takes part in rounds until `stop` is cancelled, or the device goes to sleep. `held` is the
    /// file of its updates, if any.
    pub(super) async fn take_part<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
        &self,
        mut session: Session<'_, M, F, R, K>,
        samples: &impl Samples<Target = M::Target>,
        held: Option<HeldFile>,
    ) -> Result<(), DeviceError> {
        let begin = Instant::now();
        let awake = self.options.awake;
        let awake = awake.map(|awake| (awake, begin + awake.duration));
        match held.as_ref().map(|held| held.resume(&mut session)) {
            Some(Ok(Some(round))) => self.note(Event::Resumed { round }),
            Some(Err(_)) => self.note(Event::NotHeld),
            Some(Ok(None)) | None => {}
        }
        let end = awake.map_or(begin, |(_, end)| end);
        let sleep = Sleep { awake, held };
        tokio::select! {
            () = sleep_until(end), if awake.is_some() => Ok(()),
            result = self.take_part_awake(session, samples, sleep) => result,
        }
    }

    fn note(&self, event: Event) {
        self.options.watcher.note(self.device, self.budget, event);
    }

    async fn take_part_awake<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
        &self,
        mut session: Session<'_, M, F, R, K>,
        samples: &impl Samples<Target = M::Target>,
        mut sleep: Sleep,
    ) -> Result<(), DeviceError> {
        session.set_window(WINDOW);
        let LineOptions {
            direction, watcher, ..
        } = *self.options;
        let mut listener = direction.listener(self.options.transport)?;
        let (mut back_off, mut is_reported) = (BackOff::new(), false);
        let mut has_greeted = false;
        // Measurements on a connection also apply to the next one.
        let mut pace = Pace::new(self.options.link);
        while !self.stop.is_cancelled() {
            let opened = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                opened = direction.open(listener.as_deref_mut(), self.options.transport) => opened,
            };
            match opened {
                Ok(mut transport) => {
                    let mut report = |event| self.note(event);
                    let (session, stop) = (&mut session, self.stop);
                    let (transport, sleep) = (&mut *transport, &mut sleep);
                    let ended = exchange(
                        session,
                        samples,
                        transport,
                        sleep,
                        &mut pace,
                        stop,
                        &mut report,
                    );
                    // Connections end at any time. This is not reported.
                    let _ = ended.await;
                    self.report_tls(session.phase(), &mut has_greeted);
                    if self.options.once {
                        return Ok(());
                    }
                    (back_off, is_reported) = (BackOff::new(), false);
                }
                Err(error) if !is_reported => {
                    let (device, address) = (self.device, direction.address());
                    let why = address.why(&error);
                    watcher.print(format!("device {device}: {address}: {why}; retrying"));
                    is_reported = true;
                }
                Err(_) => {}
            }
            tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                () = pause(back_off.next_pause()) => {}
            }
        }
        Ok(())
    }

    /// Explains once why a device may get no answer from an open port.
    fn report_tls(&self, phase: Phase, has_greeted: &mut bool) {
        let is_first = !std::mem::replace(has_greeted, true);
        if let Direction::Connect(address) = self.options.direction
            && address.scheme() == "tcp"
            && is_first
            && !self.stop.is_cancelled()
            && phase == Phase::Greeting
        {
            let device = self.device;
            self.options.watcher.print(format!(
                "device {device}: {address}: the connection was closed before a session was \
                 opened; if the coordinator listens at a tls: address, connect with tls:; retrying"
            ));
        }
    }
}
