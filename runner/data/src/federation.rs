//! A federation: devices with their samples, and the held-out parts, as seen by the round loop.
//!
//! For data from files, all devices share one data set and own ranges of row numbers, so the memory
//! is that of the data. Pixels stay bytes, and the pixels of a device become numbers on demand.
//! Synthetic devices are generated on demand.

mod fingerprint;
mod memory;
pub mod outlier;

use super::config::{DataConfig, SourceConfig, StoredConfig};
use super::constants::{Affine, FeatureMap};
use super::dataset::{Dataset, DatasetView, DeviceBuffer, Names, places};
use super::error::{ContentError, DataError};
use super::features::{self, Inputs};
use super::folders::DataFolders;
use super::held_out::HeldOut;
use super::missing::{self, Imputed, Missing};
use super::partition::{Dealing, Partition, follow};
use super::preparation::{ColumnMap, Fill, NumberMap, Preparation};
use super::reads::{List, Read};
use super::remark::Remark;
use super::scale::moments::PrivateScale;
use super::scale::{self, Scale, ScaledTargets, TargetScale};
use super::source::{self, Loaded};
use super::split::{HoldOut, Split};
use super::synthetic::{Part, Synthetic};

/// Devices with their samples, and held-out samples.
#[derive(Clone, Debug)]
pub struct Federation(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Stored(Box<Stored>),
    Generated(Box<Generated>),
}

/// One data set in memory, and the owner of each row.
#[derive(Clone, Debug)]
struct Stored {
    data: Dataset,
    /// The inputs of the features of `data`, if they are fixed features.
    inputs: Option<Inputs>,
    devices: Partition,
    validation: HeldOutRows,
    test: HeldOutRows,
    targets: ScaledTargets,
    is_natural: bool,
    /// The data read from rows without noise.
    reads: Vec<Read>,
    /// The lists of the configuration that the user declared public.
    confirmed: Vec<List>,
    /// Number of clipped values of each feature. Empty without bounds.
    beyond: Vec<u64>,
    /// Number of rows left out because their labels are outside the known classes.
    dropped: usize,
    /// Number of columns left out because they have no name.
    unnamed: usize,
    /// Number of devices left out because they have too few samples.
    small_devices: usize,
    /// Unexpected properties of the files, for their owner.
    remarks: Vec<String>,
    /// A scale that waits for noisy moments.
    private: Option<PrivateScale>,
    /// The maps of the columns.
    columns: Vec<ColumnMap>,
    /// The largest length of a sample. Longer ones are shortened.
    norm_bound: Option<f32>,
    /// The fingerprint before the release of the moments, which it determines.
    fingerprint: Option<u64>,
    /// Noisy means over devices of their moments: public.
    released_moments: Vec<f32>,
}

/// Purposes of the draws of a device's test and validation rows: first index of the stream's name.
const PART_DEVICE_TEST: u32 = 2;
const PART_DEVICE_VALIDATION: u32 = 3;

/// Held-out rows, and those of each device separately, if devices are natural or hold out some of
/// their samples.
#[derive(Clone, Debug)]
struct HeldOutRows {
    rows: Vec<u32>,
    by_device: Option<Partition>,
}

/// Devices on demand, and held-out samples of many of them in memory.
#[derive(Clone, Debug)]
struct Generated {
    synthetic: Synthetic,
    validation: Option<Drawn>,
    test: Option<Drawn>,
}

#[derive(Clone, Debug)]
struct Drawn {
    data: Dataset,
    rows: Vec<u32>,
}

