//! What a device trains on: the samples of its provisioning record, or windows of its sensor.

use smolfed_core::{
    fixed_point::{Feature, FeatureScale},
    provision::{Stored, StoredSamples},
    samples::{SampleError, Samples},
};

use crate::{
    number::number,
    sensor::{OfStored, Reading, Sense, Windows},
};

/// Samples of the record that are used, at most: four bytes of RAM each.
pub const MAX_SAMPLES: usize = 64;

/// Windows of the sensor that are kept: `boards.rs`.
pub const WINDOWS: usize = number(env!("SMOLFED_WINDOWS"));

/// What the device trains on. One type for both, so that the training is in the flash once.
pub enum LocalData<'a, const D: usize, T = f32> {
    /// The samples of the provisioning record.
    Stored(StoredSamples<'a, u16>),
    /// The last windows of the sensor.
    Measured(&'a mut Windows<D, WINDOWS, T>),
    /// Features of the record's samples, in the place of windows.
    Computed(&'a Windows<D, WINDOWS, T>),
}

impl<'a, const D: usize, T: Reading> LocalData<'a, D, T> {
    /// The record's samples or their features, or windows where it has none; `None` if the samples
    /// do not fit the model. Samples are raw if the record names a recipe, or if the features of
    /// the sensor have no recipe.
    pub fn new<S: Sense<Value = T>>(
        stored: &Stored<'a>,
        has_recipe: bool,
        windows: &'a mut Windows<D, WINDOWS, T>,
        classes: u16,
    ) -> Option<Self> {
        if stored.is_empty() {
            return Some(Self::Measured(windows));
        }
        if let Some(of_stored) = S::OF_STORED
            && has_recipe == S::RECIPE.is_some()
        {
            return Self::computed(stored, windows, of_stored);
        }
        if stored.feature_count() != D || stored.len() > MAX_SAMPLES {
            return None;
        }
        let samples = stored.in_place().ok()?;
        let has_classes = (0..samples.len()).all(|index| samples.target(index) < classes);
        has_classes.then_some(Self::Stored(samples))
    }

    /// Features of all samples, if there are windows for them.
    fn computed(
        stored: &Stored<'a>,
        windows: &'a mut Windows<D, WINDOWS, T>,
        of_stored: OfStored<T>,
    ) -> Option<Self> {
        let samples = stored.in_place().ok()?;
        for index in 0..samples.len() {
            let class = samples.target(index);
            let kept = windows.keep(|features| {
                of_stored(&samples, index, features)?;
                Some(class)
            });
            kept.ok()?;
        }
        // A sample of another length was not kept.
        (windows.samples().len() == samples.len()).then_some(Self::Computed(windows))
    }

    /// Lets the sensor measure, if its windows are what is trained on.
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

/// Samples whose labels nobody reads.
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
