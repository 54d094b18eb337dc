//! Training data of a device: samples of its provisioning record, up to a maximum number, or
//! windows of its sensor.

use smolfed_core::{
    fixed_point::{Feature, FeatureScale},
    provision::{Stored, StoredSamples},
    samples::{SampleError, Samples},
};

use crate::{
    number::number,
    refused::Refused,
    sensor::{OfStored, Reading, Sense, Windows},
};

/// Maximum number of record samples in use, at four bytes of RAM each.
pub const MAX_SAMPLES: usize = 64;

/// Number of sensor windows kept: `boards.rs`.
pub const WINDOWS: usize = number(env!("SMOLFED_WINDOWS"));

/// Training data of the device. One type for both, so that the training is in the flash once.
pub enum LocalData<'a, const D: usize, T = f32> {
    /// The samples of the provisioning record.
    Stored(StoredSamples<'a, u16>),
    /// The last windows of the sensor.
    Measured(&'a mut Windows<D, WINDOWS, T>),
    /// Features of the record's samples, instead of windows.
    Computed(&'a Windows<D, WINDOWS, T>),
}

impl<'a, const D: usize, T: Reading> LocalData<'a, D, T> {
    /// Uses the record's samples or their features, or windows if it has no samples. Samples are
    /// raw if the record names a recipe, or if the sensor's features have no recipe.
    ///
    /// # Errors
    /// [`Refused`] if the samples do not fit the model or the memory.
    pub fn new<S: Sense<Value = T>>(
        stored: &Stored<'a>,
        has_recipe: bool,
        windows: &'a mut Windows<D, WINDOWS, T>,
        classes: u16,
    ) -> Result<Self, Refused> {
        if stored.is_empty() {
            return Ok(Self::Measured(windows));
        }
        let samples = stored.in_place().map_err(|_| Refused::Samples)?;
        let of_stored = S::OF_STORED.filter(|_| has_recipe == S::RECIPE.is_some());
        let (is_fit, room) = match of_stored {
            Some(_) => (true, WINDOWS),
            None => (stored.feature_count() == D, MAX_SAMPLES),
        };
        if !is_fit {
            return Err(Refused::Samples);
        }
        if stored.len() > room {
            return Err(Refused::TooMany);
        }
        if (0..samples.len()).any(|index| samples.target(index) >= classes) {
            return Err(Refused::Class);
        }
        match of_stored {
            Some(of_stored) => Self::computed(samples, windows, of_stored),
            None => Ok(Self::Stored(samples)),
        }
    }

    /// Computes the features of all samples.
    fn computed(
        samples: StoredSamples<'a, u16>,
        windows: &'a mut Windows<D, WINDOWS, T>,
        of_stored: OfStored<T>,
    ) -> Result<Self, Refused> {
        for index in 0..samples.len() {
            let class = samples.target(index);
            let kept = windows.keep(|features| {
                of_stored(&samples, index, features)?;
                Some(class)
            });
            kept.map_err(|_| Refused::Samples)?;
        }
        // A sample of another length was not kept.
        match windows.samples().len() == samples.len() {
            true => Ok(Self::Computed(windows)),
            false => Err(Refused::Samples),
        }
    }

    /// Lets the sensor measure, if the training data are its windows.
    ///
    /// # Errors
    /// As [`Windows::measure`].
    pub fn measure(&mut self, sensor: &mut impl Sense<Value = T>) -> Result<(), SampleError> {
        match self {
            Self::Measured(windows) => windows.measure(sensor),
            Self::Stored(_) | Self::Computed(_) => Ok(()),
        }
    }
}

impl<const D: usize, T: Reading> Samples for LocalData<'_, D, T> {
    type Target = u16;

    fn len(&self) -> usize {
        match self {
            Self::Stored(samples) => samples.len(),
            Self::Measured(windows) => windows.samples().len(),
            Self::Computed(windows) => windows.samples().len(),
        }
    }

    fn features(&self, index: usize) -> &[f32] {
        match self {
            Self::Stored(samples) => samples.features(index),
            Self::Measured(windows) => windows.samples().features(index),
            Self::Computed(windows) => windows.samples().features(index),
        }
    }

    fn read_integers<X: Feature>(
        &self,
        index: usize,
        scale: FeatureScale,
        row: &mut [i32],
    ) -> usize {
        match self {
            Self::Stored(samples) => samples.read_integers::<X>(index, scale, row),
            Self::Measured(windows) => windows.samples().read_integers::<X>(index, scale, row),
            Self::Computed(windows) => windows.samples().read_integers::<X>(index, scale, row),
        }
    }

    fn target(&self, index: usize) -> u16 {
        match self {
            Self::Stored(samples) => samples.target(index),
            Self::Measured(windows) => windows.samples().target(index),
            Self::Computed(windows) => windows.samples().target(index),
        }
    }
}

/// Samples with ignored labels.
pub struct WithoutLabels<'a, S>(pub &'a S);

impl<S: Samples> Samples for WithoutLabels<'_, S> {
    type Target = ();

    fn len(&self) -> usize {
        self.0.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        self.0.features(index)
    }

    fn target(&self, _: usize) {}
}
