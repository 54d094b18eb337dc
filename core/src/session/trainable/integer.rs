//! Models of labelled samples that train in integers ([`crate::fixed_point`]).
//!
//! Training does not calculate with floating point, but answers to questions do. The session's
//! float memory holds integers until training has ended, and then the update as `f32`, which is
//! exact.

use core::marker::PhantomData;

#[cfg(feature = "questions")]
use super::answer::{Case, Examiner, answer};
use super::{Course, Learned, LocalRound, Trainable};
#[cfg(feature = "questions")]
use crate::{fixed_point::FixedPointJudge, question::Judged};
use crate::{
    fixed_point::{
        Feature, FeatureFormat, FeatureScale, FixedPointDescent, FixedPointLocal, FixedPointModel,
        FixedPointSamples, FixedPointScores, FixedPointTally, FixedPointWork, IntegerTarget,
        is_weight, value_in_place,
    },
    model::{ModelError, ModelKind},
    predict::{Predictor, has_length},
    samples::{SampleError, Samples, check_features},
    session::{memory::Memory, policy::Policy},
    train::{Reported, TrainError},
    wire::message::{Decline, Invitation, ModelShape},
};
#[cfg(feature = "short")]
use crate::{format::WEIGHT_FRACTION, wire::message::ModelGrid};

/// A linear, logistic or softmax model that trains in integers, on features of type `X`.
#[derive(Clone, Copy, Debug)]
pub struct FixedPoint<M, X> {
    model: M,
    scale: FeatureScale,
    feature: PhantomData<fn() -> X>,
}

impl<M: FixedPointModel, X: Feature> FixedPoint<M, X> {
    /// Creates a model for features of this scale.
    pub const fn new(model: M, scale: FeatureScale) -> Self {
        Self {
            model,
            scale,
            feature: PhantomData,
        }
    }
}

