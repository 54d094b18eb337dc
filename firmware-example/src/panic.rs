//! What happens at a panic: nothing more. The client has none (`tests/boards/panics.rs`).

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}
