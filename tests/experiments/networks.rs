//! Networks of layers, from a file to predictions, through the command line.

use crate::program::{Outcome, Place};

const CNN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/cnn.toml");

/// Returns eight windows of two channels for each of six devices. The second class rises.
fn windows() -> String {
    let mut rows = String::from("device,label");
    for channel in ["x", "y"] {
        for step in 0..12 {
            rows += &format!(",{channel}{step}");
        }
    }
    rows.push('\n');
    for device in 0..6 {
        for window in 0..8 {
            let slope = if window % 2 == 0 { -0.1 } else { 0.1 };
            rows += &format!("{device},{}", ["falls", "rises"][window % 2]);
            for channel in 0..2 {
                for step in 0..12 {
                    let wave = ((device * 5 + window * 3 + channel + step * 7) % 11) as f64 / 40.0;
                    rows += &format!(",{:.3}", slope * (f64::from(step as u8) - 5.5) + wave);
                }
            }
            rows.push('\n');
        }
    }
    rows
}

const WINDOWS: &str = "name = \"windows\"
method = \"dp-fed\"
rounds = 30

[data]
source = \"csv\"
path = \"windows.csv\"
label = \"label\"
device_column = \"device\"
test = 0.25

[model]
input = [2, 1, 12]

[[model.layers]]
type = \"convolution\"
channels = 3
kernel = [1, 5]

[[model.layers]]
type = \"relu\"

[[model.layers]]
type = \"global-average\"

[cohort]
sampling = \"poisson\"
sampling_rate = 0.9

[train]
epochs = 4
batch_size = 4
learning_rate = 0.5

[privacy]
noise_multiplier = 0.01
clip_norm = 5.0
";

/// Creates a place with windows and an experiment, with `from` replaced by `to`.
pub(crate) fn place_with(from: &str, to: &str) -> Place {
    let place = Place::new();
    std::fs::write(place.path("windows.csv"), windows()).unwrap();
    assert!(WINDOWS.contains(from), "{from}");
    std::fs::write(place.path("windows.toml"), WINDOWS.replace(from, to)).unwrap();
    place
}

#[test]
fn a_network_learns_from_windows_and_predicts() {
    let place = place_with("", "");
    let document = place
        .smolfed("run windows.toml --out run --json")
        .success()
        .json();
    assert!(document["test_accuracy"].as_f64() > Some(0.8), "{document}");
    let predicted = place.smolfed("predict run --data windows.csv").success();
    assert_eq!(predicted.stdout.lines().count(), 49);
    let assessed = place
        .smolfed("evaluate run --data windows.csv --json")
        .success()
        .json();
    assert!(assessed["accuracy"].as_f64() > Some(0.8), "{assessed}");

    let bytes = std::fs::read(place.path("run/model.safetensors")).unwrap();
    let header = String::from_utf8_lossy(&bytes).into_owned();
    for (name, shape) in [
        ("layer_1.weights", "3,2,1,5"),
        ("layer_1.biases", "3"),
        ("layer_4.weights", "2,3"),
        ("layer_4.biases", "2"),
    ] {
        let tensor = format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":[{shape}]");
        assert!(header.contains(&tensor), "{tensor}");
    }
    // The first kernels are drawn.
    let report = std::fs::read_to_string(place.path("run/report.html")).unwrap();
    assert!(report.contains("Weights for unit 2"), "no kernels");
    let export = place.smolfed("export run --format c-header");
    assert_eq!(export.code, Some(2), "{export}");
    assert!(export.stderr.contains("model.safetensors"), "{export}");
}

/// Every method with a shared model takes networks, and so do denoisers.
#[test]
fn networks_go_with_methods_and_denoisers() {
    let place = place_with("", "");
    for (at, more) in [
        "method=dp-fed-ls --set server.smoothing_factor=1",
        "method=fedprox",
        "method=pmtl",
        "method=pp-sgd",
        "method=dpfedmtl",
        "method=local",
        "server.denoiser=auto",
        "server.denoiser=auto-step",
        "server.denoiser=james-stein",
        "privacy.trust=local",
        "personalise.fine_tune=plain",
        "cohort={sampling=\"arrival\",cohort_size=3} --set privacy.mechanism=correlated \
         --set privacy.separation=1",
        "train.clip=every-step",
    ]
    .into_iter()
    .enumerate()
    {
        let call = format!("run windows.toml --out run-{at} --json --set rounds=3 --set {more}");
        place.smolfed(&call).success();
    }
}