impl<M, X> Trainable for FixedPoint<M, X>
where
    M: FixedPointModel<Target: IntegerTarget<Integer = M::FixedPointTarget>>,
    X: Feature,
{
    type Target = M::Target;
    type Parts = ();
    type Descent = Reported<FixedPointDescent, FixedPointTally>;
    const HAS_REQUESTS: bool = false;
    #[cfg(feature = "questions")]
    const ANSWERS: bool = true;

    #[inline(always)]
    fn shape(&self) -> Option<ModelShape> {
        const {
            assert!(
                is_layer(M::KIND),
                "only models of one layer train in integers"
            )
        };
        let integer = Some(FeatureFormat::of::<X>(self.scale));
        ModelShape::of(&self.model).map(|shape| ModelShape { integer, ..shape })
    }

    #[inline(always)]
    fn parameter_count(&self) -> usize {
        self.model.parameter_count()
    }

    /// A weight has more binary places than any grid.
    #[cfg(feature = "short")]
    fn of_steps(grid: ModelGrid, steps: i16) -> f32 {
        let places = WEIGHT_FRACTION - u32::from(grid.places());
        // A value out of range is not a weight, and the device declines the round.
        let weight = i32::from(steps).checked_mul(1 << places);
        f32::from_bits(weight.unwrap_or(i32::MAX) as u32)
    }

    #[cfg(feature = "short")]
    fn to_steps(grid: ModelGrid, value: f32) -> i16 {
        let weight = value.to_bits() as i32;
        (weight >> (WEIGHT_FRACTION - u32::from(grid.places()))) as i16
    }

    /// Scores, and the features of one sample.
    #[inline(always)]
    fn scratch_count(&self) -> usize {
        self.model.output_count() + self.model.feature_count()
    }

    #[inline(always)]
    fn accepts(&self, invitation: &Invitation, _: &Policy, _: &Memory<'_>) -> Result<(), Decline> {
        match (&invitation.request, &invitation.gradient_smoothing) {
            (None, None) => Ok(()),
            #[cfg(feature = "questions")]
            (Some(crate::wire::message::Request::Question(_)), None) => Ok(()),
            (_, Some(_)) => Err(Decline::Settings),
            (Some(_), None) => Err(Decline::Shape),
        }
    }

    /// Checks that the received values are weights.
    #[inline(always)]
    fn check(&self, _: &Invitation, global: &[f32], _: usize) -> Result<(), Decline> {
        match integers(global).iter().all(|w| is_weight(*w)) {
            true => Ok(()),
            false => Err(Decline::Settings),
        }
    }

    #[inline(always)]
    fn check_sample<S>(&self, samples: &S, index: usize) -> Result<(), SampleError>
    where
        S: Samples<Target = M::Target>,
    {
        let expected = self.model.feature_count();
        // Only counted: features stored as integers are not floats as well.
        let found = samples.read_integers::<X>(index, self.scale, &mut []);
        if found != expected {
            return Err(SampleError::Length { expected, found });
        }
        let numbers = samples.features(index);
        check_features(numbers, numbers.len())?;
        match self.model.has_target(samples.target(index)) {
            true => Ok(()),
            false => Err(SampleError::Target),
        }
    }

    #[inline(always)]
    fn train<S>(
        &self,
        samples: &S,
        round: LocalRound<'_>,
        course: &mut Course<Self::Descent>,
        most: usize,
    ) -> Result<Learned, Decline>
    where
        S: Samples<Target = M::Target>,
    {
        #[cfg(feature = "questions")]
        if let Some(question) = round.invitation.question() {
            return answer(self, samples, question, round, &mut course.words, most);
        }
        let LocalRound {
            streams,
            invitation,
            global,
            work,
            ..
        } = round;
        let scratch = integers_mut(work.scratch);
        let (scores, row) = scratch
            .split_at_mut_checked(self.model.output_count())
            .ok_or(Decline::Diverged)?;
        let memory = &mut FixedPointWork {
            local: integers_mut(work.local),
            update: integers_mut(work.update),
            order: work.order,
            scores,
            row,
        };
        let training = &invitation.unsmoothed();
        let local = FixedPointLocal {
            model: &self.model,
            samples: &Read::<S, X> {
                samples,
                scale: self.scale,
                feature: PhantomData,
            },
            scale: self.scale,
            global: integers(global),
            settings: training,
        };
        // Not a closure: the compiler then knows the lengths of the memory.
        let Reported { descent, report } = match &mut course.descent {
            Some(begun) => begun,
            empty => {
                let descent = local.begin(memory).map_err(|_| Decline::Diverged)?;
                empty.insert(Reported::new(descent))
            }
        };
        if !descent.is_complete(training) {
            let shuffle = |order: &mut [u32]| streams.shuffle(order, &mut course.words);
            let advanced =
                report.write(|tally| local.advance(descent, shuffle, memory, most, tally));
            advanced.map_err(|_| Decline::Diverged)?;
            return Ok(Learned::Unfinished);
        }
        // This is a separate piece.
        let finished = report.write(|FixedPointTally { report, .. }| {
            local.finish(descent, memory, report)?;
            Ok::<_, TrainError>((*report).into())
        });
        let report = finished.map_err(|_| Decline::Diverged)?;
        work.update.iter_mut().for_each(value_in_place);
        Ok(Learned::Update(report))
    }
}

