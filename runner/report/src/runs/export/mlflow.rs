//! MLflow's file store: one folder per experiment with one folder per run, and one file per
//! parameter, metric and tag.
//!
//! Source: `mlflow/store/tracking/file_store.py` of MLflow 3.17.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use blake2::{Blake2s256, Digest};

use super::format::Format;
use crate::runs::figures::{exported_name, names};
use crate::runs::output::OutputFile;
use crate::runs::record::{Run, State, since_epoch};
use crate::runs::selection::Selected;
use crate::runs::settings;

/// A file store.
pub(super) const FORMAT: Format = Format {
    name: "mlflow",
    about: "A folder that MLflow reads as its file store: an experiment for each name",
    files,
};

/// Maximum characters of a file's name. File systems allow 255 bytes.
const MAX_NAME: usize = 120;
/// Exclusive upper bound on the number of an experiment.
const EXPERIMENT_DIGITS: u64 = 1_000_000_000_000_000_000;

fn files(runs: &[Selected], out: &Path) -> Vec<OutputFile> {
    let mut files = Vec::new();
    let names: BTreeSet<&str> = runs.iter().map(|of| of.run.config.name.as_str()).collect();
    for name in names {
        let of_experiment = || runs.iter().filter(|of| of.run.config.name == name);
        let times = of_experiment().flat_map(|of| of.run.times());
        let times: Vec<u128> = times.map(|t| since_epoch(t).as_millis()).collect();
        let id = experiment_id(name);
        let meta = yaml(&[
            ("artifact_location", text(&artifacts(&out.join(&id)))),
            (
                "creation_time",
                times.iter().min().unwrap_or(&0).to_string(),
            ),
            ("experiment_id", text(&id)),
            (
                "last_update_time",
                times.iter().max().unwrap_or(&0).to_string(),
            ),
            ("lifecycle_stage", "active".to_owned()),
            ("name", text(name)),
        ]);
        files.push(OutputFile::new(Path::new(&id).join("meta.yaml"), meta));
        for of in of_experiment() {
            files.extend(run_files(of, &id, out));
        }
    }
    files
}

fn run_files(of: &Selected, experiment: &str, out: &Path) -> Vec<OutputFile> {
    let Selected { label, run } = of;
    let id = run_id(run);
    let folder = Path::new(experiment).join(&id);
    let times: Vec<u128> = (run.times().into_iter())
        .map(|time| since_epoch(time).as_millis())
        .collect();
    let (status, ended) = match run.state {
        State::Running => (1, None),
        State::Complete => (3, times.last()),
        // Killed.
        State::Unfinished => (5, times.last()),
    };
    let meta = yaml(&[
        ("artifact_uri", text(&artifacts(&out.join(&folder)))),
        ("end_time", ended.map_or("null".to_owned(), u128::to_string)),
        ("entry_point_name", text("")),
        ("experiment_id", text(experiment)),
        ("lifecycle_stage", "active".to_owned()),
        ("run_id", text(&id)),
        ("run_name", text(label)),
        ("source_name", text("")),
        // Local.
        ("source_type", "4".to_owned()),
        ("source_version", text("")),
        ("start_time", times.first().unwrap_or(&0).to_string()),
        ("status", status.to_string()),
        ("tags", "[]".to_owned()),
        ("user_id", text("")),
    ]);
    let mut files = vec![OutputFile::new(folder.join("meta.yaml"), meta)];
    let params = run.settings.iter();
    files.extend(params.map(|(key, value)| {
        let value = settings::words(value).replace('\n', " ");
        OutputFile::new(folder.join("params").join(file_name(key)), value)
    }));
    let mut taken = BTreeSet::new();
    for name in names(&run.rounds) {
        let mut file = file_name(&exported_name(name, &run.rounds));
        while !taken.insert(file.clone()) {
            file.push('_');
        }
        let mut lines = String::new();
        for (round, time) in run.rounds.iter().zip(&times) {
            if let Some(value) = round.get(name) {
                // Writing to a String cannot fail.
                let _ = writeln!(lines, "{time} {value} {}", round.round);
            }
        }
        files.push(OutputFile::new(folder.join("metrics").join(file), lines));
    }
    // MLflow accepts only runs with a folder of this name.
    let statements = serde_json::to_vec_pretty(&run.statements).unwrap_or_default();
    files.push(OutputFile::new(
        folder.join("artifacts/privacy.json"),
        statements,
    ));
    let tags = tags(label, run).into_iter();
    files.extend(tags.map(|(name, value)| OutputFile::new(folder.join("tags").join(name), value)));
    files
}

/// Returns the information that MLflow shows next to figures. The note has the privacy statements.
fn tags(label: &str, run: &Run) -> Vec<(&'static str, String)> {
    let statements = run.statements.iter().map(|statement| statement.in_words());
    let statements = statements.collect::<Vec<_>>().join("\n\n");
    vec![
        ("mlflow.note.content", statements),
        ("mlflow.runName", label.to_owned()),
        ("mlflow.source.name", "smolfed".to_owned()),
        ("smolfed.run", run.path.display().to_string()),
    ]
}

