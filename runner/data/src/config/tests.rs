//! Tests that the table round-trips, names errors, and refuses keys without effect.

use super::*;
use crate::constants::{Affine, Constants};
use crate::synthetic::SyntheticKind;

fn read(text: &str) -> Result<DataConfig, String> {
    toml::from_str(text).map_err(|error: toml::de::Error| error.to_string())
}

/// Asserts that reading fails and the message has every part.
fn refused(text: &str, parts: &[&str]) {
    let message = read(text).unwrap_err();
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

fn stored(text: &str) -> StoredConfig {
    match read(text).unwrap().source {
        SourceConfig::Stored(stored) => *stored,
        SourceConfig::Synthetic(_) => panic!("synthetic"),
    }
}

const COMPLETE: [&str; 22] = [
    "source = \"digits\"\ndevices = 10",
    "source = \"digits\"\ndevices = 10\npartition = \"shards\"\nshards_per_device = 3",
    "source = \"digits\"\ndevices = 10\npartition = \"dirichlet\"\nalpha = 0.1\nmin_samples = 4",
    "source = \"digits\"\ndevices = 10\npartition = \"dirichlet\"\nsamples_per_device = 20",
    "source = \"mnist\"\ndevices = 1000\nsamples_per_device = 50\nvalidation = 10000",
    "source = \"mnist\"\ndevices = 500\nscale = { mean = 0.1307, std = 0.3081 }",
    "source = \"femnist\"\nscale = \"unit\"\ntest = 0.3\nvalidation = 0.1",
    "source = \"idx\"\npath = \"a\"\nlabel_path = \"b\"\ndevice_path = \"c\"\nclasses = 5",
    "source = \"idx\"\npath = \"a\"\nlabel_path = \"b\"\ntest_path = \"c\"\n\
     test_label_path = \"d\"\ndevices = 3",
    "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevice_column = \"who\"\nignore = [\"id\"]\n\
     task = \"regression\"\ntarget_scale = \"standardise\"",
    "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevice_column = \"who\"\n\
     [categories]\ncolour = [\"red\", 7]\n[times]\n\"got at\" = [\"hour\", \"weekday\"]",
    "source = \"arff\"\npath = \"a\"\nlabel = \"y\"\ndevices = 3\ntask = \"classification\"",
    "source = \"leaf\"\npath = \"a\"\naxes = [28, 28]\nmaximum = 1.0\ntest_path = \"b\"",
    "source = \"synthetic\"\nkind = \"windows\"\ndevices = 5000000\ndrift = 0.5\nvalidation = 100",
    "source = \"synthetic\"\nkind = \"readings\"\ndevices = 500\nfeatures = 8\ndrift = 2.0",
    "source = \"synthetic\"\nkind = \"text\"\ndevices = 500\nlength = 8\nclasses = 12\nnoise = 0.1",
    "source = \"cifar10\"\ndevices = 10",
    "source = \"digits\"\ndevices = 10\nhold_out = \"last\"\ntest = 0.3",
    "source = \"text\"\npath = \"a\"\ntext_column = \"line\"\ndevices = 5\nlength = 20",
    "source = \"text\"\npath = \"a\"\ntext_column = \"t\"\n\
     device_columns = [\"play\", \"role\"]\n\
     length = 20\nstride = 3\nmin_samples = 7\nalphabet = \"ab \\n\"\nhold_out = \"random\"\n\
     unknown_characters = \"replace\"",
    "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevice_column = \"who\"\nwindow = 100\n\
     every = 4\nseries_column = \"series\"\nscale = { mean = 0, std = [1, 2] }",
    "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 3\nwindow = 10\n\
     hold_out = \"last\"",
];

#[test]
fn a_table_of_a_window_is_written_back() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    let generated = "source = \"synthetic\"\nkind = \"windows\"\n";
    let features = "features = [\"zero-crossings\", \"mean\"], bands = [1, 3]";
    for (text, complete) in [
        (format!("{csv}window = 10"), "window = 10\nevery = 1"),
        (
            format!("{csv}window = {{ length = 10, step = 10 }}"),
            "window = 10\nevery = 1",
        ),
        (
            format!("{csv}window = {{ length = 10, step = 3 }}"),
            "step = 3",
        ),
        (
            format!("{csv}window = {{ length = 10, {features}, counts = [2.5] }}"),
            "counts = [2.5]",
        ),
        (
            format!("{generated}window = {{ length = 10, {features} }}"),
            "measure = \"amplitude\"",
        ),
    ] {
        let config: DataConfig = toml::from_str(&text).unwrap();
        let written = toml::to_string(&config).unwrap();
        assert!(written.contains(complete), "{written}");
        assert_eq!(
            toml::from_str::<DataConfig>(&written).unwrap(),
            config,
            "{written}"
        );
        // They have the order of the features, for any order of the list.
        let order = "features = [\"mean\", \"zero-crossings\"]";
        assert!(
            !text.contains("mean") || written.contains(order),
            "{written}"
        );
    }
}

