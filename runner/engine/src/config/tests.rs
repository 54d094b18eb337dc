//! Reading, refusing and writing back experiment files.

use super::*;

/// The smallest experiment file.
const MINIMAL: &str =
    "method = \"dp-fed\"\nrounds = 3\n[data]\nsource = \"digits\"\ndevices = 10\n";

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, "a.toml", &[])
}

fn refusal(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn set(text: &str) -> Override {
    text.parse().unwrap()
}

#[test]
fn the_smallest_file_gets_the_documented_defaults() {
    let config = parse(MINIMAL).unwrap();
    assert_eq!(config.name, "experiment");
    assert_eq!((config.seed, config.evaluate_every), (0, 1));
    assert_eq!(config.method.name(), "dp-fed");
    assert_eq!(config.model.kind, None);
    assert_eq!(config.cohort, CohortConfig::default());
    assert_eq!(config.train, TrainConfig::default());
    assert_eq!(config.server, ServerConfig::default());
    assert_eq!(config.privacy, PrivacyConfig::default());
    assert_eq!(config.privacy.delta.to_string(), "1/N^1.1");
}

#[test]
fn the_built_in_experiment_is_read_without_a_file() {
    let config = Config::load(None, &[]).unwrap();
    assert_eq!(config.name, "digits");
    let changed = Config::load(None, &[set("rounds=2"), set("method=dp-fed")]).unwrap();
    assert_eq!((changed.rounds, changed.method), (2, MethodName::DpFed));
}

#[test]
fn what_is_written_reads_back_the_same() {
    let full = format!(
        "{MINIMAL}partition = \"dirichlet\"\nalpha = 0.3\n[model]\nkind = \"softmax\"\n\
         [cohort]\nsampling = \"poisson\"\nsampling_rate = 0.25\ndenominator = \"realised\"\n\
         [train]\nclip = \"final\"\nlearning_rate = 0.01\n[server]\naxes = [8, 8]\n\
         denoiser = \"james-stein\"\n[privacy]\nnoise_std = 0.25\nmax_epsilon = 3.5\n\
         delta = 1e-5\nclip_norm = 0.5\naccountant = \"theorem-2\"\ntrust = \"local\"\n"
    );
    for text in [MINIMAL, DEFAULT, &full] {
        let config = parse(text).unwrap();
        let written = config.to_toml().unwrap();
        assert_eq!(parse(&written).unwrap(), config, "{written}");
        assert_eq!(parse(&written).unwrap().to_toml().unwrap(), written);
    }
}

#[test]
fn unknown_keys_are_refused_in_every_table() {
    for table in ["data", "model", "cohort", "train", "server", "privacy"] {
        let error = Config::parse(MINIMAL, "a.toml", &[set(&format!("{table}.nope=1"))]);
        let text = error.unwrap_err().to_string();
        assert!(
            text.contains("`nope`") && text.contains(table),
            "{table}: {text}"
        );
    }
    assert!(refusal(&format!("nope = 1\n{MINIMAL}")).starts_with("a.toml: line 1: "));
}

#[test]
fn errors_in_a_file_are_one_line_with_its_number() {
    let cases = [
        ("rounds = 3", "rounds = \"x\"", "a.toml: line 2: "),
        ("rounds = 3", "rounds = [", "a.toml: line "),
        ("\"digits\"", "\"digit\"", "a.toml: line 4: "),
        ("devices = 10", "devices = 0", "a.toml: line "),
        ("rounds = 3\n", "", "a.toml: line "),
    ];
    for (from, to, start) in cases {
        let text = refusal(&MINIMAL.replace(from, to));
        assert!(text.starts_with(start), "{text}");
        assert!(!text.contains('\n'), "{text}");
    }
}

#[test]
fn errors_in_an_override_are_one_line_with_the_key() {
    let cases = [
        (
            "rounds=x",
            "a.toml: `rounds` is \"x\", but must be a whole number",
        ),
        ("privacy.delta=2", "a.toml: `privacy.delta`: the delta is 2"),
        (
            "privacy.accountant=nobody",
            "a.toml: `privacy.accountant`: `nobody`",
        ),
        ("data.devices=0", "a.toml: `data`: `data.devices` is 0"),
        (
            "privacy.trust=distributed=0.9",
            "a.toml: `privacy.trust`: the trust model is `distributed=0.9`: write `central`",
        ),
        (
            "privacy.trust=distributed=2/3",
            "a.toml: `privacy.trust`: 2 helpers, and 3 parties that may collude",
        ),
        (
            "privacy.trust=nobody",
            "a.toml: `privacy.trust`: the trust model is `nobody`: write `central`",
        ),
        (
            "cohort.sampling=unsampled",
            "a.toml: `cohort.sampling` is `unsampled`, but must be one of `uniform`",
        ),
        (
            "data.source=wisdm",
            "a.toml: `data.source` is `wisdm`, but must be one of `digits`",
        ),
        ("nope=1", "a.toml: unknown key `nope`; the keys are `name`"),
        (
            "epsilon=1",
            "a.toml: unknown key `epsilon`; did you mean `privacy.epsilon`?",
        ),
        (
            "privacy.epsilom=1",
            "a.toml: `privacy`: unknown key `epsilom`; did you mean `epsilon`?",
        ),
    ];
    for (text, start) in cases {
        let error = Config::parse(MINIMAL, "a.toml", &[set(text)]).unwrap_err();
        let sentence = error.to_string();
        assert!(sentence.starts_with(start), "{sentence}");
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn overrides_apply_in_their_order_and_fail_with_their_own_errors() {
    let overrides = [set("rounds=5"), set("rounds=6"), set("seed=7")];
    let config = Config::parse(MINIMAL, "a.toml", &overrides).unwrap();
    assert_eq!((config.rounds, config.seed), (6, 7));
    let into_a_value = Config::parse(MINIMAL, "a.toml", &[set("rounds.x=5")]);
    assert!(matches!(into_a_value, Err(ConfigError::NotATable { .. })));
    let no_value = "rounds".parse::<Override>();
    assert!(matches!(no_value, Err(ConfigError::Override { .. })));
    // The file itself is parsed first, so its errors keep their line.
    let broken = Config::parse("rounds = [", "a.toml", &overrides).unwrap_err();
    assert!(broken.to_string().starts_with("a.toml: line 1"), "{broken}");
}

#[test]
fn other_data_do_not_inherit_the_devices_of_the_built_in_experiment() {
    let keys = [
        "data.source=csv",
        "data.path=a.csv",
        "data.label=y",
        "data.device_column=who",
    ];
    let config = Config::load(None, &keys.map(set)).unwrap();
    assert_eq!(config.name, "a", "not that of the digits");
    let written = config.to_toml().unwrap();
    assert!(written.contains("partition = \"natural\""), "{written}");
    assert!(
        written.contains("scale = \"standardise-features\""),
        "{written}"
    );
    let error = Config::load(
        None,
        &[&keys[..3]]
            .concat()
            .iter()
            .map(|text| set(text))
            .collect::<Vec<_>>(),
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("`data.devices` is missing")
    );
    let config = Config::load(None, &[set("data.devices=70")]).unwrap();
    assert!(config.to_toml().unwrap().contains("samples_per_device = 5"));
}

#[test]
fn keys_can_be_removed() {
    let keys = ["privacy.epsilon=", "privacy.noise_multiplier=1"];
    let config = Config::load(None, &keys.map(set)).unwrap();
    assert_eq!(config.privacy.epsilon, None);
    assert_eq!(config.privacy.noise_multiplier, Some(1.0));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Config::load(Some(Path::new("no/such.toml")), &[]).unwrap_err();
    assert!(matches!(error, ConfigError::Missing { .. }));
    assert!(error.to_string().contains("no/such.toml"), "{error}");
}

#[test]
fn the_largest_seed_survives_its_file() {
    let mut config = parse(MINIMAL).unwrap();
    config.seed = u64::MAX;
    assert_eq!(parse(&config.to_toml().unwrap()).unwrap(), config);
}

#[test]
fn names_are_those_of_the_file() {
    for kind in [ModelKind::Linear, ModelKind::Logistic, ModelKind::Softmax] {
        let text = format!("{MINIMAL}[model]\nkind = \"{}\"\n", kind.name());
        assert_eq!(parse(&text).unwrap().model.kind, Some(kind));
    }
    for method in [MethodName::DpFed, MethodName::DpFedLs] {
        let text = MINIMAL.replace("dp-fed", method.name());
        assert_eq!(parse(&text).unwrap().method, method);
    }
}

#[test]
fn denominators_are_names_or_numbers() {
    let denominator =
        |text: &str| Config::load(None, &[set(&format!("cohort.denominator={text}"))]);
    for text in ["0", "-1", "4294967296", "1.5", "drawn"] {
        let error = denominator(text).unwrap_err().to_string();
        assert!(error.contains("or a number of updates"), "{text}: {error}");
    }
    for text in ["expected", "realised", "100"] {
        let config = denominator(text).unwrap();
        let is_number = text.parse::<u32>().is_ok();
        let value = match is_number {
            true => text.to_owned(),
            false => format!("\"{text}\""),
        };
        let line = format!("\ndenominator = {value}\n");
        assert!(config.to_toml().unwrap().contains(&line), "{text}");
    }
}

#[test]
fn features_take_the_place_of_the_scale() {
    let changes = ["features.kind=gradients", "features.cell=2"].map(set);
    let config = Config::parse(DEFAULT, "a.toml", &changes).unwrap();
    let written = config.to_toml().unwrap();
    assert!(written.contains("scale = \"none\""), "{written}");
    assert!(
        written.contains("[features]\nkind = \"gradients\"\ncell = 2"),
        "{written}"
    );
    assert_eq!(parse(&written).unwrap(), config);
    // Only the data determine their features: a sweep builds each federation once.
    assert_ne!(
        config.data,
        Config::parse(DEFAULT, "a.toml", &[]).unwrap().data
    );
    let automatic = Config::parse(DEFAULT, "a.toml", &[set("train.learning_rate=auto")]).unwrap();
    assert_eq!(parse(&automatic.to_toml().unwrap()).unwrap(), automatic);
}
