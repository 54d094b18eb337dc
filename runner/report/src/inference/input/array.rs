//! Rows of IDX, NumPy and LEAF files, of folders of images and of texts, whose features have no
//! names.

use std::borrow::Cow;
use std::path::Path;

use super::rows::{Options, Rows, prepare, unknown};
use crate::inference::error::InferenceError;
use smolfed_data::archive;
use smolfed_data::array::Array as ArrayOf;
use smolfed_data::dataset::{Features, Targets, TaskKind};
use smolfed_data::error::DataError;
use smolfed_data::files;
use smolfed_data::idx;
use smolfed_data::images::{self, ImageShape};
use smolfed_data::leaf::{self, LeafSamples};
use smolfed_data::npy;
use smolfed_data::table::listed;
use smolfed_engine::preprocessing::{Preprocessing, Target};

/// The formats with labels in a separate file.
const LABELLED: &str = "IDX and NumPy files";

/// Rows in memory.
pub(super) struct Array {
    features: Features,
    /// The remaining digits of large numbers, for which the features have no room.
    rests: Vec<(usize, f64)>,
    width: usize,
    /// One per row, if requested.
    targets: Option<Vec<f32>>,
    /// Names of the rows, if not their numbers.
    ids: Option<Vec<String>>,
    /// Number of rows read so far.
    done: usize,
}

impl Array {
    /// Reads the rows of an IDX or NumPy file, with targets from another file of either format.
    pub(super) fn of_array(
        bytes: &[u8],
        origin: &str,
        preprocessing: &Preprocessing,
        options: Options<'_>,
    ) -> Result<Self, InferenceError> {
        refuse_columns(origin, options)?;
        let bytes = array_of(bytes, origin)?;
        let array = parse(&bytes, origin)?;
        let rows = array.sample_count();
        let (features, rests) = (array.features(), array.rests());
        let targets = match (options.has_targets, options.labels) {
            (false, _) => None,
            (true, Some(path)) => Some(entries(path, preprocessing, origin, rows)?),
            (true, None) => {
                return Err(InferenceError::NoTargets {
                    origin: origin.to_owned(),
                    advice: "name their file with `--labels`",
                });
            }
        };
        Ok(Self {
            width: features.len() / rows,
            features,
            rests,
            targets,
            ids: None,
            done: 0,
        })
    }

    /// Reads the images of a folder. The name of an image's folder is its class.
    pub(super) fn of_images(
        folder: &Path,
        origin: &str,
        preprocessing: &Preprocessing,
        options: Options<'_>,
    ) -> Result<Self, InferenceError> {
        refuse_columns(origin, options)?;
        if options.labels.is_some() {
            return Err(wrong_option(origin, "--labels", LABELLED));
        }
        let shape = ImageShape::new(&preprocessing.axes);
        let shape = shape.ok_or_else(|| InferenceError::NoImages {
            origin: origin.to_owned(),
        })?;
        let (features, images) =
            images::load_below(folder, shape).map_err(DataError::at(origin))?;
        let class = |image: &images::Image| {
            let place = || format!("the folder of {}", image.path.display());
            let labels = preprocessing.labels();
            match labels.iter().position(|label| *label == image.class) {
                Some(class) => Ok(class as f32),
                None => Err(unknown(preprocessing, origin, place(), &image.class)),
            }
        };
        let targets: Option<Result<Vec<f32>, _>> = options
            .has_targets
            .then(|| images.iter().map(class).collect());
        let names = images.iter().map(|image| image.path.display().to_string());
        Ok(Self {
            width: features.len() / images.len(),
            features,
            rests: Vec::new(),
            targets: targets.transpose()?,
            ids: Some(names.collect()),
            done: 0,
        })
    }

