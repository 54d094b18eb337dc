//! The kinds of models of devices that only infer, each with its features and its arithmetic.

use super::{receiver, sf_infer_kind};
use crate::{
    kind::Kind,
    kinds::{
        LinearF32, LinearI8, LinearI16, LogisticF32, LogisticI8, LogisticI16, SoftmaxF32,
        SoftmaxI8, SoftmaxI16,
    },
};

impl sf_infer_kind {
    const fn of<K: Kind>() -> Self {
        Self {
            layout: receiver::layout::<K>,
            flash_bytes: receiver::bytes_of_flash::<K>,
            open: receiver::open::<K>,
        }
    }
}

/// Softmax regression on `float`.
#[unsafe(no_mangle)]
pub static sf_infer_softmax_f32: sf_infer_kind = sf_infer_kind::of::<SoftmaxF32>();

/// Softmax regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_softmax_i8: sf_infer_kind = sf_infer_kind::of::<SoftmaxI8>();

/// Softmax regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_softmax_i16: sf_infer_kind = sf_infer_kind::of::<SoftmaxI16>();

/// Logistic regression on `float`: classes 0 and 1.
#[unsafe(no_mangle)]
pub static sf_infer_logistic_f32: sf_infer_kind = sf_infer_kind::of::<LogisticF32>();

/// Logistic regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_logistic_i8: sf_infer_kind = sf_infer_kind::of::<LogisticI8>();

/// Logistic regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_logistic_i16: sf_infer_kind = sf_infer_kind::of::<LogisticI16>();

/// Linear regression on `float`.
#[unsafe(no_mangle)]
pub static sf_infer_linear_f32: sf_infer_kind = sf_infer_kind::of::<LinearF32>();

/// Linear regression on `int8_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_linear_i8: sf_infer_kind = sf_infer_kind::of::<LinearI8>();

/// Linear regression on `int16_t`, in integers.
#[unsafe(no_mangle)]
pub static sf_infer_linear_i16: sf_infer_kind = sf_infer_kind::of::<LinearI16>();
