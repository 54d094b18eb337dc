//! The serial line (UART): received bytes go from the interrupt to the main loop through a queue of
//! fixed size. The main loop sees a byte stream with the traits of `embedded-io`.
#![expect(unsafe_code, reason = "each end of the queue has one owner")]

use core::cell::UnsafeCell;
use core::convert::Infallible;

use embedded_io::{ErrorType, Read, ReadReady, Write};
use heapless::spsc::{Consumer, Producer, Queue};

use crate::board;

/// Slots of the queue, one of which is always free. 63 bytes are more than a line of 115,200 baud
/// delivers while a Cortex-M0 at 16 MHz opens the longest frame: 4.3 ms, or 50 bytes. A coordinator
/// that waits for an update rarely sends. Bytes received during the sending of a frame or a long
/// computation of features may be lost, and are repeated. 512 slots would hold a whole frame. A
/// power of two, so that an index wraps around without a division.
const PLACES: usize = 64;

/// Both ends of the queue of received bytes.
struct Ends {
    interrupt: UnsafeCell<Producer<'static, u8>>,
    main_loop: UnsafeCell<Consumer<'static, u8>>,
}

// SAFETY: each end has one owner at a time, as `producer` and `Serial::new` require.
unsafe impl Sync for Ends {}

/// A static, not a field of `Serial`, so that the compiler knows the length of the queue.
static ENDS: Ends = {
    static mut QUEUE: Queue<u8, PLACES> = Queue::new();
    // SAFETY: only these ends can name the queue.
    let (producer, consumer) = unsafe { (*&raw mut QUEUE).split_const() };
    Ends {
        interrupt: UnsafeCell::new(producer),
        main_loop: UnsafeCell::new(consumer),
    }
};

/// Returns the queue's end for the interrupt, which adds received bytes while it is `ready`.
/// Without room, bytes wait in the UART until [`board::resume`]. If the UART overflows, bytes are
/// lost and the frame's checksum detects it.
///
/// # Safety
/// No end from an earlier call may exist: only the serial line's handler calls this, once.
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
    /// There must be no other `Serial`.
    pub unsafe fn new() -> Self {
        Self(())
    }

    fn received(&mut self) -> &mut Consumer<'static, u8> {
        // SAFETY: there is only one `Serial`, and it is borrowed for as long as the end is.
        unsafe { &mut *ENDS.main_loop.get() }
    }

    /// Returns whether a byte is waiting.
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
    // Inlined, it deepens the stack of `Session::exchange` by eight bytes on a Cortex-M0.
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
