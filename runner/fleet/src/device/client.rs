//! The main loop of a device, which moves bytes between a connection and the session like firmware
//! between a UART and the session.

use std::io;
use std::pin::pin;

use embedded_storage::nor_flash::NorFlash;
use smolfed_core::personal::store::BlockingStore;
use smolfed_core::samples::Samples;
use smolfed_core::session::{Greeter, Phase, Session, Trainable};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::awake::Awake;
use super::held::HeldFile;
use super::pace::Pace;
use crate::link::Link;
use crate::transport::Transport;

/// Bytes per read: a few frames.
const READ_BYTES: usize = 1024;

/// Event of a device.
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
    /// The file of its updates cannot be read or written, so a restart loses the update.
    NotHeld,
    /// The coordinator refused the device.
    Refused(Phase),
}

/// Sleep settings of a device.
#[derive(Debug, Default)]
pub struct Sleep {
    /// The wake, and its end.
    pub awake: Option<(Awake, Instant)>,
    /// The file in which its updates survive sleep.
    pub held: Option<HeldFile>,
}

/// Takes part in rounds over one connection, until it breaks or `stop` is cancelled.
///
/// # Errors
/// The reason why the connection broke.
pub async fn exchange<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
    session: &mut Session<'_, M, F, R, K>,
    samples: &impl Samples<Target = M::Target>,
    transport: &mut dyn Transport,
    sleep: &mut Sleep,
    pace: &mut Pace,
    stop: &CancellationToken,
    report: &mut dyn FnMut(Event),
) -> io::Result<()> {
    let mut phase = session.phase();
    // A zero ends truncated frames, in both directions. The last frame is repeated.
    let link = *pace.link();
    link.write(transport, &[0]).await?;
    session.receive(&[0]);
    session.timeout();
    pace.connected(phase);
    let mut last_received = Instant::now();
    let mut timer = pin!(sleep_until(last_received));
    let mut buffer = [0; READ_BYTES];
    while !stop.is_cancelled() {
        pace.sent(send(session, transport, &link).await?, session.phase());
        let now = session.phase();
        if let Some(event) = event(phase, now, session.ledger().past().participations) {
            report(event);
        }
        phase = now;
        let idle_end = last_received + link.idle_timeout();
        timer
            .as_mut()
            .reset(pace.due(phase).map_or(idle_end, |due| due.min(idle_end)));
        let read = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = &mut timer => None,
            read = transport.read(&mut buffer) => Some(read?),
        };
        let Some(read) = read else {
            if last_received.elapsed() >= link.idle_timeout() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            session.timeout();
            let greets_anew = phase.is_in_round() && !session.phase().is_in_round();
            let sent = send(session, transport, &link).await?;
            match greets_anew {
                true => {
                    pace.connected(session.phase());
                    pace.sent(sent, session.phase());
                }
                false => pace.repeated(),
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
            let (taken, heard) = session.hear(rest);
            pace.received(taken, heard);
            rest = rest.get(taken..).unwrap_or_default();
            if session.phase() == Phase::Training {
                session.train(samples);
                // Before sending any of it.
                hold(session, sleep, report);
            }
            let sent = send(session, transport, &link).await?;
            pace.sent(sent, session.phase());
        }
        if let Some(held) = &mut sleep.held {
            // A file that cannot be removed now is removed later.
            let _ = held.release(session);
        }
    }
    Ok(())
}

/// Saves the update to the file that survives sleep, if there is one.
fn hold<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
    session: &mut Session<'_, M, F, R, K>,
    sleep: &mut Sleep,
    report: &mut dyn FnMut(Event),
) {
    if let Some(held) = &mut sleep.held
        && held.hold(session).is_err()
    {
        report(Event::NotHeld);
    }
}

/// Sends the session's pending bytes. Returns their number.
async fn send<M: Trainable, F: NorFlash, R: Greeter, K: BlockingStore>(
    session: &mut Session<'_, M, F, R, K>,
    transport: &mut dyn Transport,
    link: &Link,
) -> io::Result<usize> {
    // Several frames go out in one write if a session has a window.
    let mut bytes = Vec::new();
    while !session.outgoing().is_empty() {
        bytes.extend_from_slice(session.outgoing());
        session.sent();
    }
    if !bytes.is_empty() {
        link.write(transport, &bytes).await?;
    }
    Ok(bytes.len())
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
