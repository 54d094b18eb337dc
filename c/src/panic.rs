//! The panic handler of a machine without an operating system, which calls `sf_panic` of the
//! firmware.

unsafe extern "C" {
    /// See the header.
    safe fn sf_panic();
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        sf_panic();
    }
}
