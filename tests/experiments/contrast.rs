//! Encoders without labels, through the command line.

use crate::program::Place;

const FEDSC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/fedsc.toml");
const SHORT: &str =
    "--set rounds=6 --set contrast.share_from=1 --set contrast.share_every=2 --json";

#[test]
fn each_method_says_how_good_its_representations_are() {
    let place = Place::new();
    for method in ["fedsc", "fedavg-sc", "central-sc"] {
        let run = format!("run {FEDSC} --out {method} --set method={method} --json");
        let document = place.smolfed(&run).success().json();
        assert_eq!(document["method"], method);
        for key in ["knn_accuracy", "test_accuracy"] {
            let accuracy = document[key].as_f64().unwrap();
            assert!((0.85..=1.0).contains(&accuracy), "{document}");
        }
        assert!(
            document["epsilon"].is_null(),
            "the encoder is not protected"
        );
        let matrices = document["matrix_epsilon"].as_f64();
        assert_eq!(matrices.is_some(), method == "fedsc");
        assert!(matrices.is_none_or(|epsilon| (7.99..=8.0).contains(&epsilon)));
        let report = std::fs::read_to_string(place.path(format!("{method}/report.html"))).unwrap();
        for text in ["Representations", "head on the encoder", "not"] {
            assert!(report.contains(text), "{method}: {text}");
        }
    }
}

/// Two costs, in both the ledger and the statements, are never added.
#[test]
fn matrices_and_updates_have_separate_costs() {
    let place = Place::new();
    let protected = "--set privacy.noise_multiplier=1 --set privacy.clip_norm=0.5";
    let run = format!("run {FEDSC} --out both {protected} {SHORT}");
    let document = place.smolfed(&run).success().json();
    let statements = document["privacy"].as_array().unwrap();
    let [updates, matrices] = &statements[..] else {
        panic!("{document}");
    };
    assert_eq!(
        (&updates["unit"], &matrices["unit"]),
        (&"device".into(), &"example".into())
    );
    assert_eq!(matrices["subject"], "correlation-matrices");
    assert_eq!(matrices["adjacency"], "replace-one");
    // Rounds 1, 3 and 5.
    assert_eq!(
        (&matrices["rounds"], &updates["rounds"]),
        (&3.into(), &6.into())
    );
    let ask = |unit: &str| {
        let call = format!("account --ledger both/ledger.jsonl --unit {unit} --delta 1e-3 --json");
        place.smolfed(&call).success().json()
    };
    let close = |a: &serde_json::Value, b: &serde_json::Value| {
        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
        assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    };
    close(&ask("example")["epsilon"], &matrices["epsilon"]);
    place.smolfed("account --verify both").success();
    // A whole device's matrices affect the others' updates. The encoder's account includes them, at
    // a high cost.
    let of_updates = |run: &str| {
        let document = place.smolfed(run).success().json();
        document["epsilon"].as_f64().unwrap()
    };
    let alone = format!("run {FEDSC} --out alone --set method=fedavg-sc {protected} {SHORT}");
    let alone = of_updates(&alone);
    assert!(
        updates["epsilon"]
            .as_f64()
            .is_none_or(|epsilon| epsilon > 10.0 * alone)
    );
    let quiet = "--set contrast.privacy.epsilon=0.001";
    let quiet = format!("run {FEDSC} --out quiet {quiet} {protected} {SHORT}");
    let quiet = of_updates(&quiet);
    assert!(quiet > alone && quiet < 1.1 * alone, "{quiet} {alone}");
    let run = format!("run {FEDSC} --out none --set method=fedavg-sc {SHORT}");
    place.smolfed(&run).success();
    let call = "account --ledger none/ledger.jsonl --unit example";
    let outcome = place.smolfed(call);
    outcome.refused(2, &["--unit device"]);
}

/// Computes σ from a target ε, δ, μ, the number of samples and the number of releases.
#[test]
fn the_noise_of_a_matrix_can_be_planned() {
    let place = Place::new();
    let plan = "plan --mechanism correlation-matrix --unit example --trust local --devices 10 \
                --sampling full --rounds 40 --epsilon 8 --delta 1e-3 --clip-norm 0.01 --json";
    let planned = place.smolfed(plan).success().json();
    let run = format!("run {FEDSC} --out run --set rounds=40 --json");
    let document = place.smolfed(&run).success().json();
    let used = document["privacy"][1]["noise_multiplier"].as_f64().unwrap();
    let found = planned["noise_multiplier"].as_f64().unwrap();
    assert!((found / used - 1.0).abs() < 1e-6, "{found} {used}");
    assert!((planned["noise_std"].as_f64().unwrap() / found - 0.01).abs() < 1e-9);
}

/// Devices with nothing to compare do not take part, and the summary counts them.
#[test]
fn a_device_with_one_sample_sits_out() {
    let place = Place::new();
    let mut table = "device,a,b,c,class\nlonely,0.5,0.25,1,x\n".to_owned();
    for row in 0..60u32 {
        let [a, b, c] = [7, 11, 13].map(|factor| f64::from(row * factor % 17) / 17.0);
        let class = if row % 3 == 0 { "x" } else { "y" };
        table += &format!("device-{},{a},{b},{c},{class}\n", row % 2);
    }
    place.write("table.csv", table);
    place.write(
        "mine.toml",
        "name = \"mine\"\nmethod = \"fedsc\"\nrounds = 3\n\
         [data]\nsource = \"csv\"\npath = \"table.csv\"\nlabel = \"class\"\n\
         device_column = \"device\"\nvalidation = 0\ntest = 0.2\n\
         [cohort]\nsampling = \"full\"\n[train]\nlearning_rate = 0.01\n[contrast]\nwidth = 2\n",
    );
    let outcome = place.smolfed("run mine.toml --out mine").success();
    let expected =
        "1 devices left out in the last round: 1 sample: without labels a device compares samples";
    assert!(outcome.stdout.contains(expected), "{outcome}");
}

