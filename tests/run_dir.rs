//! A run directory as a reader finds it, without what may differ between equal runs.

use std::path::Path;

use serde_json::Value;

/// The content that two runs with the same bits share.
#[derive(Debug, PartialEq)]
pub(crate) struct Traces {
    /// `model.safetensors`, byte for byte.
    pub(crate) model: Vec<u8>,
    /// The lines of `metrics.jsonl` without `seconds`, as text: the keys keep their order.
    pub(crate) metrics: Vec<String>,
    /// `privacy.json`, byte for byte.
    pub(crate) privacy: Vec<u8>,
    /// `ledger.jsonl`, byte for byte: however often a run was resumed, each round is paid once.
    pub(crate) ledger: Vec<u8>,
    /// `diagnostics.json`, byte for byte.
    pub(crate) diagnostics: Vec<u8>,
}

impl Traces {
    /// Those of a finished run.
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

/// A record as written, without its wall time, the last key.
fn without_seconds(line: &str) -> String {
    let record: Value = serde_json::from_str(line).expect("a record is JSON");
    assert!(record["seconds"].is_f64(), "{line}");
    let (rest, _) = line
        .rsplit_once(",\"seconds\":")
        .expect("seconds come last");
    rest.to_owned()
}

/// Whole lines in `metrics.jsonl`; 0 before it is there.
pub(crate) fn rounds_done(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("metrics.jsonl")).map_or(0, |text| text.matches('\n').count())
}
