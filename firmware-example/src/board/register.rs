//! Registers of a device: reading and writing of 32-bit words by offset.
#![expect(unsafe_code, reason = "volatile access to fixed addresses")]

/// A 32-bit register of a [`Device`].
#[derive(Clone, Copy)]
pub struct Register(usize);

impl Register {
    /// Reads the register.
    #[inline(always)]
    pub fn read(self) -> u32 {
        // SAFETY: promised in `Device::new`.
        unsafe { core::ptr::with_exposed_provenance::<u32>(self.0).read_volatile() }
    }

    /// Writes the register.
    #[inline(always)]
    pub fn write(self, value: u32) {
        // SAFETY: promised in `Device::new`.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(self.0).write_volatile(value) }
    }
}

/// Registers of one device, by offset.
#[derive(Clone, Copy)]
pub struct Device(usize);

impl Device {
    /// Creates the device at this address.
    ///
    /// # Safety
    /// At every used offset there must be a register that can be read and written as a word at any
    /// time. Its effects must touch no memory known to Rust.
    pub const unsafe fn new(address: usize) -> Self {
        Self(address)
    }

    /// Returns a register.
    pub const fn at(self, offset: usize) -> Register {
        Register(self.0 + offset)
    }
}
