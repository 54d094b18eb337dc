//! Panic handler, which only stops. The client does not panic (`tests/boards/panics.rs`).

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}
