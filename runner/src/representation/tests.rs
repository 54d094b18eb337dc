use super::*;
use proptest::{collection::vec, prelude::*};

fn labelled(width: usize, values: &[f32], classes: &[u16]) -> Labelled {
    Labelled {
        width,
        values: values.to_vec(),
        classes: classes.to_vec(),
    }
}

/// Numbers without a pattern, from −1 to 1.
fn scatter(index: usize) -> f32 {
    let mixed = (index as u32).wrapping_mul(2_654_435_761).rotate_left(13);
    (mixed.wrapping_mul(2_246_822_519) >> 8) as f32 / 8_388_608.0 - 1.0
}

/// `count` samples, in turn of `classes` classes; class c has `apart` on coordinate c, beside the scatter.
fn clouds(width: usize, classes: usize, count: usize, apart: f32, seed: usize) -> Labelled {
    let value = |index: usize| {
        let (sample, coordinate) = (index / width, index % width);
        let own = coordinate == (sample % classes) % width;
        scatter(seed + index) + if own { apart } else { 0.0 }
    };
    Labelled {
        width,
        values: (0..width * count).map(value).collect(),
        classes: (0..count).map(|sample| (sample % classes) as u16).collect(),
    }
}

/// Samples that any figure must survive.
fn degenerate() -> Vec<Labelled> {
    vec![
        labelled(1, &[0.0], &[0]),
        labelled(1, &[1.0, -1.0, 2.0], &[0, 1, 0]),
        labelled(2, &[0.0; 8], &[0, 1, 2, 3]),
        labelled(3, &[0.1; 30], &[1; 10]),
        labelled(
            2,
            &[f32::NAN, 1.0, f32::INFINITY, -2.0, 0.5, 0.5],
            &[0, 1, 2],
        ),
        labelled(2, &[f32::MAX, -f32::MAX, f32::MAX, f32::MAX], &[0, 1]),
        labelled(2, &[1e-40, 1e-42, 0.0, 1e-45], &[0, 65_535]),
        // Numbers and a class too many.
        labelled(2, &[1.0, 2.0, 3.0], &[1, 0]),
    ]
}

#[test]
fn without_samples_there_is_no_figure() {
    let some = clouds(2, 2, 6, 3.0, 0);
    let nothing = [
        Labelled::default(),
        labelled(2, &[], &[]),
        labelled(0, &[], &[1, 2]),
        labelled(0, &[1.0], &[1]),
        labelled(3, &[1.0, 2.0], &[0]),
        labelled(2, &[1.0, 2.0], &[]),
    ];
    for none in &nothing {
        assert_eq!(none.len(), 0);
        assert_eq!(knn_accuracy(none, &some, 3), None);
        assert_eq!(knn_accuracy(&some, none, 3), None);
        assert_eq!(probe_accuracy(none, &some, 2), None);
        assert_eq!(probe_accuracy(&some, none, 2), None);
        assert_eq!(Picture::new(none, Vec::new()), None);
    }
    let wider = clouds(3, 2, 6, 3.0, 0);
    assert_eq!(knn_accuracy(&some, &wider, 3), None);
    assert_eq!(probe_accuracy(&some, &wider, 2), None);
    assert_eq!(probe_accuracy(&some, &some, 0), None);
    assert_eq!(probe_accuracy(&some, &some, 70_000), None);
}

#[test]
fn degenerate_samples_have_figures_that_are_numbers() {
    for samples in degenerate() {
        for neighbours in [0, 1, 2, 100] {
            let accuracy = knn_accuracy(&samples, &samples, neighbours).unwrap();
            assert!((0.0..=1.0).contains(&accuracy));
        }
        for class_count in [1, 2, 4] {
            let accuracy = probe_accuracy(&samples, &samples, class_count).unwrap();
            assert!((0.0..=1.0).contains(&accuracy));
        }
        let picture = Picture::new(&samples, Vec::new()).unwrap();
        assert_eq!(picture.eigenvalues.len(), samples.width);
        assert!(
            picture
                .eigenvalues
                .iter()
                .all(|v| v.is_finite() && *v >= 0.0)
        );
        assert!(
            picture
                .explained
                .iter()
                .all(|share| (0.0..=1.0 + 1e-12).contains(share))
        );
        assert_eq!(picture.points.len(), samples.len());
        assert!(
            picture
                .points
                .iter()
                .all(|dot| dot.x.is_finite() && dot.y.is_finite())
        );
        let text = serde_json::to_string(&picture).unwrap();
        assert_eq!(serde_json::from_str::<Picture>(&text).unwrap(), picture);
    }
}

#[test]
fn neighbours_are_found_by_direction() {
    // The long sample of class 1 is not near to what points elsewhere.
    let bank = labelled(2, &[1.0, 0.0, 0.9, 0.1, 50.0, 60.0], &[0, 0, 1]);
    let queries = labelled(2, &[9.0, 0.5, 0.01, 0.011, 3.0, 2.9], &[0, 1, 1]);
    assert_eq!(knn_accuracy(&bank, &queries, 1), Some(1.0));
    // Three votes of three: the majority of the bank, whatever is asked.
    assert_eq!(knn_accuracy(&bank, &queries, 3), Some(1.0 / 3.0));
    assert_eq!(knn_accuracy(&bank, &queries, 1_000), Some(1.0 / 3.0));
}