impl Federation {
    /// Reads, splits, fills, scales and deals the data of a checked configuration.
    ///
    /// Missing values and scaling use only the training part. The same configuration, files and
    /// seed give the same federation on every machine.
    ///
    /// # Errors
    /// [`DataError`] for missing or malformed files, and for data that do not suffice for the
    /// configuration.
    pub fn new(config: &DataConfig, folders: &DataFolders, seed: u64) -> Result<Self, DataError> {
        match &config.source {
            SourceConfig::Stored(stored) => {
                Self::of_loaded(source::load(&stored.set, folders)?, stored, config, seed)
            }
            SourceConfig::Synthetic(synthetic) => {
                let generated = Generated::new(Synthetic::new(*synthetic, seed), config)?;
                Ok(Self(Kind::Generated(Box::new(generated))))
            }
        }
    }

    /// Creates a federation like [`new`](Self::new) from samples that were already read.
    pub(super) fn of_loaded(
        loaded: Loaded,
        stored: &StoredConfig,
        config: &DataConfig,
        seed: u64,
    ) -> Result<Self, DataError> {
        Ok(Self(Kind::Stored(Box::new(Stored::new(
            loaded, stored, config, seed,
        )?))))
    }

    /// Returns the number of devices N, at least 1.
    pub fn device_count(&self) -> u32 {
        match &self.0 {
            Kind::Stored(stored) => stored.devices.device_count(),
            Kind::Generated(generated) => generated.synthetic.config().devices,
        }
    }

    /// Returns at most `max_count` devices, spread evenly over the federation and always the same.
    pub fn some_devices(&self, max_count: u32) -> Vec<u32> {
        let count = self.device_count();
        let chosen = count.min(max_count);
        let place = |index: u32| u64::from(index) * u64::from(count) / u64::from(chosen);
        (0..chosen).map(|index| place(index) as u32).collect()
    }

    /// Iterates over the number of training samples of each device.
    pub fn sample_counts(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        let count = |device| u32::try_from(self.sample_count(device)).unwrap_or(u32::MAX);
        (0..self.device_count()).map(count)
    }

