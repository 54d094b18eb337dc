//! `smolfed predict`: the predictions of the model of a run for new rows, as CSV or JSON.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use super::CliError;
use super::inference::{
    ArithmeticArgs, ModelArgs, RowArgs, check_out, for_integers, warn_of_saturated, write_to,
};
use super::style::warn;
use smolfed_engine::evaluation::samples::Tally;
use smolfed_report::inference::input::{Input, Part};
use smolfed_report::inference::integers::Integers;
use smolfed_report::inference::model::{Outputs, TrainedModel};
use smolfed_report::inference::prediction::Prediction;

/// Predict the classes or values of new rows with the model of a run.
///
/// The command prints one CSV line per row: its number, the prediction and, for classes, the
/// probability of each class. Values are in the target's own unit.
///
/// Rows are prepared as in training. The columns of tables (CSV, JSON lines, Parquet, ARFF) are
/// found by name, in any order, and other columns are ignored. The features of IDX, NumPy and LEAF
/// files, and of tables without a header, are used in order. The images of a folder are in the
/// order of their names, and each row has the name of its file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed predict runs/watch --data new.csv
  smolfed predict runs/watch --data new.csv --id session --out predictions.csv
  smolfed predict runs/pmtl --device 7 --data of-device-7.csv --json
  smolfed predict runs/watch --arithmetic integer --data new.csv
  smolfed predict runs/cnn --arithmetic integer --calibrate public.csv --data new.csv
  zcat new.csv.gz | smolfed predict runs/watch --data -")]
pub(super) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    rows: RowArgs,
    /// Leave out this non-feature column of the CSV file, if features have no names.
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    #[command(flatten)]
    arithmetic: ArithmeticArgs,
    /// Print one JSON document and nothing else.
    #[arg(long)]
    json: bool,
    /// Write the predictions to this file [default: standard output].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    check_out(
        args.out.as_deref(),
        &args.model,
        &args.arithmetic,
        Some(&args.rows),
    )?;
    let model = args.model.open()?;
    // A model that predicts nothing is refused before a file is written.
    model.parameters()?;
    let integers = args.arithmetic.integers(&args.model, &model)?;
    let input = args.rows.open(&model, args.label.as_deref())?;
    let mut input = for_integers(input, integers.as_ref());
    // Nothing is written for a file whose first rows are wrong.
    let rows = Rows {
        model: &model,
        integers,
        first: input.next(Tally::PART)?,
        input,
    };
    write_to(args.out.as_deref(), |out| match args.json {
        true => write_json(rows, out),
        false => write_csv(args.rows.id(), rows, out),
    })
}

/// The rows to predict, part by part.
struct Rows<'a> {
    model: &'a TrainedModel,
    /// The same model, if it is to predict in integers.
    integers: Option<Integers<'a>>,
    first: Option<Part>,
    input: Input<'a>,
}

impl Rows<'_> {
    /// Calls `each` with the name and the prediction of each row.
    fn predict(
        mut self,
        mut each: impl FnMut(&str, Prediction) -> io::Result<()>,
    ) -> Result<(), CliError> {
        let mut part = self.first.take();
        let mut saturated = 0;
        while let Some(rows) = part {
            let predictions = match &self.integers {
                None => {
                    let scores = self.model.scores(rows.samples())?;
                    self.model.predictions(&scores).collect()
                }
                Some(model) => {
                    let found = model.predictions(rows.samples())?;
                    saturated += found.saturated;
                    found.predictions
                }
            };
            for (id, prediction) in rows.ids.iter().zip(predictions) {
                each(id, prediction)?;
            }
            part = self.input.next(Tally::PART)?;
        }
        warn_of_saturated(saturated, self.integers.as_ref());
        RowArgs::warn_of_unknown(self.input.unknown_rows());
        self.input.remarks().iter().for_each(warn);
        Ok(())
    }
}

fn write_csv(id: &str, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), CliError> {
    let model = rows.model;
    let mut writer = csv::Writer::from_writer(out);
    let mut header = vec![id.to_owned()];
    let labels = match model.outputs() {
        Outputs::Value(_) => {
            header.push("prediction".to_owned());
            &[]
        }
        Outputs::Representation => {
            let count = model.task().output_count();
            header.extend((0..count).map(|at| format!("output_{at}")));
            &[]
        }
        Outputs::Logit(labels) | Outputs::Logits(labels) => {
            header.push("prediction".to_owned());
            header.extend(labels.iter().map(|label| format!("probability_{label}")));
            labels
        }
    };
    writer.write_record(&header).map_err(from_csv)?;
    rows.predict(|id, prediction| {
        let mut record = vec![id.to_owned()];
        match prediction {
            Prediction::Value(value) => record.push(short(value)),
            Prediction::Representation(values) => {
                record.extend(values.iter().map(f32::to_string));
            }
            Prediction::Class {
                class,
                probabilities,
            } => {
                record.push(labels[class].clone());
                record.extend(probabilities.iter().map(f32::to_string));
            }
        }
        writer.write_record(&record).map_err(from_csv)
    })?;
    Ok(writer.flush()?)
}

fn write_json(rows: Rows<'_>, out: &mut dyn Write) -> Result<(), CliError> {
    let labels = match rows.model.outputs() {
        Outputs::Logit(labels) | Outputs::Logits(labels) => labels,
        Outputs::Value(_) | Outputs::Representation => &[],
    };
    // Row by row, so that a large file needs no more memory than a part of it.
    write!(out, "{{")?;
    if !labels.is_empty() {
        write!(out, "\"classes\": {}, ", json!(labels))?;
    }
    write!(out, "\"rows\": [")?;
    let mut separator = "\n";
    rows.predict(|id, prediction| {
        let mut row = JsonRow {
            row: id,
            ..JsonRow::default()
        };
        match prediction {
            Prediction::Value(value) => row.prediction = Some(json!(value)),
            Prediction::Representation(outputs) => row.outputs = outputs,
            Prediction::Class {
                class,
                probabilities,
            } => {
                row.prediction = Some(json!(labels[class]));
                row.probabilities = probabilities;
            }
        }
        write!(out, "{separator}")?;
        separator = ",\n";
        Ok(serde_json::to_writer(&mut *out, &row)?)
    })?;
    Ok(writeln!(out, "\n]}}")?)
}

/// A row of the document.
#[derive(Default, Serialize)]
struct JsonRow<'a> {
    row: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prediction: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    probabilities: Vec<f32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<f32>,
}

/// The error of the output, which tells a reader that has gone from a full disk.
fn from_csv(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// A value with the digits of `f32`, in which it was computed.
fn short(value: f64) -> String {
    (value as f32).to_string()
}