#[test]
fn ties_go_to_the_nearest_and_then_to_the_first() {
    let query = |class| labelled(2, &[1.0, 0.0], &[class]);
    // One vote each: the nearer one, wherever it stands.
    let bank = labelled(2, &[0.5, 0.5, 1.0, 0.1], &[4, 7]);
    assert_eq!(knn_accuracy(&bank, &query(7), 2), Some(1.0));
    // The same direction: the first in the bank.
    let bank = labelled(2, &[2.0, 0.0, 1.0, 0.0, 4.0, 0.0], &[5, 3, 3]);
    assert_eq!(knn_accuracy(&bank, &query(5), 1), Some(1.0));
    assert_eq!(knn_accuracy(&bank, &query(5), 2), Some(1.0));
    assert_eq!(knn_accuracy(&bank, &query(3), 3), Some(1.0));
}

/// By the definition: all cosines sorted, in `f64`.
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

#[test]
fn a_probe_reads_what_is_linear() {
    for (width, classes) in [(1, 2), (4, 4), (16, 10)] {
        let bank = clouds(width, classes, 600, 3.0, 0);
        let queries = clouds(width, classes, 400, 3.0, 50_000);
        let expected = if width == 1 { 0.4 } else { 0.99 };
        let accuracy = probe_accuracy(&bank, &queries, classes).unwrap();
        assert!(accuracy >= expected, "{width}: {accuracy}");
    }
    // The sign of a number, without a threshold to find and with one.
    for shift in [0.0, 5.0] {
        let values: Vec<f32> = (0..200).map(|i| scatter(i) + shift).collect();
        let classes: Vec<u16> = values.iter().map(|x| u16::from(*x > shift)).collect();
        let samples = labelled(1, &values, &classes);
        assert!(probe_accuracy(&samples, &samples, 2).unwrap() > 0.97);
    }
    // Exclusive or is not linear.
    let xor = labelled(
        2,
        &[1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0, 1.0],
        &[0, 0, 1, 1],
    );
    assert!(probe_accuracy(&xor, &xor, 2).unwrap() < 0.8);
}

#[test]
fn a_probe_does_not_mind_scale_or_correlation() {
    // Two coordinates that differ by a thousandth of their size, which is what tells the classes.
    let classes: Vec<u16> = (0..400).map(|i| (i % 2) as u16).collect();
    let values: Vec<f32> = (0..400)
        .flat_map(|i| {
            let common = 100.0 + 10.0 * scatter(i);
            let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
            [common, common + 0.01 * sign]
        })
        .collect();
    let samples = labelled(2, &values, &classes);
    assert!(probe_accuracy(&samples, &samples, 2).unwrap() > 0.99);
}

#[test]
fn classes_without_a_name_in_the_model_are_never_predicted() {
    let bank = clouds(3, 3, 90, 4.0, 0);
    let accuracy = probe_accuracy(&bank, &bank, 2).unwrap();
    assert!((0.5..=2.0 / 3.0).contains(&accuracy), "{accuracy}");
}

#[test]
fn a_collapsed_encoder_knows_only_one_class() {
    let constant = labelled(3, &[0.3; 60], &(0..20).map(|i| i % 4).collect::<Vec<_>>());
    assert_eq!(knn_accuracy(&constant, &constant, 1), Some(0.25));
    assert_eq!(probe_accuracy(&constant, &constant, 4), Some(0.25));
    let picture = Picture::new(&constant, Vec::new()).unwrap();
    assert_eq!(picture.explained, [0.0, 0.0]);
    assert!(
        picture
            .points
            .iter()
            .all(|dot| (dot.x, dot.y) == (0.0, 0.0))
    );
    // One direction carries it all: 3 · 0.3².
    assert!((picture.eigenvalues[0] - 0.27).abs() < 1e-7);
    assert!(picture.eigenvalues[1..].iter().all(|value| *value < 1e-15));
}

#[test]
fn the_picture_has_the_longest_axes_first() {
    // Along (1, 1, 0)/√2 by ±2, along z by ±1, around (5, 5, 5).
    let root = std::f32::consts::FRAC_1_SQRT_2;
    let at = |a: f32, b: f32| [5.0 + 2.0 * a * root, 5.0 + 2.0 * a * root, 5.0 + b];
    let values = [at(1.0, 0.0), at(-1.0, 0.0), at(0.0, 1.0), at(0.0, -1.0)].concat();
    let picture = Picture::new(&labelled(3, &values, &[0, 1, 2, 3]), vec![]).unwrap();
    assert!((picture.explained[0] - 0.8).abs() < 1e-6);
    assert!((picture.explained[1] - 0.2).abs() < 1e-6);
    let expected = [(2.0, 0.0), (-2.0, 0.0), (0.0, 1.0), (0.0, -1.0)];
    for (dot, (x, y)) in picture.points.iter().zip(expected) {
        assert!(
            (dot.x - x).abs() < 1e-5 && (dot.y - y).abs() < 1e-5,
            "{dot:?}"
        );
    }
    // Mean squared length: 75 from the centre, 2 + 0.5 around it.
    let sum: f64 = picture.eigenvalues.iter().sum();
    assert!((sum - 77.5).abs() < 1e-4, "{sum}");
}

#[test]
fn every_class_has_its_share_of_the_dots() {
    let many = clouds(2, 2, 9_000, 1.0, 0);
    let classes: Vec<u16> = (0..9_000).map(|i| u16::from(i % 10 == 0)).collect();
    let picture = Picture::new(&Labelled { classes, ..many }, vec![]).unwrap();
    assert_eq!(picture.points.len(), 600);
    assert_eq!(
        picture.points.iter().filter(|dot| dot.class == 1).count(),
        60
    );
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
