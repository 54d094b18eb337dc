//! The reasons why `smolfed data` fails: an unknown subject, unusable data, no recipe, no
//! drawing.

use std::io;
use std::path::PathBuf;

use smolfed_data::error::DataError;
use smolfed_engine::config::ConfigError;
use smolfed_engine::run::RunError;

use crate::device_recipe::DeviceRecipeError;
use crate::subject::SubjectError;

/// Why `smolfed data` failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataCommandError {
    /// What was asked for makes no sense.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The experiment.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The experiment cannot be prepared.
    #[error(transparent)]
    Run(Box<RunError>),
    /// It has no recipe for firmware.
    #[error(transparent)]
    Recipe(#[from] DeviceRecipeError),
    /// A drawing of what is not drawn.
    #[error(
        "`--svg` draws features of images: add `--set features.kind=gradients \
         --set features.cell=4`"
    )]
    NoDrawing,
    /// The drawing cannot be written.
    #[error("{}: cannot be written ({reason})", path.display())]
    Drawing {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
}

/// In a box, as an error of a run is large.
impl From<RunError> for DataCommandError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl DataCommandError {
    /// Whether the input is to blame, and not the output.
    pub(in crate::cli) fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Output(_))
    }
}