/// The scores of a sample come first in the scratch memory, and its features after them.
#[cfg(feature = "questions")]
impl<M, X, S> Examiner<S> for FixedPoint<M, X>
where
    M: FixedPointModel<Target: IntegerTarget<Integer = M::FixedPointTarget>>,
    X: Feature,
    S: Samples<Target = M::Target>,
{
    #[inline(always)]
    fn read(&self, case: &mut Case<'_, S>) -> Result<(), Decline> {
        let (_, row) = self.split(case.scratch).ok_or(Decline::Diverged)?;
        case.samples.read_integers::<X>(case.index, self.scale, row);
        Ok(())
    }

    #[inline(always)]
    fn judge(&self, case: &mut Case<'_, S>) -> Result<Judged, Decline> {
        let (scores, row) = self.split(case.scratch).ok_or(Decline::Diverged)?;
        let judge = FixedPointJudge {
            model: &self.model,
            scale: self.scale,
            weights: integers(case.global),
        };
        let judged = judge.judge::<X>(row, case.samples.target(case.index), scores);
        judged.map_err(|_| Decline::Diverged)
    }

    #[inline(always)]
    fn feature(&self, case: &Case<'_, S>, at: usize) -> f32 {
        let row = integers(case.scratch).get(self.model.output_count()..);
        let row = row.and_then(|row| row.get(..self.model.feature_count()));
        let feature = row.and_then(|row| row.get(at));
        feature.map_or(f32::NAN, |x| self.scale.value(*x))
    }
}

#[cfg(feature = "questions")]
impl<M: FixedPointModel, X: Feature> FixedPoint<M, X> {
    /// Splits scratch memory into the scores and the features of a sample.
    #[inline(always)]
    fn split<'a>(&self, scratch: &'a mut [f32]) -> Option<(&'a mut [i32], &'a mut [i32])> {
        let (scores, row) =
            integers_mut(scratch).split_at_mut_checked(self.model.output_count())?;
        Some((scores, row.get_mut(..self.model.feature_count())?))
    }
}

impl<M: FixedPointModel, X: Feature> Predictor for FixedPoint<M, X> {
    type Feature = X;
    type Score = i32;
    type Prediction = M::Target;

    fn check(&self, parameters: &[f32]) -> Result<(), ModelError> {
        has_length(self.model.parameter_count(), parameters)?;
        match integers(parameters).iter().all(|w| is_weight(*w)) {
            true => Ok(()),
            false => Err(ModelError::NotFinite),
        }
    }

    #[inline(always)]
    fn scores_into(
        &self,
        parameters: &[f32],
        features: &[X],
        _: &mut [f32],
        scores: &mut [i32],
    ) -> Result<(), ModelError> {
        let (model, scale) = (&self.model, self.scale);
        FixedPointScores { model, scale }.scores_into(integers(parameters), features, scores)
    }

    #[inline(always)]
    fn prediction(&self, scores: &[i32]) -> M::Target {
        self.model.predict_in_integers(scores)
    }

    #[inline(always)]
    fn probabilities(&self, scores: &mut [i32]) {
        self.model.probabilities_in_integers(scores);
    }
}

/// Whether a model has one layer, and a wire code below 4.
const fn is_layer(kind: ModelKind) -> bool {
    matches!(
        kind,
        ModelKind::Linear | ModelKind::Logistic | ModelKind::Softmax
    )
}

/// Samples, read as integers.
struct Read<'a, S, X> {
    samples: &'a S,
    scale: FeatureScale,
    feature: PhantomData<fn() -> X>,
}

impl<S: Samples<Target: IntegerTarget>, X: Feature> FixedPointSamples for Read<'_, S, X> {
    type Feature = X;
    type Target = <S::Target as IntegerTarget>::Integer;

    fn len(&self) -> usize {
        self.samples.len()
    }

    #[inline(always)]
    fn read(&self, index: usize, row: &mut [i32]) -> usize {
        self.samples.read_integers::<X>(index, self.scale, row)
    }

    #[inline(always)]
    fn target(&self, index: usize) -> Self::Target {
        self.samples.target(index).to_integer()
    }
}

/// Views memory of floats as integers.
fn integers(numbers: &[f32]) -> &[i32] {
    bytemuck::try_cast_slice(numbers).unwrap_or_default()
}

/// [`integers`], mutable.
fn integers_mut(numbers: &mut [f32]) -> &mut [i32] {
    bytemuck::try_cast_slice_mut(numbers).unwrap_or_default()
}
