//! Files for the wrong inputs: valid and invalid files, runs and a fleet.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::data::{csv_experiment, experiment, good_csv};
use crate::experiments::networks::{TEXT_LAYERS, lines};
use crate::program::Place;

/// A valid sweep.
const SWEEP: &str = "method = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"digits\"\ndevices = 50\n\
                     [cohort]\ncohort_size = 10\n[sweep]\nseeds = 1\n[sweep.grid]\n\
                     \"train.learning_rate\" = [0.1, 0.2]\n";

/// Changes of `good.toml` in a file with another name.
const SPOILT: [(&str, &str, &str); 23] = [
    ("unquoted", "\"table.csv\"", "table.csv"),
    ("open", "\"table.csv\"", "\"table.csv"),
    ("backslash", "table.csv", "C:\\data\\table.csv"),
    ("colon", "rounds = 2", "rounds: 2"),
    ("bracket", "[cohort]", "[cohort"),
    ("twice", "[data]", "[cohort]\n[data]"),
    ("comma", "rounds = 2", "rounds = 2,5"),
    ("python", "rounds = 2", "rounds = True"),
    ("half", "rounds = 2", "rounds = .5"),
    ("section", "[data]", "[dataset]"),
    ("task", "\"phone\"\n", "\"phone\"\ntask = \"regresion\"\n"),
    (
        "classes",
        "\"phone\"\n",
        "\"phone\"\ntask = \"regression\"\nclasses = 2\n",
    ),
    ("noise", "[cohort]", "[privacy]\nepsilon = 3\n[cohort]"),
    ("label", "\"class\"", "\"klass\""),
    ("device", "\"phone\"", "\"phne\""),
    ("roles", "\"class\"", "\"phone\""),
    (
        "test",
        "\"phone\"\n",
        "\"phone\"\ntest_path = \"nowhere.csv\"\n",
    ),
    (
        "columns",
        "\"phone\"\n",
        "\"phone\"\ntest_path = \"new.csv\"\n",
    ),
    ("as-parquet", "\"csv\"", "\"parquet\""),
    ("as-npy", "\"csv\"", "\"npy\""),
    ("as-arff", "\"csv\"", "\"arff\""),
    ("as-leaf", "\"csv\"", "\"leaf\""),
    ("as-images", "\"csv\"", "\"images\""),
];

/// Changes of [`SWEEP`].
const SPOILT_SWEEPS: [(&str, &str, &str); 7] = [
    ("key", "train.learning_rate", "train.lerning_rate"),
    ("values", "[0.1, 0.2]", "[]"),
    ("scalar", "[0.1, 0.2]", "0.1"),
    ("type", "[0.1, 0.2]", "[\"fast\"]"),
    ("repeated", "[0.1, 0.2]", "[0.1, 0.1]"),
    ("seed", "\"train.learning_rate\"", "seed"),
    (
        "variant",
        "[sweep.grid]",
        "[[sweep.variants]]\nlabel = \"a\"\nset = { ronds = 3 }\n[sweep.grid]",
    ),
];

/// Additional invalid rows of `good_csv()`, in files with these names.
const LAST_ROWS: [(&str, &str); 7] = [
    ("short", "1,2"),
    ("long", "1,2,3,1,1"),
    ("tall", "tall,2,3,1"),
    ("dates", "2024-03-04,2,3,1"),
    ("infinite", "inf,2,3,1"),
    ("nobody", "1,2,,1"),
    ("unlabelled", "1,2,3,"),
];

const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xfe\xfd";
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";

/// Returns a place with everything that the inputs name.
pub(super) fn prepared() -> Place {
    let place = Place::new();
    experiments(&place);
    data(&place);
    runs(&place);
    fleet(&place);
    place
}