#[test]
fn what_is_written_back_reads_the_same() {
    for text in COMPLETE {
        let config = read(text).unwrap();
        let written = toml::to_string(&config).unwrap();
        assert_eq!(read(&written).unwrap(), config, "{written}");
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<DataConfig>(&json).unwrap(),
            config,
            "{json}"
        );
        // It is complete: writing it again adds nothing.
        assert_eq!(toml::to_string(&read(&written).unwrap()).unwrap(), written);
    }
}

#[test]
fn defaults_are_written_out() {
    let written = toml::to_string(&read(COMPLETE[0]).unwrap()).unwrap();
    for line in [
        "partition = \"iid\"",
        "validation = 0",
        "test = 0.2",
        "scale = \"standardise-set\"",
    ] {
        assert!(written.contains(line), "{line}: {written}");
    }
    let written = toml::to_string(&read("source = \"synthetic\"").unwrap()).unwrap();
    for line in [
        "kind = \"tasks\"",
        "devices = 1000",
        "features = 60",
        "heterogeneity = 0.5",
    ] {
        assert!(written.contains(line), "{line}: {written}");
    }
}

#[test]
fn defaults_follow_the_source() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\n";
    assert_eq!(
        stored(&format!("{csv}devices = 2")).scale,
        Scale::StandardiseFeatures
    );
    assert_eq!(
        stored(&format!("{csv}devices = 2\naxes = [2, 2]")).scale,
        Scale::StandardiseSet
    );
    assert_eq!(
        stored(&format!("{csv}device_column = \"w\"")).dealing,
        Dealing::Natural
    );
    assert_eq!(stored("source = \"femnist\"").dealing, Dealing::Natural);
    assert_eq!(
        stored("source = \"femnist\"").set,
        StoredSet::Femnist {
            path: "femnist".into()
        }
    );
    let shards = stored("source = \"mnist\"\ndevices = 9\npartition = \"shards\"").dealing;
    assert_eq!(
        shards,
        Dealing::Shards {
            devices: 9,
            shards_per_device: 2
        }
    );
}

#[test]
fn sequences_have_their_own_defaults() {
    let text = "source = \"text\"\npath = \"a\"\ntext_column = \"t\"\n";
    let config = read(&format!("{text}device_column = \"who\"")).unwrap();
    assert_eq!(config.test, HoldOut::LastFraction(0.2));
    assert_eq!(config.symbol_count(), Some(80));
    let SourceConfig::Stored(stored) = &config.source else {
        panic!("synthetic")
    };
    assert_eq!(
        (&stored.scale, stored.dealing),
        (&Scale::None, Dealing::Natural)
    );
    let StoredSet::Text(found) = &stored.set else {
        panic!("no text")
    };
    assert_eq!((found.length, found.stride, found.min_samples), (80, 80, 1));
    assert_eq!(found.device_columns, ["who"]);
    let windows = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\nwindow = 10";
    let config = read(windows).unwrap();
    assert_eq!(config.test, HoldOut::Fraction(0.2));
    assert_eq!(config.symbol_count(), None);
    assert!(
        !toml::to_string(&read(COMPLETE[0]).unwrap())
            .unwrap()
            .contains("hold_out")
    );
}

