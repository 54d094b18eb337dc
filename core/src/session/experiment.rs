//! The model or the recipe of the experiment that refused this device.

use core::fmt;

use crate::{
    recipe::Recipe,
    wire::message::{ModelShape, NO_RECIPE, Refused, WhyRefused},
};

/// The model or the recipe of the experiment, where it differs from the device's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Experiment {
    /// Another model, with [`WhyRefused::Shape`].
    Model(ModelShape),
    /// Another recipe of features, or none, with [`WhyRefused::RECIPE`].
    Recipe(Option<Recipe>),
}

impl Experiment {
    /// Reads the experiment from a refusal. `None` for other reasons, and for bytes of another
    /// version of the protocol.
    pub(super) fn of(refused: &Refused<'_>) -> Option<Self> {
        match (refused.reason, refused.experiment) {
            (WhyRefused::Shape, shape) => ModelShape::read(shape).map(Self::Model),
            (WhyRefused::RECIPE, NO_RECIPE) => Some(Self::Recipe(None)),
            (WhyRefused::RECIPE, recipe) => Recipe::read(recipe).map(Some).map(Self::Recipe),
            _ => None,
        }
    }
}

/// The format of the coordinator's log.
impl fmt::Display for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(shape) => shape.fmt(f),
            Self::Recipe(Some(recipe)) => recipe.fmt(f),
            Self::Recipe(None) => f.write_str("none"),
        }
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for Experiment {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{}", defmt::Display2Format(self));
    }
}
