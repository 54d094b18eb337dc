//! `smolfed export`: the model of a run for programs in other languages.

use std::path::PathBuf;

use clap::ValueEnum;

use super::CliError;
use super::inference::{Arithmetic, ModelArgs, check_out, is_on_terminal, write_to};
use smolfed_report::inference::export::{c_header, format};

/// Write the model of a run, with its preprocessing, for programs in other languages.
///
/// Each format takes features as they are in the data, with NaN for missing values, and gives
/// classes with probabilities, values in their own unit, or the representation of an encoder. See
/// docs/inference.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed export runs/watch --format c-header --out model.h
  smolfed export runs/watch --format c-header --arithmetic integer --out model.h
  smolfed export runs/watch --format onnx --out model.onnx
  smolfed export runs/pmtl --device 7 --format npz --out device-7.npz")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// The format.
    #[arg(long, value_enum)]
    format: Format,
    /// How the program predicts. Headers for C have integers as well, of models of one layer.
    #[arg(long, value_enum, default_value = "f32")]
    arithmetic: Arithmetic,
    /// The file to write; by default standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What programs read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A header for C99 without dependencies, for microcontrollers.
    CHeader,
    /// A graph for ONNX runtimes, of operator set 13.
    Onnx,
    /// Arrays for NumPy.
    Npz,
}

impl From<Format> for format::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::CHeader => Self::CHeader,
            Format::Onnx => Self::Onnx,
            Format::Npz => Self::Npz,
        }
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let out = args.out.as_deref();
    check_out(out, &args.model, None)?;
    let integers = args.model.feature_format(args.arithmetic)?;
    if args.format != Format::CHeader && integers.is_some() {
        return Err(CliError::Usage(
            "`--arithmetic integer` needs `--format c-header`: the other formats are for programs \
             with floating point"
                .to_owned(),
        ));
    }
    let model = args.model.open()?;
    if args.format != Format::CHeader && is_on_terminal(out) {
        return Err(CliError::Usage(
            "the format is binary: give `--out FILE`, or send standard output to a file".to_owned(),
        ));
    }
    if let Some(device) = args.model.device() {
        eprintln!(
            "warning: no epsilon covers the personal model of device {device}: it belongs on that \
             device alone"
        );
    }
    let bytes = match integers {
        None => format::encode(&model, args.format.into())?,
        Some(format) => c_header::encode_integers(&model.in_integers(format)?)?.into_bytes(),
    };
    write_to(out, |out| Ok(out.write_all(&bytes)?))
}
