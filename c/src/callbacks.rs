//! The functions that the firmware implements: of flash (`sf_flash`), of a random generator
//! (`sf_random`) and of a secure element (`sf_element`).

use core::ffi::c_void;

/// The flash of a ledger, of models or of a held update, in pages. Addresses count from the first
/// page. Each function returns 0, or another number if it failed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_flash {
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Reads bytes.
    pub read: Option<unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize) -> i32>,
    /// Writes a multiple of 8 bytes, at a multiple of 8, where the flash is erased. The bytes are
    /// on the flash when it returns.
    pub write: Option<unsafe extern "C" fn(*mut c_void, u32, *const u8, usize) -> i32>,
    /// Erases whole pages: all bytes are 0xFF when it returns.
    pub erase: Option<unsafe extern "C" fn(*mut c_void, u32, usize) -> i32>,
    /// Bytes of a page: a multiple of 8 for a ledger, and of 64 for models or a held update.
    pub page_bytes: u32,
    /// Pages.
    pub pages: u32,
    /// Null if the other functions wait for the flash. Otherwise they may return
    /// `SF_FLASH_PENDING`. This function then tells the result: `SF_FLASH_PENDING`, 0, or another
    /// number if the operation failed. For a ledger, it needs a library with the feature
    /// `requested`.
    pub poll: Option<unsafe extern "C" fn(*mut c_void) -> i32>,
}

/// A function of `sf_flash` returns this if the operation has begun and is not done. It differs
/// from the errors of drivers.
pub const SF_FLASH_PENDING: i32 = 0x5046_4C53;

/// A random generator of the hardware.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_random {
    /// Passed to the function.
    pub context: *mut c_void,
    /// Fills the bytes with random ones, which nobody can predict. It waits until the generator has
    /// them.
    pub fill: Option<unsafe extern "C" fn(*mut c_void, *mut u8, usize)>,
}

/// A secret of a device in its secure element.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum sf_slot {
    /// The root of the device's streams.
    SF_SLOT_ROOT = 0,
    /// The chain key after an even number of steps: at first, that of provisioning.
    SF_SLOT_EVEN = 1,
    /// The chain key after an odd number of steps.
    SF_SLOT_ODD = 2,
}

/// A secure element (docs/secure-element.md). Both functions compute HKDF-Expand with SHA-256 of
/// the secret in a slot, with an info of at most 20 bytes. Each returns 0, or another number if it
/// failed. They need a library with the feature `element`, and are null otherwise.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sf_element {
    /// Passed to the functions.
    pub context: *mut c_void,
    /// Writes the 32 bytes of the result and keeps no copy.
    pub expand:
        Option<unsafe extern "C" fn(*mut c_void, sf_slot, *const u8, usize, *mut u8) -> i32>,
    /// Puts the result into the other slot, where it stays when the power fails.
    pub expand_into:
        Option<unsafe extern "C" fn(*mut c_void, sf_slot, *const u8, usize, sf_slot) -> i32>,
}
