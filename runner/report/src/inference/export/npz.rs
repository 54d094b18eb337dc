//! NumPy's NPZ: an uncompressed zip archive with one NPY file per array.
//!
//! Source: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", version 1.0. Text
//! is `<U` (UTF-32), so that `numpy.load` needs no pickles.

use std::io::{Cursor, Write};

use smolfed_core::features::Range;
use smolfed_data::features::FeatureRecipe;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{Constants, activation_name, cells_of, tensor_names};
use crate::inference::model::{Outputs, TrainedModel};

/// The format of NPY files.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// The header of an NPY file ends at a multiple of this.
const ALIGNMENT: usize = 64;

/// An archive during writing.
struct Archive(ZipWriter<Cursor<Vec<u8>>>);

/// Returns the model as the bytes of an NPZ file.
///
/// # Errors
/// The zip writer's message, to follow "cannot write the NPZ file: ".
pub fn encode(model: &TrainedModel) -> Result<Vec<u8>, String> {
    let write = || -> zip::result::ZipResult<Vec<u8>> {
        let mut archive = Archive(ZipWriter::new(Cursor::new(Vec::new())));
        let constants = Constants::of(model);
        for (name, values) in [
            ("missing", &constants.missing),
            ("min", &constants.min),
            ("max", &constants.max),
            ("mean", &constants.mean),
            ("std", &constants.std),
        ] {
            archive.doubles(name, values)?;
        }
        for (at, layer) in model.layers().iter().enumerate() {
            let [weights, biases] = tensor_names(at);
            archive.floats(weights, &[layer.outputs(), layer.inputs()], layer.weights)?;
            archive.floats(biases, &[layer.outputs()], layer.biases)?;
            if let Some(activation) = layer.activation {
                archive.text("activation", &[activation_name(activation).to_owned()])?;
            }
        }
        if let Some(names) = model.preprocessing.names() {
            let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            archive.text("features", &names)?;
        }
        if let Some(cells) = cells_of(model) {
            archive.text("cells", &[cells])?;
        }
        features(&mut archive, model)?;
        let kind = match model.outputs() {
            Outputs::Value(scale) => {
                archive.doubles("target_mean", &[scale.mean()])?;
                archive.doubles("target_std", &[scale.std()])?;
                "value"
            }
            Outputs::Logit(labels) => {
                archive.text("classes", labels)?;
                "logit"
            }
            Outputs::Logits(labels) => {
                archive.text("classes", labels)?;
                "logits"
            }
            Outputs::Representation => "representation",
        };
        archive.text("outputs", &[kind.to_owned()])?;
        let origins = model.origins();
        let origins = origins.map(|(name, basis)| format!("{name}: {}", basis.name()));
        archive.text("origin", &origins.collect::<Vec<_>>())?;
        Ok(archive.0.finish()?.into_inner())
    };
    write().map_err(|error| error.to_string())
}

/// Adds how features are computed from a row, and the length to which they are shortened.
fn features(archive: &mut Archive, model: &TrainedModel) -> zip::result::ZipResult<()> {
    let preprocessing = &model.preprocessing;
    if let Some(recipe) = &preprocessing.features {
        archive.text("kind", &[recipe.kind().to_owned()])?;
        match recipe {
            FeatureRecipe::Image {
                features,
                planes,
                levels,
            } => {
                let cells = features.cells();
                let image = [*planes, cells.rows(), cells.columns()];
                archive.doubles("image", &image.map(|length| length as f64))?;
                archive.doubles("cell", &[cells.cell() as f64])?;
                archive.doubles("levels", &[f64::from(*levels)])?;
            }
            FeatureRecipe::Steps { steps, ranges } => {
                let bound = |of: fn(&Range<f32>) -> f32| {
                    let bounds = ranges
                        .iter()
                        .map(|range| range.as_ref().map_or(f32::NAN, of));
                    bounds.map(f64::from).collect::<Vec<f64>>()
                };
                archive.doubles("low", &bound(Range::low))?;
                archive.doubles("high", &bound(Range::high))?;
                archive.doubles("steps", &[steps.count() as f64])?;
            }
        }
    }
    match preprocessing.norm_bound {
        Some(bound) => archive.doubles("norm_bound", &[f64::from(bound)]),
        None => Ok(()),
    }
}

impl Archive {
    fn floats(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[f32],
    ) -> zip::result::ZipResult<()> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(name, "<f4", shape, bytes.collect())
    }

    fn doubles(&mut self, name: &str, values: &[f64]) -> zip::result::ZipResult<()> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        self.array(name, "<f8", &[values.len()], bytes.collect())
    }

    /// Adds text. Entries are padded with zeros to the length of the longest.
    fn text(&mut self, name: &str, entries: &[String]) -> zip::result::ZipResult<()> {
        let longest = entries.iter().map(|entry| entry.chars().count()).max();
        let width = longest.unwrap_or(0).max(1);
        let mut bytes = Vec::with_capacity(4 * width * entries.len());
        for entry in entries {
            let characters = entry.chars().map(u32::from);
            let padded = characters.chain(std::iter::repeat(0)).take(width);
            bytes.extend(padded.flat_map(u32::to_le_bytes));
        }
        self.array(name, &format!("<U{width}"), &[entries.len()], bytes)
    }

    fn array(
        &mut self,
        name: &str,
        kind: &str,
        shape: &[usize],
        bytes: Vec<u8>,
    ) -> zip::result::ZipResult<()> {
        // A fixed time, so that the same model gives the same file.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(zip::DateTime::default());
        self.0.start_file(format!("{name}.npy"), options)?;
        let axes: String = shape.iter().map(|axis| format!("{axis}, ")).collect();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({axes}), }}");
        let unpadded = MAGIC.len() + 2 + header.len() + 1;
        let padding = unpadded.next_multiple_of(ALIGNMENT) - unpadded;
        let header = format!("{header}{}\n", " ".repeat(padding));
        self.0.write_all(MAGIC)?;
        self.0.write_all(&(header.len() as u16).to_le_bytes())?;
        self.0.write_all(header.as_bytes())?;
        Ok(self.0.write_all(&bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use zip::ZipArchive;

    use super::*;

    #[test]
    fn arrays_have_the_header_that_numpy_reads() {
        let mut archive = Archive(ZipWriter::new(Cursor::new(Vec::new())));
        archive.floats("w", &[1, 2], &[1.5, -2.0]).unwrap();
        archive
            .text("names", &["é".to_owned(), "ab".to_owned()])
            .unwrap();
        let bytes = archive.0.finish().unwrap().into_inner();
        let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut read = |name: &str| {
            let mut content = Vec::new();
            archive
                .by_name(name)
                .unwrap()
                .read_to_end(&mut content)
                .unwrap();
            let length = usize::from(u16::from_le_bytes([content[8], content[9]]));
            assert_eq!((&content[..8], (10 + length) % 64), (MAGIC, 0));
            let header = String::from_utf8(content[10..10 + length].to_vec()).unwrap();
            (header, content.split_off(10 + length))
        };
        let (header, values) = read("w.npy");
        assert!(
            header.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, ), }")
        );
        assert!(header.ends_with(" \n"), "{header:?}");
        assert_eq!(
            values,
            [1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()
        );
        let (header, text) = read("names.npy");
        assert!(
            header.contains("'<U2'") && header.contains("(2, )"),
            "{header}"
        );
        assert_eq!(
            text,
            [[0xe9, 0, 0, 0], [0; 4], [97, 0, 0, 0], [98, 0, 0, 0]].concat()
        );
    }
}
