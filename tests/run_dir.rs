//! A run directory without content that may differ between equal runs.

use std::path::Path;

use serde_json::Value;

/// Content shared by two runs with the same bits.
#[derive(Debug, PartialEq)]
pub(crate) struct Traces {
    /// `model.safetensors`, byte for byte.
    pub(crate) model: Vec<u8>,
    /// The lines of `metrics.jsonl` without `seconds`, as text, so that the keys keep their order.
    pub(crate) metrics: Vec<String>,
    /// `privacy.json`, byte for byte.
    pub(crate) privacy: Vec<u8>,
    /// `ledger.jsonl`, byte for byte: each round is charged once, regardless of resumes.
    pub(crate) ledger: Vec<u8>,
    /// `diagnostics.json`, byte for byte.
    pub(crate) diagnostics: Vec<u8>,
}

impl Traces {
    /// Reads the traces of a finished run.
    #[track_caller]
    pub(crate) fn read(dir: &Path) -> Self {
        let bytes = |name: &str| {
            let path = dir.join(name);
            std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let metrics = String::from_utf8(bytes("metrics.jsonl")).unwrap();
        Self {
            model: bytes("model.safetensors"),
            metrics: metrics.lines().map(without_seconds).collect(),
            privacy: bytes("privacy.json"),
            ledger: bytes("ledger.jsonl"),
            diagnostics: bytes("diagnostics.json"),
        }
    }
}

/// Returns a record as written, without its wall time, the last key.
fn without_seconds(line: &str) -> String {
    let record: Value = serde_json::from_str(line).expect("a record is JSON");
    assert!(record["seconds"].is_f64(), "{line}");
    let (rest, _) = line
        .rsplit_once(",\"seconds\":")
        .expect("seconds come last");
    rest.to_owned()
}

/// Returns the number of whole lines in `metrics.jsonl`, or 0 before it exists.
pub(crate) fn rounds_done(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("metrics.jsonl")).map_or(0, |text| text.matches('\n').count())
}
