use super::*;
use crate::sweep::fixture::{summaries, sweep};

const GRID: &str = "[sweep]\nseeds = 2\n[sweep.grid]\n\"train.epochs\" = [1, 2]\n\
                    \"server.smoothing_factor\" = [0, 1]";

fn with_document<T>(check: impl FnOnce(Document<'_>) -> T) -> T {
    let sweep = sweep(GRID);
    let summaries = summaries(
        &sweep,
        &[
            &[Some(0.5), Some(0.52)],
            &[Some(0.75), Some(0.75)],
            &[None, None],
            &[Some(0.9), Some(0.9)],
        ],
    );
    check(Document {
        choice: None,
        sweep: &sweep,
        summaries: &summaries,
        command: "smolfed sweep small.toml",
    })
}

#[test]
fn markdown_names_the_command_the_data_the_seeds_and_what_epsilon_is_worth() {
    let text = with_document(|document| document.to_markdown());
    assert_eq!(
        text,
        "\
# small

test accuracy (%), mean ± standard error over 2 seeds (5, 6).

Made by `smolfed sweep small.toml`.

Data: `source = \"digits\", devices = 40, samples_per_device = 5, test = 0.2`.

| epochs | smoothing_factor 0 | smoothing_factor 1 |
| ------ | -----------------: | -----------------: |
| 1      |       51.00 ± 1.00 |       75.00 ± 0.00 |
| 2      |         infeasible |       90.00 ± 0.00 |

## Privacy

| epsilon | accountant | upper bound | noise multiplier | noise std |
| ------- | ---------: | ----------: | ---------------: | --------: |
| 6.000   |  theorem-1 |       4.500 |           2.0000 |    1.0000 |

Unit of privacy: one device; adjacency: replace-one; trust: central; sampling: uniform at rate \
0.25 of 40 devices over 2 rounds; delta = 1.000e-3.

\"epsilon\" is the named accountant's figure. Where it is not proved, the column \"upper bound\" \
has the epsilon that is proved for the same noise.

Common to all.

3 configurations on the same devices share each seed, and so its noise: anyone who has the results \
of several can subtract it.

These were simulations with known seeds: anyone who knows a seed can subtract the noise. The \
figures hold for runs with secret randomness.

No figure for 2, 0 (seed 5 and 1 more): infeasible: too little noise.
"
    );
}

#[test]
fn csv_has_a_line_a_cell_with_fractions() {
    let csv = with_document(|document| document.to_csv().unwrap());
    let text = String::from_utf8(csv).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[0],
        "train.epochs,server.smoothing_factor,metric,mean,standard_error,origin,n,epsilon,delta,\
         accountant,is_upper_bound,epsilon_upper,noise_multiplier,noise_std,refused"
    );
    assert_eq!(
        lines[2],
        "1,1,test_accuracy,0.75,0,released,2,6,0.001,theorem-1,false,4.5,2,1,"
    );
    assert_eq!(
        lines[3],
        "2,0,test_accuracy,,,,0,,,,,,,,infeasible: too little noise"
    );
}

#[test]
fn json_is_one_document_with_all_cells() {
    let json = with_document(|document| document.to_json(Path::new("out")));
    assert_eq!(json["metric"], "test_accuracy");
    assert_eq!(json["cells"].as_array().unwrap().len(), 4);
    let cell = &json["cells"][1];
    assert_eq!(cell["settings"]["server.smoothing_factor"], 1);
    assert_eq!((&cell["mean"], &cell["n"]), (&0.75.into(), &2.into()));
    assert_eq!(cell["values"]["6"], 0.75);
    assert_eq!(cell["privacy"][1]["accountant"], "rdp");
    assert!(json["cells"][2]["mean"].is_null());
}

#[test]
fn the_terminal_sees_the_table_and_what_epsilon_means() {
    let text = with_document(|document| document.to_text());
    assert!(text.starts_with("small: test accuracy (%), mean"), "{text}");
    assert!(text.contains("Unit of privacy: one device"), "{text}");
}

#[test]
fn all_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    with_document(|document| document.write(dir.path())).unwrap();
    for name in ["table.md", "table.csv", "plot.svg"] {
        assert!(dir.path().join(name).is_file(), "{name}");
    }
}
