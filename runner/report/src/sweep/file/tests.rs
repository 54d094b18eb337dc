use super::*;
use crate::sweep::fixture::{EXPERIMENT, sweep};

const GRID: &str = "[sweep.grid]\n\"train.epochs\" = [1, 2]\n\"privacy.noise_multiplier\" = [1.0]";

fn refusal(table: &str) -> String {
    let text = format!("{EXPERIMENT}{table}");
    let error = Sweep::parse(&text, "small.toml", &[], None).unwrap_err();
    assert!(error.is_bad_input());
    error.to_string()
}

#[test]
fn dimensions_keep_the_order_of_the_file() {
    let sweep = sweep(GRID);
    let names: Vec<_> = sweep.dimensions.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(names, ["train.epochs", "privacy.noise_multiplier"]);
    assert_eq!((sweep.name.as_str(), sweep.cells.len()), ("small", 2));
}

#[test]
fn a_cell_is_an_experiment_of_its_own() {
    let sweep = sweep(GRID);
    let config = sweep.config(&sweep.cells[1], 9).unwrap();
    assert_eq!((config.train.epochs, config.seed), (2, 9));
    assert_eq!(config.evaluate_every, 0, "only the last round counts");
    let often = crate::sweep::fixture::sweep("[sweep]\nevaluate_every = 1");
    assert_eq!(often.config(&often.cells[0], 9).unwrap().evaluate_every, 1);
}

#[test]
fn seeds_count_up_from_the_experiments_own_or_are_listed() {
    assert_eq!(sweep("[sweep]").seeds, [5]);
    assert_eq!(sweep("[sweep]\nseeds = 3").seeds, [5, 6, 7]);
    assert_eq!(sweep("[sweep]\nseeds = [9, 2]").seeds, [9, 2]);
    let text = format!("{EXPERIMENT}[sweep]\nseeds = 3");
    let fewer = Sweep::parse(&text, "small.toml", &[], Some(2)).unwrap();
    assert_eq!(fewer.seeds, [5, 6]);
}

#[test]
fn quoted_and_bare_keys_mean_the_same_and_tables_can_be_values() {
    let bare = sweep("[sweep.grid]\ntrain.epochs = [1, 2]");
    let quoted = sweep("[sweep.grid]\n\"train.epochs\" = [1, 2]");
    assert_eq!(bare.dimensions, quoted.dimensions);
    let constants = "[[sweep.variants]]\nlabel = \"fixed\"\n\
                     set = { \"data.scale\" = { mean = 0.5, std = 0.5 } }";
    assert_eq!(sweep(constants).cells[0].settings[0].0, "data.scale");
}

#[test]
fn variants_come_before_the_grid_and_add_up_if_told_so() {
    let variants = "[[sweep.variants]]\nlabel = \"a\"\n\
                    [[sweep.variants]]\nlabel = \"b\"\nset = { \"train.clip\" = \"final\" }\n\
                    [[sweep.variants]]\nlabel = \"c\"\nset = { rounds = 3 }\n";
    let apart = sweep(&format!(
        "[sweep]\n{variants}\n[sweep.grid]\n\"train.epochs\" = [1, 2]"
    ));
    assert_eq!(apart.dimensions[0].name, Dimension::VARIANTS);
    assert_eq!(apart.cells.len(), 6);
    assert_eq!(apart.cells[5].describe(), "rounds = 3, train.epochs = 2");
    let sum = sweep(&format!("[sweep]\ncumulative = true\n{variants}"));
    assert_eq!(sum.cells[0].describe(), "no settings changed");
    assert_eq!(
        sum.cells[2].describe(),
        "train.clip = \"final\", rounds = 3"
    );
}

#[test]
fn the_fingerprint_is_that_of_the_experiment_without_seed_and_sweep() {
    let parse = |text: &str| {
        Sweep::parse(text, "small.toml", &[], None)
            .unwrap()
            .fingerprint
    };
    let one = parse(&format!("{EXPERIMENT}{GRID}"));
    let more_values = GRID.replace("[1, 2]", "[1, 2, 3]");
    assert_eq!(one, parse(&format!("{EXPERIMENT}{more_values}")));
    assert_eq!(
        one,
        parse(&format!(
            "{}{GRID}",
            EXPERIMENT.replace("seed = 5", "seed = 6")
        ))
    );
    assert_ne!(
        one,
        parse(&format!(
            "{}{GRID}",
            EXPERIMENT.replace("rounds = 2", "rounds = 3")
        ))
    );
    let moved = EXPERIMENT.replace("epochs = 1\nbatch_size = 5", "batch_size = 5\nepochs = 1");
    assert_eq!(one, parse(&format!("{moved}{GRID}")));
}

