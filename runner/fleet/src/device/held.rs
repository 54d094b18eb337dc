//! The unsent update of a device, in a file that survives the process.
//!
//! The file has the bytes of a board's flash, without the blank ones at its end. It is replaced as
//! a whole and removed once the update has arrived or is given up. A file that cannot be read or
//! written only loses a participation, so the device continues without it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use smolfed_core::personal::store::PersonalStore;
use smolfed_core::personal::store::flash::FlashStore;
use smolfed_core::session::{Greeter, Phase, Session, Trainable, held_bytes};
use smolfed_release::durable::replace_private;

use super::files::beside;
use super::flash::PAGE;
use super::image::Image;

/// A byte of blank flash.
const BLANK: u8 = 0xff;

/// The file of a device, which only its owner can read.
#[derive(Debug)]
pub struct HeldFile {
    path: PathBuf,
    /// Size of the flash in bytes. The file has the first ones.
    size: usize,
    may_exist: bool,
}

impl HeldFile {
    /// Returns the file next to this ledger, for updates of up to this many entries:
    /// `device-3.held` next to `device-3.ledger`. It need not exist.
    #[must_use]
    pub fn beside(ledger: &Path, entries: usize) -> Self {
        let path = beside(ledger, ".held");
        let may_exist = path.exists();
        let size = held_bytes(entries, PAGE) as usize;
        Self {
            path,
            size,
            may_exist,
        }
    }

    /// Restores the update in the file, before the session has sent anything. Returns the number of
    /// its round.
    ///
    /// # Errors
    /// The errors of the file system. Damaged files have no update.
    pub fn resume<M: Trainable, F, R: Greeter, K: PersonalStore>(
        &self,
        session: &mut Session<'_, M, F, R, K>,
    ) -> io::Result<Option<u32>> {
        if !self.may_exist {
            return Ok(None);
        }
        let mut bytes = fs::read(&self.path)?;
        bytes.resize(self.size, BLANK);
        let resumed = session.resume(&mut store(bytes)?);
        resumed.map_err(io::Error::other)
    }

    /// Writes the session's unsent update, if it has one that may be held.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn hold<M: Trainable, F, R: Greeter, K: PersonalStore>(
        &mut self,
        session: &Session<'_, M, F, R, K>,
    ) -> io::Result<()> {
        let mut store = store(vec![BLANK; self.size])?;
        if !session.hold(&mut store).map_err(io::Error::other)? {
            return Ok(());
        }
        let bytes = store.into_flash().0;
        let end = bytes.iter().rposition(|byte| *byte != BLANK);
        let used = bytes.get(..=end.unwrap_or(0)).unwrap_or_default();
        self.may_exist = true;
        replace_private(&self.path, used)
    }

    /// Removes the file once the session has no update left to send.
    ///
    /// # Errors
    /// The errors of the file system. The next call retries.
    pub fn release<M: Trainable, F, R: Greeter, K: PersonalStore>(
        &mut self,
        session: &Session<'_, M, F, R, K>,
    ) -> io::Result<()> {
        // Nothing is known of the round before the coordinator has accepted the device.
        let is_accepted = matches!(
            session.phase(),
            Phase::Idle | Phase::Receiving | Phase::Training | Phase::Sending
        );
        if !self.may_exist || !is_accepted || session.has_unsent_update() {
            return Ok(());
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.may_exist = false,
        }
        Ok(())
    }
}

/// Returns a store on these bytes.
fn store(bytes: Vec<u8>) -> io::Result<FlashStore<Image<Vec<u8>>>> {
    FlashStore::new(Image(bytes)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::memory::SessionMemory;
    use smolfed_core::crypto::Key;
    use smolfed_core::harness::{CLASSES, FEATURES, PARAMETERS, Ram, SAMPLES, policy, stream};
    use smolfed_core::identity::Identity;
    use smolfed_core::ledger::{Budget, Ledger, Limits, MaxJump, Separation};
    use smolfed_core::model::Softmax;
    use smolfed_core::stream::{Purpose, Root};

    /// Resumes a session without an update. Also returns whether the file exists then.
    fn found(ledger: &Path) -> (io::Result<Option<u32>>, bool) {
        let model = Softmax::new(FEATURES, CLASSES);
        let mut memory = SessionMemory::new(&model, SAMPLES, CLASSES);
        let root = Root::from_seed(1);
        let nonces = stream(&root, Purpose::SessionNonces, 0, 3);
        let limits = Limits {
            budget: Budget(3),
            separation: Separation::NONE,
            max_jump: MaxJump(9),
        };
        let record = Ledger::create(Ram::blank(), [5; 8], Key::from_secret([6; 32]));
        let (memory, identity) = (memory.borrow(), Identity { device: 3, root });
        let session = Session::new(
            identity,
            policy(limits),
            model,
            memory,
            record.unwrap(),
            nonces,
        );
        let mut session = session.unwrap();
        let mut held = HeldFile::beside(ledger, PARAMETERS);
        let resumed = held.resume(&mut session);
        held.hold(&session).unwrap();
        // Nothing is known of the round before the coordinator has answered.
        held.release(&session).unwrap();
        (resumed, ledger.with_file_name("device-3.held").exists())
    }

    #[test]
    fn a_file_that_is_not_there_or_damaged_is_no_update() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("device-3.ledger");
        let path = dir.path().join("device-3.held");
        assert!(matches!(found(&ledger), (Ok(None), false)));
        for bytes in [vec![], b"something else".to_vec(), vec![0x5a; 9_999]] {
            fs::write(&path, &bytes).unwrap();
            assert!(matches!(found(&ledger), (Ok(None), true)));
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(found(&ledger), (Err(_), true)));
    }
}