fn experiments(place: &Place) {
    let good = csv_experiment("");
    for (names, text) in [(&SPOILT[..], good.as_str()), (&SPOILT_SWEEPS[..], SWEEP)] {
        for (name, from, to) in names {
            assert!(text.contains(from), "{name}: {from}");
            place.write(&format!("{name}.toml"), text.replacen(from, to, 1));
        }
    }
    let others = ["missing", "empty", "header", "quote", "single", "alone"];
    let no_tables = ["picture", "cut", "notes"];
    let of_rows = LAST_ROWS.iter().map(|(name, _)| *name);
    for name in others.into_iter().chain(no_tables).chain(of_rows) {
        let path = format!("{name}.csv");
        place.write(&format!("of-{name}.toml"), good.replace("table.csv", &path));
    }
    place.write("of-folder.toml", good.replace("table.csv", "folder"));
    place.write("good.toml", good);
    let text = "source = \"text\"\npath = \"lines.tsv\"\ntext_column = \"line\"\n\
                device_columns = [\"who\"]\nlength = 8\nstride = 4\n";
    place.write("text.toml", experiment(text) + TEXT_LAYERS);
    let folder = "source = \"cifar10\"\npath = \"folder\"\ndevices = 2\n";
    place.write("cifar.toml", experiment(folder));
    place.write(
        "torn-cifar.toml",
        experiment(&folder.replace("folder", "batches")),
    );
    place.write("sweep.toml", SWEEP);
    place.write("empty.toml", "\n");
    place.write("mine.yaml", "method: dp-fed\nrounds: 2\n");
    place.write("notes.txt", "hello world\nthis is a note\n");
}

fn data(place: &Place) {
    let header = "x,y,phone,class\n";
    let rows = |class: fn(u32) -> u32, devices: u32| -> String {
        let row = |i| format!("{i},{i},{},{}\n", i % devices, class(i));
        (0..20).map(row).collect()
    };
    place.write("table.csv", good_csv());
    for (name, row) in LAST_ROWS {
        place.write(&format!("{name}.csv"), format!("{}{row}\n", good_csv()));
    }
    place.write("empty.csv", "");
    place.write("header.csv", header);
    place.write("quote.csv", good_csv().replacen("0.5", "\"0.5", 1));
    place.write("single.csv", format!("{header}{}", rows(|_| 1, 4)));
    place.write("alone.csv", format!("{header}{}", rows(|i| i % 2, 1)));
    place.write("notes.csv", "hello world\nthis is a note\n");
    place.write("picture.csv", PICTURE);
    place.write("picture.png", PICTURE);
    place.write("cut.csv", GZIP);
    place.write("users.json", "{\"users\": [");
    place.write("lines.tsv", lines());
    place.write("gap.tsv", "who\tline\na\tabc\na\t\n");
    place.write("brief.tsv", "who\tline\na\tabc\n");
    fs::create_dir_all(place.path("batches")).unwrap();
    place.write("batches/data_batch_1.bin", "torn");
    place.write("batches/test_batch.bin", "torn");
    place.write("new.csv", "x,y\n1,2\n3,4\n");
    place.write("few.csv", "x\n1\n");
    place.write("words.csv", "x,y\n1,two\n");
    place.write("other.csv", "x,y,class\n1,2,7\n");
    fs::create_dir_all(place.path("folder")).unwrap();
    fs::create_dir_all(place.path("full")).unwrap();
    place.write("full/note.txt", "taken");
}

/// Creates two runs, and run directories with a missing or damaged part.
fn runs(place: &Place) {
    place.smolfed("run good.toml -q --out run").success();
    let personal = "--set method=pmtl --out personal";
    place
        .smolfed(&format!("run good.toml -q {personal}"))
        .success();
    place.smolfed("run text.toml -q --out spoken").success();
    for (name, kept) in [
        ("torn", &["config.toml", "preprocessing.json"][..]),
        ("old", &["config.toml", "model.safetensors"]),
        ("spoilt", &["config.toml", "model.safetensors"]),
    ] {
        fs::create_dir_all(place.path(name).join("checkpoint")).unwrap();
        for file in kept {
            let (from, to) = (place.path("run").join(file), place.path(name).join(file));
            fs::copy(from, to).unwrap();
        }
    }
    place.write("torn/model.safetensors", "torn");
    place.write("torn/checkpoint/state.safetensors", "torn");
    place.write("spoilt/preprocessing.json", "{}");
}