#[test]
fn overrides_reach_the_experiment_and_the_sweep() {
    let overrides = ["rounds=7", "sweep.seeds=4"].map(|text| text.parse().unwrap());
    let text = format!("{EXPERIMENT}{GRID}");
    let sweep = Sweep::parse(&text, "small.toml", &overrides, None).unwrap();
    assert_eq!(sweep.config(&sweep.cells[0], 1).unwrap().rounds, 7);
    assert_eq!(sweep.seeds.len(), 4);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let cases = [
        (
            "",
            "[sweep] is missing; for a single run use: smolfed run small.toml",
        ),
        (
            "[sweep]\nsed = 1",
            "unknown key `sed`; did you mean `seeds`?",
        ),
        ("[sweep]\nseeds = 0", "`sweep.seeds` has no seeds"),
        ("[sweep]\nseeds = [1, 2, 1]", "`sweep.seeds` has 1 twice"),
        (
            "[sweep]\nseeds = \"many\"",
            "expected a number of seeds or a list of seeds",
        ),
        (
            "[sweep]\ncumulative = true",
            "`sweep.cumulative` adds up variants, but there are none",
        ),
        (
            "[sweep]\ncompare_with = \"none\"\n[sweep.grid]\nrounds = [1, 2]",
            "`sweep.compare_with` is \"none\", a row, but the rows are \"1\", \"2\"",
        ),
        ("[sweep]\nrows = \"speed\"", "`sweep.rows` is \"speed\""),
        ("[sweep]\nmetric = \"speed\"", "`test_accuracy`"),
        (
            "[sweep.grid]\nrounds = 1",
            "`sweep.grid.rounds` is one value: give a list",
        ),
        ("[sweep.grid]\nrounds = []", "`sweep.grid.rounds` is empty"),
        (
            "[sweep.grid]\nrounds = [1, 1]",
            "`sweep.grid.rounds` has 1 twice",
        ),
        (
            "[sweep.grid]\nseed = [1, 2]",
            "`seed` cannot be swept: see `sweep.seeds`",
        ),
        (
            "[sweep.grid]\n\"train.epoch\" = [1]",
            "with train.epoch = 1: ",
        ),
        (
            "[sweep.grid]\n\"rounds.of\" = [1]",
            "`rounds` is a value, not a table",
        ),
        (
            "[[sweep.variants]]\nlabel = \"a\"\n[[sweep.variants]]\nlabel = \"a\"",
            "`sweep.variants` has the label a twice",
        ),
        (
            "[[sweep.variants]]\nlabel = \"a\"\nset = { rounds = 3 }\n[sweep.grid]\nrounds = [1]",
            "`sweep.grid.rounds` is also set by a variant",
        ),
    ];
    for (table, expected) in cases {
        let error = refusal(table);
        assert!(error.contains(expected), "{table}\n{error}");
    }
    let error = refusal("[sweep]\nseeds = 4000000000");
    assert!(error.contains("makes more than 1000000 runs"), "{error}");
}

/// `"privacy"` contains `"privacy.selection"`, and a table under either is a value: refused like
/// the keys below them.
#[test]
fn candidates_share_the_data_and_the_selection() {
    let private = |grid: &str| {
        let more = "[sweep]\nchoose = \"private\"\n[sweep.grid]\n\"train.epochs\" = [1, 2]\n";
        refusal(&format!("{more}[sweep.private.grid]\n{grid}\n"))
    };
    for key in ["data", "data.devices", "features", "features.cell"] {
        let error = private(&format!(
            "\"{key}\" = [{{ devices = 20 }}, {{ devices = 30 }}]"
        ));
        assert!(error.contains("all trials are on the same data"), "{error}");
    }
    for key in ["privacy", "privacy.selection", "privacy.selection.mean"] {
        let error = private(&format!("\"{key}\" = [{{ mean = 2.0 }}, {{ mean = 3.0 }}]"));
        assert!(error.contains("it is part of the selection"), "{error}");
    }
    let error = private("\"train\" = [{ epochs = 3 }]");
    assert!(error.contains("leave it to one of them"), "{error}");
}

#[test]
fn private_selections_show_figures_of_test_samples_alone() {
    let with = |line: &str| {
        let table = "[sweep.private.grid]\n\"train.epochs\" = [1, 2]\n";
        format!("{EXPERIMENT}[sweep]\nchoose = \"private\"\n{line}\n{table}")
    };
    let parse = |line: &str| Sweep::parse(&with(line), "small.toml", &[], None);
    for metric in Metric::ALL {
        let (alone, also) = (
            format!("metric = \"{metric}\""),
            format!("also = [\"{metric}\"]"),
        );
        let is_shown = metric.name().starts_with("test_");
        for (key, line) in [("sweep.metric", alone), ("sweep.also", also)] {
            match parse(&line) {
                Ok(_) => assert!(is_shown, "{metric}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!is_shown, "{metric} {error}");
                    assert!(
                        error.contains(&format!("`{key}` has \"{metric}\"")),
                        "{error}"
                    );
                }
            }
        }
    }
}
