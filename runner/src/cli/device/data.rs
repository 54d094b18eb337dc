//! The samples of a device, from a CSV file: as they are, or prepared as in the experiment.

use std::path::Path;

use super::super::CliError;
use smolfed_data::column::Unknown;
use smolfed_data::dataset::{Targets, TaskKind};
use smolfed_data::table::{self, Columns, TableFormat};
use smolfed_engine::preprocessing::{Preprocessing, Target};
use smolfed_fleet::device::files::refused;
use smolfed_fleet::device::process::DeviceSamples;
use smolfed_report::inference::input::{Input, Options};

/// Numbers in the order of the columns, without any preprocessing.
pub(super) fn as_it_is(path: &Path, label: &str) -> Result<DeviceSamples, CliError> {
    let bytes = std::fs::read(path).map_err(|error| refused(path, error))?;
    let columns = Columns {
        label: label.to_owned(),
        task: Some(TaskKind::Regression),
        ..Columns::default()
    };
    let table = table::parse(TableFormat::Csv, &bytes, &columns);
    let table = table.map_err(|error| refused(path, error))?;
    let data = table.into_dataset().map_err(|error| refused(path, error))?;
    if !data.missing().is_empty() {
        return Err(refused(
            path,
            "values are missing, which `--preprocessing` would replace",
        )
        .into());
    }
    let Targets::Values(targets) = data.targets() else {
        return Err(refused(path, "its targets are not numbers").into());
    };
    Ok(DeviceSamples {
        features: data.features().to_vec(),
        targets: targets.clone(),
        label: label.to_owned(),
    })
}

/// Rows as the experiment prepares them.
pub(super) fn prepared(
    path: &Path,
    preprocessing: &Preprocessing,
    label: Option<&str>,
) -> Result<DeviceSamples, CliError> {
    let options = Options {
        has_targets: preprocessing.target != Target::Representation,
        label,
        labels: None,
        id: None,
        has_header: true,
        unknown: Unknown::Refuse,
    };
    let mut input = Input::open(path, preprocessing, options)?;
    let mut data = DeviceSamples {
        features: Vec::new(),
        targets: Vec::new(),
        label: label
            .or(preprocessing.target_column())
            .unwrap_or_default()
            .to_owned(),
    };
    while let Some(part) = input.next(usize::MAX)? {
        let samples = part.samples();
        for row in 0..samples.len() {
            data.features.extend(samples.features(row));
            data.targets.push(match options.has_targets {
                true => samples.value(row),
                false => 0.0,
            });
        }
    }
    Ok(data)
}
