//! The serial line: received bytes go from the interrupt to the main loop through a ring, and the
//! main loop sees a byte stream with the traits of `embedded-io`.

use core::convert::Infallible;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use embedded_io::{ErrorType, Read, ReadReady, Write};

use crate::board;

/// Bytes that wait at most: more than a line of 115,200 baud brings while a Cortex-M0 of 16 MHz
/// opens the longest frame, which takes 4.3 ms, or 50 bytes. A coordinator that waits for an update
/// seldom has anything to say. What comes while a frame goes out, or while features are computed
/// for long, may be lost, and comes again; 256 would keep a whole frame.
const WAITING: usize = 64;

/// Received bytes: the interrupt puts, the main loop takes.
pub static RECEIVED: Ring = Ring::new();

/// A queue between one producer and one consumer, without locks: each index has one writer.
pub struct Ring {
    bytes: [AtomicU8; WAITING],
    /// Bytes put so far, and taken so far. Both wrap around together.
    put: AtomicU32,
    taken: AtomicU32,
}

impl Ring {
    const fn new() -> Self {
        Self {
            bytes: [const { AtomicU8::new(0) }; WAITING],
            put: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    fn place(&self, number: u32) -> Option<&AtomicU8> {
        self.bytes.get(number as usize % WAITING)
    }

    /// For the interrupt: whether there is room. Without it, bytes wait in the UART until
    /// [`board::resume`]; what that has no room for is lost, and the frame's checksum will tell.
    pub fn has_room(&self) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        put.wrapping_sub(self.taken.load(Ordering::Acquire)) < WAITING as u32
    }

    /// For the interrupt, while there is room.
    pub fn put(&self, byte: u8) {
        let put = self.put.load(Ordering::Relaxed);
        if let Some(place) = self.place(put) {
            place.store(byte, Ordering::Relaxed);
        }
        self.put.store(put.wrapping_add(1), Ordering::Release);
    }

    /// For the main loop.
    pub fn take(&self) -> Option<u8> {
        let taken = self.taken.load(Ordering::Relaxed);
        if self.is_empty() {
            return None;
        }
        let byte = self.place(taken)?.load(Ordering::Relaxed);
        self.taken.store(taken.wrapping_add(1), Ordering::Release);
        Some(byte)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.put.load(Ordering::Acquire) == self.taken.load(Ordering::Relaxed)
    }
}

/// The board's serial line.
pub struct Serial;

impl ErrorType for Serial {
    type Error = Infallible;
}

impl ReadReady for Serial {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        Ok(!RECEIVED.is_empty())
    }
}

impl Read for Serial {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        while RECEIVED.is_empty() && !bytes.is_empty() {
            board::sleep_unless(|| !RECEIVED.is_empty());
        }
        let mut count = 0;
        for (place, byte) in bytes
            .iter_mut()
            .zip(core::iter::from_fn(|| RECEIVED.take()))
        {
            *place = byte;
            count += 1;
        }
        board::resume();
        Ok(count)
    }
}

impl Write for Serial {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        for byte in bytes {
            let mut sent = board::transmit(*byte);
            while !sent {
                board::sleep_unless(|| {
                    sent = board::transmit(*byte);
                    sent
                });
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}
