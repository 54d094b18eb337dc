//! The personal model of a device in a file, in the format of safetensors: the arrays `state`, and
//! `before`, its predecessor. The metadata give the kind, owner and round of each, and a checksum.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use smolfed_core::personal::store::{BlockingStore, PersonalStore, StateId, StateKind, StoreError};

use super::files::beside;
use smolfed_release::durable::replace_private;

/// Arrays of the newest state and of its predecessor.
const NEWEST: &str = "state";
const BEFORE: &str = "before";

/// A personal model in a file, which only its owner can access.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
}

impl FileStore {
    /// Returns the store next to the ledger in this file: `device-3.personal` next to
    /// `device-3.ledger`. It need not exist.
    #[must_use]
    pub fn beside(ledger: &Path) -> Self {
        Self {
            path: beside(ledger, ".personal"),
        }
    }

    /// Returns the state of this name, if it is in the file and undamaged.
    fn read(&self, id: &StateId) -> Result<Option<Vec<u8>>, StoreError> {
        let file = match fs::read(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) => return Err(StoreError),
        };
        let find = || {
            let (_, header) = SafeTensors::read_metadata(&file).ok()?;
            let metadata = header.metadata().as_ref()?;
            let tensors = SafeTensors::deserialize(&file).ok()?;
            [NEWEST, BEFORE].into_iter().find_map(|name| {
                let state = tensors.tensor(name).ok()?;
                let is_it = metadata.get(name) == Some(&describe(id, state.data()));
                (is_it && state.dtype() == Dtype::F32).then(|| state.data().to_vec())
            })
        };
        Ok(find())
    }
}

/// Returns the metadata of a state.
fn describe(id: &StateId, values: &[u8]) -> String {
    let kind = match id.kind {
        StateKind::Model => "model",
        StateKind::Offset => "offset",
        StateKind::Rest => "rest",
        StateKind::Tuned => "tuned",
        StateKind::Shared(_) => "shared",
        StateKind::Held(_) => "held",
    };
    let (owner, sum) = (hex::encode(id.owner), crc32fast::hash(values));
    format!(
        "{kind}, round {}, ledger {owner}, crc32 {sum:08x}",
        id.round
    )
}

impl PersonalStore for FileStore {
    fn capacity(&self) -> usize {
        usize::MAX
    }
}

impl BlockingStore for FileStore {
    fn load(&mut self, id: &StateId, to: &mut [f32]) -> Result<bool, StoreError> {
        let Some(bytes) = self.read(id)?.filter(|bytes| bytes.len() == 4 * to.len()) else {
            return Ok(false);
        };
        let (values, _) = bytes.as_chunks();
        for (to, bytes) in to.iter_mut().zip(values) {
            *to = f32::from_le_bytes(*bytes);
        }
        Ok(true)
    }

    fn save(
        &mut self,
        id: &StateId,
        state: &[f32],
        before: Option<&StateId>,
    ) -> Result<(), StoreError> {
        let newest: Vec<u8> = state.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut states = vec![(NEWEST, *id, newest)];
        if let Some(before) = before
            && let Some(bytes) = self.read(before)?
        {
            states.push((BEFORE, *before, bytes));
        }
        let metadata: HashMap<String, String> = states
            .iter()
            .map(|(name, id, bytes)| ((*name).to_owned(), describe(id, bytes)))
            .collect();
        let views = states.iter().map(|(name, _, bytes)| {
            let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes);
            view.map(|view| (*name, view))
        });
        let views: Result<Vec<_>, _> = views.collect();
        let file = views.and_then(|views| serialize(views, Some(metadata)));
        let file = file.map_err(|_| StoreError)?;
        replace_private(&self.path, &file).map_err(|_| StoreError)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const fn id(round: u32) -> StateId {
        StateId {
            kind: StateKind::Model,
            owner: [7; 8],
            round,
        }
    }

    #[test]
    fn its_name_follows_from_that_of_the_ledger() {
        for (ledger, expected) in [
            ("a/device-3.ledger", "a/device-3.personal"),
            ("a/node.7", "a/node.7.personal"),
            ("x.personal", "x.personal.personal"),
        ] {
            assert_eq!(
                FileStore::beside(Path::new(ledger)).path,
                Path::new(expected)
            );
        }
    }

    #[test]
    fn the_newest_state_and_the_one_before_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("device-3.ledger");
        let mut store = FileStore::beside(&ledger);
        let mut to = [0.0; 3];
        assert_eq!(store.load(&id(1), &mut to), Ok(false));
        let state = |round: u32| [round as f32, f32::MIN_POSITIVE, -0.0];
        store.save(&id(1), &state(1), None).unwrap();
        store.save(&id(2), &state(2), Some(&id(1))).unwrap();
        let mut store = FileStore::beside(&ledger);
        for round in [1, 2] {
            assert_eq!(store.load(&id(round), &mut to), Ok(true));
            assert_eq!(to.map(f32::to_bits), state(round).map(f32::to_bits));
        }
        // From the predecessor, as after an update that did not count.
        store.save(&id(3), &state(3), Some(&id(1))).unwrap();
        let there = [1, 2, 3].map(|round| store.load(&id(round), &mut to).unwrap());
        assert_eq!(there, [true, false, true]);
        let path = dir.path().join("device-3.personal");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let other = |kind, owner| StateId {
            kind,
            owner: [owner; 8],
            round: 3,
        };
        assert_eq!(store.load(&other(StateKind::Model, 7), &mut to), Ok(true));
        assert_eq!(store.load(&other(StateKind::Rest, 7), &mut to), Ok(false));
        assert_eq!(store.load(&other(StateKind::Model, 8), &mut to), Ok(false));
        assert_eq!(store.load(&id(3), &mut to[..2]), Ok(false));
    }

    #[test]
    fn damage_is_no_state() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = FileStore::beside(&dir.path().join("device-3.ledger"));
        let path = dir.path().join("device-3.personal");
        store.save(&id(7), &[1.0, 2.0], None).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut to = [0.0; 2];
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(store.load(&id(7), &mut to), Ok(false), "{length}");
        }
        let mut damaged = whole;
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(store.load(&id(7), &mut to), Ok(false));
    }
}
