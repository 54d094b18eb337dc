//! Initial parameters from a file: `model.init`.
//!
//! A safetensors file holds tensors by name. Tensors of the model that the file lacks start from
//! the seed, so a body of layers can get a new head.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use smolfed_core::fixed_point::round_weight;

use super::Task;
use crate::layout::TensorLayout;
use crate::tables::model::ModelConfig;
use crate::tables::simulation::ArithmeticName;
use smolfed_data::error::DataError;
use smolfed_data::folders::DataFolders;

/// Why initial parameters cannot be taken from a file. Each text is a sentence.
#[derive(Debug, thiserror::Error)]
pub enum PretrainedError {
    /// The file was not found.
    #[error("`model.init`: {0}")]
    Find(DataError),
    /// The file cannot be read.
    #[error("`model.init`: cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The file differs from the experiment's.
    #[error(
        "`model.init`: {path} has changed: its checksum is {found}, and `model.init_checksum` is \
         {expected:?}"
    )]
    Changed {
        /// The file.
        path: String,
        /// Its checksum.
        found: String,
        /// The checksum in the experiment.
        expected: String,
    },
    /// The file has another format.
    #[error("`model.init`: {path} is not a safetensors file, or is truncated")]
    Format {
        /// The file.
        path: String,
    },
    /// The model does not have a tensor of the file.
    #[error("`model.init`: {path} has {name:?}, but the tensors of the model are {names}")]
    Unknown {
        /// The file.
        path: String,
        /// The tensor.
        name: String,
        /// The names in the model.
        names: String,
    },
    /// The file has none of the model's tensors.
    #[error("`model.init`: {path} is empty, and the tensors of the model are {names}")]
    Empty {
        /// The file.
        path: String,
        /// The names in the model.
        names: String,
    },
    /// A tensor has another shape.
    #[error(
        "`model.init`: {name} in {path} has shape {found:?}, but that of the model has shape \
         {expected:?}: if the file lacks it, it starts from the seed"
    )]
    Shape {
        /// The file.
        path: String,
        /// The tensor.
        name: String,
        /// Its shape in the file.
        found: Vec<usize>,
        /// Its shape in the model.
        expected: Vec<usize>,
    },
    /// A tensor has numbers of another type.
    #[error("`model.init`: {name} in {path} has numbers of type {found:?}: F32 is needed")]
    Type {
        /// The file.
        path: String,
        /// The tensor.
        name: String,
        /// The type in the file.
        found: Dtype,
    },
    /// A number is not finite.
    #[error("`model.init`: {name} in {path} holds a parameter that is not finite")]
    NotFinite {
        /// The file.
        path: String,
        /// The tensor.
        name: String,
    },
    /// A number is beyond those of devices that train in integers.
    #[error(
        "`model.init`: {name} in {path} holds {found}, but devices with `simulation.arithmetic` = \
         \"integer\" store parameters between -8 and 8"
    )]
    Saturated {
        /// The file.
        path: String,
        /// The tensor.
        name: String,
        /// The number.
        found: f32,
    },
    /// A checksum without a file.
    #[error("`model.init_checksum` has no effect without `model.init`; remove it")]
    ChecksumOfNothing,
}

/// Initial parameters of some tensors.
#[derive(Clone, Debug)]
pub struct Pretrained {
    path: String,
    tensors: Vec<(Range<usize>, Vec<f32>)>,
    /// Names of the tensors that start from the seed.
    others: Vec<String>,
}

/// Makes the path of `model.init` absolute and sets the checksum of its contents, so that the
/// configuration means the same parameters from any folder.
///
/// # Errors
/// [`PretrainedError`] if the file is missing, or does not match the checksum.
pub fn anchor(model: &mut ModelConfig, folders: &DataFolders) -> Result<(), Box<PretrainedError>> {
    resolve(model, folders).map_err(Box::new)
}

fn resolve(model: &mut ModelConfig, folders: &DataFolders) -> Result<(), PretrainedError> {
    let Some(path) = &mut model.init else {
        return match model.init_checksum {
            None => Ok(()),
            Some(_) => Err(PretrainedError::ChecksumOfNothing),
        };
    };
    let found = folders.find(path).map_err(PretrainedError::Find)?;
    *path = std::path::absolute(&found).map_err(read_error(&found))?;
    let found = checksum(&read(path)?);
    match &model.init_checksum {
        Some(expected) if *expected != found => Err(PretrainedError::Changed {
            path: path.display().to_string(),
            expected: expected.clone(),
            found,
        }),
        _ => {
            model.init_checksum = Some(found);
            Ok(())
        }
    }
}

