use smolfed_core::features::{Gradients, Pool};

use super::*;
use crate::dataset::Targets;
use crate::{DataConfig, DataFolders, DeviceBuffer, Federation};

fn config(data: &str, features: &str) -> DataConfig {
    let config: DataConfig = toml::from_str(data).unwrap();
    config
        .with_features(&toml::from_str(features).unwrap())
        .unwrap()
}

fn federation(data: &str, features: &str) -> Federation {
    let folders = DataFolders::of_experiment(None);
    Federation::new(&config(data, features), &folders, 5).unwrap()
}

/// The samples of all devices, with their targets, in an order that does not depend on features.
fn samples(federation: &Federation) -> Vec<(Vec<f32>, f32)> {
    let mut buffer = DeviceBuffer::default();
    let mut samples = Vec::new();
    for device in 0..federation.device_count() {
        let view = federation.device(device, &mut buffer);
        let rows = (0..view.len()).map(|row| (view.features(row).to_vec(), view.value(row)));
        samples.extend(rows);
    }
    samples
}

#[test]
fn every_sample_has_the_features_that_a_device_computes() {
    let data = "source = \"digits\"\ndevices = 20\nscale = \"none\"";
    let folders = DataFolders::of_experiment(None);
    let plain = Federation::new(&toml::from_str(data).unwrap(), &folders, 5).unwrap();
    let computed = federation(data, "kind = \"gradients\"\ncell = 2");
    let pooled = federation(data, "kind = \"pool\"\ncell = 3");
    assert_eq!((computed.feature_count(), pooled.feature_count()), (128, 4));
    assert!(computed.axes().is_empty());
    assert_ne!(computed.fingerprint(), plain.fingerprint());
    let cells = |cell| Cells::new(8, 8, cell).unwrap();
    let images = samples(&plain).into_iter();
    let all = images.zip(samples(&computed)).zip(samples(&pooled));
    for (((pixels, label), (gradients, same)), (brightness, _)) in all {
        let bytes: Vec<u8> = pixels.iter().map(|pixel| *pixel as u8).collect();
        let mut expected = vec![0.0; 128];
        let written = Gradients::new(cells(2)).features_into([&bytes], &mut expected);
        written.unwrap();
        assert_eq!((gradients, same), (expected, label));
        let mut expected = vec![0.0; 4];
        Pool::new(cells(3))
            .features_into(&bytes, &mut expected)
            .unwrap();
        assert_eq!(brightness, expected);
    }
    assert_eq!(computed.max_length(), Some(32.0_f64.sqrt()));
}

#[test]
fn no_scale_and_no_mean_of_rows_is_left() {
    let data = "source = \"digits\"\ndevices = 20\nscale = \"standardise\"";
    let computed = federation(data, "kind = \"gradients\"\ncell = 4");
    assert!(computed.reads().is_empty());
    let config = config(data, "kind = \"gradients\"\ncell = 4");
    assert!(
        toml::to_string(&config)
            .unwrap()
            .contains("scale = \"none\"")
    );
}

#[test]
fn columns_become_steps_and_categories_stay() {
    let text = b"age,colour,height,at,label\n10,red,,2024-03-04 06:00,a\n\
                 20,blue,1.5,,b\n35,,2.5,2024-03-04 18:00,a\n";
    let columns = toml::from_str::<DataConfig>(
        "source = \"csv\"\npath = \"t.csv\"\nlabel = \"label\"\ndevices = 1\n\
         classes = [\"a\", \"b\"]\ncategories = { colour = [\"red\", \"blue\"] }\n\
         times = { at = [\"hour\"] }",
    );
    let crate::config::SourceConfig::Stored(stored) = columns.unwrap().source else {
        panic!("a table");
    };
    let crate::config::StoredSet::Table(table) = stored.set else {
        panic!("a table");
    };
    let parsed = crate::table::parse(table.format, text, &table.columns).unwrap();
    let data = parsed.into_dataset().unwrap();
    let bounds: Bounds = toml::from_str("min = [0, 1, 0]\nmax = [40, 2, 24]").unwrap();
    let steps = Steps::new(2).unwrap();
    let (computed, inputs) = replace(data, &FeatureKind::Steps { steps, bounds }, None).unwrap();
    let names = [
        "age_0",
        "age_1",
        "colour=red",
        "colour=blue",
        "height_0",
        "height_1",
        "at:hour_0",
        "at:hour_1",
    ];
    assert_eq!(computed.names().features, names);
    let values = ["age", "colour=red", "colour=blue", "height", "at:hour"];
    assert_eq!(inputs.names, values);
    let expected = [
        [0.0, -0.5, 1.0, 0.0, 0.0, 0.0, 0.0, -0.5],
        [0.5, -0.5, 0.0, 1.0, 0.5, -0.5, 0.0, 0.0],
        [0.5, 0.25, 0.0, 0.0, 0.5, 0.5, 0.5, 0.0],
    ];
    assert_eq!(computed.features().to_vec(), expected.concat());
    assert!(computed.missing().is_empty());
    // A category is 0 or 1, and each column has at most one.
    assert_eq!(inputs.max_length, 2.5_f64.sqrt());
    // Missing values, which are 0 until they become features, do not count.
    assert_eq!(inputs.beyond, [0, 0, 0, 1, 0]);
}

