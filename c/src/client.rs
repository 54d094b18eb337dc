//! The interface of a device of any kind, whether it trains or only infers, and the types of
//! features, scores and targets that cross it.

use smolfed_core::{
    Progress,
    provision::Stored,
    session::{LastRound, Phase},
    wire::refusal::Refusals,
};

use crate::status::sf_status;

/// Features of a sample, as the caller has them.
#[derive(Clone, Copy)]
pub(crate) enum Features<'a> {
    F32(&'a [f32]),
    I8(&'a [i8]),
    I16(&'a [i16]),
}

/// Scores of a sample.
pub(crate) enum Scores<'a> {
    F32(&'a mut [f32]),
    Integer(&'a mut [i32]),
}

/// A number or an integer as a feature.
pub(crate) trait Feature: Sized {
    /// Features with their type.
    fn typed(features: &[Self]) -> Features<'_>;
}

/// A number or an integer as a score.
pub(crate) trait Score: Sized {
    /// Scores with their type.
    fn typed(scores: &mut [Self]) -> Scores<'_>;
}

macro_rules! typed {
    ($($trait:ident, $type:ty: $slice:ty => $Typed:ident::$Variant:ident;)*) => {
        $(impl $trait for $type {
            fn typed(values: $slice) -> $Typed<'_> {
                $Typed::$Variant(values)
            }
        })*
    };
}

typed! {
    Feature, f32: &[f32] => Features::F32;
    Feature, i8: &[i8] => Features::I8;
    Feature, i16: &[i16] => Features::I16;
    Score, f32: &mut [f32] => Scores::F32;
    Score, i32: &mut [i32] => Scores::Integer;
}

/// The target of a sample.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Class(u16),
    Value(f32),
}

/// A device of any kind.
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
    fn add_sample(&mut self, features: Features<'_>, target: Target) -> Result<(), sf_status>;
    fn add_stored(&mut self, samples: &Stored<'_>) -> Result<(), sf_status>;
    fn forget_samples(&mut self) -> Result<(), sf_status>;
    fn samples(&self) -> [usize; 3];
    fn model_round(&self) -> Option<u32>;
    fn parameters(&self) -> Option<&[f32]>;
    fn scores(&self, features: Features<'_>, scores: Scores<'_>) -> Result<(), sf_status>;
    fn class(&self, scores: Scores<'_>) -> Result<u16, sf_status>;
    fn probabilities(&self, scores: Scores<'_>) -> Result<(), sf_status>;

    /// The signed models of a device that only infers.
    #[cfg(feature = "delivery")]
    fn models(&mut self) -> Option<&mut dyn Models> {
        None
    }
}

/// Signed models, of any kind.
#[cfg(feature = "delivery")]
pub(crate) trait Models {
    fn ask(&mut self);
    fn install(&mut self, file: &[u8]) -> Result<u32, sf_status>;
    fn refused(&self) -> Option<(u32, sf_status)>;
}
