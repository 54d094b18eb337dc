//! Categories next to numbers: they stay 0 and 1, and change neither the noise nor the charges.

use super::*;
use smolfed_data::preparation::ColumnMap;
use smolfed_data::reads::{List, Read};

const COLOURS: [&str; 3] = ["red", "green", "blue"];

/// As [`DATA`], with a category between the two numbers. Its bounds are never read.
const DATA_WITH_COLOURS: &str = "source = \"csv\"\npath = \"a.csv\"\nlabel = \"label\"\n\
    test = 0\ndevice_column = \"who\"\nclasses = 2\nscale = \"private-features\"\n\
    scale_noise_multiplier = 0.2\nbounds = { min = -1, max = [1, 7, 7, 7, 2] }\n\
    categories.colour = [\"red\", \"green\", \"blue\"]\n";

/// Returns the rows of [`table`], each with a colour.
fn with_colours(devices: &[Vec<f32>]) -> String {
    let mut text = "who,x,colour,y,label\n".to_owned();
    for (at, line) in table(devices).lines().skip(1).enumerate() {
        let cells: Vec<&str> = line.split(',').collect();
        let [who, x, y, label] = cells[..] else {
            panic!("{line}")
        };
        text += &format!("{who},{x},{},{y},{label}\n", COLOURS[at % 3]);
    }
    text
}

fn coloured(devices: &[Vec<f32>]) -> Federation {
    federation_of(&with_colours(devices), DATA_WITH_COLOURS)
}

/// Returns the same federation without the category.
fn plain(devices: &[Vec<f32>]) -> Federation {
    let data = DATA.to_owned() + "scale_noise_multiplier = 0.2\n";
    federation_of(&table(devices), &data)
}

fn devices(count: u8) -> Vec<Vec<f32>> {
    let value = |at: u32| f32::from((at * 37 % 100) as u8) / 50.0 - 1.0;
    let device = |k: u8| (0..6).map(|at| value(u32::from(k) * 6 + at)).collect();
    (0..count).map(device).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Rows with categories have the charged sensitivity, exactly in the integers.
    #[test]
    fn one_device_with_categories_moves_the_integers_by_at_most_the_bound(
        mut devices in vec(device(), 3..6),
        other in device(),
    ) {
        let bound = f64::from(DEFAULT_BITS).exp2();
        let before = coloured(&devices);
        let count = before.device_count();
        let all = sum(&before, 0..count);
        prop_assert!(norm_of_difference(&all, &sum(&before, 1..count)) <= bound);
        devices[0] = other;
        let replaced = sum(&coloured(&devices), 0..count);
        prop_assert!(norm_of_difference(&all, &replaced) <= 2.0 * bound);
    }
}

#[test]
fn categories_change_nothing_of_the_release() {
    let (with, without) = (coloured(&devices(20)), plain(&devices(20)));
    let releases = [&with, &without].map(|of| release(of, TrustModel::Central));
    assert_eq!(releases[0].length, 2 * WIDTH);
    assert_eq!(releases[0].length, releases[1].length);
    assert_eq!(releases[0].side.event, releases[1].side.event);
    let root = Root::from_seed(5);
    let released = [(&releases[0], &with), (&releases[1], &without)]
        .map(|(release, of)| release.moments(of, &root).over(20.0));
    assert_eq!(released[0], released[1]);
}

#[test]
fn categories_stay_0_and_1_and_numbers_are_scaled_as_without_them() {
    let root = Root::from_seed(5);
    let scaled = [coloured(&devices(20)), plain(&devices(20))].map(|of| {
        let release = release(&of, TrustModel::Central);
        release.scaled(&of, &root).unwrap()
    });
    let mut buffers = [DeviceBuffer::default(), DeviceBuffer::default()];
    for device in 0..20 {
        let [with, without] = [0, 1].map(|at| {
            let view = scaled[at].device(device, &mut buffers[at]);
            let rows = (0..view.len()).map(|row| view.features(row).to_vec());
            rows.collect::<Vec<_>>()
        });
        for (with, without) in with.iter().zip(&without) {
            assert_eq!([with[0], with[4]], without[..]);
            let mut colour = with[1..4].to_vec();
            colour.sort_by(f32::total_cmp);
            assert_eq!(colour, [0.0, 0.0, 1.0]);
        }
    }
    // Predictions also keep them.
    let columns = scaled[0].preparation().columns;
    for (at, column) in columns.iter().enumerate() {
        let is_category = (1..4).contains(&at);
        let applied = [0.0, 1.0].map(|x| column.apply(Some(x)).unwrap());
        assert_eq!(applied == [0.0, 1.0], is_category, "{at}");
    }
}

/// The mean of a number has the noise given in docs/data.md, with F = 2 numbers and not the five
/// features. 600 draws: the relative error of their std has a std of 2.9 %.
#[test]
fn the_noise_of_a_mean_follows_from_the_number_of_numbers() {
    let count = 20;
    let federation = coloured(&devices(count));
    let release = release(&federation, TrustModel::Central);
    let mut means = Vec::new();
    for seed in 0..300 {
        let scaled = release.scaled(&federation, &Root::from_seed(seed)).unwrap();
        let columns = scaled.preparation().columns;
        for (numbers, at) in [0, 4].into_iter().enumerate() {
            let ColumnMap::Number(column) = columns[at] else {
                panic!("{:?}", columns[at])
            };
            means.push((numbers, column.then.unwrap().mean()));
        }
    }
    let exact = |number: usize| {
        let of = means.iter().filter(|(of, _)| *of == number);
        of.map(|(_, mean)| mean).sum::<f64>() / 300.0
    };
    let exact = [exact(0), exact(1)];
    let squares = means.iter().map(|(of, mean)| (mean - exact[*of]).powi(2));
    let found = (squares.sum::<f64>() / 598.0).sqrt();
    let expected = 0.2 * (1.25 * WIDTH as f64).sqrt() / f64::from(count);
    assert!((found / expected - 1.0).abs() < 0.18, "{found} {expected}");
}

#[test]
fn a_list_of_categories_from_rows_is_still_named() {
    let reads = |key: &str| {
        let data = DATA_WITH_COLOURS.to_owned() + key;
        federation_of(&with_colours(&devices(4)), &data)
            .reads()
            .to_vec()
    };
    assert_eq!(
        reads("categories_are_public = false\n"),
        [Read::List(List::Categories)]
    );
    assert_eq!(reads(""), []);
}
