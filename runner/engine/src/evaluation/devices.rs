//! Evaluation of models device by device: figures of each device, and their spread across devices.
//!
//! They describe private data without noise: a simulation has them, a coordinator does not
//! (docs/papers.md, P10).

use serde::{Deserialize, Serialize};

use super::quantiles::Quantiles;

/// Accuracies, or root mean squared errors, of a device's models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFigures {
    /// The global model. Absent if the shared part is not a complete model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<f64>,
    /// The device's personal model. Absent with methods without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<f64>,
    /// The model after local steps. Absent without fine-tuning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<f64>,
    /// The model of the device trained alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<f64>,
}

/// A kind of model of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The global model.
    Shared,
    /// The personal model.
    Own,
    /// The fine-tuned model.
    Tuned,
    /// The model of the device trained alone.
    Alone,
}

impl Which {
    /// All kinds, in the order of a table.
    pub const ALL: [Self; 4] = [Self::Shared, Self::Own, Self::Tuned, Self::Alone];

    /// Returns the word in names of figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Own => "own",
            Self::Tuned => "tuned",
            Self::Alone => "alone",
        }
    }

    /// Returns a few words for a legend.
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
    /// Returns the figure of one model.
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

    /// Returns the figure of the model that a device would use, by which the method is judged.
    #[must_use]
    pub fn result(&self) -> Option<f64> {
        self.tuned.or(self.own).or(self.shared)
    }
}

/// The figures of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Name of the device: from the data where devices are natural, otherwise its number.
    pub device: String,
    /// Number from 0 for commands. Absent in runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// Number of held-out samples.
    pub samples: usize,
    /// Figures of its models.
    #[serde(flatten)]
    pub models: ModelFigures,
}

/// Means over devices with equal weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceMeans {
    /// Whether they are root mean squared errors instead of accuracies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Means for each kind of model.
    #[serde(flatten)]
    pub models: ModelFigures,
}

/// Spread of one kind of model across devices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean with equal weights.
    pub mean: f64,
    /// Mean weighted by held-out samples.
    pub weighted_mean: f64,
    /// Standard deviation over devices. A smaller one is fairer.
    pub std: f64,
    /// Quantiles over devices.
    pub quantiles: Quantiles,
}

/// The figures of all evaluated devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReport {
    /// Whether figures are root mean squared errors instead of accuracies.
    pub is_error: bool,
    /// Number of labels per device for training a head on an encoder, or `None` if models learn
    /// from all samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<usize>,
    /// Kinds of models that no device has, because all of their trainings diverged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diverged: Vec<Which>,
    /// One entry per device with held-out samples.
    pub devices: Vec<DeviceFigures>,
}

impl DeviceReport {
    /// Returns a few words for a legend.
    #[must_use]
    pub const fn words(&self, which: Which) -> &'static str {
        match (self.labels, which) {
            (Some(_), Which::Own) => "head on the encoder",
            (Some(_), Which::Alone) => "without the encoder",
            _ => which.words(),
        }
    }

    /// Returns the spread of one kind of model, or `None` without figures.
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

    /// Returns the means.
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
