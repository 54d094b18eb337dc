//! One device's part in a round: its correlation matrix, and local training without labels.

use smolfed_core::contrast::correlation::{SumMemory, packed_length, sum_samples};
use smolfed_core::contrast::{
    Augmented, BatchMemory, ContrastTraining, Objective, Representation, TrainingMemory, descend,
};
use smolfed_core::model::Parametric;
use smolfed_core::samples::Samples;
use smolfed_core::stream::{Purpose, Root, StreamId};
use smolfed_core::train::{LocalTraining, TrainError, TrainReport};

use super::settings::ContrastSettings;
use super::variations::Variations;
use super::view_cache::ViewCache;
use smolfed_data::dataset::DatasetView;
use smolfed_release::{Contribution, Message, Messages};

/// A device's samples without labels, which nothing here reads.
#[derive(Clone, Copy)]
pub enum Unlabelled<'a> {
    /// Rows of a data set.
    View(DatasetView<'a>),
    /// The samples of all devices in sequence, and their number of features.
    Pooled(&'a [f32], usize),
}

impl Samples for Unlabelled<'_> {
    type Target = ();

    fn len(&self) -> usize {
        match self {
            Self::View(view) => view.len(),
            Self::Pooled(features, width) => features.len() / width.max(&1),
        }
    }

    fn features(&self, index: usize) -> &[f32] {
        match self {
            Self::View(view) => view.features(index),
            Self::Pooled(features, width) => features
                .get(index * width..(index + 1) * width)
                .unwrap_or_default(),
        }
    }

    fn target(&self, _: usize) {}
}

/// A device in a round, and its inputs.
#[derive(Clone, Copy)]
pub struct DeviceRound<'a> {
    /// The encoder and its training settings.
    pub plan: &'a ContrastSettings,
    /// The root of all streams.
    pub root: &'a Root,
    /// The number in the identifiers of the round's streams.
    pub number: u32,
    /// The device.
    pub device: u32,
    /// Its samples.
    pub samples: Unlabelled<'a>,
    /// The encoder of the round.
    pub global: &'a [f32],
}

/// Memory for one device after another.
#[derive(Debug)]
pub struct Buffers {
    representations: Vec<f32>,
    view: Vec<f32>,
    hidden: Vec<f32>,
    pair: Vec<f32>,
    matrix: Vec<f32>,
    gradient: Vec<f32>,
    local: Vec<f32>,
    order: Vec<u32>,
}

impl Buffers {
    /// Creates buffers for batches of this size. Matrices alone need none.
    #[must_use]
    pub fn new(plan: &ContrastSettings, batch_size: usize) -> Self {
        let network = &plan.network;
        let (width, parameters) = (network.output_count(), network.parameter_count());
        Self {
            representations: vec![0.0; 2 * plan.pairs * batch_size * width],
            view: vec![0.0; network.feature_count()],
            hidden: vec![0.0; network.hidden_count()],
            pair: vec![0.0; 2 * width],
            matrix: vec![0.0; packed_length(width)],
            gradient: vec![0.0; parameters],
            local: vec![0.0; parameters],
            order: Vec::new(),
        }
    }
}

impl<'a> DeviceRound<'a> {
    fn id(&self, purpose: Purpose) -> StreamId {
        StreamId {
            purpose,
            round: self.number,
            device: self.device,
        }
    }

    /// Makes the views. The matrix and the first pass of training see the same views: no promise
    /// relies on their variation.
    fn views(&self) -> Augmented<'_, Unlabelled<'a>, Variations> {
        let stream = self.root.stream(self.id(Purpose::Augmentation));
        Augmented::new(&self.samples, self.plan.variations, self.plan.pairs, stream)
    }

    /// Returns the device's correlation matrix with its noise. With noise, it always returns a
    /// message: samples with non-finite representations add nothing, and nobody can tell.
    ///
    /// # Errors
    /// [`TrainError`]: nothing is sent.
    pub fn matrix(
        &self,
        messages: &Messages,
        buffers: &mut Buffers,
    ) -> Result<Message, TrainError> {
        let length = buffers.matrix.len();
        let memory = &mut SumMemory {
            view: &mut buffers.view,
            hidden: &mut buffers.hidden,
            representation: buffers
                .pair
                .get_mut(..self.plan.network.output_count())
                .unwrap_or_default(),
            matrix: &mut buffers.matrix,
        };
        let (network, views) = (&self.plan.network, self.views());
        let write = |grid: &_, sum: &mut [i64]| {
            sum_samples(
                network,
                self.global,
                &views,
                grid,
                memory,
                |place, steps| {
                    if let Some(sum) = sum.get_mut(place) {
                        *sum += steps;
                    }
                },
            )
        };
        messages.send(self.root, self.number, self.device, length, write)
    }

    /// Trains from the encoder of the round. The contribution is the difference, clipped once if it
    /// has a bound.
    ///
    /// # Errors
    /// [`TrainError`]: the device sits the round out.
    pub fn train(
        &self,
        training: &LocalTraining,
        objective: &Objective<'_>,
        buffers: &mut Buffers,
        contribution: &mut Contribution<'_>,
    ) -> Result<TrainReport, TrainError> {
        let count = self.samples.len();
        buffers.order.resize(buffers.order.len().max(count), 0);
        buffers.local.copy_from_slice(self.global);
        let settings = ContrastTraining::from(training);
        let batch = BatchMemory {
            representations: &mut buffers.representations,
            view: &mut buffers.view,
            hidden: &mut buffers.hidden,
            pair: &mut buffers.pair,
            matrix: &mut buffers.matrix,
            gradient: &mut buffers.gradient,
        };
        let last_loss = descend(
            &self.plan.network,
            &mut buffers.local,
            &mut ViewCache::new(self.views()),
            objective,
            &settings,
            &mut self.root.stream(self.id(Purpose::BatchShuffle)),
            &mut TrainingMemory {
                order: &mut buffers.order,
                batch,
            },
        )?;
        let moved = buffers.local.iter().zip(self.global);
        for (update, (local, global)) in contribution.update().iter_mut().zip(moved) {
            *update = local - global;
        }
        let mut report = TrainReport {
            steps: training.epochs * count.div_ceil(training.batch_size.get() as usize) as u32,
            last_loss,
            ..TrainReport::default()
        };
        contribution.clip(&mut report)?;
        Ok(report)
    }
}
