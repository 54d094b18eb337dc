//! `smolfed export`: the model of a run for other programs, as a C header, for ONNX, for NumPy or,
//! for a network in 8 bits, as Rust tables.

use std::path::PathBuf;

use clap::ValueEnum;

use super::CliError;
use super::inference::{ArithmeticArgs, ModelArgs, check_out, is_on_terminal, write_to};
use smolfed_report::inference::export::{c_header, format, rust};
use smolfed_report::inference::integers::Integers;

/// Export the model of a run, with its preprocessing, for programs in other languages.
///
/// A C header or an ONNX graph takes features as they are in the data, with NaN for missing values,
/// and returns classes with probabilities, values in their own unit, or the representation of an
/// encoder. With --arithmetic integer, a C header takes and returns integers. NumPy arrays and Rust
/// tables are for your own code. See docs/inference.md and, for microcontrollers,
/// docs/board-export.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed export runs/watch --format c-header --out model.h
  smolfed export runs/watch --format c-header --arithmetic integer --out model.h
  smolfed export runs/cnn --format rust --arithmetic integer --calibrate public.csv --out model.rs
  smolfed export runs/watch --format onnx --out model.onnx
  smolfed export runs/pmtl --device 7 --format npz --out device-7.npz")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Write the output in this format.
    #[arg(long, value_enum)]
    format: Format,
    #[command(flatten)]
    arithmetic: ArithmeticArgs,
    /// Write the output to this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Format of an exported model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// C99 header that needs only the standard library, for microcontrollers.
    CHeader,
    /// Graph for ONNX runtimes, with operator set 13.
    Onnx,
    /// Arrays for NumPy.
    Npz,
    /// Tables for `smolfed_core::quantised`, for networks with `--arithmetic integer`.
    Rust,
}

impl Format {
    /// The format of a model in numbers.
    const fn of_numbers(self) -> Option<format::Format> {
        match self {
            Self::CHeader => Some(format::Format::CHeader),
            Self::Onnx => Some(format::Format::Onnx),
            Self::Npz => Some(format::Format::Npz),
            Self::Rust => None,
        }
    }

    const fn is_text(self) -> bool {
        matches!(self, Self::CHeader | Self::Rust)
    }
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let out = args.out.as_deref();
    check_out(out, &args.model, &args.arithmetic, None)?;
    if args.arithmetic.is_integer() && !args.format.is_text() {
        return Err(CliError::Usage(
            "`--arithmetic integer` needs `--format c-header` or `rust`: the other formats are for \
             programs with floating point"
                .to_owned(),
        ));
    }
    let model = args.model.open()?;
    if !args.format.is_text() && is_on_terminal(out) {
        return Err(CliError::Usage(
            "the format is binary: give `--out FILE`, or send standard output to a file".to_owned(),
        ));
    }
    let integers = args.arithmetic.integers(&args.model, &model)?;
    if let Some(device) = args.model.device() {
        eprintln!(
            "warning: no epsilon covers the personal model of device {device}: it belongs only on \
             that device"
        );
    }
    let bytes = match (integers, args.format.of_numbers()) {
        (None, Some(format)) => format::encode(&model, format)?,
        (Some(model), Some(_)) => c_header::encode_integers(&model)?.into_bytes(),
        (Some(Integers::Network(model)), None) => rust::encode(&model)?.into_bytes(),
        (_, None) => {
            return Err(CliError::Usage(
                "`--format rust` is for networks in 8 bits: it needs `--arithmetic integer` and a \
                 model of several layers; boards have models of one layer in `smolfed-core`"
                    .to_owned(),
            ));
        }
    };
    write_to(out, |out| Ok(out.write_all(&bytes)?))
}
