//! Softmax regression with a teacher: fine-tuning by symmetrised Kullback-Leibler
//! divergence.

use super::{Dim, Model, ModelKind, Parametric, Softmax, Tensors};
use crate::{
    math::{exp, ln},
    question,
    samples::Samples,
};

/// A class with the row of the sample in the teacher's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labelled {
    /// The class.
    pub class: u16,
    /// The row.
    pub row: u32,
}

impl From<Labelled> for question::Target {
    fn from(target: Labelled) -> Self {
        Self::Class(target.class)
    }
}

/// Samples with the row of each in its target.
#[derive(Clone, Copy)]
pub struct WithRow<'a, S>(pub &'a S);

impl<S: Samples<Target = u16>> Samples for WithRow<'_, S> {
    type Target = Labelled;

    #[inline(always)]
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn features(&self, index: usize) -> &[f32] {
        self.0.features(index)
    }

    #[inline(always)]
    fn target(&self, index: usize) -> Labelled {
        Labelled {
            class: self.0.target(index),
            row: index as u32,
        }
    }
}

/// A model that adds `λ·(KL(q‖p) + KL(p‖q))` to the loss of a [`Softmax`], with q the probabilities
/// of a sample by the teacher and p by the model (Hu, Wu, Smith 2023, Section 5, papers.md P11: the
/// mean over samples, the teacher a constant).
///
/// The teacher's table has a row of log-probabilities for each sample, computed by
/// [`log_probabilities`]. A sample without a row has no teacher.
#[derive(Clone, Copy, Debug)]
pub struct Distilled<'a, D: Dim, C: Dim> {
    student: Softmax<D, C>,
    teacher: &'a [f32],
    strength: f32,
}

impl<'a, D: Dim, C: Dim> Distilled<'a, D, C> {
    /// Creates a model distilled from `teacher` with strength λ.
    pub const fn new(student: Softmax<D, C>, teacher: &'a [f32], strength: f32) -> Self {
        Self {
            student,
            teacher,
            strength,
        }
    }
}

/// Replaces the logits of a sample by its log-probabilities.
#[inline]
pub fn log_probabilities(scores: &mut [f32]) {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score -= largest;
        sum += exp(*score);
    }
    let total = ln(sum);
    for score in scores.iter_mut() {
        *score -= total;
    }
}

impl<D: Dim, C: Dim> Parametric for Distilled<'_, D, C> {
    #[inline(always)]
    fn feature_count(&self) -> usize {
        self.student.feature_count()
    }

    #[inline(always)]
    fn output_count(&self) -> usize {
        self.student.output_count()
    }

    fn parameter_count(&self) -> usize {
        self.tensors().total()
    }
}

impl<D: Dim, C: Dim> Model for Distilled<'_, D, C> {
    type Target = Labelled;
    type Tensors = Tensors<2>;

    const KIND: ModelKind = ModelKind::Softmax;
    const LARGEST_TENSOR: usize = D::LARGEST.saturating_mul(C::LARGEST);

    fn tensors(&self) -> Tensors<2> {
        self.student.tensors()
    }

    /// With p the student's probabilities, the derivatives of the divergences with respect to the
    /// logits are p − q and `p·(ln(p/q) − KL(p‖q))`.
    #[inline(always)]
    fn loss_in_place(&self, scores: &mut [f32], Labelled { class, row }: Labelled) -> f32 {
        let start = (row as usize).saturating_mul(scores.len());
        let teacher = self.teacher.get(start..).unwrap_or_default();
        let Some(teacher) = teacher.get(..scores.len()) else {
            return self.student.loss_in_place(scores, class);
        };
        log_probabilities(scores);
        let cross_entropy = scores
            .get(usize::from(class))
            .map_or(0.0, |log_probability| -log_probability);
        // KL(q‖p) and KL(p‖q), summed over the classes in order.
        let (mut forward, mut backward) = (0.0, 0.0);
        for (p, q) in scores.iter().zip(teacher) {
            forward += exp(*q) * (q - p);
            backward += exp(*p) * (p - q);
        }
        for (index, (score, q)) in (0..).zip(scores.iter_mut().zip(teacher)) {
            let p = exp(*score);
            let own = if index == class { p - 1.0 } else { p };
            *score = own + self.strength * ((p - exp(*q)) + p * ((*score - q) - backward));
        }
        cross_entropy + self.strength * (forward + backward)
    }

    #[inline]
    fn predict(&self, scores: &[f32]) -> Labelled {
        let class = self.student.predict(scores);
        Labelled { class, row: 0 }
    }

    fn probabilities_in_place(&self, scores: &mut [f32]) {
        self.student.probabilities_in_place(scores);
    }

    fn has_target(&self, target: Labelled) -> bool {
        self.student.has_target(target.class)
    }
}
