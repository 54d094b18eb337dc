//! How good models are device by device: figures of each device, and what they are over devices.
//!
//! They describe private data without noise: a simulation has them, a coordinator does not
//! (docs/papers.md, P10).

use serde::{Deserialize, Serialize};

use super::quantiles::Quantiles;

/// Accuracies, or root mean squared errors, of a device's models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFigures {
    /// The global model; absent where the shared part is no model by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<f64>,
    /// The device's own model; absent with methods that keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<f64>,
    /// After local steps; absent without fine-tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<f64>,
    /// Trained alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
}

/// Which of a device's models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The global model.
    Shared,
    /// The device's own.
    Own,
    /// Fine-tuned.
    Tuned,
    /// Trained alone.
    Alone,
}

impl Which {
    /// All of them, in the order of a table.
    pub const ALL: [Self; 4] = [Self::Shared, Self::Own, Self::Tuned, Self::Alone];

    /// The word in names of figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Tuned => "tuned",
            Self::Alone => "alone",
        }
    }

    /// A few words for a legend.
    const fn words(self) -> &'static str {
        match self {
            Self::Shared => "shared model",
            Self::Own => "own model",
            Self::Tuned => "fine-tuned",
            Self::Alone => "trained alone",
        }
    }
}

impl ModelFigures {
    /// The figure of one model.
    #[must_use]
    pub const fn get(&self, which: Which) -> Option<f64> {
        match which {
            Which::Shared => self.shared,
            Which::Own => self.own,
            Which::Tuned => self.tuned,
            Which::Alone => self.alone,
        }
    }

    /// Sets the figure of one model.
    pub fn set(&mut self, which: Which, figure: Option<f64>) {
        match which {
            Which::Shared => self.shared = figure,
            Which::Own => self.own = figure,
            Which::Tuned => self.tuned = figure,
            Which::Alone => self.alone = figure,
        }
    }

    /// The figure of the model that a device would use, by which the method is judged.
    #[must_use]
    pub fn result(&self) -> Option<f64> {
        self.tuned.or(self.own).or(self.shared)
    }
}

/// The figures of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Its name: as in the data where devices are natural, else its number.
    pub device: String,
    /// Its number from 0, by which commands know it; absent in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Held-out samples.
    pub samples: usize,
    /// Of its models.
    #[serde(flatten)]
    pub models: ModelFigures,
}

/// Means over devices, each device counting the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceMeans {
    /// Whether they are root mean squared errors and not accuracies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Of each kind of model.
    #[serde(flatten)]
    pub models: ModelFigures,
}

/// How one kind of model does over devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Each device counts the same.
    pub mean: f64,
    /// Each device counts as often as it has held-out samples.
    pub weighted_mean: f64,
    /// Standard deviation over devices: the smaller, the fairer.
    pub std: f64,
    /// Over devices.
    pub quantiles: Quantiles,
}

/// The figures of all evaluated devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Whether figures are root mean squared errors and not accuracies.
    pub is_error: bool,
    /// Labels of a device that a head on an encoder learns from; `None` where models learn from all
    /// samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<usize>,
    /// Kinds of models that no device has, because the training of each of them diverged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diverged: Vec<Which>,
    /// One a device that has held-out samples.
    pub devices: Vec<DeviceFigures>,
}

impl DeviceReport {
    /// A few words for a legend.
    #[must_use]
    pub const fn words(&self, which: Which) -> &'static str {
        match (self.labels, which) {
            (Some(_), Which::Own) => "head on the encoder",
            (Some(_), Which::Alone) => "without the encoder",
            _ => which.words(),
        }
    }

    /// How one kind of model does; `None` without figures.
    #[must_use]
    pub fn spread(&self, which: Which) -> Option<Spread> {
        let figures = || {
            let all = self.devices.iter();
            all.filter_map(move |device| Some((device.models.get(which)?, device.samples as f64)))
        };
        let quantiles = Quantiles::new(figures().map(|(figure, _)| figure).collect())?;
        let count = figures().count() as f64;
        let mean = figures().map(|(figure, _)| figure).sum::<f64>() / count;
        let samples: f64 = figures().map(|(_, samples)| samples).sum();
        let weighted: f64 = figures().map(|(figure, samples)| figure * samples).sum();
        let squares: f64 = figures().map(|(figure, _)| (figure - mean).powi(2)).sum();
        Some(Spread {
            mean,
            weighted_mean: weighted / samples,
            std: (squares / count).sqrt(),
            quantiles,
        })
    }

    /// The means.
    #[must_use]
    pub fn means(&self) -> DeviceMeans {
        let mean = |which| self.spread(which).map(|spread| spread.mean);
        DeviceMeans {
            is_error: self.is_error,
            models: ModelFigures {
                shared: mean(Which::Shared),
                own: mean(Which::Own),
                tuned: mean(Which::Tuned),
                alone: mean(Which::Alone),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_count_devices_or_samples() {
        let device = |own, samples| DeviceFigures {
            samples,
            models: ModelFigures {
                own: Some(own),
                ..ModelFigures::default()
            },
            ..DeviceFigures::default()
        };
        let report = DeviceReport {
            is_error: false,
            labels: None,
            diverged: Vec::new(),
            devices: vec![device(0.5, 1), device(1.0, 3)],
        };
        let spread = report.spread(Which::Own).unwrap();
        assert_eq!(
            (spread.mean, spread.weighted_mean, spread.std),
            (0.75, 0.875, 0.25)
        );
        assert_eq!((spread.quantiles.min, spread.quantiles.max), (0.5, 1.0));
        assert_eq!(report.spread(Which::Tuned), None);
        assert_eq!(report.means().models.result(), Some(0.75));
    }
}
