//! The interface of a device of any kind, whether it trains or only infers, and the types of
//! features, scores and targets that cross it.

use smolfed_core::{
    Progress,
    fixed_point::{FeatureScale, FixedPointModel},
    model::{Logistic, Model, Softmax},
    samples::Reading,
    session::{LastRound, Phase},
    wire::refusal::Refusals,
};

use crate::status::sf_status;
#[cfg(feature = "sleep")]
use {
    crate::pages::Pages,
    smolfed_core::{
        personal::store::{StoreError, flash::FlashStore},
        session::Wake,
    },
};

/// Features of a sample, as the caller has them.
#[derive(Clone, Copy)]
pub(crate) enum Features<'a> {
    F32(&'a [f32]),
    I8(&'a [i8]),
    I16(&'a [i16]),
}

/// The place of a sample's features in the memory of a device.
pub(crate) enum Row<'a> {
    F32(&'a mut [f32]),
    I8(&'a mut [i8]),
    I16(&'a mut [i16]),
}

/// The function that turns the scores of a model into probabilities.
#[derive(Clone, Copy)]
pub(crate) enum Link {
    /// A value stays as it is.
    Identity,
    /// The probability of class 1 of two.
    Logistic,
    /// The probability of each class.
    Softmax,
}

/// Scores of a sample.
pub(crate) enum Scores<'a> {
    F32(&'a mut [f32]),
    Integer(&'a mut [i32]),
}

/// A number or an integer as a feature.
pub(crate) trait Feature: Reading {
    /// Features with their type.
    fn typed(features: &[Self]) -> Features<'_>;

    /// Features of this type.
    fn features(features: Features<'_>) -> Option<&[Self]>;

    /// A row with its type.
    fn as_row(row: &mut [Self]) -> Row<'_>;

    /// A row of this type.
    fn row(row: Row<'_>) -> Option<&mut [Self]>;
}

/// A number or an integer as a score.
pub(crate) trait Score: Sized {
    /// Scores with their type.
    fn typed(scores: &mut [Self]) -> Scores<'_>;

    /// Turns scores into probabilities.
    fn to_probabilities(scores: &mut [Self], link: Link);
}

macro_rules! features {
    ($($type:ty => $Variant:ident;)*) => {
        $(impl Feature for $type {
            fn typed(features: &[Self]) -> Features<'_> {
                Features::$Variant(features)
            }

            fn features(features: Features<'_>) -> Option<&[Self]> {
                match features {
                    Features::$Variant(features) => Some(features),
                    _ => None,
                }
            }

            fn as_row(row: &mut [Self]) -> Row<'_> {
                Row::$Variant(row)
            }

            fn row(row: Row<'_>) -> Option<&mut [Self]> {
                match row {
                    Row::$Variant(row) => Some(row),
                    _ => None,
                }
            }
        })*
    };
}

features! { f32 => F32; i8 => I8; i16 => I16; }

impl Score for f32 {
    fn typed(scores: &mut [Self]) -> Scores<'_> {
        Scores::F32(scores)
    }

    fn to_probabilities(scores: &mut [Self], link: Link) {
        match link {
            Link::Identity => {}
            Link::Logistic => Logistic::new(0).probabilities_in_place(scores),
            Link::Softmax => Softmax::new(0, 0).probabilities_in_place(scores),
        }
    }
}

impl Score for i32 {
    fn typed(scores: &mut [Self]) -> Scores<'_> {
        Scores::Integer(scores)
    }

    fn to_probabilities(scores: &mut [Self], link: Link) {
        match link {
            Link::Identity => {}
            Link::Logistic => Logistic::new(0).probabilities_in_integers(scores),
            Link::Softmax => Softmax::new(0, 0).probabilities_in_integers(scores),
        }
    }
}

/// The target of a sample.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Class(u16),
    Value(f32),
}

/// Writes the features of a sample to its row, after checking them.
pub(crate) type Fill<'a> = &'a mut dyn FnMut(Row<'_>, FeatureScale) -> Result<(), sf_status>;

/// A device of any kind. A program has the code of all these functions, whichever it calls. Hence
/// functions that few programs need work on the parts that these return.
pub(crate) trait Client {
    /// Whether the flash is not done with a piece.
    fn is_pending(&self) -> bool;
    fn outgoing(&self) -> &[u8];
    fn sent(&mut self);
    fn receive(&mut self, bytes: &[u8]) -> usize;
    fn timeout(&mut self);
    fn phase(&self) -> Phase;
    fn train_some(&mut self, most: usize) -> Progress;
    fn participations(&self) -> u32;
    fn participations_left(&self) -> u32;
    fn last_round(&self) -> Option<&LastRound>;
    fn refusals(&self) -> &Refusals;
    fn set_window(&mut self, chunks: u8);
    /// Whether samples may change: a round trains on those with which it began.
    fn check_samples_may_change(&self) -> Result<(), sf_status>;
    /// After `check_samples_may_change`.
    fn add_sample(&mut self, target: Target, fill: Fill<'_>) -> Result<(), sf_status>;
    /// After `check_samples_may_change`.
    fn forget_samples(&mut self);
    /// The features of all samples, and the features of one.
    fn kept(&self) -> (Features<'_>, usize);
    fn model_round(&self) -> Option<u32>;
    fn parameters(&self) -> Option<&[f32]>;
    /// Writes the scores of a sample, and returns its class.
    fn predict(&self, features: Features<'_>, scores: Scores<'_>) -> Result<u16, sf_status>;
    /// The link function of the model, for scores of its type.
    fn link(&self, scores: Scores<'_>) -> Result<Link, sf_status>;

    /// The sleep of a device that trains.
    #[cfg(feature = "sleep")]
    fn sleeper(&mut self) -> Option<&mut dyn Sleeper> {
        None
    }

    /// The signed models of a device that only infers.
    #[cfg(feature = "delivery")]
    fn models(&mut self) -> Option<&mut dyn Models> {
        None
    }
}

/// A device that sleeps, of any kind.
#[cfg(feature = "sleep")]
pub(crate) trait Sleeper {
    fn set_awake(&mut self, wake: Wake);
    /// The most entries of an update.
    fn entries(&self) -> usize;
    fn hold(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError>;
    fn resume(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError>;
    fn release(&mut self, store: &mut FlashStore<Pages>) -> Result<bool, StoreError>;
}

/// Signed models, of any kind.
#[cfg(feature = "delivery")]
pub(crate) trait Models {
    fn ask(&mut self);
    fn install(&mut self, file: &[u8]) -> Result<u32, sf_status>;
    fn refused(&self) -> Option<(u32, sf_status)>;
}
