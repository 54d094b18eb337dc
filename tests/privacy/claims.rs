//! No figure can be misread: every private figure is marked, and every fact on which ε depends is a
//! condition of the statement.

use serde_json::{Value, json};

use crate::program::Place;

/// Writes sixty natural devices of ten rows, with their own test and validation rows.
fn natural_devices(place: &Place, keys: &str) {
    let mut table = "device,a,b,class\n".to_owned();
    for row in 0..600u32 {
        let [a, b] = [7, 11].map(|factor| f64::from(row * factor % 17) / 17.0);
        let class = if a + b > 1.0 { "x" } else { "y" };
        table += &format!("device-{},{a},{b},{class}\n", row % 60);
    }
    place.write("table.csv", table);
    let text = format!(
        "name = \"natural\"\nmethod = \"dp-fed\"\nrounds = 2\n[data]\nsource = \"csv\"\n\
         path = \"table.csv\"\nlabel = \"class\"\ndevice_column = \"device\"\n\
         classes = [\"x\", \"y\"]\nscale = {{ min = 0, max = 1 }}\ntest = 0.2\n\
         validation = 0.2\n{keys}\n[train]\nlearning_rate = 0.1\n[cohort]\n\
         sampling = \"poisson\"\nsampling_rate = 0.5\n[privacy]\nclip_norm = 0.5\nepsilon = 4\n"
    );
    place.write("natural.toml", text);
}

fn read(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path(file)).unwrap()
}

/// Returns the first statement of a run with these settings, and its human-readable line.
fn statement(place: &Place, settings: &str) -> (Value, String) {
    let call = format!("run natural.toml {settings}");
    let document = place.smolfed(&format!("{call} --json --out a")).success();
    let line = place.smolfed(&format!("{call} --out b")).success().stdout;
    for folder in ["a", "b"] {
        std::fs::remove_dir_all(place.path(folder)).unwrap();
    }
    (document.json()["privacy"][0].clone(), line)
}

fn kinds(statement: &Value) -> Vec<&str> {
    let conditions = statement["conditions"].as_array().unwrap().iter();
    conditions
        .map(|one| one["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn a_sweep_marks_figures_on_rows_of_devices_as_a_run_does() {
    let place = Place::new();
    natural_devices(&place, "");
    place.write(
        "sweep.toml",
        read(&place, "natural.toml") + "[sweep.grid]\n\"train.epochs\" = [1, 2]\n",
    );
    let document = place
        .smolfed("sweep sweep.toml --out out --json")
        .success()
        .json();
    for cell in document["cells"].as_array().unwrap() {
        assert_eq!(cell["origin"], json!({"test_accuracy": "simulation-only"}));
        assert_eq!(kinds(&cell["privacy"][0]), ["known-seed", "shared-seed"]);
    }
    let table = read(&place, "out/table.md");
    assert!(table.contains("\n\\* simulation only"), "{table}");
    assert!(
        table.contains("a proved upper bound if each run has its own seed"),
        "{table}"
    );
    let cells = table
        .lines()
        .filter(|line| line.starts_with("| 1 ") || line.starts_with("| 2 "));
    assert_eq!(
        cells.filter(|line| line.contains('*')).count(),
        2,
        "{table}"
    );
    for line in read(&place, "out/table.csv").lines().skip(1) {
        assert!(line.contains(",simulation-only,"), "{line}");
    }
    for line in read(&place, "out/results.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let origin = &record["evaluations"][0]["origin"];
        assert_eq!(origin["test_accuracy"], "simulation-only", "{line}");
    }
}

#[test]
fn a_choice_by_validation_rows_is_no_upper_bound() {
    let place = Place::new();
    natural_devices(&place, "");
    let choice = "[sweep]\nchoose = [\"train.epochs\"]\nchoose_by = \"validation_accuracy\"\n\
                  [sweep.grid]\n\"train.epochs\" = [1, 2]\n";
    place.write("sweep.toml", read(&place, "natural.toml") + choice);
    place.smolfed("sweep sweep.toml --out out").success();
    let table = read(&place, "out/table.md");
    assert!(!table.contains("a proved upper bound"), "{table}");
    assert!(table.contains("was chosen by validation accuracy (%) on rows of the devices"));
    let csv = read(&place, "out/table.csv");
    assert!(csv.contains(",false,") && !csv.contains(",true,"), "{csv}");
}

#[test]
fn the_size_of_a_secret_cohort_is_marked_and_not_in_a_public_report() {
    let place = Place::new();
    natural_devices(&place, "");
    let document = place
        .smolfed("run natural.toml --out run --json")
        .success()
        .json();
    assert_eq!(document["origin"]["test_accuracy"], "simulation-only");
    assert_eq!(document["origin"]["seconds"], "simulation-only");
    for line in read(&place, "run/metrics.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        for key in ["cohort", "seconds", "test", "simulation_only"] {
            assert_eq!(record["origin"][key], "simulation-only", "{line}");
        }
        assert_eq!(record["origin"]["epsilon"], "public");
    }
    let own = read(&place, "run/report.html");
    let tile = own.split("Devices a round").nth(1).unwrap();
    assert!(tile[..400].contains("simulation only"), "{}", &tile[..400]);
    assert!(own.contains(">cohort*<"));

    place
        .smolfed("report run --public --out public.html")
        .success();
    let public = read(&place, "public.html");
    assert!(public.contains(">30.0 of 60<") && public.contains("expected"));
    for private in [
        "simulation only",
        ">cohort",
        "Test accuracy",
        "validation",
        "config.toml",
    ] {
        assert!(!public.contains(private), "{private}");
    }
    let refused = place.smolfed("report run --public");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("--out"), "{refused}");

    place
        .smolfed("runs export run --format csv --out figures.csv")
        .success();
    let head = read(&place, "figures.csv");
    let head = head.lines().next().unwrap();
    for name in [
        "simulation_only.cohort",
        "simulation_only.seconds",
        "simulation_only.test.loss",
    ] {
        assert!(head.split(',').any(|column| column == name), "{head}");
    }
}

