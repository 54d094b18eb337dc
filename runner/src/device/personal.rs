//! The personal model of a device in a file, in the format of safetensors: one array `state`, and
//! in the metadata what it is, the round that led to it and a checksum.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use smolfed_core::personal::store::{PersonalStore, StateKind, StoreError};

use crate::durable::{replace_private, sync_folder};

/// The array.
const STATE: &str = "state";

/// A personal model in a file, which only its owner can access, and a staged one beside it.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    staged: PathBuf,
    is_staged: bool,
}

impl FileStore {
    /// The store in this file, which need not be there.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".staged");
        Self {
            staged: path.with_file_name(name),
            path,
            is_staged: false,
        }
    }
}

/// What the metadata say of a state.
fn metadata(kind: StateKind, round: u32, checksum: u32) -> HashMap<String, String> {
    let kind = match kind {
        StateKind::Model => "model",
        StateKind::Offset => "offset",
        StateKind::Rest => "rest",
    };
    [
        ("format", "smolfed personal 1".to_owned()),
        ("kind", kind.to_owned()),
        ("round", round.to_string()),
        ("crc32", format!("{checksum:08x}")),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

/// The values of a file, if they are undamaged, of this kind, and not of an earlier round.
fn values(file: &[u8], kind: StateKind, since: u32) -> Option<Vec<f32>> {
    let (_, header) = SafeTensors::read_metadata(file).ok()?;
    let found = header.metadata().as_ref()?;
    let round = found.get("round")?.parse().ok()?;
    let tensors = SafeTensors::deserialize(file).ok()?;
    let state = tensors.tensor(STATE).ok()?;
    let is_expected = *found == metadata(kind, round, crc32fast::hash(state.data()));
    if !is_expected || round < since || state.dtype() != Dtype::F32 {
        return None;
    }
    let (values, _) = state.data().as_chunks();
    Some(
        values
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect(),
    )
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err(StoreError),
    }
}

impl PersonalStore for FileStore {
    fn room(&self) -> usize {
        usize::MAX
    }

    fn load(&mut self, kind: StateKind, since: u32, to: &mut [f32]) -> Result<bool, StoreError> {
        let Some(file) = read(&self.path)? else {
            return Ok(false);
        };
        let state = values(&file, kind, since).filter(|state| state.len() == to.len());
        if let Some(state) = &state {
            to.copy_from_slice(state);
        }
        Ok(state.is_some())
    }

    fn stage(&mut self, kind: StateKind, round: u32, state: &[f32]) -> Result<(), StoreError> {
        let bytes: Vec<u8> = state.iter().flat_map(|value| value.to_le_bytes()).collect();
        let view =
            TensorView::new(Dtype::F32, vec![state.len()], &bytes).map_err(|_| StoreError)?;
        let metadata = metadata(kind, round, crc32fast::hash(&bytes));
        let file = serialize([(STATE, view)], Some(metadata)).map_err(|_| StoreError)?;
        self.is_staged = false;
        replace_private(&self.staged, &file).map_err(|_| StoreError)?;
        self.is_staged = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if !std::mem::take(&mut self.is_staged) {
            return Ok(());
        }
        let renamed = fs::rename(&self.staged, &self.path).and_then(|()| sync_folder(&self.path));
        renamed.map_err(|_| StoreError)
    }

    fn discard(&mut self) {
        if std::mem::take(&mut self.is_staged) {
            // It does not count, and the next one takes its place.
            let _ = fs::remove_file(&self.staged);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_state_counts_once_it_is_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device-3.personal");
        let mut store = FileStore::new(path.clone());
        let mut to = [0.0; 3];
        assert_eq!(store.load(StateKind::Model, 0, &mut to), Ok(false));
        let state = [1.5, f32::MIN_POSITIVE, -0.0];
        store.stage(StateKind::Model, 7, &state).unwrap();
        assert_eq!(
            store.load(StateKind::Model, 0, &mut to),
            Ok(false),
            "staged only"
        );
        store.discard();
        store.commit().unwrap();
        assert!(!path.exists());
        store.stage(StateKind::Model, 7, &state).unwrap();
        store.commit().unwrap();
        let mut store = FileStore::new(path.clone());
        assert_eq!(store.load(StateKind::Model, 7, &mut to), Ok(true));
        assert_eq!(to.map(f32::to_bits), state.map(f32::to_bits));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o077, 0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        // Another run, kind or length.
        assert_eq!(store.load(StateKind::Model, 8, &mut to), Ok(false));
        assert_eq!(store.load(StateKind::Rest, 7, &mut to), Ok(false));
        assert_eq!(store.load(StateKind::Model, 7, &mut to[..2]), Ok(false));
        assert_eq!(to.map(f32::to_bits), state.map(f32::to_bits));
    }

    #[test]
    fn damage_is_no_state() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device-3.personal");
        let mut store = FileStore::new(path.clone());
        store.stage(StateKind::Rest, 7, &[1.0, 2.0]).unwrap();
        store.commit().unwrap();
        let whole = fs::read(&path).unwrap();
        let mut to = [0.0; 2];
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(
                store.load(StateKind::Rest, 0, &mut to),
                Ok(false),
                "{length}"
            );
        }
        let mut damaged = whole;
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(store.load(StateKind::Rest, 0, &mut to), Ok(false));
    }
}
