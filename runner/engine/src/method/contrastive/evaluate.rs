//! Quality of representations, on the desktop. They are compared by labels that training does not
//! see.
//!
//! | figure | definition |
//! | --- | --- |
//! | k nearest neighbours | the majority among the nearest training samples |
//! | linear probe | a linear model on frozen representations of training samples |
//! | heads | on each device, a softmax head on the frozen encoder, from a few of its own labels |
//!
//! All of them read private data without noise. A simulation has them, a federation of real devices
//! does not.

use rayon::prelude::*;
use smolfed_core::contrast::{Representation, represent};
use smolfed_core::lanes;
use smolfed_core::model::{Parametric, Softmax};
use smolfed_core::params::{LearningRate, Penalty};
use smolfed_core::personal::{Effort, PersonalTraining, StepMemory};
use smolfed_core::samples::Samples;
use smolfed_core::stream::{Purpose, Root, Stream, StreamId, shuffle};
use smolfed_core::train::TrainError;
use smolfed_simd::{Kernels, Rows, Steps};

use super::settings::ContrastSettings;
use crate::evaluation::devices::{DeviceFigures, DeviceReport, ModelFigures};
use crate::method::contract::{Figures, View};
use crate::representation::{Labelled, Picture, knn_accuracy, probe_accuracy};
use smolfed_data::dataset::DatasetView;
use smolfed_data::dataset::DeviceBuffer;
use smolfed_data::federation::Federation;
use smolfed_data::held_out::HeldOut;

/// Maximum number of training samples for neighbours and for the probe.
const MAX_BANK: usize = 10_000;
/// Maximum number of held-out samples: in the last round and in the others.
const MAX_QUERIES: [usize; 2] = [10_000, 2_000];
/// Streams of heads, above any round of a run.
const HEADS: u32 = u32::MAX - 2;
/// Training of a head on a few samples.
const HEAD_EPOCHS: u32 = 100;
const HEAD_BATCH: std::num::NonZeroU32 = std::num::NonZeroU32::MIN.saturating_add(4);
const HEAD_RATE: f32 = 0.1;

/// A device's own part of the held-out samples.
type OfDevice = for<'a> fn(&'a Federation, u32, &'a mut DeviceBuffer) -> Option<DatasetView<'a>>;

/// An encoder, and the devices for its evaluation.
#[derive(Clone, Copy)]
pub struct Evaluator<'a> {
    /// The encoder, and the numbers of neighbours and labels.
    pub plan: &'a ContrastSettings,
    /// Its parameters.
    pub parameters: &'a [f32],
    /// The devices.
    pub federation: &'a Federation,
}

/// Representations of some samples of each part.
#[derive(Clone, Debug)]
pub struct Represented {
    /// Training samples.
    pub bank: Labelled,
    /// Test samples, possibly none.
    pub test: Labelled,
    /// Validation samples, possibly none.
    pub validation: Labelled,
}

