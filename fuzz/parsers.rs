//! One function a parser that takes bytes from outside. Whatever the bytes, each must return: no
//! panic, no endless loop, no memory out of proportion. Where a parser has an inverse, what was
//! accepted must survive the way there and back.
//!
//! The fuzz targets run them on invented bytes, a test of the workspace on those that once broke
//! something.

use std::sync::LazyLock;

use smolfed::config::{Config, Override};
use smolfed::data::config::DataConfig;
use smolfed::data::csv::{self, Columns};
use smolfed::data::dataset::Task;
use smolfed::data::{DataFolders, Federation, archive, idx, leaf};
use smolfed::experiment::Experiment;
use smolfed::privacy::ledger::Charge;
use smolfed::privacy::params::DeltaSpec;
use smolfed::run_dir::{Checkpoint, ModelFile};

#[path = "protocol.rs"]
mod protocol;

pub use protocol::{coordinator, sends_an_update, session};

/// A fuzz target: its name, and what it does with the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every parser by the name of its target.
pub const PARSERS: [Target; 14] = [
    ("archive", archive),
    ("checkpoint", checkpoint),
    ("config", config),
    ("coordinator", coordinator),
    ("csv", csv),
    ("data", data),
    ("delta", delta),
    ("experiment", experiment),
    ("idx", idx),
    ("leaf", leaf),
    ("ledger", ledger),
    ("model", model),
    ("session", session),
    ("setting", setting),
];

/// A line of a privacy ledger.
pub fn ledger(bytes: &[u8]) {
    if let Ok(charge) = Charge::from_line(bytes) {
        let line = charge.to_line();
        let again = Charge::from_line(line.trim_end().as_bytes()).expect("what was written");
        assert_eq!(again, charge);
    }
}

/// gzip, zip or plain.
pub fn archive(bytes: &[u8]) {
    let _ = archive::unpack(bytes, "json");
}

/// The state that a run is resumed from.
pub fn checkpoint(bytes: &[u8]) {
    let _ = Checkpoint::decode(bytes);
}

/// An experiment file.
pub fn config(bytes: &[u8]) {
    let Some(config) = read_config(bytes) else {
        return;
    };
    let written = config.to_toml().expect("what was read can be written");
    let again = Config::parse(&written, "written", &[]).expect("what was written can be read");
    // As text: a number that is not one does not equal itself.
    assert_eq!(format!("{again:?}"), format!("{config:?}"), "{written}");
}

/// A table: the first byte says what its columns mean.
pub fn csv(bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else {
        return;
    };
    let is = |bit: u8| choice & (1 << bit) != 0;
    let columns = Columns {
        label: "y".to_owned(),
        device: is(0).then(|| "d".to_owned()),
        ignore: if is(1) {
            vec!["i".to_owned()]
        } else {
            Vec::new()
        },
        task: if is(2) {
            Task::Regression
        } else {
            Task::Classification
        },
    };
    let _ = csv::column_names(bytes);
    let Ok(mut table) = csv::parse(bytes, &columns) else {
        return;
    };
    if is(3) {
        let (rows, again) = (table.row_count(), csv::parse(bytes, &columns));
        table
            .append(again.expect("parsed once, parsed twice"))
            .expect("a table goes below itself");
        assert_eq!(table.row_count(), 2 * rows);
    }
    let _ = table.into_dataset();
}

/// A `[data]` table, up to the federation where that is generated and small.
pub fn data(bytes: &[u8]) {
    let Some(config) = text(bytes).and_then(|text| toml::from_str::<DataConfig>(text).ok()) else {
        return;
    };
    let written = toml::to_string(&config).expect("what was read can be written");
    let again: DataConfig = toml::from_str(&written).expect("what was written can be read");
    assert_eq!(format!("{again:?}"), format!("{config:?}"), "{written}");
    if is_digits(&config) {
        let _ = Federation::new(&config, &DataFolders::new(Vec::new()), 1);
    }
}

/// δ as it is written.
pub fn delta(bytes: &[u8]) {
    let Some(spec) = text(bytes).and_then(|text| text.parse::<DeltaSpec>().ok()) else {
        return;
    };
    assert_eq!(spec.to_string().parse::<DeltaSpec>(), Ok(spec));
    for device_count in [1, 2, 1000, u32::MAX] {
        let _ = spec.resolve(device_count);
    }
}

/// An experiment file, settled for ten devices with digits.
pub fn experiment(bytes: &[u8]) {
    static FEDERATION: LazyLock<Federation> = LazyLock::new(|| {
        let config = toml::from_str("source = \"digits\"\ndevices = 10").expect("a sound table");
        Federation::new(&config, &DataFolders::new(Vec::new()), 1).expect("digits for ten")
    });
    if let Some(config) = read_config(bytes) {
        let _ = Experiment::new(config, &FEDERATION);
    }
}

/// An IDX array.
pub fn idx(bytes: &[u8]) {
    let Ok(array) = idx::parse(bytes) else {
        return;
    };
    let size: usize = array.dimensions().iter().product();
    assert_eq!(array.features().len(), size);
    let _ = array.indices(255);
}

/// LEAF JSON.
pub fn leaf(bytes: &[u8]) {
    for task in [Task::Classification, Task::Regression] {
        let Ok(mut samples) = leaf::parse(bytes) else {
            return;
        };
        let (rows, again) = (samples.row_count(), leaf::parse(bytes));
        samples
            .append(again.expect("parsed once, parsed twice"))
            .expect("samples go below themselves");
        assert_eq!(samples.row_count(), 2 * rows);
        let _ = samples.into_dataset(task, None);
    }
}

/// A trained model.
pub fn model(bytes: &[u8]) {
    let _ = ModelFile::decode(bytes);
}

/// `--set`, one a line, applied to the built-in experiment.
pub fn setting(bytes: &[u8]) {
    let Some(text) = text(bytes) else {
        return;
    };
    let settings: Result<Vec<Override>, _> = text.lines().map(str::parse).collect();
    if let Ok(settings) = settings {
        let _ = Config::load(None, &settings);
    }
}

fn read_config(bytes: &[u8]) -> Option<Config> {
    Config::parse(text(bytes)?, "fuzz", &[]).ok()
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Whether the samples are those built in, so that a federation costs little and reads no file.
fn is_digits(config: &DataConfig) -> bool {
    use smolfed::data::config::{SourceConfig, StoredSet};
    matches!(&config.source, SourceConfig::Stored(stored) if stored.set == StoredSet::Digits)
}
