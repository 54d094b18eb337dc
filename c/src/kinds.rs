//! The kinds of models (`sf_softmax_f32`, `sf_linear_i8` and others), each with its type of
//! features and its arithmetic. A program has the code of those that it names.

use smolfed_core::{
    fixed_point::{Feature, FeatureScale, FixedPointModel},
    model::{Linear, Logistic, Softmax},
    session::FixedPoint,
};

use crate::{
    client::{Link, Scores, Target},
    config::{Sizes, sf_kind},
    kind::Kind,
    session,
    status::sf_status,
};

impl sf_kind {
    const fn of<K: Kind>() -> Self {
        Self {
            layout: session::layout::<K>,
            open: session::open::<K>,
        }
    }
}

/// A kind in numbers or in integers.
macro_rules! kind {
    (
        $Name:ident: $model:ty, $feature:ty, $score:ty => $Scores:ident,
        $target:ty => $Target:ident, $Link:ident, $make:expr
    ) => {
        pub(crate) struct $Name;

        impl Kind for $Name {
            type Model = $model;
            type Feature = $feature;
            type Target = $target;
            type Score = $score;

            const LINK: Link = Link::$Link;

            fn model(sizes: Sizes) -> Result<Self::Model, sf_status> {
                $make(sizes)
            }

            fn scores(scores: Scores<'_>) -> Option<&mut [$score]> {
                match scores {
                    Scores::$Scores(scores) => Some(scores),
                    _ => None,
                }
            }

            fn target(target: Target) -> Option<$target> {
                match target {
                    Target::$Target(target) => Some(target),
                    _ => None,
                }
            }

            fn class(prediction: $target) -> u16 {
                match Target::$Target(prediction) {
                    Target::Class(class) => class,
                    Target::Value(_) => 0,
                }
            }
        }
    };
}

/// A model in integers of this type.
fn in_integers<M: FixedPointModel, X: Feature>(
    model: M,
    sizes: Sizes,
) -> Result<FixedPoint<M, X>, sf_status> {
    let scale = FeatureScale::new::<X>(sizes.places);
    scale
        .map(|scale| FixedPoint::new(model, scale))
        .map_err(|_| sf_status::SF_CONFIG)
}

fn softmax(sizes: Sizes) -> Result<Softmax<usize, usize>, sf_status> {
    match sizes.classes {
        0 | 1 => Err(sf_status::SF_CONFIG),
        classes => Ok(Softmax::new(sizes.features.into(), classes.into())),
    }
}

fn logistic(sizes: Sizes) -> Result<Logistic<usize>, sf_status> {
    Ok(Logistic::new(sizes.features.into()))
}

fn linear(sizes: Sizes) -> Result<Linear<usize>, sf_status> {
    Ok(Linear::new(sizes.features.into()))
}

kind! { SoftmaxF32: Softmax<usize, usize>, f32, f32 => F32, u16 => Class, Softmax, softmax }
kind! { SoftmaxI8: FixedPoint<Softmax<usize, usize>, i8>, i8, i32 => Integer,
u16 => Class, Softmax, |sizes| in_integers(softmax(sizes)?, sizes) }
kind! { SoftmaxI16: FixedPoint<Softmax<usize, usize>, i16>, i16, i32 => Integer,
u16 => Class, Softmax, |sizes| in_integers(softmax(sizes)?, sizes) }
kind! { LogisticF32: Logistic<usize>, f32, f32 => F32, u16 => Class, Logistic, logistic }
kind! { LogisticI8: FixedPoint<Logistic<usize>, i8>, i8, i32 => Integer,
u16 => Class, Logistic, |sizes| in_integers(logistic(sizes)?, sizes) }
kind! { LogisticI16: FixedPoint<Logistic<usize>, i16>, i16, i32 => Integer,
u16 => Class, Logistic, |sizes| in_integers(logistic(sizes)?, sizes) }
kind! { LinearF32: Linear<usize>, f32, f32 => F32, f32 => Value, Identity, linear }
kind! { LinearI8: FixedPoint<Linear<usize>, i8>, i8, i32 => Integer,
f32 => Value, Identity, |sizes| in_integers(linear(sizes)?, sizes) }
kind! { LinearI16: FixedPoint<Linear<usize>, i16>, i16, i32 => Integer,
f32 => Value, Identity, |sizes| in_integers(linear(sizes)?, sizes) }

/// Softmax regression on `float`.
#[unsafe(no_mangle)]
pub static sf_softmax_f32: sf_kind = sf_kind::of::<SoftmaxF32>();

/// Softmax regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_softmax_i8: sf_kind = sf_kind::of::<SoftmaxI8>();

/// Softmax regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_softmax_i16: sf_kind = sf_kind::of::<SoftmaxI16>();

/// Logistic regression on `float`: classes 0 and 1.
#[unsafe(no_mangle)]
pub static sf_logistic_f32: sf_kind = sf_kind::of::<LogisticF32>();

/// Logistic regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_logistic_i8: sf_kind = sf_kind::of::<LogisticI8>();

/// Logistic regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_logistic_i16: sf_kind = sf_kind::of::<LogisticI16>();

/// Linear regression on `float`.
#[unsafe(no_mangle)]
pub static sf_linear_f32: sf_kind = sf_kind::of::<LinearF32>();

/// Linear regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_linear_i8: sf_kind = sf_kind::of::<LinearI8>();

/// Linear regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_linear_i16: sf_kind = sf_kind::of::<LinearI16>();
