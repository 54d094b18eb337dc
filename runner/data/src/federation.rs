//! A federation: devices with their samples, and the parts held out, as the round loop sees them.
//!
//! Read from files, all devices share one data set and own ranges of row numbers, so that memory
//! is that of the data: pixels stay bytes, and a device's become numbers when they are asked for.
//! Synthetic devices are generated then.

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

/// One data set in memory, and who owns which row.
#[derive(Clone, Debug)]
struct Stored {
    data: Dataset,
    /// What the features of `data` are made of, if they are fixed features.
    inputs: Option<Inputs>,
    devices: Partition,
    validation: HeldOutRows,
    test: HeldOutRows,
    targets: ScaledTargets,
    is_natural: bool,
    /// What was read from rows without noise.
    reads: Vec<Read>,
    /// The lists of the configuration that the user declared public.
    confirmed: Vec<List>,
    /// Values of each feature that were clipped; empty where there are no bounds.
    beyond: Vec<u64>,
    /// Rows that were left out, as their labels are none of the known classes.
    dropped: usize,
    /// Columns that were left out, as they have no name.
    unnamed: usize,
    /// Devices that were left out, as they have too few samples.
    small_devices: usize,
    /// What the owner of the files may not expect.
    remarks: Vec<String>,
    /// A scale that waits for moments under noise.
    private: Option<PrivateScale>,
    /// What became of the columns.
    columns: Vec<ColumnMap>,
    /// The largest length of a sample; longer ones are shortened.
    norm_bound: Option<f32>,
    /// Fingerprint from before these moments, which follow from it.
    fingerprint: Option<u64>,
    /// Means over devices of what they sent for the scale, under noise: public.
    released_moments: Vec<f32>,
}

/// What the test and validation rows of a device are drawn by: first index of the stream's name.
const PART_DEVICE_TEST: u32 = 2;
const PART_DEVICE_VALIDATION: u32 = 3;

