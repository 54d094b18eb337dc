//! The session on an `embedded-io` stream.

use embedded_io::{ErrorType, Read, ReadReady, Write};

use super::*;

/// A line that takes and gives a few bytes at a time, and fails on demand.
#[derive(Default)]
struct Line {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    broken: bool,
}

impl ErrorType for Line {
    type Error = embedded_io::ErrorKind;
}

impl ReadReady for Line {
    fn read_ready(&mut self) -> Result<bool, Self::Error> {
        Ok(!self.incoming.is_empty())
    }
}

impl Read for Line {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Self::Error> {
        let count = self.incoming.len().min(bytes.len()).min(7);
        for (place, byte) in bytes.iter_mut().zip(self.incoming.drain(..count)) {
            *place = byte;
        }
        Ok(count)
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Self::Error> {
        if self.broken {
            return Err(embedded_io::ErrorKind::BrokenPipe);
        }
        let count = bytes.len().min(5);
        self.outgoing.extend(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[test]
fn a_round_goes_over_a_stream() {
    let mut board = board(policy(), ledger(), 0);
    let mut other = coordinator(3, noise());
    let (mut line, mut sensible) = (Line::default(), 0);
    board.timeout();
    while !other.done {
        let (features, targets) = data();
        sensible += u32::from(board.exchange(&mut line).unwrap());
        other.receive(&core::mem::take(&mut line.outgoing));
        if board.phase() == Phase::Training {
            assert!(
                !board.exchange(&mut line).unwrap(),
                "nothing before the training"
            );
            board.train(&SampleSlice::new(&features, &targets, FEATURES).unwrap());
        }
        if board.phase() == Phase::Idle && other.connected() {
            other.invite();
        }
        for bytes in core::mem::take(&mut other.outgoing) {
            line.incoming.extend(bytes);
        }
    }
    assert_eq!(other.integers, expected(3, &other.invitation));
    assert!(sensible > 3);

    // Invalid bytes are no progress, and the frame survives a failed line.
    line.incoming = vec![7; 100];
    assert_eq!(board.exchange(&mut line), Ok(false));
    assert!(line.incoming.is_empty());
    // A flood does not hold up the firmware: the rest waits for the next call.
    line.incoming = vec![7; 10_000];
    assert_eq!(board.exchange(&mut line), Ok(false));
    assert!(line.incoming.len() > 9_000);
    board.send(Answer::Hello);
    let greeting = board.outgoing().to_vec();
    line.broken = true;
    assert!(board.exchange(&mut line).is_err());
    line = Line::default();
    assert_eq!(board.exchange(&mut line), Ok(true));
    assert_eq!(line.outgoing, greeting);
}