#[test]
fn networks_have_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    let models = ["1", "3"].map(|threads| {
        let call = format!("run {CNN} --out {threads} --json --set rounds=4 --threads {threads}");
        place.smolfed(&call).success();
        std::fs::read(place.path(format!("{threads}/model.safetensors"))).unwrap()
    });
    assert_eq!(models[0], models[1]);
}

#[test]
fn texts_are_learned_by_embedding_and_memory() {
    let place = Place::new();
    let mut rows = String::from("device,label,a,b,c,d\n");
    for row in 0..48 {
        let symbol = |i: usize| (row * 7 + i * 5) % 4;
        rows += &format!("{},s{}", row % 6, symbol(3));
        for i in 0..4 {
            rows += &format!(",{}", symbol(i));
        }
        rows.push('\n');
    }
    std::fs::write(place.path("text.csv"), &rows).unwrap();
    let layers = "[[model.layers]]\ntype = \"embedding\"\nvocabulary = 4\nwidth = 3\n
                  [[model.layers]]\ntype = \"lstm\"\nhidden = 5\n
                  [[model.layers]]\ntype = \"last\"\n";
    let head = &WINDOWS[..WINDOWS.find("[model]").unwrap()];
    let rest = &WINDOWS[WINDOWS.find("[cohort]").unwrap()..];
    let text = format!("{head}{layers}\n{rest}").replace("windows.csv", "text.csv");
    std::fs::write(place.path("text.toml"), &text).unwrap();
    let scaled = place.smolfed("run text.toml --json");
    assert!(
        scaled.stderr.contains("set `data.scale` to \"none\""),
        "{scaled}"
    );
    let text = text.replace("test = 0.25", "test = 0.25\nscale = \"none\"");
    std::fs::write(place.path("text.toml"), text).unwrap();
    let document = place
        .smolfed("run text.toml --out run --json --set rounds=60")
        .success()
        .json();
    assert!(document["test_accuracy"].as_f64() > Some(0.9), "{document}");
    place.smolfed("predict run --data text.csv").success();

    let outside = rows.replace(",0\n", ",9\n");
    std::fs::write(place.path("text.csv"), outside).unwrap();
    let refused = place.smolfed("run text.toml --json");
    assert_eq!(refused.code, Some(2), "{refused}");
    let advice = "the feature 9, but `model.layers` begin with an embedding of 4 symbols";
    assert!(refused.stderr.contains(advice), "{refused}");
}

/// Returns lines of six speakers, each of whom repeats a word.
pub(crate) fn lines() -> String {
    let words = ["abcd ", "bcda "];
    let line = |at: usize| format!("s{}\t{}\n", at % 6, words[at % 2].repeat(6 + at % 3));
    let lines: String = (0..36).map(line).collect();
    format!("who\tline\n{lines}")
}

/// A network on the usual characters.
pub(crate) const TEXT_LAYERS: &str = "[[model.layers]]
type = \"embedding\"
vocabulary = 80
width = 4

[[model.layers]]
type = \"lstm\"
hidden = 8

[[model.layers]]
type = \"last\"
";

