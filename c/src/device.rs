//! Opening and closing of a device in memory of the caller (`sf_open`, `sf_close`), the bytes that
//! it needs (`sf_memory_bytes`), and the check for two calls at once.

use core::{
    cell::UnsafeCell,
    ffi::c_char,
    ptr::{self, NonNull},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use crate::{
    client::Client,
    config::sf_config,
    memory::{ALIGN, Layout, Memory},
    pointer,
    status::sf_status,
};

/// The first word of an open device.
const OPEN: u32 = 0x5346_4F31;

/// A device in memory of the caller.
pub struct sf_device {
    mark: AtomicU32,
    is_busy: AtomicBool,
    /// Of the call that has set the flag.
    client: UnsafeCell<&'static mut dyn Client>,
    /// The memory of all of it, which begins with this.
    memory: NonNull<u8>,
    bytes: usize,
}

/// Returns the bytes of memory that a device needs, or 0 if the configuration is wrong.
///
/// Interrupts: yes. Longest time: constant.
///
/// # Safety
/// Preconditions: `config` is null or points to a configuration. The function reads only the kind
/// and the sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_memory_bytes(config: *const sf_config) -> usize {
    // SAFETY: the caller's precondition.
    let layout = unsafe { pointer::slice(config, 1) }.and_then(|config| match config {
        [config] => layout(config),
        _ => Err(sf_status::SF_POINTER),
    });
    layout.ok().and_then(Layout::bytes).unwrap_or(0)
}

fn layout(config: &sf_config) -> Result<Layout, sf_status> {
    config.layout(Layout::EMPTY.with::<sf_device>(1))
}

/// Opens a device in memory of the caller. The first start begins the ledger.
///
/// It reads the ledger, four records of 64 bytes. The first start also erases a page, and writes
/// and reads two records. It waits for asynchronous flash.
///
/// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: that of the
/// flash, and three checksums of the record.
///
/// # Safety
/// Preconditions: `memory` has `bytes` bytes at a multiple of 8, as many as `sf_memory_bytes` says
/// or more, which are the device's until `sf_close`. Nobody copies or restores them. The contexts,
/// the functions and the bytes of the recipe stay until then as well. **No other open device has
/// the same ledger**, because two devices would spend one participation on two releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_open(
    memory: *mut u8,
    bytes: usize,
    config: *const sf_config,
    device: *mut *mut sf_device,
) -> sf_status {
    let open = || {
        // SAFETY: the caller's precondition.
        let [config] = (unsafe { pointer::slice(config, 1) })? else {
            return Err(sf_status::SF_POINTER);
        };
        config.check()?;
        let (layout, kind) = (layout(config)?, config.kind()?);
        // SAFETY: the caller's precondition.
        unsafe { place(memory, bytes, layout, |memory| (kind.open)(config, memory)) }
    };
    // SAFETY: the caller's precondition.
    unsafe { answer(device, open) }
}

/// Opens a device, and answers with it.
///
/// # Safety
/// `device` is null or has room for the answer.
pub(crate) unsafe fn answer(
    device: *mut *mut sf_device,
    open: impl FnOnce() -> Result<*mut sf_device, sf_status>,
) -> sf_status {
    // A device that nobody can close would keep the memory.
    if device.is_null() || !device.is_aligned() {
        return sf_status::SF_POINTER;
    }
    let (opened, status) = match open() {
        Ok(opened) => (opened, sf_status::SF_OK),
        Err(status) => (ptr::null_mut(), status),
    };
    // SAFETY: the caller's precondition.
    unsafe { pointer::answer(device, opened) };
    status
}

/// Opens a device with this layout in memory of the caller.
///
/// # Safety
/// `memory` has `bytes` bytes, which are the device's until it is closed.
pub(crate) unsafe fn place(
    memory: *mut u8,
    bytes: usize,
    layout: Layout,
    open: impl FnOnce(&mut Memory) -> Result<&'static mut dyn Client, sf_status>,
) -> Result<*mut sf_device, sf_status> {
    let needed = layout.bytes().ok_or(sf_status::SF_CONFIG)?;
    // SAFETY: the caller's precondition.
    let mut memory = unsafe { Memory::new(memory, bytes) }?;
    if bytes < needed {
        return Err(sf_status::SF_MEMORY);
    }
    const { assert!(align_of::<sf_device>() <= ALIGN) };
    let start = memory.start();
    let place = memory.place::<sf_device>()?;
    let client = match open(&mut memory) {
        Ok(client) => client,
        Err(status) => {
            // SAFETY: there are as many bytes, which nobody has any more. Keys may be in them.
            unsafe { start.write_bytes(0, needed) };
            return Err(status);
        }
    };
    let device = place.write(sf_device {
        mark: AtomicU32::new(0),
        is_busy: AtomicBool::new(false),
        client: UnsafeCell::new(client),
        memory: start,
        bytes: needed,
    });
    // Last, for an interrupt that asks where the device stands.
    device.mark.store(OPEN, Ordering::Release);
    // Not from the reference to the device, which ends when `sf_close` fills the memory with zeros:
    // a later call reads the mark.
    Ok(start.cast().as_ptr())
}

