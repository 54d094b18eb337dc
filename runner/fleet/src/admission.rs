//! Which connections stay open: those of devices before those without a session.
//!
//! A connection *waits* until a device has opened a session on it. When all places are taken, a new
//! connection gets the place of one that waits: the oldest one of the source that has most of them.
//! So whoever opens many connections displaces their own, and an honest device, which greets
//! within a round trip, is gone from the list before its turn comes.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::peer::ConnectionId;

/// The places for connections.
#[derive(Debug)]
pub struct Admission {
    /// Places for connections with and without a session.
    places: usize,
    open: usize,
    /// Connections without a session by their source, the oldest one first. Transports without
    /// addresses share a source.
    waiting: BTreeMap<Option<IpAddr>, VecDeque<ConnectionId>>,
}

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has a place.
    Admitted,
    /// It has the place of this one, which is to be closed.
    Replaces(ConnectionId),
    /// All places have sessions.
    Full,
}

impl Admission {
    /// Free places.
    #[must_use]
    pub const fn new(places: usize) -> Self {
        Self {
            places,
            open: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// A new connection asks for a place.
    pub fn admit(&mut self, connection: ConnectionId, source: Option<IpAddr>) -> Verdict {
        let verdict = if self.open < self.places {
            self.open += 1;
            Verdict::Admitted
        } else {
            match self.displace() {
                Some(displaced) => Verdict::Replaces(displaced),
                None => return Verdict::Full,
            }
        };
        self.waiting
            .entry(source)
            .or_default()
            .push_back(connection);
        verdict
    }

    /// Takes its place from the oldest connection of the greediest source.
    fn displace(&mut self) -> Option<ConnectionId> {
        let greediest = self.waiting.iter().max_by_key(|(_, waiting)| waiting.len());
        let source = *greediest?.0;
        let waiting = self.waiting.get_mut(&source)?;
        let displaced = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&source);
        }
        displaced
    }

    /// A connection without a session was opened, or has lost its session.
    pub fn waits(&mut self, connection: ConnectionId, source: Option<IpAddr>) {
        self.waiting
            .entry(source)
            .or_default()
            .push_back(connection);
    }

    /// A device has opened a session on the connection: nobody displaces it. Whether it had waited.
    pub fn stop_waiting(&mut self, connection: ConnectionId, source: Option<IpAddr>) -> bool {
        let Some(waiting) = self.waiting.get_mut(&source) else {
            return false;
        };
        let before = waiting.len();
        waiting.retain(|other| *other != connection);
        let has_waited = waiting.len() < before;
        if waiting.is_empty() {
            self.waiting.remove(&source);
        }
        has_waited
    }

    /// The connection is closed. One that was displaced has given its place away before.
    pub fn close(&mut self, connection: ConnectionId, source: Option<IpAddr>, had_session: bool) {
        if self.stop_waiting(connection, source) || had_session {
            self.open -= 1;
        }
    }

    /// Open connections.
    #[must_use]
    pub const fn open(&self) -> usize {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(last: u8) -> Option<IpAddr> {
        Some([10, 0, 0, last].into())
    }

    #[test]
    fn the_greediest_source_makes_room() {
        let mut admission = Admission::new(4);
        let mut next = 0;
        let mut open = |admission: &mut Admission, from| {
            let id = ConnectionId(next);
            next += 1;
            (id, admission.admit(id, source(from)))
        };
        let (honest, _) = open(&mut admission, 1);
        for _ in 0..3 {
            assert_eq!(open(&mut admission, 2).1, Verdict::Admitted);
        }
        for displaced in 1..6 {
            let verdict = open(&mut admission, 2).1;
            assert_eq!(verdict, Verdict::Replaces(ConnectionId(displaced)));
        }
        // The honest one still has its place, and opens its session.
        assert!(admission.stop_waiting(honest, source(1)));
        assert_eq!(admission.open(), 4);
        // Another honest one displaces a greedy one too.
        let (second, verdict) = open(&mut admission, 1);
        assert_eq!(verdict, Verdict::Replaces(ConnectionId(6)));
        admission.close(second, source(1), false);
        admission.close(honest, source(1), true);
        assert_eq!(admission.open(), 2);
        // One that was displaced closes later: its place is not freed twice.
        admission.close(ConnectionId(1), source(2), false);
        assert_eq!(admission.open(), 2);
    }

    #[test]
    fn nobody_displaces_a_session() {
        let mut admission = Admission::new(1);
        let device = ConnectionId(0);
        assert_eq!(admission.admit(device, None), Verdict::Admitted);
        assert!(admission.stop_waiting(device, None));
        assert_eq!(admission.admit(ConnectionId(1), None), Verdict::Full);
        // Its session goes on elsewhere.
        admission.waits(device, None);
        let verdict = admission.admit(ConnectionId(2), None);
        assert_eq!(verdict, Verdict::Replaces(device));
    }
}