#[test]
fn the_next_character_of_a_table_of_texts_is_learned() {
    let place = Place::new();
    place.write("lines.tsv", lines());
    let data = "[data]\nsource = \"text\"\npath = \"lines.tsv\"\ntext_column = \"line\"\n
                device_columns = [\"who\"]\nlength = 6\n";
    let rest = &WINDOWS[WINDOWS.find("[cohort]").unwrap()..];
    let head = "name = \"text\"\nmethod = \"dp-fed\"\nrounds = 40\n";
    place.write("text.toml", format!("{head}{data}{TEXT_LAYERS}{rest}"));
    let document = place
        .smolfed("run text.toml --out run --json")
        .success()
        .json();
    assert_eq!(document["devices"], 6);
    assert!(document["test_accuracy"].as_f64() > Some(0.9), "{document}");
    let written = std::fs::read_to_string(place.path("run/config.toml")).unwrap();
    for line in [
        "stride = 6",
        "hold_out = \"last\"",
        "scale = \"none\"",
        "abcdef",
    ] {
        assert!(written.contains(line), "{line}: {written}");
    }

    place.write(
        "begun.csv",
        "id,line\nfirst,abcd abcd abc\nsecond,bcda bcd\n",
    );
    let predicted = place
        .smolfed("predict run --data begun.csv --id id")
        .success();
    let rows: Vec<&str> = predicted.stdout.lines().skip(1).collect();
    assert!(rows[0].starts_with("first,d,"), "{predicted}");
    assert!(rows[1].starts_with("second,a,"), "{predicted}");
    let assessed = place
        .smolfed("evaluate run --data lines.tsv --json")
        .success()
        .json();
    assert!(assessed["accuracy"].as_f64() > Some(0.9), "{assessed}");
    let inspected = place.smolfed("data inspect text.toml").success();
    assert!(inspected.stdout.contains("abcd a"), "{inspected}");
}

/// Returns one sensor recording per device. Its channels depend on the class.
pub(crate) fn recordings() -> String {
    let mut rows = String::from("series,device,label,x,y\n");
    for series in 0..12 {
        let (device, class) = (series / 2, series % 2);
        for time in 0..60 {
            let phase = time * (2 + class) + series;
            let wave = |phase: i32| [0, 7, 10, 7, 0, -7, -10, -7][(phase % 8) as usize];
            let label = ["slow", "fast"][class as usize];
            rows += &format!(
                "{series},{device},{label},{},{}\n",
                wave(phase),
                wave(phase + 3)
            );
        }
    }
    rows
}

#[test]
fn recordings_become_windows_with_a_shape() {
    let place = Place::new();
    place.write("recordings.csv", recordings());
    let (from, to) = (
        WINDOWS.find("[model]").unwrap(),
        WINDOWS.find("[[model").unwrap(),
    );
    let text = format!("{}{}", &WINDOWS[..from], &WINDOWS[to..])
        .replace("windows.csv", "recordings.csv")
        .replace(
            "test = 0.25",
            "series_column = \"series\"\nwindow = 10\nscale = { mean = 0, std = [7, 7] }",
        );
    place.write("recordings.toml", text);
    let document = place
        .smolfed("run recordings.toml --out run --json")
        .success()
        .json();
    assert!(document["test_accuracy"].as_f64() > Some(0.8), "{document}");
    let preprocessing = std::fs::read_to_string(place.path("run/preprocessing.json")).unwrap();
    for part in ["\"x_0\"", "\"y_9\""] {
        assert!(preprocessing.contains(part), "{part}");
    }
    let refused = place.smolfed("predict run --data recordings.csv");
    assert!(
        refused.stderr.contains("the model reads `x_0`"),
        "{refused}"
    );
}

#[test]
fn examples_of_networks_learn() {
    let place = Place::new();
    for (name, accuracy) in [("lstm", 0.4), ("watch-cnn", 0.6), ("watch-features", 0.5)] {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/");
        let check = format!("run {example}{name}.toml --dry-run");
        place.smolfed(&check).success();
        // Fewer devices and no noise test whether they learn, not how well under privacy.
        let call = format!(
            "run {example}{name}.toml --out {name} --json --set rounds=8 --set data.devices=200 \
             --set data.test=300 --set cohort.sampling_rate=0.2 --set privacy.epsilon= \
             --set privacy.noise_multiplier=0"
        );
        let document = place.smolfed(&call).success().json();
        assert!(
            document["test_accuracy"].as_f64() > Some(accuracy),
            "{document}"
        );
    }
}

fn refused(place: &Place) -> Outcome {
    refused_as(place, "run windows.toml --json")
}

fn refused_as(place: &Place, command: &str) -> Outcome {
    let refused = place.smolfed(command);
    assert_eq!(refused.code, Some(2), "{command}: {refused}");
    refused
}

/// Training starts from another run's model, whose file may not change during a run.
#[test]
fn training_starts_from_a_file() {
    let init = "init = \"first/model.safetensors\"\ninput = [2, 1, 12]";
    let place = place_with("input = [2, 1, 12]", init);
    std::fs::write(place.path("first.toml"), WINDOWS).unwrap();
    place.smolfed("run first.toml --out first").success();
    let accuracy = |flags: &str| {
        let run = place.smolfed(&format!(
            "run {flags} --set rounds=1 --set train.learning_rate=1e-6 --json"
        ));
        run.success().json()["test_accuracy"].as_f64().unwrap()
    };
    let seeded = accuracy("first.toml --out seeded");
    let from_file = accuracy("windows.toml --out second");
    assert!(
        from_file > 0.8 && from_file > seeded,
        "{from_file} {seeded}"
    );
    let statement = std::fs::read_to_string(place.path("second/privacy.json")).unwrap();
    assert!(
        statement.contains("starts from the parameters in"),
        "{statement}"
    );

    // The written configuration can be run again, and detects a changed file.
    place
        .smolfed("run second/config.toml --out third")
        .success();
    let same = |run: &str| std::fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert_eq!(same("second"), same("third"));
    std::fs::copy(
        place.path("second/model.safetensors"),
        place.path("first/model.safetensors"),
    )
    .unwrap();
    let changed = refused_as(&place, "run second/config.toml --out fourth");
    assert!(changed.stderr.contains("has changed"), "{changed}");

    for (flags, part) in [
        ("model.init=nowhere.safetensors", "nowhere.safetensors"),
        ("model.init=windows.csv", "not a safetensors file"),
        ("model.init_checksum=00000000", "has changed"),
        (
            "model.layers= --set model.input=",
            "tensors of the model are weights, biases",
        ),
    ] {
        let refused = refused_as(&place, &format!("run windows.toml --set {flags}"));
        assert!(refused.stderr.contains(part), "{flags}: {refused}");
    }
    let wider = std::fs::read_to_string(place.path("windows.toml")).unwrap();
    let wider = wider.replace("kernel = [1, 5]", "kernel = [1, 7]");
    std::fs::write(place.path("windows.toml"), wider).unwrap();
    let refused = refused(&place);
    let shapes = "has shape [3, 2, 1, 5], but that of the model has shape [3, 2, 1, 7]";
    assert!(refused.stderr.contains(shapes), "{refused}");
}

#[test]
fn layers_that_do_not_fit_are_named() {
    for (from, to, parts) in [
        (
            "kernel = [1, 5]",
            "kernel = [1, 13]",
            &["layer 1", "13"][..],
        ),
        ("kernel = [1, 5]", "kernel = [2, 5]", &["layer 1"]),
        ("kernel = [1, 5]", "kernel = 0", &["layer 1"]),
        ("kernel = [1, 5]", "kernel = -1", &["layer", "is -1"]),
        ("\"global-average\"", "\"last\"", &["layer 3", "3 x 1 x 8"]),
        ("\"global-average\"", "\"average\"", &["global-average"]),
        (
            "input = [2, 1, 12]",
            "input = [2, 1, 13]",
            &["model.input", "26", "24"],
        ),
        ("input = [2, 1, 12]", "input = [24]", &["model.input"]),
        ("input = [2, 1, 12]", "", &["model.input", "[1, 1, 24]"]),
        (
            "input = [2, 1, 12]",
            "input = [2, 1, 12]\nhidden = 4",
            &["model.hidden"],
        ),
        (
            "input = [2, 1, 12]",
            "input = [2, 1, 12]\nkind = \"logistic\"",
            &["softmax"],
        ),
        (
            "[privacy]",
            "[simulation]\narithmetic = \"fast\"\n[privacy]",
            &["fast", "model.layers"],
        ),
        (
            "[privacy]",
            "[server]\naxes = [2, 12]\n[privacy]",
            &["server.axes", "model.layers", "smooth_along"],
        ),
        (
            "[privacy]",
            "[server]\nsmooth_along = \"NCHW\"\n[privacy]",
            &["NCHW", "BHWC"],
        ),
    ] {
        let refused = refused(&place_with(from, to));
        for part in parts {
            assert!(refused.stderr.contains(part), "{to}: {refused}");
        }
    }
}
