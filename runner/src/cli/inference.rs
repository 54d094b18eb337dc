//! Common parts of the commands that use a model (predict, evaluate, export): the model or the
//! device, the rows, and the arithmetic.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::CliError;
use super::style::warn;
use smolfed_core::fixed_point::FeatureFormat;
use smolfed_data::column::Unknown;
use smolfed_engine::run::directory::RunDir;
use smolfed_report::inference::error::InferenceError;
use smolfed_report::inference::input::{Input, Options};
use smolfed_report::inference::integers::Integers;
use smolfed_report::inference::model::TrainedModel;
use smolfed_report::inference::quantised::QuantisedModel;

/// A model of a run.
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    /// Run directory.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Use the personal model of this device, by its number from 0 (`number` in personal.json).
    #[arg(long, value_name = "K")]
    device: Option<u32>,
}

/// Arithmetic of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Arithmetic {
    /// Floating point, as in the evaluation of `smolfed run`.
    F32,
    /// Integers, bit-identical to boards without a floating-point unit. For a single-layer model,
    /// features have the format of the run's `[simulation.integer]`.
    Integer,
}

/// Arithmetic of predictions, and its calibration.
#[derive(Debug, clap::Args)]
pub(super) struct ArithmeticArgs {
    /// Compute predictions in this arithmetic.
    ///
    /// `integer` rounds features and weights (to 8 bits in networks).
    #[arg(long, value_enum, default_value = "f32")]
    arithmetic: Arithmetic,
    /// Calibrate the value ranges of a network in 8 bits with the public rows of this file.
    ///
    /// The command uses the first 1,000 rows. The file contains the model's features, which are
    /// found by name in a CSV file. The rows must be public, because no epsilon covers the ranges.
    /// By default, the ranges are derived from the bounds of the features. This reads no data but
    /// is coarser.
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
}

impl ArithmeticArgs {
    /// The model in integers, if it is to predict in them. Says where ranges come from.
    pub(super) fn integers<'a>(
        &self,
        args: &ModelArgs,
        model: &'a TrainedModel,
    ) -> Result<Option<Integers<'a>>, CliError> {
        let is_integer = self.arithmetic == Arithmetic::Integer;
        if is_integer && !model.task().is_one_layer() {
            let calibration = self.calibrate.as_deref();
            if calibration == Some(Path::new("-")) {
                return Err(CliError::Usage(
                    "`--calibrate -`: standard input is for `--data`; give a file".to_owned(),
                ));
            }
            let input = calibration
                .map(|file| Input::open(file, &model.preprocessing, Options::of_features()));
            let quantised = QuantisedModel::new(model, input.transpose()?.as_mut())?;
            eprintln!("{}.", quantised.origin());
            return Ok(Some(Integers::Network(quantised)));
        }
        if self.calibrate.is_some() {
            return Err(InferenceError::Calibration.into());
        }
        let format = is_integer.then(|| feature_format(&args.run)).transpose()?;
        let integers = format.map(|format| model.in_integers(format)).transpose()?;
        Ok(integers.map(Integers::Layer))
    }

    /// Whether integers are asked for.
    pub(super) fn is_integer(&self) -> bool {
        self.arithmetic == Arithmetic::Integer
    }
}

/// Rows whose features a board would compute in integers are read like that.
pub(super) fn for_integers<'a>(input: Input<'a>, integers: Option<&Integers<'_>>) -> Input<'a> {
    match integers {
        Some(Integers::Layer(model)) => input.for_integers(model.format()),
        Some(Integers::Network(_)) | None => input,
    }
}

/// Warns of features beyond the range of their integers.
pub(super) fn warn_of_saturated(count: u64, integers: Option<&Integers<'_>>) {
    let advice = match integers {
        _ if count == 0 => return,
        Some(Integers::Network(_)) => "of 8 bits",
        _ => "(`[simulation.integer]`)",
    };
    warn(format!(
        "{count} features are beyond the range of their integers {advice}, and were clipped to it"
    ));
}

/// New rows.
#[derive(Debug, clap::Args)]
pub(super) struct RowArgs {
    /// Read the rows from this file, for example new.csv, or from standard input if FILE is -.
    ///
    /// FILE is a CSV, JSON lines, Parquet, ARFF, IDX, .npy or LEAF file, plain or gzipped, an array
    /// in an archive (set.npz/x), or a folder of images.
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Name the rows of a CSV file by this column [default: row numbers from 1].
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// Read a CSV file without a header line.
    ///
    /// Its columns are called 1, 2, 3 and so on. They contain the model's features in order, apart
    /// from the columns that other options name.
    #[arg(long)]
    no_header: bool,
    /// Choose how to treat a category that the model was not trained with.
    ///
    /// `ignore` treats it like a missing cell, as none of the known categories, and reports the
    /// number of such rows on standard error.
    #[arg(long, value_enum, default_value = "ignore")]
    unknown: UnknownName,
}

