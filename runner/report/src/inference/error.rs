//! Errors when using a model (predict, evaluate, export): one sentence each, with advice.

use smolfed_core::model::ModelError;
use smolfed_core::quantised::QuantisedError;

use smolfed_data::error::DataError;
use smolfed_engine::method::state::StateError;
use smolfed_engine::run_files::error::RunDirError;

/// Error when using a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InferenceError {
    /// The run directory cannot be used.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The personal models cannot be used.
    #[error(transparent)]
    States(#[from] StateError),
    /// The file with new rows cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The parameters do not fit, although they have been checked.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model does not calculate in integers.
    #[error(
        "`--arithmetic integer`: linear, logistic and softmax models and networks for classes \
         predict in integers, but this is another model; leave it out"
    )]
    Arithmetic,
    /// A parameter cannot be represented by an integer.
    #[error(
        "`--arithmetic integer`: a parameter of the model is not a finite number; train again, or \
         leave the option out"
    )]
    NotFinite,
    /// A layer has no integer form.
    #[error(
        "`--arithmetic integer`: {layer} has no integer form, only convolution, dense, relu, \
         max-pool and global-average have one; leave the option out"
    )]
    NoIntegerLayer {
        /// The layer.
        layer: String,
    },
    /// A feature has no bounds.
    #[error(
        "`--arithmetic integer`: {feature} has no bounds, from which the ranges of a network in 8 \
         bits follow; give public rows with `--calibrate FILE`, or train with bounds (`data.scale`)"
    )]
    NoRanges {
        /// The feature.
        feature: String,
    },
    /// Calibration rows have no use.
    #[error("`--calibrate` is for networks that predict with `--arithmetic integer`; leave it out")]
    Calibration,
    /// The layers of a network in integers do not fit.
    #[error("`--arithmetic integer`: {0}")]
    Quantised(#[from] QuantisedError),
    /// The run was made by an earlier version.
    #[error(
        "{path} has no preprocessing.json, as it is from an earlier version of smolfed, or its \
         first round is not complete; `smolfed run {path}/config.toml` repeats it"
    )]
    NoPreprocessing {
        /// The run directory.
        path: String,
    },
    /// No model is shared.
    #[error(
        "{path} has no shared model: {reason}; `--device K` uses the personal model of device K"
    )]
    NotShared {
        /// The run directory.
        path: String,
        /// Reason.
        reason: &'static str,
    },
    /// Some of the parameters are personal.
    #[error(
        "the run has no shared model that predicts: {found} of {expected} parameters are shared, \
         and each device keeps the others"
    )]
    NotWhole {
        /// Shared parameters.
        found: usize,
        /// Parameters of the model.
        expected: usize,
    },
    /// The run has no personal models.
    #[error(
        "`--device {device}`: {path} has no personal models, as its method shares one model with \
         all devices; leave `--device` out"
    )]
    NotPersonal {
        /// The run directory.
        path: String,
        /// The device.
        device: u32,
    },
    /// The device has no state.
    #[error(
        "`--device {device}`: {path} has no personal model for it, only for each device that took \
         part"
    )]
    NoDevice {
        /// The run directory.
        path: String,
        /// The device.
        device: u32,
    },
    /// The file lacks some features.
    #[error("{origin}: the model reads {missing}, which the file does not have; it has {columns}")]
    MissingColumns {
        /// The file.
        origin: String,
        /// The missing columns.
        missing: String,
        /// The existing columns.
        columns: String,
    },
    /// An option names a column that does not exist.
    #[error("{origin}: there is no column `{column}` (`{option}`); the columns are {columns}")]
    NoColumn {
        /// The file.
        origin: String,
        /// The column.
        column: String,
        /// The option.
        option: &'static str,
        /// The existing columns.
        columns: String,
    },
    /// The number of unnamed features is wrong.
    #[error("{origin}: has {found} features per row, but the model reads {expected}{hint}")]
    FeatureCount {
        /// The file.
        origin: String,
        /// Features of the model.
        expected: usize,
        /// Features of the file.
        found: usize,
        /// Advice.
        hint: &'static str,
    },
    /// A missing value has no replacement.
    #[error(
        "{origin}: {place} is empty and has no replacement, since no value was missing in \
         training; fill it in, or train with a constant `data.missing`"
    )]
    NoFill {
        /// The file.
        origin: String,
        /// The line and the column.
        place: String,
    },
    /// A value is too large for its scale.
    #[error("{origin}: {place} is too large for the scale of the model")]
    TooLarge {
        /// The file.
        origin: String,
        /// The line and the column.
        place: String,
    },
    /// A label is not a class of the model.
    #[error("{origin}: {place} is `{label}`, which is not one of the model's classes: {classes}")]
    Label {
        /// The file.
        origin: String,
        /// The line and the column.
        place: String,
        /// The label.
        label: String,
        /// The first classes.
        classes: String,
    },
    /// Rows without targets cannot be evaluated.
    #[error("{origin}: rows need their targets to be evaluated: {advice}")]
    NoTargets {
        /// The file.
        origin: String,
        /// How to provide them.
        advice: &'static str,
    },
    /// An option is for another format.
    #[error("{origin}: `{option}` is for {meant}")]
    Option {
        /// The file.
        origin: String,
        /// The option.
        option: &'static str,
        /// The format.
        meant: &'static str,
    },
    /// An archive has several arrays.
    #[error("{origin}: has the arrays {names}: name one, as in `{origin}/{example}`")]
    Arrays {
        /// The archive.
        origin: String,
        /// Its arrays.
        names: String,
        /// The first of them.
        example: String,
    },
    /// A folder was given for a model without images.
    #[error(
        "{origin}: is a folder, but the model was not trained on images; give a file with its \
         features"
    )]
    NoImages {
        /// The folder.
        origin: String,
    },
    /// The model makes no predictions.
    #[error("{0}")]
    NoPrediction(&'static str),
    /// A network has no form in floating point in the formats of exports.
    #[error(
        "networks of `model.layers` are exported in 8 bits (`--arithmetic integer`, as c-header or \
         rust); their weights are in model.safetensors, in the order and shapes of PyTorch"
    )]
    Network,
    /// An NPZ archive cannot be written.
    #[error("cannot write the NPZ file: {0}")]
    Npz(String),
    /// The number of targets is wrong.
    #[error("there are {targets} targets for {rows} rows")]
    TargetCount {
        /// The targets.
        targets: usize,
        /// The rows.
        rows: usize,
    },
    /// A target is not a finite number.
    #[error("the target of row {row} is {value}: it must be finite")]
    Target {
        /// The row, from 0.
        row: usize,
        /// The target.
        value: f64,
    },
    /// A file has no rows.
    #[error("{origin}: has no row")]
    Empty {
        /// The file.
        origin: String,
    },
}

impl InferenceError {
    /// Returns whether the input is at fault, not the disk.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::RunDir(error) => !matches!(error, RunDirError::Io { .. }),
            Self::States(error) => error.is_bad_input(),
            Self::Npz(_) => false,
            _ => true,
        }
    }
}
