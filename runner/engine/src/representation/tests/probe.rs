use super::*;

#[test]
fn a_probe_reads_what_is_linear() {
    for (width, classes) in [(1, 2), (4, 4), (16, 10)] {
        let bank = clouds(width, classes, 600, 3.0, 0);
        let queries = clouds(width, classes, 400, 3.0, 50_000);
        let expected = if width == 1 { 0.4 } else { 0.99 };
        let accuracy = probe_accuracy(&bank, &queries, classes).unwrap();
        assert!(accuracy >= expected, "{width}: {accuracy}");
    }
    // The sign of a number, without a threshold and with one.
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
    // Two coordinates whose difference, a thousandth of their size, determines the class.
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