#[test]
fn long_samples_are_shortened_and_short_ones_keep_their_bits() {
    let data = "source = \"digits\"\ndevices = 20\nscale = \"none\"";
    let folders = DataFolders::of_experiment(None);
    let federation = |more: &str| {
        let config = toml::from_str(&format!("{data}\n{more}")).unwrap();
        Federation::new(&config, &folders, 5).unwrap()
    };
    let (plain, short) = (federation(""), federation("norm_bound = 55"));
    assert_eq!((plain.max_length(), short.max_length()), (None, Some(55.0)));
    let length = |sample: &[f32]| {
        sample
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    let mut shortened = 0;
    for ((before, _), (after, _)) in samples(&plain).into_iter().zip(samples(&short)) {
        if length(&before) <= 55.0 {
            assert_eq!(before, after);
            continue;
        }
        shortened += 1;
        assert!((length(&after) / 55.0 - 1.0).abs() < 1e-6);
        for (before_entry, after_entry) in before.iter().zip(&after) {
            let expected = f64::from(*before_entry) * 55.0 / length(&before);
            assert!((f64::from(*after_entry) - expected).abs() < 1e-4);
        }
    }
    assert!((100..1400).contains(&shortened), "{shortened}");
    let mut huge = [f32::MAX, f32::MAX];
    crate::dataset::shorten(&mut huge, 1.0);
    assert!(length(&huge) <= 1.0 + 1e-6, "{huge:?}");
}

#[test]
fn bounds_say_how_long_a_sample_can_be() {
    let folders = DataFolders::of_experiment(None);
    let length = |scale: &str| {
        let text = format!("source = \"digits\"\ndevices = 20\nscale = {scale}");
        let config = toml::from_str(&text).unwrap();
        Federation::new(&config, &folders, 5).unwrap().max_length()
    };
    assert_eq!(length("\"unit\""), Some(8.0));
    // From −1 to 1 by the bounds, as a maximum of 16 is the unit of mean and deviation.
    assert_eq!(
        length("{ min = 0, max = 16, mean = 0.5, std = 0.5 }"),
        Some(8.0)
    );
    assert_eq!(length("{ mean = 0.5, std = 0.5 }"), None);
}

#[test]
fn cells_are_suggested_for_images_of_bytes() {
    let cell = |axes: &[usize], maximum| FeatureKind::suggested(axes, maximum);
    let gradients = |cell| Some(FeatureKind::Gradients { cell });
    assert_eq!(cell(&[28, 28], Some(255.0)), gradients(4));
    assert_eq!(cell(&[3, 32, 32], Some(255.0)), gradients(4));
    assert_eq!(cell(&[8, 8], Some(16.0)), gradients(2));
    assert_eq!(cell(&[28, 28], None), None);
    assert_eq!(cell(&[6, 1, 128], Some(255.0)), None);
    assert_eq!(cell(&[3, 3], Some(255.0)), None);
    assert_eq!(cell(&[], Some(255.0)), None);
}

#[test]
fn pixels_are_of_8_bits() {
    let image = |levels| FeatureRecipe::of_image(&[1, 3], 1, levels, ImageFeatures::Pool).unwrap();
    let compute = |recipe: FeatureRecipe, pixels: [f32; 3]| {
        let mut features = [0.0; 3];
        let computed = recipe.compute(&pixels, &mut Vec::new(), &mut features);
        computed.map(|()| features)
    };
    let half_root = 3f32.sqrt() / 2.0;
    assert_eq!(
        compute(image(1.0), [0.0, 255.0, 0.0]),
        Ok([0.0, half_root, 0.0])
    );
    assert_eq!(
        compute(image(255.0), [-0.0, 1.0, 0.001]),
        Ok([0.0, half_root, 0.0])
    );
    assert_eq!(compute(image(1.0), [0.0; 3]), Ok([0.0; 3]));
    for (levels, wrong) in [(1.0, 0.5), (1.0, 256.0), (1.0, -1.0), (255.0, 1.5)] {
        let error = compute(image(levels), [0.0, wrong, 0.0]).unwrap_err();
        assert!(
            matches!(error, FeaturesError::Pixel { at: 1, .. }),
            "{error}"
        );
    }
    let error = compute(image(1.0), [0.0, f32::NAN, 0.0]).unwrap_err();
    assert_eq!(error, FeaturesError::NoPixel { at: 1 });
}

#[test]
fn an_error_names_the_row() {
    let targets = Targets::Values(vec![0.0; 3]);
    let data = Dataset::new(vec![0.0, 1.0, 2.0, 3.0, 0.5, 1.0], 2, targets).unwrap();
    let data = data.with_axes(vec![1, 2]).unwrap();
    let error = replace(data, &FeatureKind::Pool { cell: 1 }, None)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("row 3: pixel 0 is 0.5"), "{error}");
}
