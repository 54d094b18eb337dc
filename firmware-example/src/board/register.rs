//! Registers of devices.
#![expect(unsafe_code, reason = "volatile access to fixed addresses")]

/// A 32-bit register of a [`Device`].
#[derive(Clone, Copy)]
pub struct Register(usize);

impl Register {
    /// Reads it.
    #[inline(always)]
    pub fn read(self) -> u32 {
        // SAFETY: promised in `Device::new`.
        unsafe { core::ptr::with_exposed_provenance::<u32>(self.0).read_volatile() }
    }

    /// Writes it.
    #[inline(always)]
    pub fn write(self, value: u32) {
        // SAFETY: promised in `Device::new`.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(self.0).write_volatile(value) }
    }
}

/// The registers of one device, by their offsets.
#[derive(Clone, Copy)]
pub struct Device(usize);

impl Device {
    /// The device at this address.
    ///
    /// # Safety
    /// At every offset that is used lies a register that may be read and written as a word at any
    /// time, and what it controls touches no memory that Rust knows of.
    pub const unsafe fn new(address: usize) -> Self {
        Self(address)
    }

    /// One of its registers.
    pub const fn at(self, offset: usize) -> Register {
        Register(self.0 + offset)
    }
}
