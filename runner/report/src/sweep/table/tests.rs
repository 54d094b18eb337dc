use super::*;
use crate::sweep::fixture::{summaries, sweep};

const GRID: &str = "[sweep.grid]\n\"train.epochs\" = [1, 2]\n\
                    \"server.smoothing_factor\" = [0, 0.5]\n\"train.clip\" = [\"final\"]";

#[test]
fn two_dimensions_make_rows_and_columns_and_the_third_a_title() {
    let sweep = sweep(&format!(
        "[sweep]\nseeds = 2\ncolumns = \"train.epochs\"\n{GRID}"
    ));
    let summaries = summaries(
        &sweep,
        &[
            &[Some(0.5), Some(0.52)],
            &[Some(0.75), None],
            &[None, None],
            &[Some(0.9), Some(0.9)],
        ],
    );
    let tables = tables(&sweep, &summaries);
    assert_eq!(tables.len(), 1);
    assert_eq!(tables[0].title.as_deref(), Some("train.clip = final"));
    assert_eq!(
        tables[0].to_markdown(),
        "\
| smoothing_factor |       epochs 1 |     epochs 2 |
| ---------------- | -------------: | -----------: |
| 0                |   51.00 ± 1.00 |   infeasible |
| 0.5              | 75.00 (1 of 2) | 90.00 ± 0.00 |
"
    );
    assert_eq!(
        tables[0].to_text(),
        "\
smoothing_factor        epochs 1      epochs 2
0                   51.00 ± 1.00    infeasible
0.5               75.00 (1 of 2)  90.00 ± 0.00
"
    );
}

#[test]
fn rows_are_compared_with_one_of_them_seed_by_seed() {
    let table = "[sweep]\nseeds = 2\nrows = \"server.smoothing_factor\"\ncompare_with = \"0\"\n";
    let both = sweep(&format!("{table}{GRID}"));
    let values: [&[Option<f64>]; 4] = [
        &[Some(0.5), Some(0.6)],
        &[Some(0.75), Some(0.8)],
        &[Some(0.7), Some(0.7)],
        &[Some(0.7), None],
    ];
    let both_tables = tables(&both, &summaries(&both, &values));
    assert_eq!(both_tables.len(), 2);
    assert_eq!(
        both_tables[1].title.as_deref(),
        Some("train.clip = final, difference from 0, paired by seed")
    );
    assert_eq!(
        both_tables[1].to_text(),
        "\
smoothing_factor       epochs 1  epochs 2
0
0.5               +22.50 ± 2.50     +0.00
"
    );
    let grid = "[sweep.grid]\n\"server.smoothing_factor\" = [0, 0.5]";
    let rows = sweep(&format!(
        "[sweep]\nseeds = 2\ncompare_with = \"0.5\"\n{grid}"
    ));
    let text = tables(&rows, &summaries(&rows, &values[..2]))[0].to_text();
    assert!(text.contains("from 0.5"), "{text}");
    assert!(text.contains("-22.50 ± 2.50"), "{text}");
}

#[test]
fn a_walk_has_a_row_a_variant_with_its_change_and_cost() {
    let sweep = sweep(
        "[sweep]\nseeds = 2\ncumulative = true\n\
         [[sweep.variants]]\nlabel = \"as in the paper\"\n\
         [[sweep.variants]]\nlabel = \"clip once\"\nset = { \"train.clip\" = \"final\" }\n\
         [[sweep.variants]]\nlabel = \"one epoch\"\nset = { \"train.epochs\" = 1 }",
    );
    let summaries = summaries(
        &sweep,
        &[
            &[Some(0.5), Some(0.6)],
            &[Some(0.7), Some(0.7)],
            &[Some(0.6), Some(0.6)],
        ],
    );
    let cost = "|   6.000 |  theorem-1 |       4.500 |           2.0000 |    1.0000 |";
    assert_eq!(
        tables(&sweep, &summaries)[0].to_markdown(),
        format!(
            "\
| variant         | test accuracy (%) |        change | epsilon | accountant | upper bound | \
noise multiplier | noise std |
| --------------- | ----------------: | ------------: | ------: | ---------: | ----------: | \
---------------: | --------: |
| as in the paper |      55.00 ± 5.00 |               {cost}
| clip once       |      70.00 ± 0.00 | +15.00 ± 5.00 {cost}
| one epoch       |      60.00 ± 0.00 | -10.00 ± 0.00 {cost}
"
        )
    );
}

#[test]
fn noise_that_many_cells_share_is_one_line() {
    let sweep = sweep(GRID);
    let summaries = summaries(&sweep, &[&[Some(0.5)], &[Some(0.5)], &[None], &[Some(0.5)]]);
    assert_eq!(noise(&summaries).rows.len(), 1);
}

#[test]
fn a_sweep_over_seeds_alone_is_one_row() {
    let sweep = sweep("[sweep]\nseeds = 2");
    let summaries = summaries(&sweep, &[&[Some(0.5), Some(0.6)]]);
    let text = tables(&sweep, &summaries)[0].to_text();
    assert!(text.contains("small       55.00 ± 5.00"), "{text}");
}
