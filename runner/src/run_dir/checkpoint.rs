//! The state after a round. All randomness is named by the round, so the model and the round's
//! number are the whole of it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::{RunDirError, damaged, io, write_atomically};
use crate::contrast::matrices::Sent;

/// The state after a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Rounds that are done.
    pub round: u32,
    /// The global model.
    pub parameters: Vec<f32>,
    /// Names the experiment and its data; see [`crate::run::fingerprint`].
    pub fingerprint: String,
    /// The digest of the devices' own models, if they have some; see [`crate::personal::States`].
    pub states: Option<u32>,
    /// What each device sent last of its correlation matrix, if they send some.
    pub matrices: BTreeMap<u32, Sent>,
}

const FILE: &str = "state.safetensors";
const PARAMETERS: &str = "parameters";
/// A row a device: its number, its samples, its releases.
const SENDERS: &str = "matrix_senders";
/// A row a device: its packed sum.
const MATRICES: &str = "matrices";

impl Checkpoint {
    pub(super) fn save(&self, folder: &Path) -> Result<(), RunDirError> {
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        let path = folder.join(FILE);
        let bytes = self.encode().map_err(|reason| damaged(&path, reason))?;
        write_atomically(&path, &bytes)
    }

    pub(super) fn load(
        folder: &Path,
        fingerprint: &str,
        parameter_count: usize,
    ) -> Result<Option<Self>, RunDirError> {
        let path = folder.join(FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = fs::read(&path).map_err(io("read", &path))?;
        let checkpoint = Self::decode(&bytes).map_err(|reason| damaged(&path, reason))?;
        let foreign = |reason: String| {
            let path = path.display().to_string();
            Err(RunDirError::Foreign { path, reason })
        };
        if checkpoint.fingerprint != fingerprint {
            return foreign("the fingerprint differs".to_owned());
        }
        let found = checkpoint.parameters.len();
        if found != parameter_count {
            return foreign(format!(
                "{found} parameters, where the model has {parameter_count}"
            ));
        }
        Ok(Some(checkpoint))
    }

    fn encode(&self) -> Result<Vec<u8>, String> {
        let bytes = floats_to_bytes(&self.parameters);
        let view = TensorView::new(Dtype::F32, vec![self.parameters.len()], &bytes)
            .map_err(|error| error.to_string())?;
        let mut metadata = HashMap::from([
            ("round".to_owned(), self.round.to_string()),
            ("fingerprint".to_owned(), self.fingerprint.clone()),
        ]);
        metadata.extend(
            self.states
                .map(|digest| ("states".to_owned(), digest.to_string())),
        );
        let (senders, sums) = self.matrix_bytes();
        let mut tensors = vec![(PARAMETERS, view)];
        if !self.matrices.is_empty() {
            let count = self.matrices.len();
            let length = sums.len() / count / size_of::<i64>();
            for (name, dtype, shape, bytes) in [
                (SENDERS, Dtype::U32, vec![count, 3], &senders),
                (MATRICES, Dtype::I64, vec![count, length], &sums),
            ] {
                let view = TensorView::new(dtype, shape, bytes);
                tensors.push((name, view.map_err(|error| error.to_string())?));
            }
        }
        serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
    }

    /// The senders of matrices and their sums, little-endian.
    fn matrix_bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let senders = self.matrices.iter().flat_map(|(device, sent)| {
            let row = [*device, sent.samples, sent.releases];
            row.map(u32::to_le_bytes).into_iter().flatten()
        });
        let sums = self.matrices.values().flat_map(|sent| &sent.sum);
        let sums = sums.flat_map(|entry| entry.to_le_bytes());
        (senders.collect(), sums.collect())
    }

    /// Reads the bytes of a checkpoint's file.
    ///
    /// # Errors
    /// What is wrong with them, to follow "the file is damaged: ".
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let entries = header.metadata().clone().unwrap_or_default();
        let entry = |key: &str| {
            entries
                .get(key)
                .cloned()
                .ok_or(format!("it has no `{key}`"))
        };
        let round = entry("round")?
            .parse()
            .map_err(|_| "`round` is no number".to_owned())?;
        let view = tensors
            .tensor(PARAMETERS)
            .map_err(|error| error.to_string())?;
        let parameters = bytes_to_floats(&view)?;
        Ok(Self {
            round,
            parameters,
            fingerprint: entry("fingerprint")?,
            matrices: matrices(&tensors)?,
            states: match entries.get("states") {
                None => None,
                Some(digest) => {
                    let digest = digest
                        .parse()
                        .map_err(|_| "`states` is no number".to_owned())?;
                    Some(digest)
                }
            },
        })
    }
}

/// The correlation matrices; none in the checkpoint of another method.
fn matrices(tensors: &SafeTensors<'_>) -> Result<BTreeMap<u32, Sent>, String> {
    let (senders, sums) = match (tensors.tensor(SENDERS), tensors.tensor(MATRICES)) {
        (Ok(senders), Ok(sums)) => (senders, sums),
        (Err(_), Err(_)) => return Ok(BTreeMap::new()),
        _ => return Err("its matrices have no senders, or its senders no matrices".to_owned()),
    };
    let (&[count, 3], &[rows, length]) = (senders.shape(), sums.shape()) else {
        return Err("its matrices have no rows".to_owned());
    };
    if count != rows || length == 0 || senders.dtype() != Dtype::U32 || sums.dtype() != Dtype::I64 {
        return Err("its matrices do not fit their senders".to_owned());
    }
    let (words, _) = senders.data().as_chunks::<4>();
    let (entries, _) = sums.data().as_chunks::<8>();
    let entries: Vec<i64> = entries
        .iter()
        .map(|bytes| i64::from_le_bytes(*bytes))
        .collect();
    let words: Vec<u32> = words
        .iter()
        .map(|bytes| u32::from_le_bytes(*bytes))
        .collect();
    let (rows, _) = words.as_chunks::<3>();
    let sent = rows.iter().zip(entries.chunks_exact(length));
    let sent = sent.map(|(&[device, samples, releases], sum)| {
        let sum = sum.to_vec();
        (
            device,
            Sent {
                sum,
                samples,
                releases,
            },
        )
    });
    Ok(sent.collect())
}

/// Little-endian, as safetensors has it.
pub(super) fn floats_to_bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// The finite `f32` values of a tensor.
pub(super) fn bytes_to_floats(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
    if view.dtype() != Dtype::F32 {
        return Err(format!("its numbers are {:?}, not F32", view.dtype()));
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    if values.iter().all(|value| value.is_finite()) {
        Ok(values)
    } else {
        Err("it holds a parameter that is not finite".to_owned())
    }
}
