//! State between rounds, as stored in a checkpoint: texts and arrays of numbers, in the format of
//! safetensors.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{SafeTensorError, SafeTensors, TensorView, serialize};

pub use safetensors::tensor::Dtype;

/// The stored state of a method, of the server or of the release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Short texts by their key.
    pub entries: BTreeMap<String, String>,
    /// Arrays by their name.
    pub tensors: BTreeMap<String, SavedTensor>,
}

/// An array of numbers, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedTensor {
    /// The type of the numbers.
    pub dtype: Dtype,
    /// The lengths of its axes.
    pub shape: Vec<usize>,
    /// The numbers.
    pub bytes: Vec<u8>,
}

/// The type of the numbers in an array.
pub trait Number: Sized {
    /// Its name in the format.
    const DTYPE: Dtype;

    /// Encodes numbers as bytes.
    fn write(numbers: impl Iterator<Item = Self>) -> Vec<u8>;

    /// Decodes bytes as numbers. `None` if a byte is left over.
    fn read(bytes: &[u8]) -> Option<Vec<Self>>;

    /// Returns whether the value is a finite number.
    fn is_finite(&self) -> bool {
        true
    }
}

macro_rules! numbers {
    ($($number:ident $dtype:ident $({ $finite:item })?)+) => {$(
        impl Number for $number {
            const DTYPE: Dtype = Dtype::$dtype;

            fn write(numbers: impl Iterator<Item = Self>) -> Vec<u8> {
                numbers.flat_map(Self::to_le_bytes).collect()
            }

            fn read(bytes: &[u8]) -> Option<Vec<Self>> {
                let (words, rest) = bytes.as_chunks();
                let numbers = words.iter().map(|word| Self::from_le_bytes(*word));
                rest.is_empty().then(|| numbers.collect())
            }

            $($finite)?
        }
    )+};
}

numbers! {
    u8 U8
    u32 U32
    i64 I64
    f32 F32 { fn is_finite(&self) -> bool { Self::is_finite(*self) } }
    f64 F64 { fn is_finite(&self) -> bool { Self::is_finite(*self) } }
}

impl Saved {
    /// Adds an array.
    pub fn put<T: Number>(
        &mut self,
        name: &str,
        shape: impl Into<Vec<usize>>,
        numbers: impl IntoIterator<Item = T>,
    ) {
        let tensor = SavedTensor {
            dtype: T::DTYPE,
            shape: shape.into(),
            bytes: T::write(numbers.into_iter()),
        };
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// Returns the numbers of an array, all of which are finite.
    ///
    /// # Errors
    /// The reason, to follow "the file is damaged: ".
    pub fn get<T: Number>(&self, name: &str) -> Result<Vec<T>, String> {
        let tensor = self.tensors.get(name);
        let tensor = tensor.ok_or_else(|| format!("it has no `{name}`"))?;
        let (found, expected) = (tensor.dtype, T::DTYPE);
        if found != expected {
            return Err(format!(
                "`{name}` does not match this version: its numbers are {found:?}, not {expected:?}"
            ));
        }
        let numbers = T::read(&tensor.bytes).ok_or_else(|| format!("`{name}` is truncated"))?;
        match numbers.iter().all(Number::is_finite) {
            true => Ok(numbers),
            false => Err(format!("`{name}` has a number that is not finite")),
        }
    }

    /// Adds all entries of `other`, with `prefix` before their names.
    pub fn put_all(&mut self, prefix: &str, other: Self) {
        let name = |name: String| format!("{prefix}{name}");
        let entries = other.entries.into_iter();
        self.entries.extend(entries.map(|(key, x)| (name(key), x)));
        let tensors = other.tensors.into_iter();
        self.tensors.extend(tensors.map(|(key, x)| (name(key), x)));
    }

    /// Removes and returns the entries added by [`Self::put_all`] with `prefix`.
    pub fn take_all(&mut self, prefix: &str) -> Self {
        fn taken<T>(all: &mut BTreeMap<String, T>, prefix: &str) -> BTreeMap<String, T> {
            let taken = all.extract_if(.., |name, _| name.starts_with(prefix));
            let taken = taken.map(|(name, x)| (name[prefix.len()..].to_owned(), x));
            taken.collect()
        }
        Self {
            entries: taken(&mut self.entries, prefix),
            tensors: taken(&mut self.tensors, prefix),
        }
    }

    /// Encodes the state as the bytes of a file.
    ///
    /// # Errors
    /// The reason, if the format cannot represent the state.
    pub fn encode(&self) -> Result<Vec<u8>, String> {
        let tensors = self.tensors.iter().map(|(name, tensor)| {
            let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes)?;
            Ok((name, view))
        });
        // An empty map is omitted.
        let entries = (!self.entries.is_empty()).then(|| self.entries.clone());
        let entries = entries.map(|entries| entries.into_iter().collect::<HashMap<_, _>>());
        let tensors = tensors.collect::<Result<Vec<_>, SafeTensorError>>();
        let bytes = tensors.and_then(|tensors| serialize(tensors, entries));
        bytes.map_err(|error| error.to_string())
    }