impl Pretrained {
    /// Loads `model.init` for a model, if it is given.
    ///
    /// # Errors
    /// [`PretrainedError`] if it does not hold tensors of this model, or numbers beyond those of
    /// this arithmetic.
    pub fn load(
        model: &ModelConfig,
        task: &Task,
        arithmetic: ArithmeticName,
    ) -> Result<Option<Arc<Self>>, Box<PretrainedError>> {
        let Some(path) = &model.init else {
            return Ok(None);
        };
        let bytes = read(path)?;
        let path = path.display().to_string();
        let layout = task.layout();
        let pretrained = Self::decode(path, &bytes, &layout)?;
        if arithmetic == ArithmeticName::Integer {
            pretrained.fits_integers(&layout)?;
        }
        Ok(Some(Arc::new(pretrained)))
    }

    fn decode(
        path: String,
        bytes: &[u8],
        layout: &[TensorLayout],
    ) -> Result<Self, PretrainedError> {
        let file = SafeTensors::deserialize(bytes);
        let file = file.map_err(|_| PretrainedError::Format { path: path.clone() })?;
        let names = || {
            let names: Vec<&str> = layout.iter().map(|tensor| tensor.name.as_str()).collect();
            names.join(", ")
        };
        if file.is_empty() {
            let names = names();
            return Err(PretrainedError::Empty { path, names });
        }
        let is_known = |name: &&&str| layout.iter().any(|tensor| tensor.name == **name);
        let mut found = file.names();
        // The format has no fixed order.
        found.sort_unstable();
        if let Some(name) = found.iter().find(|name| !is_known(name)) {
            return Err(PretrainedError::Unknown {
                name: (*name).to_owned(),
                names: names(),
                path,
            });
        }
        let (mut tensors, mut others, mut start) = (Vec::new(), Vec::new(), 0);
        for tensor in layout {
            let range = start..start + tensor.length();
            start = range.end;
            match file.tensor(&tensor.name) {
                Ok(view) => tensors.push((range, values(&path, tensor, &view)?)),
                Err(_) => others.push(tensor.name.clone()),
            }
        }
        Ok(Self {
            path,
            tensors,
            others,
        })
    }

    /// Refuses numbers that devices with integers would silently replace by others.
    fn fits_integers(&self, layout: &[TensorLayout]) -> Result<(), PretrainedError> {
        let given = layout.iter().filter(|of| !self.others.contains(&of.name));
        for (tensor, (_, values)) in given.zip(&self.tensors) {
            if let Some(found) = values.iter().find(|value| round_weight(**value).1) {
                return Err(PretrainedError::Saturated {
                    path: self.path.clone(),
                    name: tensor.name.clone(),
                    found: *found,
                });
            }
        }
        Ok(())
    }

    /// Copies its tensors into a model's parameters.
    pub fn put(&self, parameters: &mut [f32]) {
        for (range, values) in &self.tensors {
            if let Some(place) = parameters.get_mut(range.clone()) {
                place.copy_from_slice(values);
            }
        }
    }

    /// Returns a note for readers of the privacy statement.
    #[must_use]
    pub fn note(&self) -> String {
        let path = &self.path;
        let others = match self.others.as_slice() {
            [] => String::new(),
            others => format!("; {} start from the seed", others.join(", ")),
        };
        format!(
            "Training starts from the parameters in {path}{others}. Epsilon does not cover their \
             training data, which must be public or from other devices."
        )
    }
}