impl Evaluator<'_> {
    /// Evaluates the encoder's representations by their neighbours and, after the last round, by a
    /// linear probe. The last round also has figures of each device, and a picture.
    #[must_use]
    pub fn figures(&self, view: &View<'_>, max_devices: u32) -> Figures {
        let Some(represented) = self.samples(view.is_last) else {
            return Figures::default();
        };
        let Represented {
            bank,
            test,
            validation,
        } = represented;
        let neighbours = |held_out| knn_accuracy(&bank, held_out, self.plan.neighbours);
        let mut figures = Figures {
            knn_accuracy: [&test, &validation].map(neighbours),
            ..Figures::default()
        };
        if view.is_last {
            let classes = self.federation.class_count().unwrap_or(0);
            figures.picture = Picture::new(&test, self.federation.names().classes);
            figures.probe_accuracy = probe_accuracy(&bank, &test, classes);
            figures.devices = self.heads(view.root, max_devices);
            let means = figures.devices.as_ref().map(DeviceReport::means);
            figures.means = [means, None];
        }
        figures
    }

    /// Returns representations of samples of each part, evenly over devices, or `None` if the data
    /// have no classes or the encoder has diverged.
    #[must_use]
    pub fn samples(&self, is_last: bool) -> Option<Represented> {
        self.federation.class_count()?;
        let [last, others] = MAX_QUERIES;
        let most = if is_last { last } else { others };
        let (test, validation) = (self.federation.test(), self.federation.validation());
        Some(Represented {
            bank: self.training()?,
            test: self.held_out(test, Federation::device_test, most)?,
            validation: self.held_out(validation, Federation::device_validation, most)?,
        })
    }

    fn training(&self) -> Option<Labelled> {
        let devices = self.federation.device_count();
        let counts: Vec<usize> = (0..devices)
            .map(|device| self.federation.sample_count(device))
            .collect();
        let total: usize = counts.iter().sum();
        let mut bank = self.empty();
        let mut before = 0;
        let mut buffer = DeviceBuffer::default();
        for (device, count) in (0..devices).zip(counts) {
            let taken = evenly(before, count, total, MAX_BANK);
            before += count;
            if !taken.is_empty() {
                let view = self.federation.device(device, &mut buffer);
                self.add(&view, &taken, &mut bank).ok()?;
            }
        }
        Some(bank)
    }

    /// Represents the common held-out samples or, if each device has its own, the devices' samples.
    fn held_out(&self, common: HeldOut<'_>, own: OfDevice, most: usize) -> Option<Labelled> {
        let mut queries = self.empty();
        let mut buffer = DeviceBuffer::default();
        if !common.is_empty() {
            let taken = evenly(0, common.len(), common.len(), most);
            let common = common.all(&mut buffer);
            self.add(&common, &taken, &mut queries).ok()?;
            return Some(queries);
        }
        let devices = self.federation.device_count();
        let share = most.div_ceil(devices as usize);
        for device in 0..devices {
            if let Some(view) = own(self.federation, device, &mut buffer) {
                let taken = evenly(0, view.len(), view.len(), share);
                self.add(&view, &taken, &mut queries).ok()?;
            }
        }
        Some(queries)
    }

    fn empty(&self) -> Labelled {
        Labelled {
            width: self.plan.network.output_count(),
            ..Labelled::default()
        }
    }

    /// Adds the representations of some rows.
    fn add(
        &self,
        view: &DatasetView<'_>,
        rows: &[usize],
        to: &mut Labelled,
    ) -> Result<(), TrainError> {
        /// Rows that one thread represents at once.
        const PIECE: usize = 256;
        let pieces: Vec<Result<Vec<f32>, TrainError>> = rows
            .par_chunks(PIECE)
            .map(|rows| self.represent(&Chosen { view, rows }))
            .collect();
        for piece in pieces {
            to.values.extend(piece?);
        }
        to.classes.extend(rows.iter().map(|row| view.label(*row)));
        Ok(())
    }

    fn represent(&self, samples: &impl Samples) -> Result<Vec<f32>, TrainError> {
        let network = &self.plan.network;
        let mut values = vec![0.0; samples.len() * network.output_count()];
        let mut hidden = vec![0.0; network.hidden_count()];
        represent(network, self.parameters, samples, &mut hidden, &mut values)?;
        Ok(values)
    }

    /// Returns the accuracy of a separate head on each device, on its own held-out samples. The
    /// head learns from the labels of a few samples, on the frozen encoder ("own") and on the
    /// features themselves ("alone"). `None` if devices have no held-out samples of their own.
    #[must_use]
    pub fn heads(&self, root: &Root, max_devices: u32) -> Option<DeviceReport> {
        let classes = self.federation.class_count()?;
        let devices: Vec<DeviceFigures> = self
            .federation
            .some_devices(max_devices)
            .into_par_iter()
            .filter_map(|device| self.head(device, classes, root))
            .collect();
        (!devices.is_empty()).then_some(DeviceReport {
            is_error: false,
            labels: Some(self.plan.labels),
            diverged: Vec::new(),
            devices,
        })
    }

    fn head(&self, device: u32, classes: usize, root: &Root) -> Option<DeviceFigures> {
        let (mut buffer, mut test_buffer) = (DeviceBuffer::default(), DeviceBuffer::default());
        let test = self.federation.device_test(device, &mut test_buffer)?;
        if test.is_empty() {
            return None;
        }
        let view = self.federation.device(device, &mut buffer);
        let stream = |round| {
            root.stream(StreamId {
                purpose: Purpose::BatchShuffle,
                round,
                device,
            })
        };
        let mut order: Vec<usize> = (0..view.len()).collect();
        shuffle(&mut order, &mut stream(HEADS));
        order.truncate(self.plan.labels);
        let few = Chosen {
            view: &view,
            rows: &order,
        };
        let all: Vec<usize> = (0..test.len()).collect();
        let held_out = Chosen {
            view: &test,
            rows: &all,
        };
        let labels = |chosen: &Chosen<'_>| {
            let rows = chosen.rows.iter();
            rows.map(|row| chosen.view.label(*row))
                .collect::<Vec<u16>>()
        };
        let (few_labels, test_labels) = (labels(&few), labels(&held_out));
        let score = |mut learn: Vec<f32>, mut ask: Vec<f32>| {
            let mut order = stream(HEADS - 1);
            to_one_scale(&mut learn, &mut ask);
            accuracy(
                [&learn, &ask],
                [&few_labels, &test_labels],
                classes,
                &mut order,
            )
        };
        let features = |chosen: &Chosen<'_>| {
            let rows = 0..chosen.len();
            rows.flat_map(|row| chosen.features(row).to_vec())
                .collect::<Vec<f32>>()
        };
        let encoded = [&few, &held_out].map(|chosen| self.represent(chosen).ok());
        let own = match encoded {
            [Some(learn), Some(ask)] => score(learn, ask),
            _ => None,
        };
        Some(DeviceFigures {
            device: self.federation.device_name(device),
            number: Some(device),
            samples: test.len(),
            models: ModelFigures {
                own,
                alone: score(features(&few), features(&held_out)),
                ..ModelFigures::default()
            },
        })
    }
}

