//! The CSV export of runs: one flat table with one row per run and round, and one column per
//! figure.

use std::path::Path;

use super::format::Format;
use crate::runs::figures::{Round, exported_name, names};
use crate::runs::output::OutputFile;
use crate::runs::selection::Selected;

/// A CSV file.
pub(super) const FORMAT: Format = Format {
    name: "csv",
    about: "A CSV file with a row for each run and round and a column for each figure",
    files,
};

fn files(runs: &[Selected], _: &Path) -> Vec<OutputFile> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for row in rows(runs) {
        // A vector accepts every row, and all rows have the same length.
        let _ = writer.write_record(&row);
    }
    vec![OutputFile::whole(writer.into_inner().unwrap_or_default())]
}

/// Returns columns `run` and `round`, from 0 as in `metrics.jsonl`, then the figures by their
/// dotted names. Missing figures are empty, and an infinite ε is `inf`.
fn rows(runs: &[Selected]) -> Vec<Vec<String>> {
    let all = || runs.iter().flat_map(|of| &of.run.rounds);
    let names = names(all());
    let rounds: Vec<Round> = all().cloned().collect();
    let shown = names.iter().map(|name| exported_name(name, &rounds));
    let head = ["run", "round"].map(str::to_owned).into_iter().chain(shown);
    let mut rows = vec![head.collect::<Vec<_>>()];
    for Selected { label, run } in runs {
        rows.extend(run.rounds.iter().map(|round| {
            let figures = names.iter().map(|name| round.get(name));
            let figures = figures.map(|f| f.map_or(String::new(), |f| f.to_string()));
            let start = [label.clone(), round.round.to_string()];
            start.into_iter().chain(figures).collect()
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::fixture::run;
    use super::*;

    #[test]
    fn windows_have_a_column_for_each_age() {
        let window = r#"{"round":0,"ages":[14,6],"wasted":2,
            "origin":{"ages":"public","wasted":"public"}}"#;
        let files = files(&[run("a", &[window])], Path::new("/out"));
        let expected = "run,round,ages.0,ages.1,wasted\na,0,14,6,2\n";
        assert_eq!(str::from_utf8(&files[0].bytes).unwrap(), expected);
    }

    #[test]
    fn rounds_of_all_runs_share_the_columns() {
        let a = r#"{"round":0,"cohort":4,"epsilon":null,"test":{"accuracy":0.5},
            "origin":{"cohort":"simulation-only","test":"released"}}"#;
        let b = r#"{"round":0,"epsilon":1.5,"simulation_only":{"train_loss":2}}"#;
        let runs = [run("a, b", &[a]), run("c", &[b, b])];
        let files = files(&runs, Path::new("/out"));
        assert_eq!(files[0].path, Path::new(""));
        let expected = "\
run,round,simulation_only.cohort,epsilon,test.accuracy,simulation_only.train_loss
\"a, b\",0,4,inf,0.5,
c,0,,1.5,,2
c,0,,1.5,,2
";
        assert_eq!(str::from_utf8(&files[0].bytes).unwrap(), expected);
    }
}