    /// Returns the number of training samples of device `device`, at least 1.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    pub fn sample_count(&self, device: u32) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.devices.rows(device).len(),
            Kind::Generated(generated) => generated.synthetic.config().samples_per_device as usize,
        }
    }

    /// Returns a feature of the stored samples, including held-out ones, that is not an integer
    /// below `count`.
    #[must_use]
    pub fn other_than_symbols(&self, count: u16) -> Option<f32> {
        let Kind::Stored(stored) = &self.0 else {
            return None;
        };
        let is_symbol = |x: &f32| (0.0..f32::from(count)).contains(x) && x.fract() == 0.0;
        let mut features = (0..stored.data.len()).flat_map(|row| stored.data.row(row));
        features.find(|feature| !is_symbol(feature))
    }

    /// Returns the number of samples of every device if they are generated, which is the same for
    /// all.
    pub(super) fn common_sample_count(&self) -> Option<usize> {
        match &self.0 {
            Kind::Stored(_) => None,
            Kind::Generated(generated) => {
                Some(generated.synthetic.config().samples_per_device as usize)
            }
        }
    }

    /// Returns the training samples of device `device`: rows of the shared data, without a copy, or
    /// unpacked or generated into `buffer`.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    pub fn device<'a>(&'a self, device: u32, buffer: &'a mut DeviceBuffer) -> DatasetView<'a> {
        match &self.0 {
            Kind::Stored(stored) => stored.data.view(stored.devices.rows(device), buffer),
            Kind::Generated(generated) => {
                let count = generated.synthetic.config().samples_per_device;
                generated
                    .synthetic
                    .device(device, Part::Train, count, buffer)
            }
        }
    }

    /// Returns the samples for choosing settings, which may be empty.
    pub fn validation(&self) -> HeldOut<'_> {
        match &self.0 {
            Kind::Stored(stored) => HeldOut::new(&stored.data, &stored.validation.rows),
            Kind::Generated(generated) => generated.drawn(generated.validation.as_ref()),
        }
    }

    /// Returns the samples for reporting, which may be empty.
    pub fn test(&self) -> HeldOut<'_> {
        match &self.0 {
            Kind::Stored(stored) => HeldOut::new(&stored.data, &stored.test.rows),
            Kind::Generated(generated) => generated.drawn(generated.test.as_ref()),
        }
    }

    /// Returns whether the test samples belong to the devices: each natural device holds out its
    /// own.
    #[must_use]
    pub fn test_belongs_to_devices(&self) -> bool {
        matches!(&self.0, Kind::Stored(stored) if stored.is_natural)
    }

    /// Returns the held-out samples of one device, for its personal model: its rows of the test
    /// part if devices are natural, a share of its rows (`data.device_test`) if rows are dealt, and
    /// as many as it trains on if it is synthetic. `None` if held-out rows belong to no device.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    pub fn device_test<'a>(
        &'a self,
        device: u32,
        buffer: &'a mut DeviceBuffer,
    ) -> Option<DatasetView<'a>> {
        self.device_held_out(device, Part::Test, buffer)
    }

    /// Returns the samples of [`device_test`](Self::device_test) for the validation part.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    pub fn device_validation<'a>(
        &'a self,
        device: u32,
        buffer: &'a mut DeviceBuffer,
    ) -> Option<DatasetView<'a>> {
        self.device_held_out(device, Part::Validation, buffer)
    }

    fn device_held_out<'a>(
        &'a self,
        device: u32,
        part: Part,
        buffer: &'a mut DeviceBuffer,
    ) -> Option<DatasetView<'a>> {
        match &self.0 {
            Kind::Stored(stored) => {
                let held_out = if part == Part::Test {
                    &stored.test
                } else {
                    &stored.validation
                };
                held_out
                    .by_device
                    .as_ref()
                    .map(|rows| stored.data.view(rows.rows(device), buffer))
            }
            Kind::Generated(generated) => {
                let count = generated.synthetic.config().samples_per_device;
                Some(generated.synthetic.device(device, part, count, buffer))
            }
        }
    }

    /// Returns the name of a device: as in the file if devices are natural, otherwise its number.
    pub fn device_name(&self, device: u32) -> String {
        let natural = match &self.0 {
            Kind::Stored(stored) if stored.is_natural => stored.data.groups(),
            _ => None,
        };
        match natural.and_then(|groups| groups.names().get(device as usize)) {
            Some(name) => name.clone(),
            None => device.to_string(),
        }
    }

    /// Returns the number of classes. `None` for regression.
    pub fn class_count(&self) -> Option<usize> {
        match &self.0 {
            Kind::Stored(stored) => stored.data.class_count(),
            Kind::Generated(generated) => generated
                .synthetic
                .config()
                .kind
                .class_count()
                .map(usize::from),
        }
    }

    /// Returns the number of features per sample.
    pub fn feature_count(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.data.feature_count(),
            Kind::Generated(generated) => generated.synthetic.feature_count(),
        }
    }

    /// Returns the lengths of the axes of a sample that is a grid, slowest first. Empty otherwise.
    pub fn axes(&self) -> Vec<usize> {
        match &self.0 {
            Kind::Stored(stored) => stored.data.axes().to_vec(),
            Kind::Generated(generated) => generated.synthetic.axes(),
        }
    }

    /// Returns the names of features and classes, if known.
    pub fn names(&self) -> Names {
        match &self.0 {
            Kind::Stored(stored) => stored.data.names().clone(),
            Kind::Generated(_) => Names::default(),
        }
    }

    /// Returns the inputs of the features, if they are fixed features. The
    /// [`preparation`](Self::preparation) then applies to these values.
    #[must_use]
    pub fn inputs(&self) -> Option<&Inputs> {
        match &self.0 {
            Kind::Stored(stored) => stored.inputs.as_ref(),
            Kind::Generated(_) => None,
        }
    }

    /// Returns the scale of regression targets: an error times its `std` is in the target's unit.
    pub fn target_scale(&self) -> Affine {
        match &self.0 {
            Kind::Stored(stored) => stored.targets.map,
            Kind::Generated(_) => Affine::IDENTITY,
        }
    }

    /// Returns the preparation of each row for the model. With a scale that waits for noisy
    /// moments, it is the map to [−1, 1].
    pub fn preparation(&self) -> Preparation {
        match &self.0 {
            Kind::Stored(stored) => Preparation {
                columns: match &stored.inputs {
                    Some(inputs) => inputs.columns(),
                    None => stored.columns.clone(),
                },
                target: stored.targets.map,
            },
            Kind::Generated(generated) => Preparation::none(generated.synthetic.feature_count()),
        }
    }

    /// Returns the data read from the devices' rows without noise, which no ε covers.
    pub fn reads(&self) -> &[Read] {
        match &self.0 {
            Kind::Stored(stored) => &stored.reads,
            Kind::Generated(_) => &[],
        }
    }

    /// Returns the lists of the configuration that the user declared public.
    pub fn confirmed_lists(&self) -> &[List] {
        match &self.0 {
            Kind::Stored(stored) => &stored.confirmed,
            Kind::Generated(_) => &[],
        }
    }

    /// Returns the names of the features with values clipped to constant bounds, and the numbers of
    /// these values. Private.
    pub fn beyond_bounds(&self) -> Vec<(String, u64)> {
        let Kind::Stored(stored) = &self.0 else {
            return Vec::new();
        };
        let beyond = stored
            .inputs
            .as_ref()
            .map_or(&stored.beyond, |inputs| &inputs.beyond);
        let clipped = beyond.iter().enumerate().filter(|(_, count)| **count > 0);
        let name = |at: usize| match &stored.inputs {
            Some(inputs) => inputs
                .names
                .get(at)
                .cloned()
                .unwrap_or_else(|| at.to_string()),
            None => stored.data.feature_name(at),
        };
        let named = clipped.map(|(at, count)| (name(at), *count));
        let target =
            (stored.targets.beyond > 0).then(|| ("the target".into(), stored.targets.beyond));
        named.chain(target).collect()
    }

    /// Returns the number of rows left out because their labels are outside the known classes.
    /// Private.
    pub fn dropped_rows(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.dropped,
            Kind::Generated(_) => 0,
        }
    }

    /// Returns the number of columns of the file left out because they have no name.
    pub fn unnamed_columns(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.unnamed,
            Kind::Generated(_) => 0,
        }
    }

    /// Returns the number of devices left out because they have too few samples.
    pub fn small_devices(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.small_devices,
            Kind::Generated(_) => 0,
        }
    }

    /// Returns unexpected properties of the reading of the files, as sentences for their owner.
    /// Private.
    pub fn remarks(&self) -> &[String] {
        match &self.0 {
            Kind::Stored(stored) => &stored.remarks,
            Kind::Generated(_) => &[],
        }
    }

    /// Returns the largest possible length of a sample according to the configuration and the
    /// format of the data: by `data.norm_bound`, fixed features, or bounds of values. It does not
    /// read rows. `None` if nothing bounds a sample, and for generated ones.
    #[must_use]
    pub fn max_length(&self) -> Option<f64> {
        let Kind::Stored(stored) = &self.0 else {
            return None;
        };
        let of_features = match &stored.inputs {
            Some(inputs) => Some(inputs.max_length),
            // Moments that are not released yet will map the bounded values.
            None if stored.private.is_some() => None,
            None => length_in_bounds(&stored.columns),
        };
        let bounds = stored
            .norm_bound
            .map(f64::from)
            .into_iter()
            .chain(of_features);
        bounds.min_by(f64::total_cmp)
    }

    /// Returns R of `data.norm_bound`.
    #[must_use]
    pub fn norm_bound(&self) -> Option<f32> {
        match &self.0 {
            Kind::Stored(stored) => stored.norm_bound,
            Kind::Generated(_) => None,
        }
    }

    /// Returns the scale that waits for noisy moments, if there is one. Until then, the features
    /// are the input of these moments: in [−1, 1], by the bounds.
    pub fn private_scale(&self) -> Option<&PrivateScale> {
        match &self.0 {
            Kind::Stored(stored) => stored.private.as_ref(),
            Kind::Generated(_) => None,
        }
    }

    /// Returns how constants of `data.scale` would apply to the features. `None` for generated and
    /// fixed features, for shortened samples, and if another scale has been applied.
    #[must_use]
    pub fn unscaled(&self, config: &DataConfig) -> Option<Unscaled> {
        let (Kind::Stored(stored), SourceConfig::Stored(keys)) = (&self.0, &config.source) else {
            return None;
        };
        let maximum = stored.data.maximum().map_or(1.0, f64::from);
        let unit = match keys.scale {
            Scale::None => maximum,
            Scale::Unit => 1.0,
            _ => return None,
        };
        let is_plain = stored.inputs.is_none() && stored.norm_bound.is_none();
        is_plain.then(|| Unscaled {
            unit,
            indicators: stored.data.indicators(),
        })
    }

    /// Returns the number of values that a device sends for a waiting scale. 0 if there is none.
    #[must_use]
    pub fn moment_count(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => {
                let private = stored.private.as_ref();
                private.map_or(0, |private| private.length(&stored.data))
            }
            Kind::Generated(_) => 0,
        }
    }

    /// Writes the message of a device for a waiting scale. Private.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count), or `moments` has another
    /// length than [`Self::moment_count`].
    pub fn write_moments(&self, device: u32, moments: &mut [f32]) {
        if let Kind::Stored(stored) = &self.0
            && let Some(private) = &stored.private
        {
            private.write(&stored.data, stored.devices.rows(device), moments);
        }
    }

    /// Returns the federation with the scale from the public means over the devices' messages.
    /// `noise_std` is the noise std of these means.
    #[must_use]
    pub fn scaled_by(&self, means: &[f32], noise_std: f64) -> Self {
        let mut scaled = self.clone();
        let fingerprint = self.fingerprint();
        if let Kind::Stored(stored) = &mut scaled.0
            && let Some(private) = stored.private.take()
        {
            stored.fingerprint = Some(fingerprint);
            stored.released_moments = means.to_vec();
            let data = &mut stored.data;
            let maps = private.scales(data, means, noise_std);
            scale::apply_each(data, &maps);
            if let Some(bound) = stored.norm_bound {
                data.shorten(bound);
            }
            for (column, map) in stored.columns.iter_mut().zip(maps) {
                if let ColumnMap::Number(number) = column {
                    number.then = map;
                }
            }
        }
        scaled
    }

    /// Returns the means given to [`Self::scaled_by`]. Empty if no scale was released.
    #[must_use]
    pub fn released_moments(&self) -> &[f32] {
        match &self.0 {
            Kind::Stored(stored) => &stored.released_moments,
            Kind::Generated(_) => &[],
        }
    }
}

