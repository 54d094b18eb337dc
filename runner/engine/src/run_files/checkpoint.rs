//! The state after a round. All randomness is named by the round, so the model and the round's
//! number are the whole of it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView, serialize};
use smolfed_core::params::ClipNorm;

use crate::run_files::error::{RunDirError, damaged, io, write_atomically};
use smolfed_release::saved::{Saved, SavedTensor};

/// The state after a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Rounds that are done.
    pub round: u32,
    /// The global model.
    pub parameters: Vec<f32>,
    /// Names the experiment and its data; see [`crate::run::fingerprint`].
    pub fingerprint: String,
    /// L of the next round, if it is adaptive.
    pub clip_norm: Option<ClipNorm>,
    /// What the method keeps from round to round.
    pub method: Saved,
}

const FILE: &str = "state.safetensors";
const PARAMETERS: &str = "parameters";
/// The keys that are not the method's.
const ROUND: &str = "round";
const FINGERPRINT: &str = "fingerprint";
const CLIP_NORM: &str = "clip_norm";

/// Ends the fingerprint of a run whose server's step a program brings along.
pub(crate) const OWN_STEP: &str = "-own";

/// What differs between the names of two runs (see [`name`](crate::run::name)).
fn difference(found: &str, expected: &str) -> String {
    let mut parts = found.split('-').zip(expected.split('-'));
    let lanes = |name: &str| {
        let fast = |part: &str| part.strip_prefix("fast").map(str::to_owned);
        name.split('-').find_map(fast)
    };
    match (
        parts.position(|(a, b)| a != b),
        lanes(found),
        lanes(expected),
    ) {
        (Some(0), ..) => "the configuration differs".to_owned(),
        (Some(1), ..) => "the data differ".to_owned(),
        (_, Some(found), Some(expected)) if found != expected => format!(
            "\"fast\" trained with vectors of {found} numbers, and this processor has {expected}"
        ),
        _ if found.ends_with(OWN_STEP) && !expected.ends_with(OWN_STEP) => {
            "it was trained with a denoiser or a server's step of a program: resume it from there, \
             with the same one"
                .to_owned()
        }
        _ if expected.ends_with(OWN_STEP) && !found.ends_with(OWN_STEP) => {
            "it was trained without a denoiser or a server's step of a program".to_owned()
        }
        _ => "the version of smolfed or the start of the run differs".to_owned(),
    }
}

impl Checkpoint {
    pub(crate) fn save(&self, folder: &Path) -> Result<(), RunDirError> {
        fs::create_dir_all(folder).map_err(io("create", folder))?;
        let path = folder.join(FILE);
        let bytes = self.encode().map_err(|reason| damaged(&path, reason))?;
        write_atomically(&path, &bytes)
    }

    pub(crate) fn load(
        folder: &Path,
        fingerprint: &str,
        parameter_count: usize,
    ) -> Result<Option<Self>, RunDirError> {
        let path = folder.join(FILE);
        let Some(checkpoint) = Self::read(&path)? else {
            return Ok(None);
        };
        let foreign = |reason: String| {
            let path = path.display().to_string();
            Err(RunDirError::Foreign { path, reason })
        };
        if checkpoint.fingerprint != fingerprint {
            return foreign(difference(&checkpoint.fingerprint, fingerprint));
        }
        let found = checkpoint.parameters.len();
        if found != parameter_count {
            return foreign(format!(
                "{found} parameters, where the model has {parameter_count}"
            ));
        }
        Ok(Some(checkpoint))
    }

    /// The rounds that are done by the checkpoint in `folder`, of whichever run; 0 without one.
    pub(crate) fn round_in(folder: &Path) -> Result<u32, RunDirError> {
        let checkpoint = Self::read(&folder.join(FILE))?;
        Ok(checkpoint.map_or(0, |checkpoint| checkpoint.round))
    }

    fn read(path: &Path) -> Result<Option<Self>, RunDirError> {
        if !path.is_file() {
            return Ok(None);
        }
        let bytes = fs::read(path).map_err(io("read", path))?;
        let checkpoint = Self::decode(&bytes).map_err(|reason| damaged(path, reason))?;
        Ok(Some(checkpoint))
    }

    /// The bytes of a checkpoint's file.
    ///
    /// # Errors
    /// What the format does not hold.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let bytes = floats_to_bytes(&self.parameters);
        let view = TensorView::new(Dtype::F32, vec![self.parameters.len()], &bytes)
            .map_err(|error| error.to_string())?;
        let mut metadata = HashMap::from([
            (ROUND.to_owned(), self.round.to_string()),
            (FINGERPRINT.to_owned(), self.fingerprint.clone()),
        ]);
        // The shortest text that is read as the same number.
        let clip_norm = self.clip_norm.map(|clip_norm| clip_norm.get().to_string());
        metadata.extend(clip_norm.map(|text| (CLIP_NORM.to_owned(), text)));
        metadata.extend(self.method.entries.clone());
        let mut tensors = vec![(PARAMETERS, view)];
        for (name, tensor) in &self.method.tensors {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
            tensors.push((name, view.map_err(|error| error.to_string())?));
        }
        serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
    }

    /// Reads the bytes of a checkpoint's file.
    ///
    /// # Errors
    /// What is wrong with them, to follow "the file is damaged: ".
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(not_tensors)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(not_tensors)?;
        let mut entries = header.metadata().clone().unwrap_or_default();
        let mut entry = |key: &str| entries.remove(key).ok_or(format!("it has no `{key}`"));
        let round = entry(ROUND)?
            .parse()
            .map_err(|_| "`round` is no number".to_owned())?;
        let fingerprint = entry(FINGERPRINT)?;
        let clip_norm = match entries.remove(CLIP_NORM) {
            None => None,
            Some(text) => {
                let parsed = text.parse().ok().and_then(|x| ClipNorm::new(x).ok());
                Some(parsed.ok_or("`clip_norm` is no clip norm")?)
            }
        };
        let view = tensors
            .tensor(PARAMETERS)
            .map_err(|error| error.to_string())?;
        let of_method = tensors.iter().filter(|(name, _)| *name != PARAMETERS);
        let of_method = of_method.map(|(name, view)| {
            let tensor = SavedTensor {
                dtype: view.dtype(),
                shape: view.shape().to_vec(),
                bytes: view.data().to_vec(),
            };
            (name.to_owned(), tensor)
        });
        Ok(Self {
            round,
            parameters: bytes_to_floats(&view)?,
            fingerprint,
            clip_norm,
            method: Saved {
                tensors: of_method.collect(),
                entries: entries.into_iter().collect(),
            },
        })
    }
}

/// Little-endian, as safetensors has it.
pub(crate) fn floats_to_bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

/// What is wrong with bytes that the parser refuses, in words that need no knowledge of it.
pub(crate) fn not_tensors(_: SafeTensorError) -> String {
    "it is no safetensors file, or cut short".to_owned()
}

/// The finite `f32` values of a tensor.
pub(crate) fn bytes_to_floats(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
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
