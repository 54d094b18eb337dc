//! The content of a data set: shape, classes, devices, missing values. For `smolfed data inspect`.

use serde::Serialize;

use super::config::{DataConfig, FeaturesTable, SourceConfig, StoredSet};
use super::dataset::{Dataset, Targets};
use super::error::DataError;
use super::features::{FeatureKind, FeatureRecipe};
use super::federation::Federation;
use super::folders::DataFolders;
use super::reads::Read;
use super::source;
use super::synthetic::{Part, Synthetic, SyntheticKind, words};

/// The data of a configuration, before scaling, and the devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The properties of the samples.
    #[serde(flatten)]
    pub facts: Facts,
    /// The fixed features that are computed from each sample, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<ComputedFeatures>,
    /// Suitable fixed features, if none are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested: Option<FeaturesTable>,
    /// The private data that a run with this table reads without noise, with alternatives.
    pub reads: Vec<PrivateRead>,
    /// Features with values beyond constant bounds, and the numbers of clipped values.
    pub beyond_bounds: Vec<(String, u64)>,
    /// Number of rows left out because their labels are outside the known classes.
    pub dropped_rows: usize,
    /// Number of devices left out because they have too few samples.
    pub small_devices: usize,
    /// Unexpected properties of the files, for their owner.
    pub remarks: Vec<String>,
    /// Training samples of the devices.
    pub devices: DeviceSizes,
    /// Number of samples in the validation part.
    pub validation: usize,
    /// Number of samples in the test part.
    pub test: usize,
    /// Fingerprint of the federation, in hexadecimal.
    pub fingerprint: String,
    /// The complete `[data]` table.
    pub config: DataConfig,
}

/// Fixed features of each sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComputedFeatures {
    /// Number of features.
    pub count: usize,
    /// A description of the features.
    pub about: String,
    /// The `[features]` table.
    pub table: FeaturesTable,
    /// The features of the example sample.
    #[serde(skip)]
    pub example: Vec<f32>,
    /// The computation of the features.
    #[serde(skip)]
    pub recipe: FeatureRecipe,
}

/// A step of the preparation that no ε covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PrivateRead {
    /// The key of `[data]` that determines it.
    pub key: &'static str,
    /// The computed quantity.
    pub reads: String,
    /// An alternative that reads nothing.
    pub instead: String,
}

impl PrivateRead {
    fn new(read: Read, facts: &Facts) -> Self {
        let instead = match read {
            Read::Scale if facts.maximum.is_some() => {
                "`scale = \"unit\"`, or `scale = \"private\"`".to_owned()
            }
            Read::Scale => {
                "documented ranges of the features, as `scale = { min = [..], max = [..] }`, \
                            or `scale = \"private\"` with `bounds`"
                    .to_owned()
            }
            Read::TargetScale => {
                "the target's documented range, as `target_scale = { min = .., max = .. }`"
                    .to_owned()
            }
            Read::Missing => {
                "a constant, such as `missing = 0`, or a list with one for each feature".to_owned()
            }
            Read::Classes => match &facts.targets {
                TargetFacts::Classes(classes) => {
                    let names = classes.iter().map(|size| size.class.as_str());
                    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
                    format!(
                        "the classes, if they are public: `classes = [{}]`",
                        names.join(", ")
                    )
                }
                TargetFacts::Values { .. } => String::new(),
            },
            Read::List(list) => {
                let confirmation = list.confirmation();
                format!("`{confirmation} = true`, if the values were public before")
            }
            Read::DeviceCount => "`min_samples = 1`".to_owned(),
        };
        Self {
            key: read.key(),
            reads: format!("{} from the devices' rows", read.what()),
            instead,
        }
    }
}

/// Properties of the samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// The file, as named in errors.
    pub origin: String,
    /// Number of samples over all parts and devices.
    pub samples: u64,
    /// Number of features per sample.
    pub feature_count: usize,
    /// Lengths of the axes of a sample that is a grid. Empty otherwise.
    pub axes: Vec<usize>,
    /// Smallest and largest feature.
    pub feature_range: [f32; 2],
    /// Number of constant features, which contain no information.
    pub constant_features: usize,
    /// Features with missing values.
    pub missing: Vec<MissingValues>,
    /// The targets.
    pub targets: TargetFacts,
    /// The largest possible value of a feature in its format, if known.
    pub maximum: Option<f32>,
    /// One sample, for a picture.
    #[serde(skip)]
    pub example: Example,
}

