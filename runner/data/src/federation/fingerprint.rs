//! A fingerprint of all data that a run reads.
//!
//! Two CRC-32: over the content (features, targets, settings of synthetic devices), and over the
//! owner of each row. An accidental change is undetected with probability 2⁻³² for either. There is
//! no protection against a deliberate one.

use crc32fast::Hasher;

use super::{Federation, Generated, Kind, Stored};
use crate::dataset::{Dataset, Targets};
use crate::synthetic::tasks::TasksConfig;
use crate::synthetic::windows::WindowsConfig;
use crate::synthetic::{SyntheticConfig, SyntheticKind};

impl Federation {
    /// Returns a stable number of the data, their scaling, split and partition: a resumed run
    /// compares it with the one at its stop.
    ///
    /// * Cost: one pass over the data.
    pub fn fingerprint(&self) -> u64 {
        if let Kind::Stored(stored) = &self.0
            && let Some(before) = stored.fingerprint
        {
            return before;
        }
        let (content, dealing) = match &self.0 {
            Kind::Stored(stored) => (dataset(&stored.data), stored.dealing()),
            Kind::Generated(generated) => (generated.content(), generated.held_out()),
        };
        (u64::from(content.finalize()) << 32) | u64::from(dealing.finalize())
    }
}

impl Stored {
    fn dealing(&self) -> Hasher {
        let mut hasher = Hasher::new();
        for device in 0..self.devices.device_count() {
            numbers(&mut hasher, self.devices.rows(device));
        }
        numbers(&mut hasher, &self.validation.rows);
        numbers(&mut hasher, &self.test.rows);
        hasher
    }
}

impl Generated {
    /// Hashes the settings and the first device, which represents all: their streams share its
    /// seed.
    fn content(&self) -> Hasher {
        let mut hasher = Hasher::new();
        hasher.update(settings(self.synthetic.config()).as_bytes());
        if let Ok(data) = self.synthetic.sample(super::Part::Train, 1) {
            hasher.combine(&dataset(&data));
        }
        hasher
    }

    fn held_out(&self) -> Hasher {
        let mut hasher = Hasher::new();
        for drawn in [&self.validation, &self.test].into_iter().flatten() {
            hasher.combine(&dataset(&drawn.data));
        }
        hasher
    }
}

/// Returns the settings of synthetic devices as text. The classes have the position from when all
/// kinds had classes, because ledgers and checkpoints of earlier runs contain it.
fn settings(config: &SyntheticConfig) -> String {
    let SyntheticConfig {
        devices,
        samples_per_device,
        noise,
        kind,
    } = config;
    let (classes, kind) = match kind {
        SyntheticKind::Tasks(TasksConfig {
            classes,
            features,
            heterogeneity,
            shift,
        }) => (
            classes,
            format!(
                "Tasks(TasksConfig {{ features: {features}, heterogeneity: {heterogeneity:?}, \
                 shift: {shift:?} }})"
            ),
        ),
        SyntheticKind::Windows(
            windows @ WindowsConfig {
                classes,
                channels,
                window,
                drift,
                features,
                ..
            },
        ) => {
            let jitter = windows.unusual_jitter();
            let jitter = jitter.map_or(String::new(), |jitter| format!(", jitter: {jitter:?}"));
            let features = features.map_or(String::new(), |recipe| format!(", {recipe:?}"));
            let kind = format!(
                "Windows(WindowsConfig {{ channels: {channels}, window: {window}, drift: \
                 {drift:?}{jitter}{features} }})"
            );
            (classes, kind)
        }
        SyntheticKind::Readings(_) | SyntheticKind::Text(_) => return format!("{config:?}"),
    };
    format!(
        "SyntheticConfig {{ devices: {devices}, samples_per_device: {samples_per_device}, \
         classes: {classes}, noise: {noise:?}, kind: {kind} }}"
    )
}

fn dataset(data: &Dataset) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(&(data.feature_count() as u64).to_le_bytes());
    for row in 0..data.len() {
        floats(&mut hasher, data.row(row));
    }
    match data.targets() {
        Targets::Values(values) => floats(&mut hasher, values.iter().copied()),
        Targets::Classes {
            labels,
            class_count,
        } => {
            hasher.update(&(*class_count as u64).to_le_bytes());
            let bytes: Vec<u8> = labels
                .iter()
                .flat_map(|label| label.to_le_bytes())
                .collect();
            hasher.update(&bytes);
        }
    }
    hasher
}

fn floats(hasher: &mut Hasher, values: impl Iterator<Item = f32>) {
    let bytes: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
    hasher.update(&bytes);
}

/// Hashes the length first, so that the same rows in different portions differ.
fn numbers(hasher: &mut Hasher, values: &[u32]) {
    hasher.update(&(values.len() as u64).to_le_bytes());
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    hasher.update(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change here changes the identity of all runs on such data.
    #[test]
    fn settings_are_named_as_in_earlier_versions() {
        let config = |kind| SyntheticConfig {
            devices: 40,
            samples_per_device: 5,
            noise: 0.1,
            kind,
        };
        let tasks = TasksConfig {
            classes: 2,
            features: 4,
            heterogeneity: 0.5,
            shift: 1.0,
        };
        assert_eq!(
            settings(&config(SyntheticKind::Tasks(tasks))),
            "SyntheticConfig { devices: 40, samples_per_device: 5, classes: 2, noise: 0.1, kind: \
             Tasks(TasksConfig { features: 4, heterogeneity: 0.5, shift: 1.0 }) }"
        );
        let windows = WindowsConfig {
            classes: 3,
            channels: 2,
            window: 16,
            drift: 0.2,
            jitter: 0.5,
            features: None,
        };
        assert_eq!(
            settings(&config(SyntheticKind::Windows(windows))),
            "SyntheticConfig { devices: 40, samples_per_device: 5, classes: 3, noise: 0.1, kind: \
             Windows(WindowsConfig { channels: 2, window: 16, drift: 0.2 }) }"
        );
    }
}