fn values(
    path: &str,
    layout: &TensorLayout,
    view: &TensorView<'_>,
) -> Result<Vec<f32>, PretrainedError> {
    let (path, name) = (path.to_owned(), layout.name.clone());
    if view.dtype() != Dtype::F32 {
        let found = view.dtype();
        return Err(PretrainedError::Type { path, name, found });
    }
    if view.shape() != layout.shape {
        return Err(PretrainedError::Shape {
            found: view.shape().to_vec(),
            expected: layout.shape.clone(),
            path,
            name,
        });
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(PretrainedError::NotFinite { path, name }),
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>, PretrainedError> {
    std::fs::read(path).map_err(read_error(path))
}

fn read_error(path: &Path) -> impl FnOnce(std::io::Error) -> PretrainedError {
    let path = path.display().to_string();
    |source| PretrainedError::Read { path, source }
}

/// Returns the CRC-32 as eight hexadecimal digits.
fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::serialize;

    use super::*;

    fn layout() -> Vec<TensorLayout> {
        let tensor = |name: &str, shape: &[usize]| TensorLayout {
            name: name.to_owned(),
            shape: shape.to_vec(),
            image: None,
        };
        vec![tensor("weights", &[2, 3]), tensor("biases", &[2])]
    }

    fn file(dtype: Dtype, tensors: &[(&str, &[usize], &[f32])]) -> Vec<u8> {
        let tensors: Vec<_> = tensors
            .iter()
            .map(|(name, shape, values)| {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                (*name, shape.to_vec(), bytes)
            })
            .collect();
        let views = tensors.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(dtype, shape.clone(), bytes).unwrap();
            (*name, view)
        });
        serialize(views, None).unwrap()
    }

    fn decode(bytes: &[u8]) -> Result<Pretrained, PretrainedError> {
        Pretrained::decode("a.safetensors".to_owned(), bytes, &layout())
    }

    const WEIGHTS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

    #[test]
    fn tensors_of_the_file_take_their_places() {
        let both = file(
            Dtype::F32,
            &[
                ("biases", &[2], &[7.0, 8.0]),
                ("weights", &[2, 3], &WEIGHTS),
            ],
        );
        let mut parameters = [0.0; 8];
        let pretrained = decode(&both).unwrap();
        pretrained.put(&mut parameters);
        assert_eq!(parameters, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!(!pretrained.note().contains("seed"));

        let biases = decode(&file(Dtype::F32, &[("biases", &[2], &[9.0, 9.0])])).unwrap();
        biases.put(&mut parameters);
        assert_eq!(parameters, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 9.0]);
        assert!(biases.note().contains("; weights start from the seed"));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (bytes, part) in [
            (vec![1, 2, 3], "not a safetensors file"),
            (file(Dtype::F32, &[]), "is empty"),
            (
                file(Dtype::F32, &[("fc.weight", &[2, 3], &WEIGHTS)]),
                "has \"fc.weight\", but the tensors of the model are weights, biases",
            ),
            (
                file(Dtype::F32, &[("weights", &[3, 2], &WEIGHTS)]),
                "has shape [3, 2], but that of the model has shape [2, 3]",
            ),
            (
                file(Dtype::I32, &[("weights", &[2, 3], &WEIGHTS)]),
                "of type I32: F32 is needed",
            ),
            (
                file(Dtype::F32, &[("biases", &[2], &[0.0, f32::NAN])]),
                "not finite",
            ),
        ] {
            let error = decode(&bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn numbers_beyond_the_integers_of_devices_are_refused() {
        let fits = |biases: &[f32]| {
            let bytes = file(Dtype::F32, &[("biases", &[2], biases)]);
            let found = decode(&bytes).unwrap().fits_integers(&layout());
            found.map_err(|error| error.to_string())
        };
        assert_eq!(fits(&[7.999, -7.999]), Ok(()));
        let error = fits(&[1.0, -8.5]).unwrap_err();
        assert!(
            error.contains("biases in a.safetensors holds -8.5"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_changed_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        std::fs::write(&path, file(Dtype::F32, &[("biases", &[2], &[0.0, 1.0])])).unwrap();
        let folders = DataFolders::new(vec![folder.path().to_path_buf()]);
        let mut model = ModelConfig {
            init: Some("a.safetensors".into()),
            ..ModelConfig::default()
        };
        anchor(&mut model, &folders).unwrap();
        assert_eq!(model.init.as_deref(), Some(path.as_path()));
        anchor(&mut model, &folders).unwrap();
        std::fs::write(&path, file(Dtype::F32, &[("biases", &[2], &[0.0, 2.0])])).unwrap();
        let error = anchor(&mut model, &folders).unwrap_err().to_string();
        assert!(error.contains("has changed"), "{error}");
    }
}
