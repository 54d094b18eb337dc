//! `fast`: local training in the span of a device's samples ([`smolfed_simd::span`] has the
//! derivation), or directly where the operation counts favour it.

use std::num::NonZeroU32;
use std::sync::Arc;

use smolfed_core::model::Model;
use smolfed_core::personal::Effort;
use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError, TrainReport};
use smolfed_simd::Steps;
use smolfed_simd::span::{Gram, InSpan, WithGram, Work, is_cheaper};

use super::contract::{Arithmetic, Buffers, Device};
use super::direct::Direct;
use super::kept::Kept;
use crate::of_linear_scores;
use crate::task::{Task, rows};
use smolfed_data::dataset::SampleTarget;

/// Chooses how a device trains, by its number of samples.
pub(super) struct Way {
    shape: (usize, usize),
    effort: Effort,
    batch_size: NonZeroU32,
    is_pulled: bool,
}

impl Way {
    /// Returns the choice for devices that train this model for `effort`. `is_pulled` says whether
    /// another model pulls theirs.
    pub(super) fn new(task: &Task, effort: Effort, batch_size: u32, is_pulled: bool) -> Self {
        Self {
            shape: (task.feature_count(), task.output_count()),
            effort,
            batch_size: NonZeroU32::new(batch_size).unwrap_or(NonZeroU32::MIN),
            is_pulled,
        }
    }

    /// Returns whether a device with `samples` samples trains in their span.
    pub(super) fn is_span(&self, samples: usize) -> bool {
        let (features, outputs) = self.shape;
        let work = Work::new(samples, features, outputs, self.effort, self.batch_size);
        is_cheaper(&work.with_pull(self.is_pulled))
    }
}

/// Training in the span of the samples.
pub(super) struct Fast {
    grams: Kept,
}

impl Fast {
    /// Creates an empty cache of Gram matrices with `memory` bytes.
    pub(super) fn new(memory: u64) -> Self {
        Self {
            grams: Kept::new(memory),
        }
    }

    /// Returns the Gram matrix of a device that trains this model.
    fn gram<M: Model<Target: SampleTarget>>(&self, model: &M, device: &Device<'_>) -> Arc<Gram> {
        let samples = device.samples;
        let make = || Gram::new(&rows(model, samples));
        self.grams.get(device.number, samples.len(), make)
    }
}

impl Arithmetic for Fast {
    fn local_update(
        &self,
        device: &Device<'_>,
        global: &[f32],
        update: &mut [f32],
        settings: &LocalTraining,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        let effort = Effort::Epochs(settings.epochs);
        let way = Way::new(device.task, effort, settings.batch_size.get(), false);
        if !way.is_span(device.samples.len()) {
            return Direct.local_update(device, global, update, settings, order, buffers);
        }
        of_linear_scores!(
            device.task,
            model => {
                let (gram, rows) = (&*self.gram(model, device), &rows(model, device.samples));
                let samples = WithGram { rows, gram };
                let span = &mut buffers.span;
                model.update_in_span(samples, global, update, settings, order, span)
            },
            Direct.local_update(device, global, update, settings, order, buffers)
        )
    }

    fn descend(
        &self,
        device: &Device<'_>,
        local: &mut [f32],
        steps: Steps<'_>,
        order: &mut Stream,
        buffers: &mut Buffers,
    ) -> Result<TrainReport, TrainError> {
        let settings = steps.settings;
        let anchor = steps.anchor.filter(|anchor| anchor.strength.get() > 0.0);
        let batch_size = settings.batch_size.get();
        let way = Way::new(device.task, settings.effort, batch_size, anchor.is_some());
        // Per-step gradients contain noise, so they are not combinations of samples.
        if steps.release.is_some() || !way.is_span(device.samples.len()) {
            return Direct.descend(device, local, steps, order, buffers);
        }
        of_linear_scores!(
            device.task,
            model => {
                let (gram, rows) = (&*self.gram(model, device), &rows(model, device.samples));
                let samples = WithGram { rows, gram };
                let span = &mut buffers.span;
                model.descend_in_span(samples, local, anchor, settings, order, span)
            },
            Direct.descend(device, local, steps, order, buffers)
        )
    }
}
