//! Facilities that an emulated board borrows from its host, by semihosting: a console, an exit
//! code, and a file that keeps the board's flash after the board is killed.
//!
//! A real board has none of them: its HAL implements [`NorFlash`] for the microcontroller's flash,
//! and its console may be defmt or RTT.

use core::ffi::CStr;

use crate::client::Storage;
use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash,
};

use semihosting::{
    experimental::env,
    fs::File,
    io::{Read, Seek, SeekFrom, Write},
    process::ExitCode,
    sys::arm_compat::sys_write0,
};

/// Maximum length of the command line, including the terminating zero.
const COMMAND_LINE: usize = 256;

/// Writes a line to the host's console.
pub fn say(text: &CStr) {
    sys_write0(text);
    sys_write0(c"\n");
}

/// Ends the emulation, because the board cannot continue.
pub fn give_up(why: &CStr) -> ! {
    say(why);
    ExitCode::FAILURE.exit_process()
}

/// Message if the file is missing.
pub const NO_FILE: &CStr =
    c"refused: the file of the flash; -semihosting-config arg=client,arg=FILE";

/// A part of the file, in bytes.
#[derive(Clone, Copy)]
pub struct Part {
    base: u32,
    length: u32,
}

impl Part {
    /// The ledger.
    pub const LEDGER: Self = Self {
        base: 0,
        length: 256,
    };

    /// The start counter.
    pub const STARTS: Self = Self::LEDGER.followed_by(256);

    /// Returns the part after this one.
    #[must_use]
    pub const fn followed_by(self, length: u32) -> Self {
        Self {
            base: self.base + self.length,
            length,
        }
    }
}

/// Returns a device's storage in the file, with the given store for the personal model.
///
/// # Errors
/// As [`HostFlash::open`].
pub fn storage<K>(store: K) -> Result<Storage<HostFlash, K>, HostError> {
    Ok(Storage {
        ledger: HostFlash::open(Part::LEDGER)?,
        starts: HostFlash::open(Part::STARTS)?,
        store,
    })
}

/// A part of a file that emulates flash, in blocks of 64 bytes. Erasing writes ones.
pub struct HostFlash {
    file: File,
    part: Part,
}

/// The host's file cannot be read or written.
#[derive(Debug)]
pub struct HostError;

impl HostFlash {
    /// Opens a part of the file named on the command line: `-semihosting-config
    /// arg=client,arg=FILE`.
    ///
    /// A missing file is created, all ones, like blank flash.
    ///
    /// # Errors
    /// [`HostError`] if there is no name, or the file cannot be opened or created.
    pub fn open(part: Part) -> Result<Self, HostError> {
        let arguments = env::args::<COMMAND_LINE>().map_err(|_| HostError)?;
        let name = (&arguments).nth(1).and_then(Result::ok).ok_or(HostError)?;
        let mut path = [0; COMMAND_LINE];
        let place = path.get_mut(..name.len()).ok_or(HostError)?;
        place.copy_from_slice(name.as_bytes());
        let path = CStr::from_bytes_until_nul(&path).map_err(|_| HostError)?;
        let mut options = File::options();
        if let Ok(file) = options.read(true).write(true).open(path) {
            return Ok(Self { file, part });
        }
        // Semihosting has no mode that creates a file without truncating it. Existing content could
        // not be opened.
        let file = options.create(true).truncate(true).open(path);
        let file = file.map_err(|_| HostError)?;
        Ok(Self { file, part })
    }

    fn at(&mut self, offset: u32) -> Result<&mut File, HostError> {
        let place = SeekFrom::Start(u64::from(self.part.base + offset));
        self.file.seek(place).map_err(|_| HostError)?;
        Ok(&mut self.file)
    }
}

impl NorFlashError for HostError {
    fn kind(&self) -> NorFlashErrorKind {
        NorFlashErrorKind::Other
    }
}

impl ErrorType for HostFlash {
    type Error = HostError;
}

impl ReadNorFlash for HostFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), HostError> {
        // Bytes after the end of the file were never written.
        bytes.fill(0xff);
        let mut rest = bytes;
        let file = self.at(offset)?;
        while !rest.is_empty() {
            match file.read(rest) {
                Ok(0) => break,
                Ok(count) => rest = rest.get_mut(count..).unwrap_or_default(),
                Err(_) => return Err(HostError),
            }
        }
        Ok(())
    }

    fn capacity(&self) -> usize {
        self.part.length as usize
    }
}

impl NorFlash for HostFlash {
    const WRITE_SIZE: usize = 4;
    const ERASE_SIZE: usize = 64;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), HostError> {
        for offset in (from..to).step_by(Self::ERASE_SIZE) {
            self.write(offset, &[0xff; Self::ERASE_SIZE])?;
        }
        Ok(())
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), HostError> {
        let file = self.at(offset)?;
        file.write_all(bytes).map_err(|_| HostError)
    }
}