/// Features to which no scale but `"none"` or `"unit"` has been applied.
#[derive(Clone, Debug, PartialEq)]
pub struct Unscaled {
    /// The unit of the constants of `data.scale`, in units of the features: the largest value, if
    /// it is known and they were not divided by it, else 1.
    pub unit: f64,
    /// Whether each feature is the 0 or 1 of a category. Empty if none is.
    pub indicators: Vec<bool>,
}

impl Stored {
    fn new(
        loaded: Loaded,
        stored: &StoredConfig,
        config: &DataConfig,
        seed: u64,
    ) -> Result<Self, DataError> {
        let Loaded {
            data,
            test_rows,
            origin,
            dropped,
            unnamed,
            small_devices,
            mut remarks,
            ..
        } = loaded;
        let (mut data, inputs) = replaced(data, stored).map_err(DataError::at(&origin))?;
        let natural = stored.dealing == Dealing::Natural;
        let split = Split::new(
            &data,
            test_rows,
            config.validation,
            config.test,
            natural,
            seed,
        )
        .map_err(DataError::at(&origin))?;
        let untrained = Remark::of_classes(&data, &split.train, stored.set.reads_classes());
        remarks.extend(untrained.map(|remark| format!("{origin}: {remark}")));
        let prepared =
            Prepared::new(&mut data, &split.train, stored).map_err(DataError::at(&origin))?;
        let mut devices = Partition::new(&data, &split.train, stored.dealing, seed)
            .map_err(DataError::at(&origin))?;
        let mut held_out = |rows: Vec<u32>, share: f64, part| {
            let by_device = if natural {
                data.groups()
                    .map(|groups| Partition::natural(groups, &rows))
            } else {
                (share > 0.0).then(|| devices.hold_out(share, part, seed))
            };
            HeldOutRows { rows, by_device }
        };
        let test = held_out(split.test, stored.device_test, PART_DEVICE_TEST);
        // Both shares refer to the rows dealt to the device.
        let rest = stored.device_validation / (1.0 - stored.device_test);
        let validation = held_out(split.validation, rest, PART_DEVICE_VALIDATION);
        let private = match &stored.scale {
            Scale::Private(private) => Some(private.clone()),
            _ => None,
        };
        let mut stored = Self {
            is_natural: natural,
            data,
            inputs,
            devices,
            validation,
            test,
            targets: prepared.targets,
            reads: prepared.reads,
            confirmed: prepared.confirmed,
            beyond: prepared.beyond,
            dropped,
            unnamed,
            small_devices,
            remarks,
            private,
            norm_bound: stored.norm_bound,
            columns: prepared.columns,
            fingerprint: None,
            released_moments: Vec::new(),
        };
        if let (Some(bound), None) = (stored.norm_bound, &stored.private) {
            stored.data.shorten(bound);
        }
        stored.sort_by_device();
        Ok(stored)
    }