/// A feature with missing values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingValues {
    /// Its name, or its number from 0.
    pub feature: String,
    /// Number of missing values.
    pub count: usize,
}

/// Properties of the targets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetFacts {
    /// Classes, with the number of samples of each.
    Classes(Vec<ClassSize>),
    /// Numbers.
    Values {
        /// Smallest.
        min: f32,
        /// Largest.
        max: f32,
        /// Mean.
        mean: f64,
    },
}

/// A class and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassSize {
    /// Name, or number from 0.
    pub class: String,
    /// Number of samples.
    pub samples: usize,
}

/// The distribution of training samples over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceSizes {
    /// Number of devices N.
    pub devices: u32,
    /// Fewest samples of a device.
    pub min: usize,
    /// Median of the samples of a device (the lower one).
    pub median: usize,
    /// Most samples of a device.
    pub max: usize,
}

/// A sample as in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Example {
    /// Its features.
    pub features: Vec<f32>,
    /// Its class or value, as text.
    pub target: String,
    /// Its text, if it is a text.
    pub text: Option<String>,
}

/// Number of inspected samples of a synthetic federation.
const SYNTHETIC_SAMPLES: u32 = 10_000;

impl Inspection {
    /// Reads and inspects the data.
    ///
    /// # Errors
    /// [`DataError`] as for a run with this configuration.
    pub fn new(config: &DataConfig, folders: &DataFolders, seed: u64) -> Result<Self, DataError> {
        let (facts, federation) = match &config.source {
            SourceConfig::Stored(stored) => {
                let loaded = source::load(&stored.set, folders)?;
                let samples = loaded.data.len() as u64;
                let facts = Facts::of(&loaded.data, loaded.origin.clone(), samples);
                (facts, Federation::of_loaded(loaded, stored, config, seed)?)
            }
            SourceConfig::Synthetic(synthetic) => {
                let devices = u64::from(synthetic.devices);
                let held_out = [config.validation, config.test].map(|part| part.count(0));
                let samples = devices * u64::from(synthetic.samples_per_device)
                    + held_out.iter().sum::<u64>();
                let origin = "synthetic".to_owned();
                let data = Synthetic::new(*synthetic, seed)
                    .sample(Part::Train, SYNTHETIC_SAMPLES)
                    .map_err(DataError::at(&origin))?;
                let facts = Facts::of(&data, origin, samples);
                (facts, Federation::new(config, folders, seed)?)
            }
        };
        Ok(Self::of(facts, &federation, config))
    }

    /// Inspects samples in the memory of a program, with `source = "memory"`.
    ///
    /// # Errors
    /// [`DataError`] as for a run with this configuration.
    pub fn of_samples(data: Dataset, config: &DataConfig, seed: u64) -> Result<Self, DataError> {
        let samples = data.len() as u64;
        let facts = Facts::of(&data, "the samples in memory".to_owned(), samples);
        let federation = Federation::of_samples(data, 0, config, seed)?;
        Ok(Self::of(facts, &federation, config))
    }

    fn of(mut facts: Facts, federation: &Federation, config: &DataConfig) -> Self {
        facts.example.text = text(config, &facts.example.features);
        let computed = ComputedFeatures::new(config, federation, &facts.example.features);
        let suggested = match (&config.source, &computed) {
            (SourceConfig::Stored(_), None) => FeatureKind::suggested(&facts.axes, facts.maximum),
            _ => None,
        };
        let reads = federation.reads().iter();
        Self {
            computed,
            suggested: suggested.as_ref().map(FeaturesTable::from),
            reads: reads.map(|read| PrivateRead::new(*read, &facts)).collect(),
            beyond_bounds: federation.beyond_bounds(),
            dropped_rows: federation.dropped_rows(),
            small_devices: federation.small_devices(),
            remarks: federation.remarks().to_vec(),
            facts,
            devices: DeviceSizes::of(federation),
            validation: federation.validation().len(),
            test: federation.test().len(),
            fingerprint: format!("{:016x}", federation.fingerprint()),
            config: config.clone(),
        }
    }
}

impl ComputedFeatures {
    fn new(config: &DataConfig, federation: &Federation, example: &[f32]) -> Option<Self> {
        let SourceConfig::Stored(stored) = &config.source else {
            return None;
        };
        let recipe = &federation.inputs()?.recipe;
        Some(Self {
            count: federation.feature_count(),
            about: recipe.in_words(),
            table: stored.features.as_ref()?.into(),
            // The features of all samples were computed without an error.
            example: recipe
                .compute_all(example, example.len(), 0, None)
                .unwrap_or_default(),
            recipe: recipe.clone(),
        })
    }
}