/// Treatment of an unknown category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum UnknownName {
    /// Treat it as none of the known categories.
    Ignore,
    /// Stop with an error that names its row.
    Error,
}

impl ModelArgs {
    pub(super) fn open(&self) -> Result<TrainedModel, InferenceError> {
        TrainedModel::open(&self.run, self.device)
    }

    /// The device whose personal model is asked for.
    pub(super) const fn device(&self) -> Option<u32> {
        self.device
    }
}

/// How boards store the features of a run's model of one layer: `[simulation.integer]` of the run,
/// or its default.
pub(super) fn feature_format(run: &Path) -> Result<FeatureFormat, CliError> {
    let config = RunDir::open(run)?.config()?;
    let format = config.simulation.integer.checked();
    format.ok_or_else(|| {
        CliError::Usage(format!(
            "{}: `simulation.integer` is not a format of features",
            RunDir::config_path(run).display()
        ))
    })
}

impl RowArgs {
    /// The rows, without their targets. `label` is a column that is not a feature.
    pub(super) fn open<'a>(
        &'a self,
        model: &'a TrainedModel,
        label: Option<&'a str>,
    ) -> Result<Input<'a>, InferenceError> {
        self.open_with(model, label, None, false)
    }

    /// The rows with their targets, in a column or a file of labels.
    pub(super) fn open_labelled<'a>(
        &'a self,
        model: &'a TrainedModel,
        label: Option<&'a str>,
        labels: Option<&'a Path>,
    ) -> Result<Input<'a>, InferenceError> {
        self.open_with(model, label, labels, true)
    }

    fn open_with<'a>(
        &'a self,
        model: &'a TrainedModel,
        label: Option<&'a str>,
        labels: Option<&'a Path>,
        has_targets: bool,
    ) -> Result<Input<'a>, InferenceError> {
        let options = Options {
            has_targets,
            label,
            labels,
            id: self.id.as_deref(),
            has_header: !self.no_header,
            unknown: match self.unknown {
                UnknownName::Ignore => Unknown::Ignore { cells: 0 },
                UnknownName::Error => Unknown::Refuse,
            },
        };
        Input::open(&self.data, &model.preprocessing, options)
    }

    /// Says how many rows have categories that the model does not know.
    pub(super) fn warn_of_unknown(rows: u64) {
        if rows > 0 {
            warn(format!(
                "{rows} rows have a category that the model was not trained with: they count as \
                 none of the known ones (`--unknown error` refuses them)"
            ));
        }
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("row")
    }
}

/// Refuses to write over what is read: the rows, those of the calibration, or a file of the run.
pub(super) fn check_out(
    out: Option<&Path>,
    model: &ModelArgs,
    arithmetic: &ArithmeticArgs,
    rows: Option<&RowArgs>,
) -> Result<(), CliError> {
    let Some(out) = out.filter(|out| out.exists()) else {
        return Ok(());
    };
    let real = |path: &Path| path.canonicalize().ok();
    let calibration = arithmetic.calibrate.as_deref();
    let read = [rows.map(|rows| rows.data.as_path()), calibration];
    let is_rows = read.iter().flatten().any(|file| real(out) == real(file));
    let is_of_run = RunDir::FILES
        .iter()
        .any(|name| real(out) == real(&model.run.join(name)));
    if !is_rows && !is_of_run {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "`--out {}` would overwrite an input: choose another file",
        out.display()
    )))
}

/// Writes to a file, or to standard output without one. A reader that has seen enough, such as
/// `head`, is no failure.
pub(super) fn write_to(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let Some(path) = path else {
        let mut out = BufWriter::new(io::stdout().lock());
        return match write(&mut out).and_then(|()| Ok(out.flush()?)) {
            Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        };
    };
    let failed =
        |error: io::Error| CliError::Stopped(format!("cannot write {}: {error}", path.display()));
    let mut out = BufWriter::new(File::create(path).map_err(failed)?);
    match write(&mut out).and_then(|()| Ok(out.flush()?)) {
        Err(CliError::Output(error)) => Err(failed(error)),
        result => result,
    }
}

/// Whether standard output is a terminal, which bytes of a file would leave unusable.
pub(super) fn is_on_terminal(path: Option<&Path>) -> bool {
    path.is_none() && io::stdout().is_terminal()
}