/// Creates devices with keys, and invalid keys.
fn fleet(place: &Place) {
    place
        .smolfed("provision --devices 0..2 --out fleet")
        .success();
    let key = format!("key = \"{}\"\n", "a1".repeat(32));
    let device = |number: &str| format!("[[device]]\nnumber = {number}\n{key}");
    // The digest belongs to the key.
    let digest = "abd62f5fae824d3e4d50e700781f5b6b";
    let revoked =
        format!("[[revoked]]\nnumber = 3\ndigest = \"{digest}\"\ndate = \"2026-11-01\"\n");
    for (name, text) in [
        ("empty", String::new()),
        (
            "short",
            "[[device]]\nnumber = 0\nkey = \"abc\"\n".to_owned(),
        ),
        ("twice", device("0") + &device("0").replace("a1", "b2")),
        ("negative", device("-1")),
        ("word", device("0").replace("device", "devices")),
        ("far", device("0") + &device("4000").replace("a1", "b2")),
        ("seeded", format!("device_seed = 7\n{}", device("5"))),
        ("back", device("0") + &revoked),
    ] {
        private(place, &format!("{name}.keys"), text);
    }
    for (name, text) in [
        ("right", "correct horse"),
        ("other", "battery staple"),
        ("empty", "\n"),
        ("brief", "horse"),
    ] {
        private(place, &format!("{name}.pass"), text);
    }
    private(place, "sealed.keys", device("0"));
    place
        .smolfed("keys encrypt --keys sealed.keys --passphrase-file right.pass")
        .success();
    private(
        place,
        "torn.keys",
        &fs::read(place.path("sealed.keys")).unwrap()[..100],
    );
    // Files of a coordinator next to its keys.
    for name in ["fleet/keys.toml", "far.keys"] {
        private(place, &format!("{name}.lock"), "");
    }
    records(place);
    helpers(place);
    let readable = Permissions::from_mode(0o644);
    fs::set_permissions(place.path("good.toml"), readable).unwrap();
}

fn private(place: &Place, name: &str, content: impl AsRef<[u8]>) {
    place.write(name, content);
    fs::set_permissions(place.path(name), Permissions::from_mode(0o600)).unwrap();
}

/// Creates a fleet with masked updates, and invalid helper files.
fn helpers(place: &Place) {
    let call = "provision --devices 0..2 --out masked --set privacy.trust=distributed";
    place.smolfed(call).success();
    let file = fs::read_to_string(place.path("masked/helper-0.toml")).unwrap();
    for (name, text) in [
        ("alone", file.clone()),
        ("changed", file.clone()),
        ("doubled", file.replace("number = 1", "number = 0")),
        ("third", file.replace("helper = 0", "helper = 2")),
    ] {
        private(place, &format!("{name}.helper"), text);
    }
    private(place, "changed.helper.ledger", "a changed line\n");
    // Files of a helper or a coordinator next to its keys.
    for name in ["masked/keys.toml", "alone.helper", "changed.helper"] {
        private(place, &format!("{name}.lock"), "");
    }
}

/// Creates records as text, truncated and mistyped, and an archive of devices.
fn records(place: &Place) {
    let call = "provision --devices 0..2 --out texts --records two.txt --archive devices.zip";
    place.smolfed(call).success();
    let two = fs::read_to_string(place.path("two.txt")).unwrap();
    let line = two.lines().next().unwrap();
    private(place, "one.txt", &line[..100]);
    private(place, "typed.txt", line.replace(":0:", ":0:1"));
}
