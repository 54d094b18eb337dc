use super::*;
use smolfed_data::dataset::Targets;

mod neighbours;
mod probe;

fn labelled(width: usize, values: &[f32], classes: &[u16]) -> Labelled {
    Labelled {
        width,
        values: values.to_vec(),
        classes: classes.to_vec(),
    }
}

/// Returns numbers without a pattern, from −1 to 1.
fn scatter(index: usize) -> f32 {
    let mixed = (index as u32).wrapping_mul(2_654_435_761).rotate_left(13);
    (mixed.wrapping_mul(2_246_822_519) >> 8) as f32 / 8_388_608.0 - 1.0
}

/// Returns `count` samples with alternating classes, `classes` in all. Class c has `apart` on
/// coordinate c, in addition to the scatter.
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

/// Returns samples that every figure must handle.
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
        // Extra numbers and an extra class.
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
    // One direction has all of it: 3 · 0.3².
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
    // Mean squared length: 75 for the centre, 2 + 0.5 around it.
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

/// An independent implementation gives .966 and .950 for 16 principal components, with another
/// split.
#[test]
fn principal_components_of_digits_are_worth_what_is_known() {
    let data = smolfed_data::digits::load().unwrap();
    let Targets::Classes { labels, .. } = data.targets() else {
        unreachable!("digits have classes");
    };
    let (width, kept) = (data.feature_count(), 16);
    let all = labelled(width, &data.features().to_vec(), labels);
    let moment = moments::second_moment(&all, &vec![0.0; width]);
    let axes = eigen::symmetric_eigen(&moment, width).vectors;
    // The last writers are the queries.
    let part = |is_query: bool| {
        let rows = all.rows().zip(labels).enumerate();
        let rows = rows.filter(|(index, _)| (*index >= 1_300) == is_query);
        let mut part = labelled(kept, &[], &[]);
        for (_, (row, class)) in rows {
            for axis in axes.chunks_exact(width).take(kept) {
                let products = row.iter().zip(axis).map(|(x, a)| f64::from(*x) * a);
                part.values.push(products.sum::<f64>() as f32);
            }
            part.classes.push(*class);
        }
        part
    };
    let (bank, queries) = (part(false), part(true));
    let neighbours = knn_accuracy(&bank, &queries, 5).unwrap();
    assert!((0.95..0.98).contains(&neighbours), "{neighbours}");
    let probe = probe_accuracy(&bank, &queries, 10).unwrap();
    assert!((0.9..0.96).contains(&probe), "{probe}");
}
