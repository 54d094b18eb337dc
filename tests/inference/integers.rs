//! Predictions in integers: the compiled header and `smolfed predict --arithmetic integer`
//! agree bit for bit.

use serde_json::Value;
use smolfed_core::features::{Cells, Gradients};
use smolfed_core::fixed_point::FeatureScale;

use super::exports::{compiled_with, features, has_compiler};
use super::features as images;
use super::unnamed::npy;
use super::{KINDS, PAIRS, VALUES, run};
use crate::program::Place;

/// Reads rows of numbers from standard input, and prints the predictions for their integers.
pub(super) const PROGRAM: &str = r#"
#include "MODEL"
#include <stdio.h>
int main(void)
{
    float features[SMOLFED_FEATURES];
    smolfed_feature integers[SMOLFED_READ];
    for (;;) {
        for (size_t i = 0; i < SMOLFED_FEATURES; i++) {
            if (scanf("%f", &features[i]) != 1) {
                return 0;
            }
        }
        smolfed_integers(features, integers);
#if defined SMOLFED_CLASSES
        int32_t units[SMOLFED_CLASSES];
        const int best = smolfed_predict(integers, units);
        if (best != smolfed_predict(integers, NULL)) {
            return 1;
        }
        printf("%d", best);
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            printf("\t%ld", (long)units[k]);
        }
        printf("\n");
#else
        printf("%.9g\n", (double)smolfed_value(smolfed_predict(integers)));
#endif
    }
}
"#;

/// Warnings that all compilers accept.
pub(super) const WARNINGS: [&str; 2] = ["-Wconversion", "-Wno-unused-function"];

/// Returns each run's name, its data, and more settings.
fn models() -> [(&'static str, String, &'static str); 6] {
    let integer = "--set simulation.arithmetic=integer";
    let wide = "--set simulation.arithmetic=integer --set simulation.integer.features=i16 \
                --set simulation.integer.fraction=12";
    let logistic = "--set model.kind=logistic";
    let values = format!("{VALUES}target_scale = \"standardise\"");
    let bounded = format!("{KINDS}norm_bound = 1.5");
    [
        ("narrow", KINDS.to_owned(), integer),
        ("wide", KINDS.to_owned(), wide),
        ("numbers", KINDS.to_owned(), ""),
        ("bounded", bounded, integer),
        ("logistic", PAIRS.to_owned(), logistic),
        ("linear", values, wide),
    ]
}

/// Predicts from features computed by the board itself: integers on standard input.
const OF_FEATURES: &str = r#"
#include "MODEL"
#include <stdio.h>
int main(void)
{
    smolfed_feature features[SMOLFED_READ];
    for (;;) {
        for (size_t i = 0; i < SMOLFED_READ; i++) {
            int integer;
            if (scanf("%d", &integer) != 1) {
                return 0;
            }
            features[i] = (smolfed_feature)integer;
        }
        int32_t units[SMOLFED_CLASSES];
        printf("%s", smolfed_class_names[smolfed_predict(features, units)]);
        for (size_t k = 0; k < SMOLFED_CLASSES; k++) {
            printf(",%.9g", (double)units[k] / 65536.0);
        }
        printf("\n");
    }
}
"#;

fn export(place: &Place, name: &str) {
    let call = format!("export {name} --format c-header --arithmetic integer --out {name}.h");
    place.smolfed(&call).success();
}

/// Asserts that the values printed by a header's program equal those of `smolfed predict`.
fn has_values(printed: &str, predicted: &Value) {
    let rows = predicted["rows"].as_array().unwrap();
    assert_eq!(printed.lines().count(), rows.len());
    for (line, row) in printed.lines().zip(rows) {
        let expected = row["prediction"].as_f64().unwrap() as f32;
        assert_eq!(line.parse(), Ok(expected));
    }
}

/// Asserts that a header's program prints the classes and probabilities of `smolfed predict`.
pub(super) fn has_bits(name: &str, printed: &str, predicted: &Value) {
    let rows = predicted["rows"].as_array().unwrap();
    assert_eq!(printed.lines().count(), rows.len(), "{name}");
    let mut classes = vec![];
    for (line, row) in printed.lines().zip(rows) {
        let (best, units) = line.split_once('\t').unwrap();
        let best: usize = best.parse().unwrap();
        let expected = &predicted["classes"][best];
        assert_eq!(row["prediction"], *expected, "{name}: {line}");
        let units = units.split('\t').map(|unit| unit.parse::<f64>().unwrap());
        let expected = row["probabilities"].as_array().unwrap().iter();
        let expected = expected.map(|p| f64::from(p.as_f64().unwrap() as f32) * 65_536.0);
        assert!(units.eq(expected), "{name}: {line} is not {row}");
        classes.push(best);
    }
    classes.sort_unstable();
    classes.dedup();
    assert!(classes.len() > 1, "{name} predicts one class");
}