/// Returns the URI of a run's files, in MLflow's form for local folders.
fn artifacts(folder: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in folder.join("artifacts").as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => {
                // Writing to a String cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

/// Returns an experiment's number, the same in every export, so that folders can be merged.
fn experiment_id(name: &str) -> String {
    let digest: [u8; 32] = Blake2s256::digest(name.as_bytes()).into();
    let first = digest
        .first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first));
    // MLflow reserves 0.
    (first % EXPERIMENT_DIGITS).max(1).to_string()
}

/// Returns 32 hexadecimal digits, the same for a run directory in every export.
fn run_id(run: &Run) -> String {
    let path: PathBuf = match run.path.canonicalize() {
        Ok(path) => path,
        Err(_) => run.path.clone(),
    };
    let digest: [u8; 32] = Blake2s256::digest(path.as_os_str().as_encoded_bytes()).into();
    hex::encode(&digest[..16])
}

/// Returns a name that MLflow accepts: letters, digits and `_-. `.
fn file_name(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let name = name.chars().take(MAX_NAME);
    name.map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// Returns a mapping of keys to values that are already YAML.
fn yaml(fields: &[(&str, String)]) -> String {
    let lines = fields
        .iter()
        .map(|(key, value)| format!("{key}: {value}\n"));
    lines.collect()
}

/// Returns text as YAML, quoted as in JSON, since YAML accepts every JSON string.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{WRITTEN, run};
    use super::*;

    fn content<'a>(files: &'a [OutputFile], end: &str) -> &'a str {
        let mut files = files.iter();
        let file = files.find(|file| file.path.ends_with(end)).expect(end);
        str::from_utf8(&file.bytes).unwrap()
    }

    #[test]
    fn a_run_is_a_folder_of_small_files() {
        let lines = [
            r#"{"round":0,"epsilon":null,"test":{"loss":2},"seconds":1,
                "origin":{"test":"released","seconds":"public"}}"#,
            r#"{"round":1,"epsilon":1.5,"seconds":4}"#,
        ];
        let files = files(&[run("a", &lines)], Path::new("/out put"));
        let first = (WRITTEN - 4) * 1000;
        let last = WRITTEN * 1000;
        let epsilon = format!("{first} inf 0\n{last} 1.5 1\n");
        assert_eq!(content(&files, "metrics/epsilon"), epsilon);
        assert_eq!(
            content(&files, "metrics/test.loss"),
            format!("{first} 2 0\n")
        );
        assert_eq!(content(&files, "params/method"), "dp-fed-ls");
        assert_eq!(content(&files, "params/data.devices"), "280");
        assert_eq!(content(&files, "tags/mlflow.runName"), "a");
        assert_eq!(content(&files, "artifacts/privacy.json"), "[]");
        let id = experiment_id("digits");
        let experiment = files
            .iter()
            .find(|f| f.path == Path::new(&id).join("meta.yaml"));
        let experiment = str::from_utf8(&experiment.unwrap().bytes).unwrap();
        assert!(
            experiment.contains(&format!("experiment_id: \"{id}\"\n")),
            "{experiment}"
        );
        assert!(experiment.contains("name: \"digits\"\n"), "{experiment}");
        let run = files
            .iter()
            .find(|f| f.path.ends_with("meta.yaml") && f.path.iter().count() == 3);
        let meta = str::from_utf8(&run.unwrap().bytes).unwrap();
        let folder = run.unwrap().path.parent().unwrap();
        let id = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            id.len() == 32 && meta.contains(&format!("run_id: \"{id}\"\n")),
            "{meta}"
        );
        for line in [
            format!("start_time: {first}\n"),
            format!("end_time: {last}\n"),
            "status: 3\n".to_owned(),
            format!(
                "artifact_uri: \"file:///out%20put/{}/artifacts\"\n",
                folder.display()
            ),
        ] {
            assert!(meta.contains(&line), "{line} {meta}");
        }
    }

    #[test]
    fn names_of_files_are_those_that_mlflow_takes() {
        let name = "simulation_only.left_out.it is 1/2: not finite";
        let expected = "simulation_only.left_out.it is 1_2_ not finite";
        assert_eq!(file_name(name), expected);
        assert_eq!(file_name(&"x".repeat(300)).len(), MAX_NAME);
        assert_eq!(text("a: \"b\"\n"), r#""a: \"b\"\n""#);
        // Figures whose names become equal keep separate files.
        let line = r#"{"round":0,"left_out":{"a/b":1,"a:b":2}}"#;
        let files = files(&[run("a", &[line])], Path::new("/out"));
        assert!(content(&files, "metrics/provenance_unknown.left_out.a_b").ends_with(" 1 0\n"));
        assert!(content(&files, "metrics/provenance_unknown.left_out.a_b_").ends_with(" 2 0\n"));
    }
}