#[test]
fn an_initial_model_is_covered_only_where_it_is_declared_public() {
    let place = Place::new();
    natural_devices(&place, "");
    let noiseless = "run natural.toml --out first --set privacy.epsilon=inf";
    place.smolfed(noiseless).success();
    let init = "--set model.init=\"first/model.safetensors\"";
    let (open, line) = statement(&place, init);
    assert_eq!(
        (&open["is_upper_bound"], kinds(&open)[0]),
        (&json!(false), "initial-model")
    );
    assert!(
        line.contains("NOT a guarantee (not covered: the initial model"),
        "{line}"
    );
    let (declared, line) = statement(&place, &format!("{init} --set model.init_is_public=true"));
    assert_eq!(
        (&declared["is_upper_bound"], kinds(&declared)[0]),
        (&json!(true), "confirmed")
    );
    assert!(
        line.contains("a proved upper bound if `model.init` is public"),
        "{line}"
    );
}

#[test]
fn a_list_that_was_read_from_rows_is_covered_only_where_it_is_confirmed() {
    let place = Place::new();
    for (value, is_bound, kind) in [
        (false, false, "unconfirmed-list"),
        (true, true, "confirmed"),
    ] {
        natural_devices(&place, &format!("classes_are_public = {value}"));
        let (found, line) = statement(&place, "");
        assert_eq!(
            (&found["is_upper_bound"], kinds(&found)[0]),
            (&json!(is_bound), kind)
        );
        assert!(line.contains("`data.classes`"), "{line}");
    }
    // The output of `init` is not confirmed.
    let written = place.smolfed("init table.csv --label class --device-column device");
    let written = written.success().stdout;
    assert!(written.contains("classes_are_public = false"), "{written}");
    place.write("natural.toml", written);
    let (found, _) = statement(&place, "--set rounds=1");
    assert!(kinds(&found).contains(&"unconfirmed-list"), "{found}");
    natural_devices(&place, "");
    place
        .smolfed("run natural.toml --set data.categories_are_public=true")
        .refused(2, &["data.categories_are_public", "data.categories"]);
}

#[test]
fn a_number_of_devices_that_depends_on_rows_is_no_upper_bound() {
    let place = Place::new();
    let texts = (0..200).map(|row| format!("device-{},{}\n", row % 40, "ab".repeat(9)));
    place.write(
        "texts.csv",
        "device,text\n".to_owned() + &texts.collect::<String>(),
    );
    for (samples, is_bound) in [(1, true), (2, false)] {
        let text = format!(
            "name = \"texts\"\nmethod = \"dp-fed\"\nrounds = 1\n[data]\nsource = \"text\"\n\
             path = \"texts.csv\"\ntext_column = \"text\"\ndevice_column = \"device\"\n\
             alphabet = \"ab\\n\"\nlength = 4\nmin_samples = {samples}\n\
             [[model.layers]]\ntype = \"embedding\"\nvocabulary = 3\nwidth = 2\n\
             [[model.layers]]\ntype = \"lstm\"\nhidden = 2\n\
             [[model.layers]]\ntype = \"last\"\n[cohort]\n\
             sampling = \"full\"\n[privacy]\nclip_norm = 0.5\nnoise_multiplier = 5\n"
        );
        place.write("natural.toml", text);
        let (found, _) = statement(&place, "");
        assert_eq!(found["is_upper_bound"], is_bound, "{found}");
        assert_eq!(
            kinds(&found).contains(&"device-count"),
            !is_bound,
            "{found}"
        );
    }
}

#[test]
fn the_ledger_of_a_stopped_run_is_no_upper_bound() {
    let place = Place::new();
    natural_devices(&place, "");
    place.smolfed("run natural.toml --out run").success();
    let account = |name: &str| {
        let call = format!("account --ledger {name} --json");
        place.smolfed(&call).success().json()
    };
    assert_eq!(account("run/ledger.jsonl")["is_upper_bound"], true);
    // Only the charges of the first round, as in a run stopped then.
    let ledger = read(&place, "run/ledger.jsonl");
    let first = ledger.lines().take(2).map(|line| line.to_owned() + "\n");
    place.write("stopped.jsonl", first.collect::<String>());
    let stopped = account("stopped.jsonl");
    assert_eq!(stopped["rounds"], 1, "{stopped}");
    assert_eq!(stopped["is_upper_bound"], false, "{stopped}");
    assert_eq!(stopped["planned_is_upper_bound"], true, "{stopped}");
    assert_eq!(kinds(&stopped), ["known-seed", "stopped"]);
}