#[test]
fn headers_predict_in_integers_what_boards_predict() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    for (name, data, settings) in models() {
        run(
            &place,
            name,
            &data,
            &format!("{settings} --set train.learning_rate=0.5"),
        );
        let predict = format!("predict {name} --arithmetic integer --data test.csv --json");
        let predicted = place.smolfed(&predict).success().json();
        export(&place, name);
        let printed = compiled_with(&place, name, PROGRAM, &WARNINGS, &features());
        match name {
            "linear" => has_values(&printed, &predicted),
            _ => has_bits(name, &printed, &predicted),
        }
    }
    other_formats_are_refused(&place);
    a_feature_beyond_its_range_is_counted(&place);
}

/// Number of noise images.
const NOISY: usize = 2_000;

fn noise() -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = NOISY * images::ROWS * images::COLUMNS;
    let pixel = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..pixels).map(pixel).collect()
}

/// Image gradients equal those of `smolfed_core::features` in integers. With 15 places, about one
/// in a thousand differs from the rounded `f32` value.
#[test]
fn features_of_images_have_the_integers_of_boards() {
    if !has_compiler() {
        return;
    }
    let place = Place::new();
    images::write(&place, "images", 1, 90, 1);
    images::write(&place, "more", 1, 30, 2);
    let noise = noise();
    let shape = format!("({NOISY}, {}, {})", images::ROWS, images::COLUMNS);
    place.write("noise.npy", npy(&shape, &noise));
    let call = "run --out images --set data={source=\"npy\",path=\"images.npy\",\
                label_path=\"images-labels.npy\",test_path=\"more.npy\",\
                test_label_path=\"more-labels.npy\",devices=9} --set rounds=3 \
                --set features={kind=\"gradients\",cell=3} --set method=dp-fed \
                --set server.smoothing_factor=0 --set simulation.arithmetic=integer \
                --set simulation.integer.features=i16 --set simulation.integer.fraction=15 \
                --set train.learning_rate=4 --set privacy.clip_norm=4 --set privacy.epsilon=100";
    place.smolfed(call).success();
    export(&place, "images");
    let predict = "predict images --arithmetic integer --data noise.npy";
    let predicted = place.smolfed(predict).success().stdout;

    let cells = Cells::new(images::ROWS, images::COLUMNS, 3).unwrap();
    let (gradients, scale) = (Gradients::new(cells), FeatureScale::new::<i16>(15).unwrap());
    let mut features = vec![0_i16; gradients.feature_count()];
    let mut sums = vec![0; features.len()];
    let mut rows = String::new();
    for image in noise.chunks(images::ROWS * images::COLUMNS) {
        let computed = gradients.quantised_into([image], scale, &mut sums, &mut features);
        computed.unwrap();
        let integers: Vec<String> = features.iter().map(i16::to_string).collect();
        rows += &(integers.join(" ") + "\n");
    }
    let printed = compiled_with(&place, "images", OF_FEATURES, &WARNINGS, &rows);
    let numbers =
        |line: &str| -> Vec<f32> { line.split(',').map(|cell| cell.parse().unwrap()).collect() };
    assert_eq!(printed.lines().count(), NOISY);
    for (board, line) in printed.lines().zip(predicted.lines().skip(1)) {
        let (_, predicted) = line.split_once(',').unwrap();
        assert_eq!(numbers(board), numbers(predicted));
    }
}

fn other_formats_are_refused(place: &Place) {
    let refused = place.smolfed("export narrow --format onnx --arithmetic integer --out x");
    refused.refused(2, &["needs `--format c-header`"]);
    run(place, "hidden", KINDS, "--set model.hidden=4");
    let call = "export hidden --format c-header --arithmetic integer --out x.h";
    place
        .smolfed(call)
        .refused(2, &["the hidden layer", "tanh", "no integer form"]);
}

/// Predicts on a value of 3,000,000, many deviations from the mean of the column.
fn a_feature_beyond_its_range_is_counted(place: &Place) {
    let row = "small,\"large, raw\",gap,constant\n5.05,3000000,1,7\n";
    place.write("beyond.csv", row);
    let predicted = place.smolfed("predict narrow --arithmetic integer --data beyond.csv");
    let warning = predicted.success().stderr;
    assert!(warning.contains("1 features are beyond"), "{warning}");
}