    /// Moves the samples of each device to one place: reading images scattered over the memory took
    /// longer than training on them. The other rows follow.
    fn sort_by_device(&mut self) {
        let mut order = self.devices.all_rows().to_vec();
        let mut is_dealt = vec![false; self.data.len()];
        for row in &order {
            is_dealt[*row as usize] = true;
        }
        order.extend((0..).zip(&is_dealt).filter(|row| !row.1).map(|row| row.0));
        if order.is_sorted() {
            return;
        }
        self.data.reorder(&order);
        let places = places(&order);
        self.devices.follow(&places);
        for part in [&mut self.validation, &mut self.test] {
            follow(&mut part.rows, &places);
            if let Some(by_device) = &mut part.by_device {
                by_device.follow(&places);
            }
        }
    }
}

/// Replaces the samples by their features, if these are to be computed, and returns the inputs.
fn replaced(
    data: Dataset,
    stored: &StoredConfig,
) -> Result<(Dataset, Option<Inputs>), ContentError> {
    let Some(kind) = &stored.features else {
        return Ok((data, None));
    };
    let (features, made_of) = features::replace(data, kind, stored.integers)?;
    Ok((features, Some(made_of)))
}

/// Returns the largest length of samples whose columns have bounds, if all have them.
fn length_in_bounds(columns: &[ColumnMap]) -> Option<f64> {
    let largest = |column: &ColumnMap| match column {
        ColumnMap::Zero => Some(0.0),
        ColumnMap::Number(number) => {
            let affine = number.map.affine;
            let ends = number.map.bounds.filter(|_| number.then.is_none())?;
            let ends = ends.map(|end| ((end - affine.mean()) / affine.std()).abs());
            Some(ends[0].max(ends[1]))
        }
    };
    let squares = columns.iter().map(|column| largest(column).map(|x| x * x));
    Some(squares.sum::<Option<f64>>()?.sqrt())
}

