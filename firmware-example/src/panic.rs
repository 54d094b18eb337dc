//! What happens at a panic: the emulation ends with a failure. The client has none:
//! `tests/firmware.rs` builds it with the feature `no-panic`.

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    crate::host::give_up(c"panic")
}