/// Divides both by the root mean square of the first, which a device knows. The scale of an
/// encoder's outputs carries no information, and must not decide how far a head gets.
fn to_one_scale(learn: &mut [f32], ask: &mut [f32]) {
    let size = lanes::norm(learn) / (learn.len() as f32).sqrt();
    if size > 0.0 {
        lanes::scale(learn, 1.0 / size);
        lanes::scale(ask, 1.0 / size);
    }
}

/// Returns the accuracy on some rows of a softmax model trained on others, or `None` if training
/// fails.
fn accuracy(
    [learn, ask]: [&[f32]; 2],
    [few, all]: [&[u16]; 2],
    classes: usize,
    order: &mut Stream,
) -> Option<f64> {
    let width = learn.len().checked_div(few.len())?;
    let head = Softmax::new(width, classes);
    let settings = PersonalTraining {
        effort: Effort::Epochs(HEAD_EPOCHS),
        batch_size: HEAD_BATCH,
        learning_rate: LearningRate::new(HEAD_RATE).ok()?,
        weight_decay: Penalty::NONE,
    };
    let indices: Vec<u32> = (0..few.len().max(all.len()) as u32).collect();
    let rows = Rows::new(learn, width, few, indices.get(..few.len())?);
    let mut parameters = vec![0.0; (width + 1) * classes];
    let mut gradient = parameters.clone();
    let group = smolfed_core::model::BATCH_GROUP;
    let steps = Steps {
        settings: &settings,
        anchor: None,
        release: None,
    };
    let memory = StepMemory {
        gradient: &mut gradient,
        order: &mut vec![0; few.len()],
        scratch: &mut vec![0.0; classes * group],
    };
    head.descend(&rows, &mut parameters, steps, order, memory)
        .ok()?;
    let rows = Rows::new(ask, width, all, indices.get(..all.len())?);
    let mut scores = vec![0.0; all.len() * classes];
    head.row_scores(
        &parameters,
        &rows,
        indices.get(..all.len())?,
        &mut [],
        &mut scores,
    )
    .ok()?;
    let predicted = scores
        .chunks_exact(classes)
        .map(|scores| smolfed_core::model::Model::predict(&head, scores));
    let correct = predicted
        .zip(all)
        .filter(|(predicted, class)| predicted == *class);
    Some(correct.count() as f64 / all.len() as f64)
}

/// Some rows of a device's samples, without labels.
struct Chosen<'a> {
    view: &'a DatasetView<'a>,
    rows: &'a [usize],
}

impl Samples for Chosen<'_> {
    type Target = ();

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn features(&self, index: usize) -> &[f32] {
        let row = self.rows.get(index).copied().unwrap_or(0);
        self.view.features(row)
    }

    fn target(&self, _: usize) {}
}

/// Returns the rows of this device in an even choice of `most` from `total` rows. The device has
/// `count` rows, and `before` rows precede them.
fn evenly(before: usize, count: usize, total: usize, most: usize) -> Vec<usize> {
    let most = most.min(total);
    let place = |row: usize| (before + row) * most / total.max(1);
    (0..count)
        .filter(|row| place(*row) != place(row + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::evenly;

    #[test]
    fn rows_are_taken_evenly_over_devices() {
        for most in [0, 1, 3, 7, 10, 100] {
            let taken = [(0, 3), (3, 0), (3, 7)]
                .map(|(before, count)| evenly(before, count, 10, most).len());
            assert_eq!(taken.iter().sum::<usize>(), most.min(10), "{most}");
        }
        assert_eq!(evenly(0, 10, 10, 2), [4, 9]);
    }
}
