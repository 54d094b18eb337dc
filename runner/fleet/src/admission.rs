//! Admission of connections within a number of places, and the choice of the waiting connection
//! that is closed (displaced) if all are taken. Connections with a session have priority.
//!
//! A connection *waits* until a device has opened a session on it. When all places are taken, a new
//! connection gets the place of the oldest waiting connection of the source with the most waiting
//! connections. A client that opens many connections therefore displaces its own, and an honest
//! device, which greets within a round trip, leaves the list before its turn comes.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use super::peer::ConnectionId;

/// Connection places.
#[derive(Debug)]
pub struct Admission {
    /// Places for connections with and without a session.
    places: usize,
    open: usize,
    /// Connections without a session by their source, the oldest one first. Transports without
    /// addresses share a source.
    waiting: BTreeMap<Option<IpAddr>, VecDeque<ConnectionId>>,
}

/// Decision about a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It gets a free place.
    Admitted,
    /// It gets the place of this connection, which the caller must close.
    Replaces(ConnectionId),
    /// All places have sessions.
    Full,
}

impl Admission {
    /// Returns an admission with this many free places.
    #[must_use]
    pub const fn new(places: usize) -> Self {
        Self {
            places,
            open: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Asks for a place for a new connection.
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

    /// Takes the place of the oldest connection of the greediest source.
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

    /// Adds a connection without a session: a new one, or one that has lost its session.
    pub fn waits(&mut self, connection: ConnectionId, source: Option<IpAddr>) {
        self.waiting
            .entry(source)
            .or_default()
            .push_back(connection);
    }

    /// Notes that a device has opened a session on the connection, which now cannot be displaced.
    /// Returns whether the connection had waited.
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

    /// Notes that the connection is closed. A displaced one has already given up its place.
    pub fn close(&mut self, connection: ConnectionId, source: Option<IpAddr>, had_session: bool) {
        if self.stop_waiting(connection, source) || had_session {
            self.open -= 1;
        }
    }

    /// Returns the number of open connections.
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
        // A displaced connection closes later. Its place is not freed twice.
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
        // Its session continues elsewhere.
        admission.waits(device, None);
        let verdict = admission.admit(ConnectionId(2), None);
        assert_eq!(verdict, Verdict::Replaces(device));
    }
}
