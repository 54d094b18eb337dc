//! The same experiment gives the same bits: on any number of threads, when repeated, and from the
//! configuration that it wrote.

use crate::program::Place;
use crate::run_dir::Traces;

/// Runs six rounds of the built-in experiment with these settings.
fn train(place: &Place, out: &str, settings: &str) -> Traces {
    let common = "--json --set rounds=6 --set data.validation=0.1 --set data.devices=200";
    let call = format!("run --out {out} {common} {settings}");
    place.smolfed(&call).success();
    Traces::read(&place.path(out))
}

/// Sampling schemes that complete the built-in experiment, which has a sampling rate.
const SAMPLING: [&str; 3] = [
    "--set cohort.sampling=uniform --set privacy.epsilon=8",
    "--set cohort.sampling=poisson",
    "--set cohort={sampling=\"full\"}",
];

#[test]
fn one_thread_and_eight_give_the_same_bits() {
    let place = Place::new();
    for (number, sampling) in SAMPLING.iter().enumerate() {
        for trust in ["central", "local"] {
            let settings = format!("{sampling} --set privacy.trust={trust}");
            let traces = |threads: u32| {
                let out = format!("{number}-{trust}-{threads}");
                train(&place, &out, &format!("{settings} --threads {threads}"))
            };
            assert_eq!(traces(1), traces(8), "{settings}");
        }
    }
}

#[test]
fn filters_that_are_mixed_by_what_they_are_worth_have_the_same_bits_on_any_number_of_threads() {
    let place = Place::new();
    let auto = "--set server={denoiser=\"auto\"} --set privacy.epsilon=1";
    let one = train(&place, "one", &format!("{auto} --threads 1"));
    assert_eq!(one, train(&place, "eight", &format!("{auto} --threads 8")));
    assert!(
        one.metrics
            .iter()
            .all(|line| line.contains("\"expert\":\"none\""))
    );
    // Without noise there is nothing to remove.
    let noiseless = |server| format!("--set server={{{server}}} --set privacy={{}}");
    let auto = train(&place, "auto", &noiseless("denoiser=\"auto\""));
    let none = train(&place, "none", &noiseless(""));
    assert_eq!((auto.model, auto.metrics), (none.model, none.metrics));
}

#[test]
fn threads_do_not_matter_without_noise_and_without_a_bound_either() {
    let place = Place::new();
    let settings = "--set method=dp-fed --set server={} --set privacy={} --set train.proximal=0.1 \
                    --set train.gradient_smoothing=1 --set train.clip=every-step";
    let one = train(&place, "one", &format!("{settings} --threads 1"));
    let eight = train(&place, "eight", &format!("{settings} --threads 8"));
    assert_eq!(one, eight);
}

#[test]
fn the_seed_decides_and_nothing_else_does() {
    let place = Place::new();
    let first = train(&place, "first", "--seed 7");
    assert_eq!(first, train(&place, "again", "--seed 7"));
    assert_eq!(first, train(&place, "set", "--set seed=7"));
    let other = train(&place, "other", "--seed 8");
    assert_ne!(first.model, other.model);
    assert_ne!(first.metrics, other.metrics);
}

#[test]
fn the_configuration_of_a_run_repeats_it() {
    let place = Place::new();
    let first = train(
        &place,
        "first",
        "--seed 3 --set cohort.sampling=uniform --set privacy.epsilon=8",
    );
    place
        .smolfed("run first/config.toml --out second --json")
        .success();
    assert_eq!(first, Traces::read(&place.path("second")));
    let config = |dir: &str| std::fs::read_to_string(place.path(dir).join("config.toml")).unwrap();
    assert_eq!(config("first"), config("second"));
}

#[test]
fn a_run_on_files_is_repeated_from_anywhere() {
    let place = Place::new();
    std::fs::create_dir(place.path("files")).unwrap();
    place.write("files/table.csv", crate::wrong_inputs::data::good_csv());
    place.write(
        "files/experiment.toml",
        crate::wrong_inputs::data::csv_experiment(""),
    );
    place
        .smolfed("run files/experiment.toml --out first --json")
        .success();
    // The copy is in another folder than the table, and the program runs in a third folder.
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::copy(
        place.path("first/config.toml"),
        place.path("elsewhere/config.toml"),
    )
    .unwrap();
    place
        .smolfed("run elsewhere/config.toml --out second --json")
        .success();
    assert_eq!(
        Traces::read(&place.path("first")),
        Traces::read(&place.path("second"))
    );
}
