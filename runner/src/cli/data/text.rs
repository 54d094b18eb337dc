//! An inspection as text for a terminal.

use std::io::{self, Write};

use super::picture;
use crate::data::inspection::{
    ClassSize, DeviceSizes, Facts, Inspection, MissingValues, TargetFacts,
};

/// Most classes and columns that are listed one by one.
const MAX_LISTED: usize = 20;

/// Writes what was found, a picture of a sample, and the `[data]` table.
///
/// # Errors
/// Those of `out`.
pub(super) fn write(found: &Inspection, out: &mut dyn Write) -> io::Result<()> {
    let facts = &found.facts;
    writeln!(out, "{}", facts.origin)?;
    let mut fact = |name: &str, text: String| writeln!(out, "  {name:<11} {text}");
    fact("samples", facts.samples.to_string())?;
    fact("features", features(facts))?;
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
    fact(
        "held out",
        format!("{} validation, {} test", found.validation, found.test),
    )?;
    fact("fingerprint", found.fingerprint.clone())?;
    private(found, &mut fact)?;
    let lines = picture::lines(&facts.example.features, &facts.axes);
    if !lines.is_empty() {
        writeln!(out, "\nA sample of {}:\n", facts.example.target)?;
        for line in lines {
            writeln!(out, "{}", format!("    {line}").trim_end())?;
        }
    }
    let table = toml::to_string(&found.config).map_err(io::Error::other)?;
    writeln!(out, "\nFor an experiment:\n\n[data]\n{}", table.trim_end())
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
