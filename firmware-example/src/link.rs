//! The serial line: received bytes go from the interrupt to the main loop through a queue, and the
//! main loop sees a byte stream with the traits of `embedded-io`.
#![expect(unsafe_code, reason = "each end of the queue has one owner")]

use core::cell::UnsafeCell;
use core::convert::Infallible;

use embedded_io::{ErrorType, Read, ReadReady, Write};
use heapless::spsc::{Consumer, Producer, Queue};

use crate::board;

/// Places of the queue, one of which is always free: 63 bytes are more than a line of 115,200 baud
/// brings while a Cortex-M0 of 16 MHz opens the longest frame, which takes 4.3 ms, or 50 bytes. A
/// coordinator that waits for an update seldom has anything to say. What comes while a frame goes
/// out, or while features are computed for long, may be lost, and comes again; 512 would keep a
/// whole frame. A power of two, so that an index wraps around without a division.
const PLACES: usize = 64;

/// Both ends of the queue of received bytes.
struct Ends {
    interrupt: UnsafeCell<Producer<'static, u8>>,
    main_loop: UnsafeCell<Consumer<'static, u8>>,
}

// SAFETY: each end is in the hands of one owner at a time: `producer` and `Serial::new` demand it.
unsafe impl Sync for Ends {}

/// A static, and no field of `Serial`: so the compiler knows how long the queue is.
static ENDS: Ends = {
    static mut QUEUE: Queue<u8, PLACES> = Queue::new();
    // SAFETY: nothing but these ends can name the queue.
    let (producer, consumer) = unsafe { (*&raw mut QUEUE).split_const() };
    Ends {
        interrupt: UnsafeCell::new(producer),
        main_loop: UnsafeCell::new(consumer),
    }
};

/// For the interrupt: where it puts what it receives, while that is `ready`. Without room, bytes
/// wait in the UART until [`board::resume`]; what that has no room for is lost, and the frame's
/// checksum will tell.
///
/// # Safety
/// Nobody has the end of an earlier call: only the handler of the serial line calls this, once.
pub(crate) unsafe fn producer() -> &'static mut Producer<'static, u8> {
    // SAFETY: the caller's promise.
    unsafe { &mut *ENDS.interrupt.get() }
}

/// The board's serial line, for the main loop.
pub struct Serial(());

impl Serial {
    /// Takes the line.
    ///
    /// # Safety
    /// There is no other one.
    pub unsafe fn new() -> Self {
        Self(())
    }

    fn received(&mut self) -> &mut Consumer<'static, u8> {
        // SAFETY: there is one `Serial`, and it is borrowed as long as the end is.
        unsafe { &mut *ENDS.main_loop.get() }
    }

    /// Whether a byte waits.
    pub fn has_received(&mut self) -> bool {
        self.received().ready()
    }
}

impl ErrorType for Serial {
    type Error = Infallible;
}

impl ReadReady for Serial {
    fn read_ready(&mut self) -> Result<bool, Infallible> {
        Ok(self.has_received())
    }
}

impl Read for Serial {
    // In line, it makes the stack of `Session::exchange` eight bytes deeper on a Cortex-M0.
    #[inline(never)]
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Infallible> {
        while !self.has_received() && !bytes.is_empty() {
            board::sleep_unless(|| self.has_received());
        }
        let received = self.received();
        let mut count = 0;
        for (place, byte) in bytes
            .iter_mut()
            .zip(core::iter::from_fn(|| received.dequeue()))
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
