//! The loop of a device: bytes from a connection to the session, and back. What firmware does with a
//! UART is done here with a socket.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use embedded_storage::nor_flash::NorFlash;
use rand_core::Rng;
use smolfed_core::model::Model;
use smolfed_core::samples::Samples;
use smolfed_core::session::{Phase, Session};

use crate::coordinator::address::{Transport, read_some, write_all};

/// Silence after which the device repeats what waits for an answer.
pub const REPEAT_AFTER: Duration = Duration::from_millis(500);

/// Silence after which a connection is given up between two rounds: the other end may be gone without
/// a word.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(600);

/// What happens to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session stands.
    Connected,
    /// It has trained, and sends its update.
    Trained {
        /// Participations so far, this one included.
        participations: u32,
    },
    /// The coordinator has the update, or the round is over.
    Idle,
    /// The coordinator does not work with this device.
    Refused(Phase),
}

/// Talks on one connection until it breaks or `stop` is set; `report` is told what happens.
///
/// # Errors
/// Why the connection broke.
pub fn talk<M: Model, F: NorFlash, R: Rng>(
    session: &mut Session<'_, M, F, R>,
    samples: &impl Samples<Target = M::Target>,
    transport: &mut dyn Transport,
    stop: &AtomicBool,
    report: &mut dyn FnMut(Event),
) -> io::Result<()> {
    let mut phase = session.phase();
    let mut buffer = [0; 1024];
    // Whatever was torn ends here, both ways; what waits for an answer is said on the new connection.
    write_all(transport, &[0])?;
    session.receive(&[0]);
    session.timeout();
    // Bytes that lead to nothing do not put off what is to be repeated.
    let (mut said, mut heard) = (Instant::now(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        if speak(session, transport)? {
            said = Instant::now();
        }
        let read = read_some(transport, &mut buffer)?;
        let mut rest = buffer.get(..read).unwrap_or_default();
        if read > 0 {
            heard = Instant::now();
        } else if heard.elapsed() >= GIVE_UP_AFTER {
            return Err(io::ErrorKind::TimedOut.into());
        }
        while !rest.is_empty() {
            let taken = session.receive(rest);
            rest = rest.get(taken..).unwrap_or_default();
            if session.phase() == Phase::Training {
                session.train(samples);
            }
            if speak(session, transport)? {
                said = Instant::now();
            }
        }
        if said.elapsed() >= REPEAT_AFTER {
            said = Instant::now();
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

/// Sends what is to be sent; says whether there was anything.
fn speak<M: Model, F: NorFlash, R: Rng>(
    session: &mut Session<'_, M, F, R>,
    transport: &mut dyn Transport,
) -> io::Result<bool> {
    let is_something = !session.outgoing().is_empty();
    write_all(transport, session.outgoing())?;
    session.sent();
    Ok(is_something)
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
