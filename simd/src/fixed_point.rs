//! Local training in integers with the widest vectors of this machine, with the core's code and
//! bits.

use pulp::{Arch, NullaryFnOnce};
use smolfed_core::fixed_point::{
    Feature, FeatureScale, FixedPointModel, FixedPointReport, FixedPointSlice, FixedPointWork,
    local_update, round_feature,
};
use smolfed_core::model::{Linear, Logistic, Softmax};
use smolfed_core::stream::Stream;
use smolfed_core::train::{LocalTraining, TrainError};

/// A model whose training on features of a type is compiled in this crate.
pub trait FixedPointKernels<X: Feature>: FixedPointModel {
    /// Runs [`local_update`].
    ///
    /// # Errors
    /// [`TrainError`], as for that function.
    fn fixed_point_update(
        &self,
        samples: &FixedPointSlice<'_, X, Self::FixedPointTarget>,
        scale: FeatureScale,
        global: &[i32],
        settings: &LocalTraining,
        stream: &mut Stream,
        work: FixedPointWork<'_>,
    ) -> Result<FixedPointReport, TrainError>;
}

/// Compiles the training of a model on features of a type. It is a macro and not inlined, because
/// generic functions would be compiled in the calling crates.
macro_rules! kernels {
    ($model:ty, $feature:ty) => {
        impl FixedPointKernels<$feature> for $model {
            #[inline(never)]
            fn fixed_point_update(
                &self,
                samples: &FixedPointSlice<'_, $feature, Self::FixedPointTarget>,
                scale: FeatureScale,
                global: &[i32],
                settings: &LocalTraining,
                stream: &mut Stream,
                work: FixedPointWork<'_>,
            ) -> Result<FixedPointReport, TrainError> {
                Arch::new().dispatch(LocalUpdate {
                    model: self,
                    samples,
                    scale,
                    global,
                    settings,
                    stream,
                    work,
                })
            }
        }
    };
}

kernels!(Linear<usize>, i8);
kernels!(Linear<usize>, i16);
kernels!(Logistic<usize>, i8);
kernels!(Logistic<usize>, i16);
kernels!(Softmax<usize, usize>, i8);
kernels!(Softmax<usize, usize>, i16);

/// The arguments of [`local_update`]. A closure would not be inlined into the code compiled for
/// wider vectors.
struct LocalUpdate<'a, M: FixedPointModel, X> {
    model: &'a M,
    samples: &'a FixedPointSlice<'a, X, M::FixedPointTarget>,
    scale: FeatureScale,
    global: &'a [i32],
    settings: &'a LocalTraining,
    stream: &'a mut Stream,
    work: FixedPointWork<'a>,
}

impl<M: FixedPointModel, X: Feature> NullaryFnOnce for LocalUpdate<'_, M, X> {
    type Output = Result<FixedPointReport, TrainError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        local_update(
            self.model,
            self.samples,
            self.scale,
            self.global,
            self.settings,
            self.stream,
            self.work,
        )
    }
}

/// A feature type with rounding in this crate.
pub trait RoundedFeature: Feature {
    /// Applies [`round_feature`] to each feature. Returns the number of saturated features.
    fn round_each(features: &[f32], scale: FeatureScale, rounded: &mut [Self]) -> u64;
}

macro_rules! rounded {
    ($feature:ty) => {
        impl RoundedFeature for $feature {
            #[inline(never)]
            fn round_each(features: &[f32], scale: FeatureScale, rounded: &mut [Self]) -> u64 {
                Arch::new().dispatch(RoundEach {
                    features,
                    scale,
                    rounded,
                })
            }
        }
    };
}

rounded!(i8);
rounded!(i16);

/// The arguments of [`RoundedFeature::round_each`].
struct RoundEach<'a, X> {
    features: &'a [f32],
    scale: FeatureScale,
    rounded: &'a mut [X],
}

