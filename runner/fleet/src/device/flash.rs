//! NOR flash in a file: four pages, synced at every erase and every write, so that a device's
//! ledger is as durable as a board's.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use embedded_storage::nor_flash::{
    ErrorType, NorFlash, NorFlashError, NorFlashErrorKind, ReadNorFlash, check_erase, check_read,
    check_write,
};

use smolfed_core::ledger::SLOT_BYTES;

use smolfed_release::durable::{DurableFile, create_private};

/// Bytes per page.
pub const PAGE: usize = 64;

/// Bytes of the file.
pub const SIZE: usize = 2 * SLOT_BYTES;

/// An error of the file, or an access beyond its size.
#[derive(Debug)]
pub struct FlashError(NorFlashErrorKind);

impl NorFlashError for FlashError {
    fn kind(&self) -> NorFlashErrorKind {
        self.0
    }
}

impl From<NorFlashErrorKind> for FlashError {
    fn from(kind: NorFlashErrorKind) -> Self {
        Self(kind)
    }
}

impl From<io::Error> for FlashError {
    fn from(_: io::Error) -> Self {
        Self(NorFlashErrorKind::Other)
    }
}

/// A flash file, locked by this process.
#[derive(Debug)]
pub struct FileFlash {
    file: Box<dyn DurableFile>,
}

impl FileFlash {
    /// Creates a blank file, which only its owner can access.
    ///
    /// # Errors
    /// The errors of the file system, and [`io::ErrorKind::AlreadyExists`] if the file exists.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = create_private(path, &[0xff; SIZE])?;
        lock(&file)?;
        Ok(Self::over(file))
    }

    /// Opens the file.
    ///
    /// # Errors
    /// The errors of the file system, [`io::ErrorKind::WouldBlock`] if another process uses the
    /// file, and [`io::ErrorKind::InvalidData`] if it has another size.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        lock(&file)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if length != SIZE {
            let message = format!("not a ledger, which has {SIZE} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Self::over(file))
    }

    fn over(file: impl DurableFile + 'static) -> Self {
        let file = Box::new(file);
        Self { file }
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock()
        .map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "another process uses it"))
}

impl ErrorType for FileFlash {
    type Error = FlashError;
}

impl ReadNorFlash for FileFlash {
    const READ_SIZE: usize = 1;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), FlashError> {
        check_read(self, offset, bytes.len())?;
        self.file.seek(SeekFrom::Start(offset.into()))?;
        Ok(self.file.read_exact(bytes)?)
    }

    fn capacity(&self) -> usize {
        SIZE
    }
}

impl NorFlash for FileFlash {
    const WRITE_SIZE: usize = 1;
    const ERASE_SIZE: usize = PAGE;

    fn erase(&mut self, from: u32, to: u32) -> Result<(), FlashError> {
        check_erase(self, from, to)?;
        self.file.seek(SeekFrom::Start(from.into()))?;
        let blank = vec![0xff; to.saturating_sub(from) as usize];
        self.file.write_all(&blank)?;
        Ok(self.file.sync()?)
    }

    fn write(&mut self, offset: u32, bytes: &[u8]) -> Result<(), FlashError> {
        check_write(self, offset, bytes.len())?;
        self.file.seek(SeekFrom::Start(offset.into()))?;
        self.file.write_all(bytes)?;
        Ok(self.file.sync()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smolfed_core::crypto::Key;
    use smolfed_core::identity::Identity;
    use smolfed_core::ledger::{Budget, Ledger, LedgerError, Limits, MaxJump, Separation};
    use smolfed_core::stream::Root;
    use smolfed_release::durable::forgetful::ForgetfulFile;

    const LIMITS: Limits = Limits {
        budget: Budget(3),
        separation: Separation::NONE,
        max_jump: MaxJump(9),
    };

    #[test]
    fn a_ledger_in_a_file_survives_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        assert!(FileFlash::open(&path).is_err(), "not there");
        let flash = FileFlash::create(&path).unwrap();
        let mut ledger = Ledger::create(flash, [5; 8], Key::from_secret([6; 32])).unwrap();
        let mut identity = Identity {
            device: 1,
            root: Root::from_seed(1),
        };
        ledger.begin(7, &mut identity, &LIMITS).unwrap();
        assert!(FileFlash::open(&path).is_err(), "in use");
        drop(ledger);
        assert!(FileFlash::create(&path).is_err(), "nothing is overwritten");
        let flash = FileFlash::open(&path).unwrap();
        let ledger = Ledger::open(flash).unwrap();
        let again = ledger.check(7, &LIMITS);
        assert_eq!(again, Err(LedgerError::RoundUsed));
        assert_eq!(ledger.past().participations, 1);
    }

    /// A crash loses unsynced data. A round that began before it stays used.
    #[test]
    fn a_round_is_on_the_disk_when_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        let flash = FileFlash::create(&path).unwrap();
        drop(Ledger::create(flash, [5; 8], Key::from_secret([6; 32])).unwrap());
        for (round, participations) in [(7, 1), (9, 2)] {
            let mut identity = Identity {
                device: 1,
                root: Root::from_seed(1),
            };
            let (file, disk) = ForgetfulFile::open(&path, false).unwrap();
            let mut ledger = Ledger::open(FileFlash::over(file)).unwrap();
            ledger.begin(round, &mut identity, &LIMITS).unwrap();
            disk.crash().unwrap();
            let ledger = Ledger::open(FileFlash::open(&path).unwrap()).unwrap();
            let again = ledger.check(round, &LIMITS);
            assert_eq!(again, Err(LedgerError::RoundUsed));
            assert_eq!(ledger.past().participations, participations);
        }
    }

    #[test]
    fn a_file_of_another_size_is_no_ledger() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger");
        std::fs::write(&path, "something else").unwrap();
        let error = FileFlash::open(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(std::fs::read(&path).unwrap(), b"something else");
    }
}