    /// Reads the rows of a LEAF file, or of all in a zip archive.
    pub(super) fn of_leaf(
        bytes: &[u8],
        origin: &str,
        options: Options<'_>,
    ) -> Result<Self, InferenceError> {
        refuse_columns(origin, options)?;
        if options.labels.is_some() {
            return Err(wrong_option(origin, "--labels", LABELLED));
        }
        let mut samples = LeafSamples::default();
        for member in archive::unpack(bytes, "json").map_err(DataError::at(origin))? {
            let part = leaf::parse(&member).and_then(|part| samples.append(part));
            part.map_err(DataError::at(origin))?;
        }
        // As numbers, whatever they mean: a file of one class is fine here.
        let data = samples.into_dataset(TaskKind::Regression, None, usize::MAX);
        let data = data.map_err(DataError::at(origin))?;
        let targets = match data.targets() {
            Targets::Values(values) => values.clone(),
            Targets::Classes { labels, .. } => labels.iter().copied().map(f32::from).collect(),
        };
        Ok(Self {
            width: data.feature_count(),
            features: data.features().clone(),
            rests: Vec::new(),
            targets: options.has_targets.then_some(targets),
            ids: None,
            done: 0,
        })
    }

    /// Reads the ends of texts, or all their samples if targets are requested.
    pub(super) fn of_text(
        bytes: &[u8],
        origin: &str,
        preprocessing: &Preprocessing,
        options: Options<'_>,
    ) -> Result<Self, InferenceError> {
        const CLASSES: &str = "tables with labels; the class of a text is its next character";
        let refuse = |option, meant| Err(wrong_option(origin, option, meant));
        match (options, &preprocessing.text) {
            (Options { label: Some(_), .. }, _) => refuse("--label", CLASSES),
            (
                Options {
                    labels: Some(_), ..
                },
                _,
            ) => refuse("--labels", LABELLED),
            (
                Options {
                    has_header: false, ..
                },
                _,
            ) => refuse("--no-header", "tables of numbers"),
            (_, None) => refuse("data.text_column", "texts"),
            (_, Some(text)) => {
                let width = preprocessing.columns.len();
                let pieces = match options.has_targets {
                    true => text.samples(bytes, width),
                    false => text.ends(bytes, width, options.id),
                };
                let pieces = pieces.map_err(DataError::at(origin))?;
                let targets = pieces.next.into_iter().map(f32::from);
                Ok(Self {
                    features: Features::of_bytes(pieces.symbols),
                    rests: Vec::new(),
                    width,
                    targets: options.has_targets.then(|| targets.collect()),
                    ids: (!pieces.names.is_empty()).then_some(pieces.names),
                    done: 0,
                })
            }
        }
    }

    /// Returns the digits of a large number that the feature at this place omits.
    fn rest(&self, place: usize) -> f64 {
        let found = self.rests.binary_search_by_key(&place, |(at, _)| *at);
        found.map_or(0.0, |at| self.rests[at].1)
    }

    /// Returns the number of features per row.
    pub(super) const fn width(&self) -> usize {
        self.width
    }

    /// Returns the next rows.
    pub(super) fn next(
        &mut self,
        count: usize,
        origin: &str,
        preprocessing: &Preprocessing,
    ) -> Result<Rows, InferenceError> {
        let total = self.features.len() / self.width;
        let end = total.min(self.done.saturating_add(count));
        let mut rows = Rows::default();
        let mut raw = vec![0.0; self.width];
        for row in self.done..end {
            self.features.write(row * self.width, &mut raw);
            for (at, value) in raw.iter().enumerate() {
                let place = || format!("row {}, feature {at}", row + 1);
                let value = f64::from(*value) + self.rest(row * self.width + at);
                let value = Some(value).filter(|value| !value.is_nan());
                rows.features
                    .push(prepare(preprocessing, at, value, origin, place)?);
            }
            let target = self.targets.as_ref().map(|targets| targets[row]);
            rows.targets.push(match target {
                None => 0.0,
                Some(target) => read(preprocessing, origin, row, target)?,
            });
            rows.ids.push(match &self.ids {
                Some(ids) => ids[row].clone(),
                None => (row + 1).to_string(),
            });
        }
        self.done = end;
        Ok(rows)
    }
}