#[test]
fn sequences_that_cannot_be_cut_are_refused() {
    let text = "source = \"text\"\npath = \"a\"\ntext_column = \"t\"\n\
                device_columns = [\"who\"]\n";
    for (more, parts) in [
        ("length = 0", &["data.length", "is 0"][..]),
        ("length = 70000", &["data.length", "at most 65535"]),
        ("stride = 0", &["data.stride", "is 0"]),
        ("min_samples = 0", &["data.min_samples"]),
        (
            "alphabet = \"\"",
            &["data.alphabet", "0 characters", "2 to 255"],
        ),
        (
            "alphabet = \"abca\"",
            &["data.alphabet", "'a' occurs twice"],
        ),
        ("unknown_characters = \"drop\"", &["drop", "replace"]),
        (
            "scale = \"unit\"",
            &["data.scale", "\"unit\"", "\"none\" for texts"],
        ),
        ("hold_out = \"first\"", &["first", "last"]),
        (
            "device_column = \"who\"",
            &["data.device_columns", "data.device_column"],
        ),
        ("window = 10", &["data.window"]),
        ("classes = 10", &["data.classes"]),
    ] {
        refused(&format!("{text}{more}"), parts);
    }
    refused(
        "source = \"text\"\ntext_column = \"t\"",
        &["data.path", "text in each row"],
    );
    refused("source = \"text\"\npath = \"a\"", &["data.text_column"]);
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    for (more, parts) in [
        ("window = 1", &["data.window", "at least 2"][..]),
        (
            "window = 10\nevery = 3",
            &["data.every", "divisor of `data.window` = 10"],
        ),
        ("window = 10\nevery = 11", &["data.every", "at most 10"]),
        ("every = 2", &["data.every"]),
        ("series_column = \"s\"", &["data.series_column"]),
        ("window = 10\naxes = [2, 5]", &["data.axes"]),
        (
            "window = 10\ntask = \"regression\"",
            &["data.window", "have a class"],
        ),
    ] {
        refused(&format!("{csv}{more}"), parts);
    }
    let words = "source = \"synthetic\"\nkind = \"text\"\n";
    refused(
        &format!("{words}noise = 1.5"),
        &["data.noise", "from 0 to 1"],
    );
    refused(
        &format!("{words}classes = 2"),
        &["data.classes", "at least 3"],
    );
    refused(&format!("{words}hold_out = \"last\""), &["data.hold_out"]);
}

#[test]
fn standardise_means_the_usual_one_of_the_source() {
    for (source, expected) in [
        ("source = \"digits\"", Scale::StandardiseSet),
        (
            "source = \"csv\"\npath = \"a\"\nlabel = \"y\"",
            Scale::StandardiseFeatures,
        ),
    ] {
        let text = format!("{source}\ndevices = 2\nscale = \"standardise\"");
        assert_eq!(stored(&text).scale, expected);
    }
    let text = "source = \"digits\"\ndevices = 2\nscale = { mean = 0.5, std = 2 }";
    assert_eq!(
        stored(text).scale,
        Scale::Constants(Constants::of_moments(Affine::new(0.5, 2.0).unwrap()))
    );
}

#[test]
fn needed_keys_are_asked_for() {
    refused("source = \"digits\"", &["data.devices", "missing"]);
    refused(
        "source = \"csv\"\nlabel = \"y\"",
        &["data.path", "file of the table"],
    );
    refused("source = \"csv\"\npath = \"a\"", &["data.label"]);
    refused("source = \"idx\"\npath = \"a\"", &["data.label_path"]);
    refused("source = \"leaf\"", &["data.path", "LEAF"]);
    refused("devices = 3", &["missing field `source`"]);
}

#[test]
fn keys_without_meaning_are_refused() {
    refused(
        "source = \"digits\"\ndevices = 2\nalpha = 1",
        &["data.alpha", "\"digits\""],
    );
    let text = "source = \"digits\"\ndevices = 2\npartition = \"shards\"\nsamples_per_device = 3";
    refused(text, &["data.samples_per_device", "partition = \"shards\""]);
    refused(
        "source = \"mnist\"\ndevices = 2\ntest = 0.1",
        &["data.test", "\"mnist\""],
    );
    refused("source = \"femnist\"\ndevices = 2", &["data.devices"]);
    refused(
        "source = \"synthetic\"\nscale = \"unit\"",
        &["data.scale", "\"synthetic\""],
    );
    refused("source = \"synthetic\"\ndrift = 0.5", &["data.drift"]);
    refused(
        "source = \"synthetic\"\nkind = \"readings\"\nclasses = 3",
        &["data.classes"],
    );
    refused(
        "source = \"synthetic\"\npartition = \"iid\"",
        &["data.partition"],
    );
    refused(
        "source = \"digits\"\ndevices = 2\ntarget_scale = \"none\"",
        &["data.target_scale"],
    );
    let text = "source = \"digits\"\ndevices = 9\npartition = \"dirichlet\"\nmin_samples = 1\n\
                samples_per_device = 5";
    refused(text, &["data.min_samples"]);
}

