//! The main loop of a device: bytes between a connection and the session, as firmware moves them
//! between a UART and the session.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;
use smolfed_core::model::Model;
use smolfed_core::samples::Samples;
use smolfed_core::session::{Phase, Session};

use crate::fleet::transport::{Transport, read_some, write_all};

/// Silence after which the device repeats its last frame.
const REPEAT_AFTER: Duration = Duration::from_millis(500);

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
    /// The coordinator refused the device.
    Refused(Phase),
}

/// Takes part in rounds over one connection, until it breaks or `stop` is set.
///
/// # Errors
/// Why the connection broke.
pub fn exchange<M: Model, F: NorFlash, R: Rng>(
    session: &mut Session<'_, M, F, R>,
    samples: &impl Samples<Target = M::Target>,
    transport: &mut dyn Transport,
    stop: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> io::Result<()> {
    let mut phase = session.phase();
    let mut buffer = [0; 1024];
    // A zero ends frames that were cut short, in both directions; the last frame is repeated.
    write_all(transport, &[0])?;
    session.receive(&[0]);
    session.timeout();
    // Received bytes do not postpone the repetition: they may belong to no valid frame.
    let (mut last_sent, mut last_received) = (Instant::now(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        if send(session, transport)? {
            last_sent = Instant::now();
        }
        let read = read_some(transport, &mut buffer)?;
        let mut rest = buffer.get(..read).unwrap_or_default();
        if read > 0 {
            last_received = Instant::now();
        } else if last_received.elapsed() >= IDLE_TIMEOUT {
            return Err(io::ErrorKind::TimedOut.into());
        }
        while !rest.is_empty() {
            let taken = session.receive(rest);
            rest = rest.get(taken..).unwrap_or_default();
            if session.phase() == Phase::Training {
                session.train(samples);
            }
            if send(session, transport)? {
                last_sent = Instant::now();
            }
        }
        if last_sent.elapsed() >= REPEAT_AFTER {
            last_sent = Instant::now();
            session.timeout();
        }
        let now = session.phase();
        if let Some(event) = event(phase, now, session.ledger().past().participations) {
            report(event);
        }
        phase = now;
    }
    Ok(())
}

/// Sends what the session has to send; returns whether there was anything.
fn send<M: Model, F: NorFlash, R: Rng>(
    session: &mut Session<'_, M, F, R>,
    transport: &mut dyn Transport,
) -> io::Result<bool> {
    let is_any = !session.outgoing().is_empty();
    while !session.outgoing().is_empty() {
        write_all(transport, session.outgoing())?;
        session.sent();
    }
    Ok(is_any)
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
