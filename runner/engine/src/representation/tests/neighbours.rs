use proptest::{collection::vec, prelude::*};

use super::*;

#[test]
fn neighbours_are_found_by_direction() {
    // The long sample of class 1 is not near samples in other directions.
    let bank = labelled(2, &[1.0, 0.0, 0.9, 0.1, 50.0, 60.0], &[0, 0, 1]);
    let queries = labelled(2, &[9.0, 0.5, 0.01, 0.011, 3.0, 2.9], &[0, 1, 1]);
    assert_eq!(knn_accuracy(&bank, &queries, 1), Some(1.0));
    // Three votes of three: the majority of the bank for every query.
    assert_eq!(knn_accuracy(&bank, &queries, 3), Some(1.0 / 3.0));
    assert_eq!(knn_accuracy(&bank, &queries, 1_000), Some(1.0 / 3.0));
}

#[test]
fn ties_go_to_the_nearest_and_then_to_the_first() {
    let query = |class| labelled(2, &[1.0, 0.0], &[class]);
    // One vote each: the nearer one wins, wherever it is.
    let bank = labelled(2, &[0.5, 0.5, 1.0, 0.1], &[4, 7]);
    assert_eq!(knn_accuracy(&bank, &query(7), 2), Some(1.0));
    // The same direction: the first one in the bank wins.
    let bank = labelled(2, &[2.0, 0.0, 1.0, 0.0, 4.0, 0.0], &[5, 3, 3]);
    assert_eq!(knn_accuracy(&bank, &query(5), 1), Some(1.0));
    assert_eq!(knn_accuracy(&bank, &query(5), 2), Some(1.0));
    assert_eq!(knn_accuracy(&bank, &query(3), 3), Some(1.0));
}

/// Computes the accuracy by definition: all cosines sorted, in `f64`.
fn knn_by_definition(bank: &Labelled, queries: &Labelled, neighbours: usize) -> f64 {
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter()
                .zip(b)
                .map(|(x, y)| f64::from(*x) * f64::from(*y))
                .sum()
        };
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let correct = queries
        .rows()
        .zip(&queries.classes)
        .filter(|(query, class)| {
            let mut order: Vec<(f64, u16)> = bank
                .rows()
                .map(|row| cosine(query, row))
                .zip(bank.classes.iter().copied())
                .collect();
            order.sort_by(|a, b| b.0.total_cmp(&a.0));
            order.truncate(neighbours);
            let votes = |class: u16| order.iter().filter(|(_, other)| *other == class).count();
            let most = order.iter().map(|(_, class)| votes(*class)).max();
            let winner = order.iter().find(|(_, class)| Some(votes(*class)) == most);
            winner.map(|(_, winner)| *winner) == Some(**class)
        });
    correct.count() as f64 / queries.len() as f64
}

#[test]
fn many_neighbours_are_those_of_the_definition() {
    // More than one piece of the bank and of the queries, none of them full.
    let bank = clouds(5, 4, 1_100, 0.7, 0);
    let queries = clouds(5, 4, 300, 0.7, 9_000);
    for neighbours in [1, 2, 7, 20, 200] {
        let found = knn_accuracy(&bank, &queries, neighbours).unwrap();
        assert_eq!(found, knn_by_definition(&bank, &queries, neighbours));
        assert!(found > 0.4, "{found}");
    }
}

#[test]
fn threads_do_not_matter() {
    let (bank, queries) = (clouds(4, 3, 700, 0.5, 0), clouds(4, 3, 900, 0.5, 5_000));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| knn_accuracy(&bank, &queries, 9).unwrap().to_bits())
    };
    assert_eq!(with(1), with(5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn turning_and_scaling_a_representation_changes_no_neighbours(
        values in vec(-1f32..1.0, 2 * 30), quarter_turns in 0u8..4, exponent in -20i32..20,
    ) {
        let classes: Vec<u16> = (0..30).map(|i| i % 3).collect();
        let turned = values.chunks_exact(2).flat_map(|pair| {
            let (mut x, mut y) = (pair[0], pair[1]);
            for _ in 0..quarter_turns {
                (x, y) = (-y, x);
            }
            [x, y].map(|value| value * 2f32.powi(exponent))
        });
        let turned = labelled(2, &turned.collect::<Vec<_>>(), &classes);
        let straight = labelled(2, &values, &classes);
        for neighbours in [1, 4] {
            let found = knn_accuracy(&turned, &turned, neighbours);
            prop_assert_eq!(found, knn_accuracy(&straight, &straight, neighbours));
        }
    }
}