/// Returns a target in the model's form.
fn read(
    preprocessing: &Preprocessing,
    origin: &str,
    row: usize,
    target: f32,
) -> Result<f32, InferenceError> {
    match &preprocessing.target {
        Target::Classes { labels, .. } => {
            let class = target as u16;
            let is_class = f32::from(class).to_bits() == target.to_bits();
            match is_class && usize::from(class) < labels.len() {
                true => Ok(target),
                false => {
                    let place = format!("the label of row {}", row + 1);
                    Err(unknown(preprocessing, origin, place, &target.to_string()))
                }
            }
        }
        Target::Value { scale, .. } => Ok(scale.apply(target)),
        Target::Representation => Ok(0.0),
    }
}

/// Returns whether a file is an archive of arrays (.npz).
pub(super) fn has_arrays(bytes: &[u8]) -> bool {
    archive::member_names(bytes, "npy").is_ok_and(|names| !names.is_empty())
}

/// Returns the only array of an archive, or the bytes unchanged.
fn array_of<'b>(bytes: &'b [u8], origin: &str) -> Result<Cow<'b, [u8]>, InferenceError> {
    if !has_arrays(bytes) {
        return Ok(Cow::Borrowed(bytes));
    }
    let names = archive::member_names(bytes, "npy").map_err(DataError::at(origin))?;
    match names.as_slice() {
        [name] => {
            let array = archive::member(bytes, &format!("{name}.npy"));
            Ok(Cow::Owned(array.map_err(DataError::at(origin))?))
        }
        _ => Err(InferenceError::Arrays {
            origin: origin.to_owned(),
            names: listed(names.iter().map(String::as_str)),
            example: names.first().cloned().unwrap_or_default(),
        }),
    }
}

/// Parses an array of either format, recognised by its first bytes.
fn parse<'b>(bytes: &'b [u8], origin: &str) -> Result<Box<dyn ArrayOf + 'b>, InferenceError> {
    Ok(match bytes.starts_with(npy::MAGIC) {
        true => Box::new(npy::parse(bytes).map_err(DataError::at(origin))?),
        false => Box::new(idx::parse(bytes).map_err(DataError::at(origin))?),
    })
}

/// Reads the targets in a file: classes by number, or values.
fn entries(
    path: &Path,
    preprocessing: &Preprocessing,
    origin: &str,
    expected: usize,
) -> Result<Vec<f32>, InferenceError> {
    let name = path.display().to_string();
    let bytes = files::read_unpacked(path)?;
    let bytes = array_of(&bytes, &name)?;
    let array = parse(&bytes, &name)?;
    let targets: Vec<f32> = match &preprocessing.target {
        Target::Value { .. } => {
            let values = array.entries().map_err(DataError::at(&name))?;
            values.into_iter().map(|value| value as f32).collect()
        }
        Target::Classes { .. } | Target::Representation => {
            let labels = array.indices(u32::from(u16::MAX));
            let labels = labels.map_err(DataError::at(&name))?;
            // At most 2¹⁶.
            labels.into_iter().map(|label| label as f32).collect()
        }
    };
    match targets.len() == expected {
        true => Ok(targets),
        false => Err(DataError::Count {
            origin: name,
            found: targets.len(),
            partner: origin.to_owned(),
            expected,
        }
        .into()),
    }
}

/// Refuses options that name columns.
fn refuse_columns(origin: &str, options: Options<'_>) -> Result<(), InferenceError> {
    let refuse = |option| Err(wrong_option(origin, option, "tables"));
    match options {
        Options { label: Some(_), .. } => refuse("--label"),
        Options { id: Some(_), .. } => refuse("--id"),
        Options {
            has_header: false, ..
        } => refuse("--no-header"),
        _ => Ok(()),
    }
}

fn wrong_option(origin: &str, option: &'static str, meant: &'static str) -> InferenceError {
    InferenceError::Option {
        origin: origin.to_owned(),
        option,
        meant,
    }
}
