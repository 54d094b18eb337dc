//! What happens at a panic: nothing more. The client has none (`tests/firmware.rs`).

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}