#[test]
fn a_forged_flag_and_an_older_statement_prove_nothing() {
    let place = Place::new();
    natural_devices(&place, "classes_are_public = false");
    place.smolfed("run natural.toml --out run").success();
    place.smolfed("account --verify run").success();
    let honest = read(&place, "run/privacy.json");
    let forged = honest.replace("\"is_upper_bound\": false", "\"is_upper_bound\": true");
    assert_ne!(forged, honest);
    place.write("run/privacy.json", &forged);
    place
        .smolfed("account --verify run")
        .refused(1, &["is_upper_bound"]);
    let listed = place.smolfed("runs . --json").success().json();
    let read_again = &listed["runs"][0]["privacy"][0];
    assert_eq!(read_again["is_upper_bound"], false, "{read_again}");

    let mut old: Value = serde_json::from_str(&forged).unwrap();
    old[0].as_object_mut().unwrap().remove("conditions");
    place.write("run/privacy.json", old.to_string());
    let listed = place.smolfed("runs . --json").success().json();
    let read_again = &listed["runs"][0]["privacy"][0];
    assert_eq!(read_again["is_upper_bound"], false, "{read_again}");
    assert_eq!(kinds(read_again), ["provenance-unknown"]);
    place.smolfed("report run").success();
    let page = read(&place, "run/report.html");
    assert!(page.contains("provenance is unknown") && !page.contains("a proved upper bound ("));
}

/// Each output alone shows the origin of its figures.
#[test]
fn each_output_names_the_origin_of_figures_on_private_rows() {
    let place = Place::new();
    natural_devices(&place, "");
    let run = place.smolfed("run natural.toml --out run -v").success();
    let shown: Vec<&str> = run.stderr.lines().collect();
    let rounds = shown.iter().filter(|line| line.starts_with("round "));
    assert!(rounds.clone().count() == 2, "{run}");
    for line in rounds {
        assert!(line.contains("(simulation only)"), "{line}");
    }
    let of_file = |file: &str, key: &str| {
        let document: Value = serde_json::from_str(&read(&place, file)).unwrap();
        document["origin"][key].clone()
    };
    assert_eq!(of_file("run/diagnostics.json", "clean"), "simulation-only");
    assert_eq!(of_file("run/diagnostics.json", "noisy"), "released");
    let assessment = of_file("run/assessment.json", "accuracy");
    assert_eq!(assessment, "simulation-only");

    let evaluated = "evaluate run --data table.csv";
    let document = place.smolfed(&format!("{evaluated} --json")).success();
    assert_eq!(document.json()["origin"]["confusion"], "unknown");
    let text = place.smolfed(evaluated).success().stdout;
    assert!(text.contains("Provenance unknown"), "{text}");

    let planned = place.smolfed("run natural.toml --dry-run --json").success();
    let origin = &planned.json()["origin"];
    assert_eq!(origin["train_samples"], "simulation-only");
    let attacked = "audit natural.toml --membership";
    let document = place.smolfed(&format!("{attacked} --json")).success();
    assert_eq!(document.json()["origin"]["models"], "simulation-only");
    let text = place.smolfed(attacked).success().stdout;
    assert!(text.contains("simulation only"), "{text}");
    let inspected = place.smolfed("data inspect natural.toml").success().stdout;
    assert!(inspected.contains("without noise"), "{inspected}");
}

/// The constants of an exported model are marked, and so are one device's weights.
#[test]
fn an_exported_model_of_one_device_says_that_no_epsilon_covers_it() {
    let place = Place::new();
    natural_devices(&place, "");
    let call = "run natural.toml --out run --set method=dpfedmtl --set model.hidden=3 \
                --set cohort.sampling_rate=0.999";
    place.smolfed(call).success();
    let call = "export run --device 7 --format c-header";
    let header = place.smolfed(call).success().stdout;
    let mark = "parameters: measured on the devices' rows without noise: no epsilon covers it";
    assert!(header.contains(mark), "{header}");
    place
        .smolfed("export run --device 999 --format c-header")
        .refused(2, &["--device 999"]);
}

/// A ledger's total names the seed and the declarations, like the statement of its run.
#[test]
fn a_ledger_names_the_conditions_of_its_run() {
    let place = Place::new();
    natural_devices(&place, "classes_are_public = true");
    place.smolfed("run natural.toml --out run").success();
    let call = "account --ledger run/ledger.jsonl --json";
    let document = place.smolfed(call).success().json();
    assert_eq!(document["is_upper_bound"], true, "{document}");
    assert_eq!(kinds(&document), ["confirmed", "known-seed"]);
    let text = place.smolfed(call.strip_suffix(" --json").unwrap());
    let text = text.success().stdout;
    assert!(text.contains("is secret") && text.contains("`data.classes` is public"));
}
