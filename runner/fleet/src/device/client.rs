//! The main loop of a device: bytes between a connection and the session, as firmware moves them
//! between a UART and the session.

use std::io;
use std::pin::pin;
use std::time::Duration;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::personal::store::BlockingStore;
use smolfed_core::samples::Samples;
use smolfed_core::session::{Greeter, Phase, Session, Trainable};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::awake::Awake;
use super::held::HeldFile;
use crate::transport::Transport;

/// Silence after which the device repeats its last frame; then twice as long, up to the maximum.
const REPEAT_AFTER: Duration = Duration::from_millis(500);
const MAX_REPEAT_AFTER: Duration = Duration::from_secs(8);

/// How long a frame may take to be written: a serial line of 9,600 baud needs 0.3 s for one.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes that are read at a time: a few frames.
const READ_BYTES: usize = 1024;

/// Silence after which a connection is closed, also between rounds: the peer may have disappeared
/// unnoticed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// What happened to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session is established.
    Connected,
    /// It has trained and sends its update.
    Trained {
        /// Participations so far, this one included.
        participations: u32,
    },
    /// The coordinator has received the update, or the round is over.
    Idle,
    /// It has the update of this round from before its last restart.
    Resumed {
        /// The number of the round.
        round: u32,
    },
    /// The file of its updates cannot be read or written: a restart loses the update.
    NotHeld,
    /// The coordinator refused the device.
    Refused(Phase),
}

/// A device that sleeps.
#[derive(Debug, Default)]
pub struct Sleep {
    /// The wake, and its end.
    pub awake: Option<(Awake, Instant)>,
    /// Where its updates outlive sleep.
    pub held: Option<HeldFile>,
}

/// Takes part in rounds over one connection, until it breaks or `stop` is cancelled.
///
/// # Errors
/// Why the connection broke.
pub async fn exchange<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
    session: &mut Session<'_, M, F, R, K>,
    samples: &impl Samples<Target = M::Target>,
    transport: &mut dyn Transport,
    sleep: &mut Sleep,
    stop: &CancellationToken,
    report: &mut dyn FnMut(Event),
) -> io::Result<()> {
    let mut phase = session.phase();
    // A zero ends frames that were cut short, in both directions; the last frame is repeated.
    write(transport, &[0]).await?;
    session.receive(&[0]);
    session.timeout();
    // Received bytes do not postpone the repetition: they may belong to no valid frame.
    let mut repetition = Repetition::new();
    // Whether a session goes on from another connection, and its coordinator may have restarted.
    let mut is_in_doubt = is_in_round(phase);
    let mut last_received = Instant::now();
    let mut timer = pin!(sleep_until(last_received));
    let mut buffer = [0; READ_BYTES];
    while !stop.is_cancelled() {
        if send(session, transport).await? {
            repetition = Repetition::new();
        }
        let now = session.phase();
        if let Some(event) = event(phase, now, session.ledger().past().participations) {
            report(event);
        }
        phase = now;
        let idle_end = last_received + IDLE_TIMEOUT;
        let due = repetition
            .due(phase)
            .map_or(idle_end, |due| due.min(idle_end));
        timer.as_mut().reset(due);
        let read = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = &mut timer => None,
            read = transport.read(&mut buffer) => Some(read?),
        };
        let Some(read) = read else {
            if last_received.elapsed() >= IDLE_TIMEOUT {
                return Err(io::ErrorKind::TimedOut.into());
            }
            session.timeout();
            if send(session, transport).await? {
                is_in_doubt &= is_in_round(session.phase());
                repetition.repeated(is_in_doubt);
            }
            continue;
        };
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        last_received = Instant::now();
        let mut rest = buffer.get(..read).unwrap_or_default();
        while !rest.is_empty() {
            if let Some((awake, end)) = &sleep.awake {
                session.set_awake(awake.left(*end, sleep.held.is_some()));
            }
            let taken = session.receive(rest);
            rest = rest.get(taken..).unwrap_or_default();
            if session.phase() == Phase::Training {
                session.train(samples);
                // Before any of it is sent.
                if let Some(held) = &mut sleep.held
                    && held.hold(session).is_err()
                {
                    report(Event::NotHeld);
                }
            }
            if send(session, transport).await? {
                repetition = Repetition::new();
                is_in_doubt = false;
            }
        }
        if let Some(held) = &mut sleep.held {
            // What cannot be removed now is removed later.
            let _ = held.release(session);
        }
    }
    Ok(())
}

/// Whether the device waits for an answer in a session: a [`Phase::Greeting`] goes on anywhere.
const fn is_in_round(phase: Phase) -> bool {
    matches!(
        phase,
        Phase::Ready | Phase::Receiving | Phase::Training | Phase::Sending
    )
}

/// When the last frame is repeated: pauses grow, so that a coordinator that is behind is not asked
/// ever more often, and they vary, so that devices which lost their answers together do not ask
/// together again.
struct Repetition {
    sent: Instant,
    pause: Duration,
}

impl Repetition {
    fn new() -> Self {
        Self {
            sent: Instant::now(),
            pause: varied(REPEAT_AFTER),
        }
    }

    /// A coordinator that has restarted answers nothing: while that may be so the pause stays,
    /// and after a few repetitions, which the session counts, the device greets again.
    fn repeated(&mut self, is_in_doubt: bool) {
        let longer = match is_in_doubt {
            true => REPEAT_AFTER,
            false => (2 * self.pause).min(MAX_REPEAT_AFTER),
        };
        *self = Self {
            sent: Instant::now(),
            pause: varied(longer),
        };
    }

    /// When the next repetition is due; `None` where a session has nothing to repeat.
    fn due(&self, phase: Phase) -> Option<Instant> {
        let is_silent = matches!(phase, Phase::Idle | Phase::Refused(_));
        (!is_silent).then(|| self.sent + self.pause)
    }
}

/// Up to an eighth more or less.
fn varied(pause: Duration) -> Duration {
    let mut byte = [0];
    // Without entropy the pause is as it is.
    let _ = getrandom::fill(&mut byte);
    pause.mul_f64(0.875 + f64::from(byte[0]) / 1024.0)
}

/// Sends what the session has to send; returns whether there was anything.
async fn send<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
    session: &mut Session<'_, M, F, R, K>,
    transport: &mut dyn Transport,
) -> io::Result<bool> {
    // Several frames go out in one write, where a session has a window.
    let mut bytes = Vec::new();
    while !session.outgoing().is_empty() {
        bytes.extend_from_slice(session.outgoing());
        session.sent();
    }
    if bytes.is_empty() {
        return Ok(false);
    }
    write(transport, &bytes).await?;
    Ok(true)
}

async fn write(transport: &mut dyn Transport, bytes: &[u8]) -> io::Result<()> {
    let write = async {
        transport.write_all(bytes).await?;
        transport.flush().await
    };
    let written = timeout(WRITE_TIMEOUT, write).await;
    written.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

fn event(before: Phase, now: Phase, participations: u32) -> Option<Event> {
    if before == now {
        return None;
    }
    match (before, now) {
        (_, Phase::Ready) => Some(Event::Connected),
        (Phase::Greeting, Phase::Idle) => Some(Event::Connected),
        (_, Phase::Sending) => Some(Event::Trained { participations }),
        (Phase::Sending, Phase::Idle) => Some(Event::Idle),
        (_, Phase::Refused(_)) => Some(Event::Refused(now)),
        _ => None,
    }
}