#[test]
fn unknown_keys_and_values_list_what_is_known() {
    refused(
        "source = \"digits\"\ndevicess = 2",
        &["devicess", "devices"],
    );
    refused("source = \"digit\"", &["digit", "mnist", "synthetic"]);
    refused(
        "source = \"digits\"\npartition = \"even\"",
        &["even", "dirichlet"],
    );
    refused(
        "source = \"digits\"\nscale = \"zscore\"",
        &["standardise-features", "mean"],
    );
    refused(
        "source = \"digits\"\nscale = { mean = 0, std = 0 }",
        &["std above 0"],
    );
    refused("source = \"digits\"\ndevices = \"two\"", &["expected u32"]);
}

#[test]
fn encodings_that_say_nothing_are_refused() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    let refused = |text: &str, words: &[&str]| refused(&format!("{csv}{text}"), words);
    refused(
        "categories = { x = [\"a\"] }",
        &["data.categories", "x = 1", "two or more"],
    );
    refused("times = { x = [] }", &["data.times", "x = []", "\"hour\""]);
    refused("times = { x = [\"year\"] }", &["year", "hour", "weekday"]);
    let both = "categories = { x = [\"a\", \"b\"] }\ntimes = { x = [\"hour\"] }";
    refused(both, &["data.times", "not among `data.categories`"]);
}

#[test]
fn values_out_of_range_are_refused() {
    refused(
        "source = \"digits\"\ndevices = 0",
        &["data.devices", "is 0"],
    );
    refused(
        "source = \"digits\"\ndevices = 2\nsamples_per_device = 0",
        &["samples_per_device"],
    );
    refused("source = \"digits\"\ndevices = -1", &["-1"]);
    let dirichlet = "source = \"digits\"\ndevices = 2\npartition = \"dirichlet\"";
    for alpha in ["0.0", "-1.0", "nan", "inf"] {
        refused(
            &format!("{dirichlet}\nalpha = {alpha}"),
            &["data.alpha", "above 0"],
        );
    }
    let idx = "source = \"idx\"\npath = \"a\"\nlabel_path = \"b\"\ndevices = 2";
    refused(&format!("{idx}\nclasses = 1"), &["data.classes"]);
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2";
    refused(&format!("{csv}\nmaximum = 0.0"), &["data.maximum"]);
    refused(
        "source = \"synthetic\"\nheterogeneity = nan",
        &["data.heterogeneity"],
    );
    refused(
        "source = \"synthetic\"\nnoise = -0.5",
        &["data.noise", "from 0"],
    );
    refused(
        "source = \"synthetic\"\nfeatures = 0",
        &["data.features", "is 0"],
    );
    refused(
        "source = \"synthetic\"\nkind = \"windows\"\nwindow = 1",
        &["data.window"],
    );
    refused(
        "source = \"digits\"\ndevices = 2\nvalidation = 1.5",
        &["1.5", "below 1.0"],
    );
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    refused(
        "source = \"digits\"\npartition = \"natural\"",
        &["data.partition", "device_column"],
    );
    let idx = "source = \"idx\"\npath = \"a\"\nlabel_path = \"b\"\ndevices = 2";
    refused(
        &format!("{idx}\ntest_path = \"c\""),
        &["test_path", "test_label_path"],
    );
    refused(
        &format!("{idx}\ntest_label_path = \"c\""),
        &["test_path", "test_label_path"],
    );
    refused(
        "source = \"synthetic\"\ntest = 0.2",
        &["data.test", "whole number"],
    );
    refused(
        "source = \"synthetic\"\nvalidation = 0.2",
        &["data.validation"],
    );
}

#[test]
fn synthetic_devices_may_be_as_many_as_numbers() {
    let config = read("source = \"synthetic\"\ndevices = 4294967295").unwrap();
    let SourceConfig::Synthetic(synthetic) = config.source else {
        panic!("stored")
    };
    assert_eq!(synthetic.devices, u32::MAX);
    assert!(matches!(synthetic.kind, SyntheticKind::Tasks(_)));
    assert_eq!(config.test, HoldOut::Rows(2000));
}

