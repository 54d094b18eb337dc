//! The text of `smolfed data inspect` for a terminal: devices, classes, columns, private reads and
//! the `[data]` table, with limits on its length.

use std::io::{self, Write};

use serde::Serialize;

use super::super::text::aligned;
use super::picture;
use smolfed_data::config::{DataConfig, FeaturesTable};
use smolfed_data::inspection::{
    ClassSize, DeviceSizes, Facts, Inspection, MissingValues, TargetFacts,
};
use smolfed_data::suggestion::Suggestion;
use smolfed_data::table::profile::{MAX_DISTINCT, Profile};

/// Most classes and columns that are listed one by one.
const MAX_LISTED: usize = 20;

/// Most columns of a table that are shown.
const MAX_COLUMNS: usize = 60;

/// Writes what was found, a picture of a sample, and the `[data]` table.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(
    found: &Inspection,
    columns: Option<&(Profile, Suggestion)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let facts = &found.facts;
    writeln!(out, "{}", facts.origin)?;
    let mut fact = |name: &str, text: String| writeln!(out, "  {name:<11} {text}");
    fact("samples", facts.samples.to_string())?;
    fact("features", features(facts))?;
    if let Some(computed) = &found.computed {
        let (count, about) = (computed.count, &computed.about);
        fact(
            "computed",
            format!("{count} fixed features of each sample: {about}"),
        )?;
    }
    match &facts.targets {
        TargetFacts::Classes(classes) => {
            fact("classes", classes.len().to_string())?;
            let size = |size: &ClassSize| format!("{} {}", size.class, size.samples);
            fact("", listed(classes.iter().map(size)))?;
        }
        TargetFacts::Values { min, max, mean } => {
            fact("target", format!("{min} to {max}, mean {mean:.4}"))?;
        }
    }
    if !facts.missing.is_empty() {
        let total: usize = facts.missing.iter().map(|column| column.count).sum();
        fact(
            "missing",
            format!("{total} values in {} features", facts.missing.len()),
        )?;
        let column = |column: &MissingValues| format!("{} {}", column.feature, column.count);
        fact("", listed(facts.missing.iter().map(column)))?;
    }
    fact("devices", devices(found.devices))?;
    let origin = "counted and measured on these rows, without noise";
    fact("figures", origin.to_owned())?;
    fact(
        "held out",
        format!("{} validation, {} test", found.validation, found.test),
    )?;
    fact("fingerprint", found.fingerprint.clone())?;
    private(found, &mut fact)?;
    if let Some((profile, suggestion)) = columns {
        write_columns(profile, suggestion, out)?;
    }
    let lines = match &facts.example.text {
        Some(text) => text.lines().map(str::to_owned).collect(),
        None => picture::lines(&facts.example.features, &facts.axes),
    };
    if !lines.is_empty() {
        writeln!(out, "\nA sample of {}:\n", facts.example.target)?;
        for line in lines {
            writeln!(out, "{}", format!("    {line}").trim_end())?;
        }
    }
    let tables = Tables {
        data: Some(&found.config),
        features: found.computed.as_ref().map(|computed| &computed.table),
    };
    writeln!(out, "\nFor an experiment:\n\n{}", tables.text()?)?;
    if let Some(features) = &found.suggested {
        let tables = Tables {
            data: None,
            features: Some(features),
        };
        let about = "# More accurate than pixels, and costs no privacy: docs/features.md";
        writeln!(out, "\n{about}\n{}", tables.text()?)?;
    }
    Ok(())
}

/// Tables of an experiment, with the names of those in them.
#[derive(Serialize)]
struct Tables<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a DataConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a FeaturesTable>,
}

impl Tables<'_> {
    fn text(&self) -> io::Result<String> {
        let text = toml::to_string(self).map_err(io::Error::other)?;
        Ok(text.trim_end().to_owned())
    }
}

/// Each column, and what it is used for in the suggested table.
fn write_columns(
    profile: &Profile,
    suggestion: &Suggestion,
    out: &mut dyn Write,
) -> io::Result<()> {
    let head = ["column", "cells", "missing", "distinct", "range", "use"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (column, (_, used)) in profile
        .columns
        .iter()
        .zip(&suggestion.uses)
        .take(MAX_COLUMNS)
    {
        let range = column
            .range
            .map_or(String::new(), |[min, max]| format!("{min} to {max}"));
        let distinct = match column.distinct > MAX_DISTINCT {
            true => format!("over {MAX_DISTINCT}"),
            false => column.distinct.to_string(),
        };
        let name = match column.name.as_str() {
            "" => "(no name)",
            name => name,
        };
        rows.push(vec![
            name.to_owned(),
            column.kind.name().to_owned(),
            column.missing.to_string(),
            distinct,
            range,
            used.to_string(),
        ]);
    }
    let more = profile.columns.len().saturating_sub(MAX_COLUMNS);
    writeln!(
        out,
        "\n{}, {} columns:\n",
        profile.layout,
        profile.columns.len()
    )?;
    for line in aligned(&rows).lines() {
        writeln!(out, "  {}", line.trim_end())?;
    }
    if more > 0 {
        writeln!(out, "  and {more} more")?;
    }
    Ok(())
}

/// What no ε of a run covers, with what to write instead, and what constants change.
fn private(
    found: &Inspection,
    fact: &mut dyn FnMut(&str, String) -> io::Result<()>,
) -> io::Result<()> {
    for read in &found.reads {
        fact("no epsilon", format!("covers that {}", read.reads))?;
        fact("", format!("instead: {}", read.instead))?;
    }
    if !found.beyond_bounds.is_empty() {
        let total: u64 = found.beyond_bounds.iter().map(|(_, count)| count).sum();
        fact("clipped", format!("{total} values beyond the bounds"))?;
        let feature = |(name, count): &(String, u64)| format!("{name} {count}");
        fact("", listed(found.beyond_bounds.iter().map(feature)))?;
    }
    if found.dropped_rows > 0 {
        let rows = found.dropped_rows;
        fact(
            "left out",
            format!("{rows} rows of classes that are not listed"),
        )?;
    }
    for remark in &found.remarks {
        fact("note", remark.clone())?;
    }
    if found.small_devices > 0 {
        let devices = found.small_devices;
        let about = "devices with fewer samples than `min_samples`";
        fact("left out", format!("{devices} {about}"))?;
    }
    Ok(())
}

fn features(facts: &Facts) -> String {
    let mut text = facts.feature_count.to_string();
    if !facts.axes.is_empty() {
        let axes: Vec<String> = facts.axes.iter().map(usize::to_string).collect();
        text += &format!(" ({})", axes.join(" x "));
    }
    let [min, max] = facts.feature_range;
    text += &format!(", from {min} to {max}");
    if facts.constant_features > 0 {
        text += &format!(", {} constant", facts.constant_features);
    }
    text
}

fn devices(sizes: DeviceSizes) -> String {
    let DeviceSizes {
        devices,
        min,
        median,
        max,
    } = sizes;
    if min == max {
        format!("{devices}, each with {min} training samples")
    } else {
        format!("{devices}, with {min} to {max} training samples, median {median}")
    }
}

fn listed(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(MAX_LISTED);
    let mut shown: Vec<String> = items.take(MAX_LISTED).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