/// The preparation of the rows before they are dealt.
struct Prepared {
    targets: ScaledTargets,
    columns: Vec<ColumnMap>,
    reads: Vec<Read>,
    confirmed: Vec<List>,
    beyond: Vec<u64>,
}

impl Prepared {
    /// Fills and scales `data`, by constants or by statistics of the `training` rows.
    fn new(
        data: &mut Dataset,
        training: &[u32],
        stored: &StoredConfig,
    ) -> Result<Self, ContentError> {
        let imputed = match (&stored.missing, &stored.scale) {
            // Open until noisy means are available. Until then, the middle of the bounds.
            (Missing::Mean, Scale::Private(private)) => {
                let maps = private.maps(data)?;
                missing::fill(data, |feature| Some(maps[feature].affine.mean()));
                None
            }
            (how, _) => Some(missing::impute(data, training, how)?),
        };
        let scaled = scale::scale_features(data, training, &stored.scale)?;
        let targets = scale::scale_targets(data, training, &stored.target_scale)?;
        let mut reads = Vec::new();
        let steps = [
            (
                Read::Missing,
                imputed.as_ref().is_some_and(|imputed| imputed.reads_rows),
            ),
            (Read::Scale, stored.scale.reads_rows()),
            (
                Read::TargetScale,
                stored.target_scale == TargetScale::Standardise,
            ),
            (Read::Classes, stored.set.reads_classes()),
            (Read::DeviceCount, stored.set.leaves_out_devices()),
        ];
        reads.extend(steps.into_iter().filter(|step| step.1).map(|step| step.0));
        let lists = stored.set.lists_of_rows();
        let (confirmed, open): (Vec<_>, Vec<_>) = lists.partition(|(_, is_public)| *is_public);
        reads.extend(open.into_iter().map(|(list, _)| Read::List(list)));
        Ok(Self {
            targets,
            columns: columns(stored, imputed, scaled.maps),
            reads,
            confirmed: confirmed.into_iter().map(|(list, _)| list).collect(),
            beyond: scaled.beyond,
        })
    }
}