/// Rows held out; those of a device by itself as well, where devices are natural or keep some of
/// their samples back.
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
    /// Missing values and scaling look at the training part only. The same configuration, files
    /// and seed give the same federation on every machine.
    ///
    /// # Errors
    /// [`DataError`] for files that are missing or malformed, and for data that do not suffice for
    /// the configuration.
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

    /// As [`new`](Self::new), of samples that have been read.
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

    /// Number of devices N, at least 1.
    pub fn device_count(&self) -> u32 {
        match &self.0 {
            Kind::Stored(stored) => stored.devices.device_count(),
            Kind::Generated(generated) => generated.synthetic.config().devices,
        }
    }

    /// At most `max_count` devices, evenly over the federation and the same each time.
    pub fn some_devices(&self, max_count: u32) -> Vec<u32> {
        let count = self.device_count();
        let chosen = count.min(max_count);
        let place = |index: u32| u64::from(index) * u64::from(count) / u64::from(chosen);
        (0..chosen).map(|index| place(index) as u32).collect()
    }

    /// Samples that each device trains on.
    pub fn sample_counts(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        let count = |device| u32::try_from(self.sample_count(device)).unwrap_or(u32::MAX);
        (0..self.device_count()).map(count)
    }

    /// Samples that device `device` trains on, at least 1.
    ///
    /// # Panics
    /// If `device` is not below [`device_count`](Self::device_count).
    pub fn sample_count(&self, device: u32) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.devices.rows(device).len(),
            Kind::Generated(generated) => generated.synthetic.config().samples_per_device as usize,
        }
    }

    /// A feature of the stored samples, held-out ones among them, that is no whole number below
    /// `count`.
    #[must_use]
    pub fn other_than_symbols(&self, count: u16) -> Option<f32> {
        let Kind::Stored(stored) = &self.0 else {
            return None;
        };
        let is_symbol = |x: &f32| (0.0..f32::from(count)).contains(x) && x.fract() == 0.0;
        let mut features = (0..stored.data.len()).flat_map(|row| stored.data.row(row));
        features.find(|feature| !is_symbol(feature))
    }

    /// Samples of every device where they are generated, the same for all.
    pub(super) fn common_sample_count(&self) -> Option<usize> {
        match &self.0 {
            Kind::Stored(_) => None,
            Kind::Generated(generated) => {
                Some(generated.synthetic.config().samples_per_device as usize)
            }
        }
    }

    /// The samples that device `device` trains on: rows of the shared data, without a copy, or
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

    /// Samples to choose settings by; may be empty.
    pub fn validation(&self) -> HeldOut<'_> {
        match &self.0 {
            Kind::Stored(stored) => HeldOut::new(&stored.data, &stored.validation.rows),
            Kind::Generated(generated) => generated.drawn(generated.validation.as_ref()),
        }
    }

    /// Samples to report on; may be empty.
    pub fn test(&self) -> HeldOut<'_> {
        match &self.0 {
            Kind::Stored(stored) => HeldOut::new(&stored.data, &stored.test.rows),
            Kind::Generated(generated) => generated.drawn(generated.test.as_ref()),
        }
    }

    /// Whether the test samples belong to the devices: each natural device holds its own out.
    #[must_use]
    pub fn test_belongs_to_devices(&self) -> bool {
        matches!(&self.0, Kind::Stored(stored) if stored.is_natural)
    }

    /// Held-out samples of one device, for its personal model: its rows of the test part where
    /// devices are natural, a share of the rows that it was dealt (`data.device_test`), as many as
    /// it trains on where it is synthetic. `None` where held-out rows belong to nobody.
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

    /// As [`device_test`](Self::device_test), of the validation part.
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

    /// Name of a device: as in the file where devices are natural, else its number.
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

    /// Number of classes; `None` for regression.
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

    /// Features a sample.
    pub fn feature_count(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.data.feature_count(),
            Kind::Generated(generated) => generated.synthetic.feature_count(),
        }
    }

    /// Lengths of the axes of a sample that is a grid, slowest first; empty otherwise.
    pub fn axes(&self) -> Vec<usize> {
        match &self.0 {
            Kind::Stored(stored) => stored.data.axes().to_vec(),
            Kind::Generated(generated) => generated.synthetic.axes(),
        }
    }

    /// Names of features and classes, where known.
    pub fn names(&self) -> Names {
        match &self.0 {
            Kind::Stored(stored) => stored.data.names().clone(),
            Kind::Generated(_) => Names::default(),
        }
    }

    /// What the features are made of, if they are fixed features. The
    /// [`preparation`](Self::preparation) is then that of these values.
    #[must_use]
    pub fn inputs(&self) -> Option<&Inputs> {
        match &self.0 {
            Kind::Stored(stored) => stored.inputs.as_ref(),
            Kind::Generated(_) => None,
        }
    }

    /// How regression targets were scaled: an error times its `std` is one in the target's unit.
    pub fn target_scale(&self) -> Affine {
        match &self.0 {
            Kind::Stored(stored) => stored.targets.map,
            Kind::Generated(_) => Affine::IDENTITY,
        }
    }

    /// What became of each row before a model reads it. With a scale that waits for moments under
    /// noise, the map to [−1, 1].
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

    /// What was read from the devices' rows without noise, and no ε covers.
    pub fn reads(&self) -> &[Read] {
        match &self.0 {
            Kind::Stored(stored) => &stored.reads,
            Kind::Generated(_) => &[],
        }
    }

    /// The lists of the configuration that the user declared public.
    pub fn confirmed_lists(&self) -> &[List] {
        match &self.0 {
            Kind::Stored(stored) => &stored.confirmed,
            Kind::Generated(_) => &[],
        }
    }

    /// The features of which values were clipped to constant bounds, by name, and how many values;
    /// private.
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

    /// Rows that were left out, as their labels are none of the known classes; private.
    pub fn dropped_rows(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.dropped,
            Kind::Generated(_) => 0,
        }
    }

    /// Columns of the file that were left out, as they have no name.
    pub fn unnamed_columns(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.unnamed,
            Kind::Generated(_) => 0,
        }
    }

    /// Devices that were left out, as they have too few samples.
    pub fn small_devices(&self) -> usize {
        match &self.0 {
            Kind::Stored(stored) => stored.small_devices,
            Kind::Generated(_) => 0,
        }
    }

    /// What the owner of the files may not expect of how they were read, as sentences; private.
    pub fn remarks(&self) -> &[String] {
        match &self.0 {
            Kind::Stored(stored) => &stored.remarks,
            Kind::Generated(_) => &[],
        }
    }

    /// The largest length that a sample can have, as far as the configuration and the format of the
    /// data say it: that of `data.norm_bound`, of fixed features, or of values in bounds. No row is
    /// read for it. `None` where nothing bounds a sample, and for generated ones.
    #[must_use]
    pub fn max_length(&self) -> Option<f64> {
        let Kind::Stored(stored) = &self.0 else {
            return None;
        };
        let of_features = match &stored.inputs {
            Some(inputs) => Some(inputs.max_length),
            // Moments that are open now will map what is in bounds.
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

    /// R of `data.norm_bound`.
    #[must_use]
    pub fn norm_bound(&self) -> Option<f32> {
        match &self.0 {
            Kind::Stored(stored) => stored.norm_bound,
            Kind::Generated(_) => None,
        }
    }

    /// The scale that waits for moments under noise, if there is one. Until then, features are
    /// those that moments are released of: in [−1, 1], by the bounds.
    pub fn private_scale(&self) -> Option<&PrivateScale> {
        match &self.0 {
            Kind::Stored(stored) => stored.private.as_ref(),
            Kind::Generated(_) => None,
        }
    }

    /// Numbers that a device sends for a scale that waits for them; 0 if none does.
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

    /// Writes what a device sends for a scale that waits for it: private.
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

    /// The same federation with the scale from means over devices of what they sent, which are
    /// public; `noise_std` is that of these means.
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

    /// What [`Self::scaled_by`] was given; empty where no scale was released.
    #[must_use]
    pub fn released_moments(&self) -> &[f32] {
        match &self.0 {
            Kind::Stored(stored) => &stored.released_moments,
            Kind::Generated(_) => &[],
        }
    }
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
        // Both shares refer to what the device was dealt.
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

    /// Moves the samples of each device to one place: to read images from all over the memory took
    /// longer than to train on them. The other rows follow.
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

/// The features of the samples in their place, if they are to be computed, and of what.
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

/// The largest length of samples whose columns have bounds, if all have.
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

/// What became of the rows before they were dealt.
struct Prepared {
    targets: ScaledTargets,
    columns: Vec<ColumnMap>,
    reads: Vec<Read>,
    confirmed: Vec<List>,
    beyond: Vec<u64>,
}

impl Prepared {
    /// Fills and scales `data`, by constants or by statistics of the rows `training`.
    fn new(
        data: &mut Dataset,
        training: &[u32],
        stored: &StoredConfig,
    ) -> Result<Self, ContentError> {
        let imputed = match (&stored.missing, &stored.scale) {
            // Open until there are means under noise; the middle of the bounds until then.
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

/// What became of each feature: its gaps were filled, then it was mapped.
fn columns(
    stored: &StoredConfig,
    imputed: Option<Imputed>,
    maps: Vec<Option<FeatureMap>>,
) -> Vec<ColumnMap> {
    // The mean of a feature without gaps is that of its scale, where it has one of its own.
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