#[test]
fn threads_do_not_matter() {
    let place = Place::new();
    for (out, threads) in [("one", 1), ("four", 4)] {
        let run = format!("run {FEDSC} --out {out} --threads {threads} {SHORT}");
        place.smolfed(&run).success();
    }
    let read = |file: &str| std::fs::read(place.path(file)).unwrap();
    for file in ["model.safetensors", "representation.json", "personal.json"] {
        assert_eq!(
            read(&format!("one/{file}")),
            read(&format!("four/{file}")),
            "{file}"
        );
    }
}

#[test]
fn training_that_diverges_names_the_bound_that_would_help() {
    let place = Place::new();
    place.write(
        "wild.toml",
        "name = \"wild\"\nmethod = \"fedsc\"\nrounds = 3\n\
         [data]\nsource = \"synthetic\"\ndevices = 5\n[cohort]\nsampling = \"full\"\n\
         [train]\nlearning_rate = 1e6\n[contrast]\nwidth = 4\n",
    );
    let outcome = place.smolfed("run wild.toml --out wild");
    outcome.refused(1, &["`contrast.norm_bound = 2`"]);
}

#[test]
fn unsupported_uses_of_encoders_are_refused() {
    let place = Place::new();
    place.write("participation.jsonl", "");
    for (call, text) in [
        (
            format!("run {FEDSC} --out a --participation participation.jsonl"),
            "it has 0 rounds",
        ),
        (
            format!("run {FEDSC} --out b --set contrast.views=3"),
            "`contrast.views` is 3",
        ),
        (
            format!("run {FEDSC} --out c --set contrast.nothing=3"),
            "nothing",
        ),
        (format!("audit {FEDSC} --membership"), "\"fedsc\""),
    ] {
        let outcome = place.smolfed(&call);
        outcome.refused(2, &[text]);
    }
}

/// A table of images with three channels: the network defines their views. The encoder is the same
/// on any number of threads, its kernels are drawn, and it represents new rows.
#[test]
fn a_network_learns_from_views_of_images_with_channels() {
    let place = Place::new();
    let mut table = "device,class".to_owned();
    (0..48).for_each(|pixel| table += &format!(",p{pixel}"));
    for row in 0..60u32 {
        let class = row % 3;
        table += &format!("\n{},c{class}", row % 5);
        for pixel in 0..48 {
            let is_bright = pixel / 16 == class && pixel % 4 >= 2;
            let value = (row * 7 + pixel * 13) % 11 + if is_bright { 20 } else { 0 };
            table += &format!(",{}", f64::from(value) / 31.0);
        }
    }
    place.write("images.csv", table + "\n");
    place.write(
        "images.toml",
        "name = \"images\"\nmethod = \"fedsc\"\nrounds = 12\n\
         [data]\nsource = \"csv\"\npath = \"images.csv\"\nlabel = \"class\"\n\
         device_column = \"device\"\nvalidation = 0\ntest = 0.3\n\
         [model]\ninput = [3, 4, 4]\n\
         [[model.layers]]\ntype = \"convolution\"\nchannels = 4\nkernel = 3\n\
         [[model.layers]]\ntype = \"relu\"\n\
         [cohort]\nsampling = \"full\"\n[train]\nepochs = 3\nbatch_size = 8\n\
         learning_rate = 0.05\nweight_decay = 0\n[contrast]\nwidth = 4\nnorm_bound = 2\n",
    );
    let run = |more: &str| place.smolfed(&format!("run images.toml --json {more}"));
    let document = run("--out one --threads 1").success().json();
    let accuracy = document["knn_accuracy"].as_f64();
    assert!(accuracy > Some(0.6), "{document}");
    run("--out two --threads 2").success();
    let read = |file: &str| std::fs::read(place.path(file)).unwrap();
    let model = read("one/model.safetensors");
    assert_eq!(model, read("two/model.safetensors"));
    let header = String::from_utf8_lossy(&model).into_owned();
    for tensor in [
        "\"layer_1.weights\":{\"dtype\":\"F32\",\"shape\":[4,3,3,3]",
        "\"layer_3.weights\":{\"dtype\":\"F32\",\"shape\":[4,16]",
        "\\\"model\\\":\\\"encoder\\\"",
    ] {
        assert!(header.contains(tensor), "{tensor} {header}");
    }
    let report = String::from_utf8(read("one/report.html")).unwrap();
    for text in ["Representations", "Weights for unit 3"] {
        assert!(report.contains(text), "no {text}");
    }
    let predicted = place.smolfed("predict one --data images.csv").success();
    let first = predicted.stdout.lines().next().unwrap();
    assert_eq!(first, "row,output_0,output_1,output_2,output_3");
    assert_eq!(predicted.stdout.lines().count(), 61);

    let refused = run("--out c --set contrast.augment.time_shift=1");
    refused.refused(2, &["it is for windows, channels × time"]);
    run("--out d --set rounds=1 --set contrast.augment.erase=2").success();
}