#[test]
fn windows_without_sense_are_refused() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    for (more, parts) in [
        ("window = -1", &["`window` is -1", "from 2"][..]),
        ("window = \"x\"", &["a number of rows, or a table"]),
    ] {
        refused(&format!("{csv}{more}"), parts);
    }
    let generated = "source = \"synthetic\"\nkind = \"windows\"\n";
    for (keys, parts) in [
        (
            "length = 4, step = 2",
            &["data.window.step", "generated"][..],
        ),
        (
            "length = 2000, features = [\"mean\"]",
            &["data.window.length"],
        ),
    ] {
        refused(&format!("{generated}window = {{ {keys} }}"), parts);
    }
}

#[test]
fn tables_of_windows_without_sense_are_refused() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    for (keys, parts) in [
        ("length = 1", &["data.window.length", "at least 2"][..]),
        ("features = [\"mean\"]", &["length"]),
        ("length = 4, step = 0", &["data.window.step", "at least 1"]),
        ("length = 4, every = 3", &["data.window.every", "divisor"]),
        ("length = 4, size = 4", &["size", "length"]),
        (
            "length = 4, measure = \"energy\"",
            &["window.measure", "window.features"],
        ),
        (
            "length = 4, counts = [1]",
            &["window.counts", "window.features"],
        ),
        (
            "length = 4, features = []",
            &["data.window.features", "one or more"],
        ),
        (
            "length = 4, features = [\"median\"]",
            &["median", "deviation"],
        ),
        (
            "length = 4, features = [\"mean\", \"mean\"]",
            &["data.window.features", "mean twice"],
        ),
        (
            "length = 4, bands = [1]",
            &["data.window.bands", "[1]", "2 to 17"],
        ),
        (
            "length = 4, bands = [2, 1]",
            &["data.window.bands", "increasing"],
        ),
        (
            "length = 4, bands = [1, 4]",
            &["data.window.bands", "at most 3"],
        ),
        ("length = 4, bands = [1, -4]", &["-4"]),
        (
            "length = 2000, bands = [1, 4]",
            &["data.window.length", "2 to 1024"],
        ),
        (
            "length = 4, features = [\"mean\"], counts = [0]",
            &["data.window.counts", "above 0"],
        ),
    ] {
        refused(&format!("{csv}window = {{ {keys} }}"), parts);
    }
}

/// Every table inside `[data]` refuses an unknown key and suggests the nearest one.
#[test]
fn unknown_keys_in_any_table_name_the_nearest_key() {
    let csv = "source = \"csv\"\npath = \"a\"\nlabel = \"y\"\ndevices = 2\n";
    let generated = "source = \"synthetic\"\nkind = \"windows\"\n";
    let text = "source = \"text\"\npath = \"a\"\ntext_column = \"t\"\n";
    for (table, key, meant) in [
        (format!("{csv}lable = \"y\""), "lable", "label"),
        (format!("lable = \"y\"\n{csv}"), "lable", "label"),
        (format!("{text}strid = 2"), "strid", "stride"),
        (format!("{generated}chanels = 2"), "chanels", "channels"),
        (
            format!("{csv}scale = {{ mean = 0, stdd = 1 }}"),
            "stdd",
            "std",
        ),
        (
            format!("{csv}bounds = {{ min = 0, maxi = 1 }}"),
            "maxi",
            "max",
        ),
        (
            format!("{csv}target_scale = {{ meen = 0 }}"),
            "meen",
            "mean",
        ),
        (
            format!("{csv}window = {{ lenght = 4 }}"),
            "lenght",
            "length",
        ),
        (
            format!("{generated}window = {{ lenght = 4 }}"),
            "lenght",
            "length",
        ),
    ] {
        let error = toml::from_str::<DataConfig>(&table).unwrap_err();
        let message = crate::wording::reworded(error.message());
        let expected = format!("unknown key `{key}`; did you mean `{meant}`?");
        assert_eq!(message, expected, "{table}");
        let line = table.lines().position(|line| line.contains(key));
        let start = error.span().unwrap().start;
        assert_eq!(Some(table[..start].matches('\n').count()), line, "{table}");
    }
}

#[test]
fn keys_may_come_before_the_source() {
    let late = "devices = 10\npartition = \"shards\"\nsource = \"digits\"\nshards_per_device = 3";
    assert_eq!(read(late), read(COMPLETE[1]));
    refused(
        "devices = \"x\"\nsource = \"digits\"",
        &["`data.devices` is \"x\""],
    );
    // Of several keys without effect, the first by name is refused.
    let foreign = "label = \"y\"\nsource = \"digits\"\npath = \"a\"\ndevices = 2";
    refused(
        foreign,
        &["`data.label` has no effect with source = \"digits\""],
    );
}