/// Returns the map of each feature: first its gaps are filled, then it is scaled.
fn columns(
    stored: &StoredConfig,
    imputed: Option<Imputed>,
    maps: Vec<Option<FeatureMap>>,
) -> Vec<ColumnMap> {
    // The mean of a feature without gaps is that of its scale, if it has its own.
    let is_centred = matches!(stored.scale, Scale::StandardiseFeatures | Scale::Private(_));
    let mean = (is_centred && stored.missing == Missing::Mean).then_some(Fill::Mean);
    let values = imputed.map_or(vec![None; maps.len()], |imputed| imputed.values);
    let column = |(map, value): (Option<FeatureMap>, Option<f64>)| match map {
        None => ColumnMap::Zero,
        Some(map) => ColumnMap::Number(NumberMap {
            missing: value.map(Fill::Value).or(mean),
            map,
            then: None,
        }),
    };
    maps.into_iter().zip(values).map(column).collect()
}

impl Generated {
    fn new(synthetic: Synthetic, config: &DataConfig) -> Result<Self, DataError> {
        let draw = |part, hold_out| match hold_out {
            HoldOut::Rows(0) | HoldOut::Fraction(_) | HoldOut::LastFraction(_) => Ok(None),
            HoldOut::Rows(rows) => {
                let drawn = synthetic.sample(part, rows);
                let data = drawn.map_err(DataError::at("synthetic data"))?;
                let rows = (0..rows).collect();
                Ok(Some(Drawn { data, rows }))
            }
        };
        let validation = draw(Part::Validation, config.validation)?;
        let test = draw(Part::Test, config.test)?;
        Ok(Self {
            synthetic,
            validation,
            test,
        })
    }

    fn drawn<'a>(&self, drawn: Option<&'a Drawn>) -> HeldOut<'a> {
        match drawn {
            Some(drawn) => HeldOut::new(&drawn.data, &drawn.rows),
            None => DatasetView::empty(self.synthetic.feature_count()).into(),
        }
    }
}

#[cfg(test)]
mod tests;
