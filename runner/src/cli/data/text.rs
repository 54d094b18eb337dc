//! An inspection as text for a terminal.

use std::io::{self, Write};

use super::picture;
use crate::data::inspection::{DeviceSizes, Inspection, TargetFacts};

/// Most classes and columns that are listed one by one.
const MOST_LISTED: usize = 20;

/// Writes what was found, a picture of a sample, and the `[data]` table.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(found: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", found.origin)?;
    let mut fact = |name: &str, text: String| writeln!(out, "  {name:<11} {text}");
    fact("samples", found.samples.to_string())?;
    fact("features", features(found))?;
    match &found.targets {
        TargetFacts::Classes(classes) => {
            fact("classes", classes.len().to_string())?;
            let size = |size: &crate::data::inspection::ClassSize| {
                format!("{} {}", size.class, size.samples)
            };
            fact("", listed(classes.iter().map(size)))?;
        }
        TargetFacts::Values { min, max, mean } => {
            fact("target", format!("{min} to {max}, mean {mean:.4}"))?;
        }
    }
    if !found.missing.is_empty() {
        let total: usize = found.missing.iter().map(|column| column.count).sum();
        fact(
            "missing",
            format!("{total} values in {} features", found.missing.len()),
        )?;
        let column = |column: &crate::data::inspection::MissingValues| {
            format!("{} {}", column.feature, column.count)
        };
        fact("", listed(found.missing.iter().map(column)))?;
    }
    fact("devices", devices(found.devices))?;
    fact(
        "held out",
        format!("{} validation, {} test", found.validation, found.test),
    )?;
    fact("fingerprint", found.fingerprint.clone())?;
    let lines = picture::lines(&found.example.features, &found.axes);
    if !lines.is_empty() {
        writeln!(out, "\nA sample of {}:\n", found.example.target)?;
        for line in lines {
            writeln!(out, "{}", format!("    {line}").trim_end())?;
        }
    }
    let table = toml::to_string(&found.config).map_err(io::Error::other)?;
    writeln!(out, "\nFor an experiment:\n\n[data]\n{}", table.trim_end())
}

fn features(found: &Inspection) -> String {
    let mut text = found.feature_count.to_string();
    if !found.axes.is_empty() {
        let axes: Vec<String> = found.axes.iter().map(usize::to_string).collect();
        text += &format!(" ({})", axes.join(" x "));
    }
    let [min, max] = found.feature_range;
    text += &format!(", from {min} to {max}");
    if found.constant_features > 0 {
        text += &format!(", {} constant", found.constant_features);
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
    let more = items.len().saturating_sub(MOST_LISTED);
    let mut shown: Vec<String> = items.take(MOST_LISTED).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}