/// Closes a device. Its memory is filled with zeros and belongs to the caller again. The ledger
/// stays on its flash.
///
/// Interrupts: no, and no interrupt uses this device in the meantime. Longest time: grows with the
/// memory. It waits for asynchronous flash.
///
/// # Safety
/// Preconditions: as `sf_phase_of`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sf_close(device: *mut sf_device) -> sf_status {
    // SAFETY: the caller's precondition.
    let device = match unsafe { enter(device) } {
        Ok(device) => device,
        Err(status) => return status,
    };
    device.mark.store(0, Ordering::Relaxed);
    let (memory, bytes) = (device.memory, device.bytes);
    // SAFETY: nobody else has the client, and nobody finds it afterwards. `open` has found that
    // there are as many bytes. Samples, updates and keys are wiped.
    unsafe {
        ptr::drop_in_place(&raw mut **device.client.get());
        memory.write_bytes(0, bytes);
    }
    sf_status::SF_OK
}

/// Calls with the client of an open device that nobody else uses.
///
/// # Safety
/// `device` is null, or comes from `sf_open`, or points to memory of at least that size.
#[inline(always)]
pub(crate) unsafe fn with(
    device: *mut sf_device,
    call: impl FnOnce(&mut dyn Client) -> Result<(), sf_status>,
) -> sf_status {
    // SAFETY: the caller's precondition.
    let device = match unsafe { enter(device) } {
        Ok(device) => device,
        Err(status) => return status,
    };
    // SAFETY: the flag says that no other call has the client.
    let client = unsafe { &mut **device.client.get() };
    let done = match cfg!(feature = "requested") && client.is_pending() {
        true => Err(sf_status::SF_PENDING),
        false => call(client),
    };
    leave(device, done)
}

/// [`with`], also while a piece is pending.
///
/// # Safety
/// Those of [`with`].
pub(crate) unsafe fn with_pending(
    device: *mut sf_device,
    call: impl FnOnce(&mut dyn Client),
) -> sf_status {
    // SAFETY: the caller's precondition.
    match unsafe { enter(device) } {
        Ok(device) => {
            // SAFETY: as in `with`.
            call(unsafe { &mut **device.client.get() });
            leave(device, Ok(()))
        }
        Err(status) => status,
    }
}

/// A call is done.
fn leave(device: &sf_device, done: Result<(), sf_status>) -> sf_status {
    device.is_busy.store(false, Ordering::Release);
    sf_status::of(done)
}

/// The device, whose client is the caller's until it takes the flag back.
///
/// # Safety
/// Those of [`with`].
#[inline(never)]
unsafe fn enter<'a>(device: *mut sf_device) -> Result<&'a sf_device, sf_status> {
    if device.is_null() || !device.is_aligned() {
        return Err(sf_status::SF_POINTER);
    }
    // SAFETY: not null, aligned, and there are as many bytes. Before the mark is known only atomic
    // integers are read, of which all bytes are a value but those of the flag.
    let mark = unsafe { &(*device).mark };
    if mark.load(Ordering::Acquire) != OPEN {
        return Err(sf_status::SF_NO_DEVICE);
    }
    // SAFETY: it is open.
    let device = unsafe { &*device };
    match is_taken(&device.is_busy) {
        true => Err(sf_status::SF_BUSY),
        false => Ok(device),
    }
}

/// Sets the flag, and returns whether it was set before.
fn is_taken(is_busy: &AtomicBool) -> bool {
    #[cfg(target_has_atomic = "8")]
    let was_busy = is_busy.swap(true, Ordering::Acquire);
    // A Cortex-M0 and an RV32IMC have one processor and no exchange. An interrupt between these two
    // instructions has its call done before it returns. Threads must not share a device there.
    #[cfg(not(target_has_atomic = "8"))]
    let was_busy = {
        let was_busy = is_busy.load(Ordering::Acquire);
        is_busy.store(true, Ordering::Relaxed);
        // The compiler keeps the work of the call behind it.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        was_busy
    };
    was_busy
}

/// Returns the version of the library as a constant text.
///
/// Interrupts: yes. Longest time: constant.
#[unsafe(no_mangle)]
pub extern "C" fn sf_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