impl<X: Feature> NullaryFnOnce for RoundEach<'_, X> {
    type Output = u64;

    #[inline(always)]
    fn call(self) -> u64 {
        let mut saturated = 0_u32;
        for (place, x) in self.rounded.iter_mut().zip(self.features) {
            let is_saturated;
            (*place, is_saturated) = round_feature(*x, self.scale);
            saturated += u32::from(is_saturated);
        }
        saturated.into()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::{collection::vec, prelude::*};
    use smolfed_core::params::{ClipNorm, LearningRate, Penalty};
    use smolfed_core::stream::{Purpose, Root, StreamId};

    use super::*;

    type Run = (FixedPointReport, Vec<i32>);

    /// Trains with the vectors of this machine, and with the code of boards.
    fn both<X: Feature, M: FixedPointKernels<X>>(
        model: &M,
        features: &[X],
        targets: &[M::FixedPointTarget],
        global: &[i32],
        settings: &LocalTraining,
    ) -> [Run; 2] {
        let samples = FixedPointSlice::new(features, targets, model.feature_count()).unwrap();
        let scale = FeatureScale::new::<X>(5).unwrap();
        [true, false].map(|is_wide| {
            let mut update = vec![0; global.len()];
            let work = FixedPointWork {
                local: &mut vec![0; global.len()],
                update: &mut update,
                order: &mut vec![0; targets.len()],
                scores: &mut vec![0; model.output_count()],
                row: &mut vec![0; model.feature_count()],
            };
            let (purpose, round, device) = (Purpose::BatchShuffle, 0, 0);
            let id = StreamId {
                purpose,
                round,
                device,
            };
            let stream = &mut Root::from_seed(9).stream(id);
            let report = match is_wide {
                true => model.fixed_point_update(&samples, scale, global, settings, stream, work),
                false => local_update(model, &samples, scale, global, settings, stream, work),
            };
            (report.unwrap(), update)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any shape gives the same integers with any vectors.
        #[test]
        fn all_widths_have_the_same_bits(
            features in 1_usize..150, classes in 1_usize..13, count in 1_usize..30,
            batch in 1_u32..40, clip_norm in 0.001_f32..3.0, decay in 0.0_f32..0.1,
            words in vec(any::<i32>(), 200),
        ) {
            let word = |i: usize| words[i % 200].rotate_left((i / 200) as u32);
            let narrow: Vec<i8> = (0..features * count).map(|i| word(i) as i8).collect();
            let wide: Vec<i16> = (0..features * count).map(|i| word(i) as i16).collect();
            let labels: Vec<u16> = (0..count).map(|i| (i * 5 % classes) as u16).collect();
            let values: Vec<i32> = (0..count).map(|i| word(i) >> 12).collect();
            let weight = |i: usize| word(i * 7) >> 12;
            let global: Vec<i32> = (0..(features + 1) * classes).map(weight).collect();
            let settings = LocalTraining::new(
                LearningRate::new(0.1).unwrap(),
                ClipNorm::new(clip_norm).unwrap(),
            )
            .with_epochs(2)
            .with_batch_size(NonZeroU32::new(batch).unwrap())
            .with_weight_decay(Penalty::new(decay).unwrap());
            let softmax = Softmax::new(features, classes);
            let [a, b] = both(&softmax, &narrow, &labels, &global, &settings);
            prop_assert_eq!(a, b);
            let [a, b] = both(&softmax, &wide, &labels, &global, &settings);
            prop_assert_eq!(a, b);
            let global = &global[..=features];
            let [a, b] = both(&Logistic::new(features), &narrow, &labels, global, &settings);
            prop_assert_eq!(a, b);
            let [a, b] = both(&Linear::new(features), &narrow, &values, global, &settings);
            prop_assert_eq!(a, b);
        }

        #[test]
        fn features_are_rounded_as_one_by_one(
            features in vec(any::<u32>().prop_map(f32::from_bits), 0..100), fraction in 0_u8..=7,
        ) {
            let scale = FeatureScale::new::<i8>(fraction).unwrap();
            let mut rounded = vec![0_i8; features.len()];
            let saturated = i8::round_each(&features, scale, &mut rounded);
            let expected = features.iter().map(|x| round_feature::<i8>(*x, scale));
            let (expected, flags): (Vec<_>, Vec<_>) = expected.unzip();
            prop_assert_eq!(rounded, expected);
            prop_assert_eq!(saturated, flags.into_iter().filter(|flag| *flag).count() as u64);
        }
    }
}