impl Facts {
    fn of(data: &Dataset, origin: String, samples: u64) -> Self {
        let (feature_range, constant_features) = ranges(data);
        Self {
            origin,
            samples,
            feature_count: data.feature_count(),
            axes: data.axes().to_vec(),
            feature_range,
            constant_features,
            missing: missing(data),
            targets: targets(data),
            maximum: data.maximum(),
            example: Example {
                features: data.row(0).collect(),
                target: target(data, 0),
                text: None,
            },
        }
    }
}

impl DeviceSizes {
    fn of(federation: &Federation) -> Self {
        let devices = federation.device_count();
        if let Some(samples) = federation.common_sample_count() {
            return Self {
                devices,
                min: samples,
                median: samples,
                max: samples,
            };
        }
        let mut sizes: Vec<usize> = (0..devices)
            .map(|device| federation.sample_count(device))
            .collect();
        sizes.sort_unstable();
        let at = |index: usize| sizes.get(index).copied().unwrap_or(0);
        let last = sizes.len().saturating_sub(1);
        Self {
            devices,
            min: at(0),
            median: at(last / 2),
            max: at(last),
        }
    }
}

/// Returns the smallest and largest present feature, and the number of constant features.
fn ranges(data: &Dataset) -> ([f32; 2], usize) {
    let mut ranges = vec![[f32::INFINITY, f32::NEG_INFINITY]; data.feature_count()];
    let mut missing = data.missing().iter().peekable();
    for row in 0..data.len() {
        for (at, (value, [min, max])) in data.row(row).zip(&mut ranges).enumerate() {
            if missing
                .next_if_eq(&&(row * data.feature_count() + at))
                .is_none()
            {
                *min = min.min(value);
                *max = max.max(value);
            }
        }
    }
    let constant = ranges.iter().filter(|[min, max]| max <= min).count();
    let all = ranges
        .iter()
        .fold([f32::INFINITY, f32::NEG_INFINITY], |all, range| {
            [all[0].min(range[0]), all[1].max(range[1])]
        });
    (all, constant)
}

fn missing(data: &Dataset) -> Vec<MissingValues> {
    let mut counts = vec![0; data.feature_count()];
    data.missing()
        .iter()
        .for_each(|place| counts[place % data.feature_count()] += 1);
    let named = counts
        .into_iter()
        .enumerate()
        .filter(|&(_, count)| count > 0);
    named
        .map(|(at, count)| MissingValues {
            feature: data.feature_name(at),
            count,
        })
        .collect()
}

fn targets(data: &Dataset) -> TargetFacts {
    match data.targets() {
        Targets::Classes {
            labels,
            class_count,
        } => {
            let mut counts = vec![0; *class_count];
            labels
                .iter()
                .for_each(|&label| counts[usize::from(label)] += 1);
            let sizes = counts.into_iter().enumerate();
            TargetFacts::Classes(
                sizes
                    .map(|(at, samples)| ClassSize {
                        class: class(data, at),
                        samples,
                    })
                    .collect(),
            )
        }
        Targets::Values(values) => TargetFacts::Values {
            min: values.iter().copied().fold(f32::INFINITY, f32::min),
            max: values.iter().copied().fold(f32::NEG_INFINITY, f32::max),
            mean: values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64,
        },
    }
}

fn target(data: &Dataset, row: usize) -> String {
    match data.targets() {
        Targets::Classes { labels, .. } => class(data, usize::from(labels[row])),
        Targets::Values(values) => values[row].to_string(),
    }
}

/// Returns the text of symbols, if the samples are texts.
fn text(config: &DataConfig, symbols: &[f32]) -> Option<String> {
    match &config.source {
        SourceConfig::Stored(stored) => match &stored.set {
            StoredSet::Text(text) => Some(text.alphabet.decode(symbols)),
            _ => None,
        },
        SourceConfig::Synthetic(synthetic) => match synthetic.kind {
            SyntheticKind::Text(_) => Some(words::printed(symbols)),
            _ => None,
        },
    }
}

fn class(data: &Dataset, at: usize) -> String {
    data.names()
        .classes
        .get(at)
        .cloned()
        .unwrap_or_else(|| at.to_string())
}

#[cfg(test)]
mod tests;
