//! Event files of TensorBoard: one folder per run, with scalars by round, and the configuration and
//! the privacy statements as text.
//!
//! Source: `tensorflow/core/lib/io/record_writer.cc` for the framing, `event.proto` and
//! `summary.proto` for the messages.

mod proto;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crc::{CRC_32_ISCSI, Crc};
use prost::Message;

use self::proto::{Event, Summary, Value};
use super::format::Format;
use crate::runs::figures::exported_name;
use crate::runs::output::OutputFile;
use crate::runs::record::{Run, since_epoch};
use crate::runs::selection::Selected;
use crate::runs::settings;

/// Event files.
pub(super) const FORMAT: Format = Format {
    name: "tensorboard",
    about: "A folder of event files, one for each run: tensorboard --logdir FOLDER",
    files,
};

/// Version in the first event of a file.
const VERSION: &str = "brain.Event:2";
/// CRC-32C (Castagnoli).
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

fn files(runs: &[Selected], _: &Path) -> Vec<OutputFile> {
    let files = runs.iter().map(|Selected { label, run }| {
        let seconds = since_epoch(run.started()).as_secs();
        // TensorBoard recognises event files by their names, and reads them in the order of time.
        let name = format!("events.out.tfevents.{seconds:010}.smolfed");
        // An absolute label would leave the folder.
        let folder = PathBuf::from(label.trim_start_matches('/'));
        let events = events(run).into_iter();
        let records = events.flat_map(|event| framed(&event.encode_to_vec()));
        OutputFile::new(folder.join(name), records.collect::<Vec<_>>())
    });
    files.collect()
}

/// Returns a record: the length, its checksum, the data, their checksum, all little-endian.
fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let parts = [
        &length[..],
        &masked(&length).to_le_bytes(),
        data,
        &masked(data).to_le_bytes(),
    ];
    parts.concat()
}

/// Returns the stored checksum: rotated, so that checksums of data that contain checksums differ.
fn masked(data: &[u8]) -> u32 {
    CRC.checksum(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}

fn events(run: &Run) -> Vec<Event> {
    let statements = run.statements.iter().map(|statement| statement.in_words());
    let statements = statements.collect::<Vec<_>>().join("\n\n");
    let mut texts = vec![Value::text("hyperparameters", &hyperparameters(run))];
    if !statements.is_empty() {
        texts.push(Value::text("privacy", &statements));
    }
    let mut events = vec![
        Event {
            wall_time: wall_time(run.started()),
            file_version: Some(VERSION.to_owned()),
            ..Event::default()
        },
        Event {
            wall_time: wall_time(run.started()),
            summary: Some(Summary { value: texts }),
            ..Event::default()
        },
    ];
    events.extend(run.rounds.iter().zip(run.times()).map(|(round, time)| {
        let figures = round.figures.iter();
        // TensorBoard groups plots by the part before the first slash.
        let values = figures.map(|(name, value)| {
            let name = exported_name(name, &run.rounds);
            Value::scalar(&name.replace('.', "/"), *value)
        });
        Event {
            wall_time: wall_time(time),
            step: i64::from(round.round),
            summary: Some(Summary {
                value: values.collect(),
            }),
            ..Event::default()
        }
    }));
    events
}

fn wall_time(time: SystemTime) -> f64 {
    since_epoch(time).as_secs_f64()
}

/// Returns the configuration as a Markdown table.
fn hyperparameters(run: &Run) -> String {
    let mut text = "| key | value |\n| --- | --- |\n".to_owned();
    for (key, value) in &run.settings {
        let value = settings::words(value)
            .replace('|', "\\|")
            .replace('\n', " ");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {key} | {value} |");
    }
    text
}

#[cfg(test)]
mod tests;
