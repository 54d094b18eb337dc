//! `smolfed evaluate`: the quality of the model of a run on rows whose targets (labels) are known.

use std::path::PathBuf;

use serde_json::json;

use super::CliError;
use super::confusion;
use super::inference::{
    ArithmeticArgs, ModelArgs, RowArgs, for_integers, warn_of_saturated, write_to,
};
use super::style::warn;
use super::text::aligned;
use smolfed_engine::evaluation::assessment::Assessment;
use smolfed_release::provenance::{Provenance, with_origin};
use smolfed_report::inference::assessment::{assess, assess_integers};

/// Evaluate the model of a run on rows with known classes or values.
///
/// For classes, prints the accuracy, the accuracy of always predicting the most frequent class, F1,
/// the loss and the confusion matrix. For values, prints R² and, in their own unit, the root mean
/// squared error, the root mean squared error of always predicting the mean, and the mean absolute
/// error. On the test rows of a run, the figures equal the figures of the run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed evaluate runs/watch --data test.csv
  smolfed evaluate runs/mnist --data t10k-images-idx3-ubyte.gz --labels t10k-labels-idx1-ubyte.gz
  smolfed evaluate runs/watch --arithmetic integer --data test.csv
  smolfed evaluate runs/arrays --data set.npz/x --labels set.npz/y
  smolfed evaluate runs/photos --data photos      # photos/CLASS/*.png
  smolfed evaluate runs/pmtl --device 7 --data of-device-7.csv --json")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// Read the known classes or values from this column of a CSV file [default: the column from
    /// training].
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Read the labels (or, for NumPy, values) of IDX or NumPy data from this file.
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    #[command(flatten)]
    arithmetic: ArithmeticArgs,
    /// Print one JSON document and nothing else.
    #[arg(long)]
    json: bool,
}

/// Below all figures.
const WHOSE_ROWS: &str = "Provenance unknown: the owner of these rows is unknown. Figures on \
                          private rows are covered by no epsilon.";

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let model = args.model.open()?;
    let labels = args.labels.as_deref();
    let integers = args.arithmetic.integers(&args.model, &model)?;
    let input = args
        .rows
        .open_labelled(&model, args.label.as_deref(), labels)?;
    let mut input = for_integers(input, integers.as_ref());
    let found = match &integers {
        None => assess(&model, &mut input)?,
        Some(integers) => {
            let (found, saturated) = assess_integers(integers, &mut input)?;
            warn_of_saturated(saturated, Some(integers));
            found
        }
    };
    RowArgs::warn_of_unknown(input.unknown_rows());
    input.remarks().iter().for_each(warn);
    write_to(None, |out| {
        match args.json {
            true => writeln!(
                out,
                "{}",
                with_origin(json!(found), |_| Provenance::Unknown)
            )?,
            false => {
                write!(out, "{}", text(&found, model.preprocessing.labels()))?;
                writeln!(out, "\n{WHOSE_ROWS}")?;
            }
        }
        Ok(())
    })
}

/// A line for each figure, and the confusion matrix.
fn text(found: &Assessment, classes: &[String]) -> String {
    let mut rows = vec![
        ["figure", "value"].map(str::to_owned).to_vec(),
        vec!["rows".to_owned(), found.rows.to_string()],
    ];
    let figures = found.in_words().into_iter();
    rows.extend(figures.map(|(name, value)| vec![name.to_owned(), value]));
    let confusion = found.classes.as_ref();
    let confusion = confusion.map_or(String::new(), |figures| confusion::text(figures, classes));
    aligned(&rows) + &confusion
}