    /// Decodes the bytes of a file.
    ///
    /// # Errors
    /// The reason, to follow "the file is damaged: ".
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(not_tensors)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(not_tensors)?;
        let tensors = tensors.iter().map(|(name, view)| {
            let tensor = SavedTensor {
                dtype: view.dtype(),
                shape: view.shape().to_vec(),
                bytes: view.data().to_vec(),
            };
            (name.to_owned(), tensor)
        });
        let entries = header.metadata().clone().unwrap_or_default();
        Ok(Self {
            entries: entries.into_iter().collect(),
            tensors: tensors.collect(),
        })
    }
}

/// Describes bytes that the parser refuses, for readers who do not know the format.
fn not_tensors(_: SafeTensorError) -> String {
    "it is not a safetensors file, or is truncated".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> Saved {
        let mut saved = Saved::default();
        saved.put("rows", [2, 1], [7_u32, 8]);
        saved.put("single", [2], [1.5_f32, f32::NAN]);
        saved.put("double", [1], [-0.0_f64]);
        saved.entries.insert("round".to_owned(), "3".to_owned());
        saved
    }

    #[test]
    fn a_file_holds_all_of_it() {
        for saved in [Saved::default(), saved()] {
            let bytes = saved.encode().unwrap();
            assert_eq!(Saved::decode(&bytes).unwrap(), saved);
        }
    }

    #[test]
    fn parts_are_told_apart_by_their_prefix() {
        let mut both = saved();
        both.put_all("method.", saved());
        assert_ne!(both, saved());
        assert_eq!(both.take_all("method."), saved());
        assert_eq!(both, saved());
        assert_eq!(both.take_all("method."), Saved::default());
    }

    #[test]
    fn numbers_are_of_their_type_and_finite() {
        let mut saved = saved();
        assert_eq!(saved.get("rows"), Ok(vec![7_u32, 8]));
        let double: Vec<f64> = saved.get("double").unwrap();
        assert!(double[0].is_sign_negative());
        let reason = |saved: &Saved, name| saved.get::<f32>(name).unwrap_err();
        assert_eq!(reason(&saved, "none"), "it has no `none`");
        assert!(reason(&saved, "rows").ends_with("its numbers are U32, not F32"));
        assert!(reason(&saved, "single").ends_with("not finite"));
        saved.tensors.get_mut("single").unwrap().bytes.pop();
        assert!(reason(&saved, "single").ends_with("truncated"));
    }

    #[test]
    fn what_is_no_file_of_tensors_is_refused() {
        let cut = &saved().encode().unwrap()[..40];
        for bytes in [&b""[..], b"{}", cut] {
            let reason = Saved::decode(bytes).unwrap_err();
            assert!(
                reason.starts_with("it is not a safetensors file"),
                "{reason}"
            );
        }
    }
}
