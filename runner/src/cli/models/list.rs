//! `smolfed models list`: the versions of a folder as text and JSON, with their shares, answers and
//! privacy.

use std::io::Write;

use serde_json::json;

use super::folder::FolderArgs;
use crate::cli::CliError;
use crate::cli::text::aligned;
use smolfed_fleet::delivery::catalogue::{Catalogue, words};
use smolfed_fleet::delivery::published::Published;

/// List the versions, with their shares, answers and privacy.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  smolfed models list
  smolfed models list --models shop/models --json")]
pub(super) struct Args {
    #[command(flatten)]
    folder: FolderArgs,
    /// Print one JSON document and nothing else.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args, out: &mut impl Write) -> Result<(), CliError> {
    let folder = &args.folder.models;
    let published = Published::read(folder)?;
    let Catalogue {
        versions, shares, ..
    } = &published.catalogue;
    let model = words(&published.shape, published.recipe.as_ref());
    if args.json {
        let document = json!({ "model": model, "versions": versions, "shares": shares });
        return Ok(writeln!(out, "{document}")?);
    }
    let head = ["version", "share", "answers", "source", "published"];
    let rows = versions.iter().rev().map(|version| {
        let mut shares = shares.iter();
        let share = shares.find(|share| share.version == version.number);
        let answers = version.answer_words();
        vec![
            version.number.to_string(),
            share.map_or("earlier".to_owned(), |share| format!("{} %", share.percent)),
            match answers.as_slice() {
                [] => "none".to_owned(),
                answers => answers.join("; "),
            },
            version.source_words(),
            version.published.clone(),
        ]
    });
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned).to_vec())
        .chain(rows)
        .collect();
    writeln!(out, "{model}\n\n{}", aligned(&rows))?;
    for version in versions.iter().rev() {
        writeln!(
            out,
            "version {}: {}",
            version.number,
            version.privacy_words()
        )?;
    }
    Ok(())
}
