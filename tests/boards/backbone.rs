//! The frozen backbone of `firmware-example/` computes the same values as TensorFlow Lite's
//! kernels, layer by layer, with padded images and 64-bit sums, as in their specification.

use smolfed_core::fixed_point::{FeatureScale, FixedPointSlice, FixedPointWork, local_update};
use smolfed_core::model::{Model, Parametric, Softmax};
use smolfed_core::stream::Stream;
use smolfed_core::train::LocalTraining;
use smolfed_core::wire::crc32::crc32;

#[path = "../../firmware-example/src/backbone.rs"]
pub(crate) mod frozen;

use frozen::convolution::{Convolution, Output};
use frozen::weights::{FIRST, SECOND};
use frozen::{FEATURES, PIXELS, SIDE};

/// Returns the features of an image.
pub(crate) fn features(image: &[i8]) -> Vec<i8> {
    let mut features = vec![0; FEATURES];
    frozen::features_into(image, &mut features);
    features
}

/// Returns the self-test's output for the backbone: checksums of features, and of a head's update.
pub(crate) fn checksums(
    images: &[[i8; PIXELS]],
    classes: &[u16],
    (model, global): (&Softmax<usize, usize>, &[i32]),
    training: &LocalTraining,
    order: &mut Stream,
) -> String {
    let rows: Vec<i8> = images.iter().flat_map(|image| features(image)).collect();
    let samples = FixedPointSlice::new(&rows, classes, FEATURES).unwrap();
    let mut update = vec![0; model.parameter_count()];
    let work = FixedPointWork {
        local: &mut vec![0; update.len()],
        update: &mut update,
        order: &mut vec![0; classes.len()],
        scores: &mut vec![0; model.scratch_count(1)],
        row: &mut [0; FEATURES],
    };
    let scale = FeatureScale::new::<i8>(6).unwrap();
    local_update(model, &samples, scale, global, training, order, work).unwrap();
    let bytes: Vec<u8> = rows.into_iter().map(i8::cast_unsigned).collect();
    let update: Vec<u8> = update.drain(..).flat_map(i32::to_le_bytes).collect();
    format!("backbone 0 {:08x} {:08x}\n", crc32(&bytes), crc32(&update))
}

/// An image by rows and columns, with channels.
type Image = Vec<Vec<Vec<i64>>>;

/// Applies `CONV_2D` with padding `SAME`, the requantisation of each pixel, and a rectifier.
fn convolve<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize>(
    layer: &Convolution<SIDE, INPUTS, OUTPUTS>,
    image: &Image,
) -> Image {
    let zero = i64::from(layer.input_zero);
    let border = vec![vec![zero; INPUTS]; SIDE + 2];
    let mut padded = vec![border.clone()];
    for row in image {
        let side = vec![zero; INPUTS];
        padded.push([vec![side.clone()], row.clone(), vec![side]].concat());
    }
    padded.push(border);
    let place = |row: usize, column: usize, output: usize| {
        let kernel = layer.kernels[output].as_chunks::<3>().0;
        let mut sum = i64::from(layer.outputs[output].bias);
        for (down, right) in (0..9).map(|at| (at / 3, at % 3)) {
            for input in 0..INPUTS {
                let value = padded[row + down][column + right][input] - zero;
                sum += i64::from(kernel[down][right][input]) * value;
            }
        }
        let least = i64::from(layer.output_zero);
        (rescaled(&layer.outputs[output], sum) + least).clamp(least, 127)
    };
    let pixel = |row, column| (0..OUTPUTS).map(|o| place(row, column, o)).collect();
    let row = |row| (0..SIDE).map(|column| pixel(row, column)).collect();
    (0..SIDE).map(row).collect()
}

/// Applies `MultiplyByQuantizedMultiplier`: rounds to 2⁻³¹ and then to 1, half away from zero.
fn rescaled(output: &Output, sum: i64) -> i64 {
    let rounded = |numerator: i64, bits: u32| {
        let magnitude = (numerator.abs() + (1 << bits >> 1)) >> bits;
        magnitude * numerator.signum()
    };
    rounded(
        rounded(sum * i64::from(output.mantissa), 31),
        output.shift.into(),
    )
}

/// Applies `MAX_POOL_2D` with 2 × 2 windows.
fn pool(image: &Image) -> Image {
    let pixel = |rows: &[Vec<Vec<i64>>], column: usize| {
        let values = |channel: usize| {
            let square = rows.iter().flat_map(|row| &row[column..column + 2]);
            square.map(|pixel| pixel[channel]).max().unwrap()
        };
        (0..rows[0][0].len()).map(values).collect::<Vec<_>>()
    };
    let row = |rows: &[Vec<Vec<i64>>]| {
        let columns = (0..rows[0].len()).step_by(2);
        columns.map(|column| pixel(rows, column)).collect()
    };
    image.chunks(2).map(row).collect()
}

fn reference(image: &[i8]) -> Vec<i8> {
    let pixel = |pixel: &i8| vec![i64::from(*pixel)];
    let rows = image
        .chunks(SIDE)
        .map(|row| row.iter().map(pixel).collect());
    let hidden = pool(&convolve(&FIRST, &rows.collect()));
    let features = pool(&convolve(&SECOND, &hidden));
    let values = features.into_iter().flatten().flatten();
    values.map(|value| i8::try_from(value).unwrap()).collect()
}

#[test]
fn the_backbone_is_that_of_the_specification() {
    // Linear congruential generator. Images have all values, pixel values, or two values.
    let mut word = 1_u32;
    let mut draw = |reach: fn(i8) -> i8| -> Vec<i8> {
        let mut next = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            reach((word >> 24) as u8 as i8)
        };
        (0..PIXELS).map(|_| next()).collect()
    };
    let kinds: [fn(i8) -> i8; 3] = [
        |x| x,
        |x| x.rem_euclid(17),
        |x| if x < 0 { -128 } else { 127 },
    ];
    let mut seen = [0; 128];
    for kind in kinds {
        for _ in 0..200 {
            let image = draw(kind);
            let features = features(&image);
            assert_eq!(features, reference(&image), "{image:?}");
            for x in features {
                seen[usize::try_from(x).expect("no feature is negative")] += 1;
            }
        }
    }
    // Saturated, zero, and intermediate values.
    assert!(
        seen.iter().filter(|count| **count > 0).count() > 100,
        "{seen:?}"
    );
}

/// Sums fit 32 bits: the largest sum of all images has the signs of the weights.
#[test]
fn no_sum_overflows() {
    fn bound<const SIDE: usize, const INPUTS: usize, const OUTPUTS: usize>(
        layer: &Convolution<SIDE, INPUTS, OUTPUTS>,
    ) -> i64 {
        let outputs = layer.kernels.iter().zip(&layer.outputs);
        let sums = outputs.map(|(kernel, output)| {
            let weights = kernel.as_flattened().iter();
            let products: i64 = weights.map(|w| i64::from(w.unsigned_abs()) * 255).sum();
            products + i64::from(output.bias.abs())
        });
        sums.max().unwrap()
    }
    assert!(bound(&FIRST).max(bound(&SECOND)) < 1 << 24);
    let multipliers = FIRST.outputs.iter().chain(&SECOND.outputs);
    for Output {
        mantissa, shift, ..
    } in multipliers
    {
        assert!(*mantissa >= 1 << 30 && *shift < 31);
    }
}

/// Missing pixels are 0, and features that do not fit are skipped.
#[test]
fn short_slices_do_not_panic() {
    let mut few = [7; 20];
    frozen::features_into(&[16; 40], &mut few);
    let whole: Vec<i8> = (0..PIXELS).map(|at| if at < 40 { 16 } else { 0 }).collect();
    assert_eq!(few[..16], features(&whole)[..16]);
    assert_eq!(few[16..], [7; 4]);
    frozen::features_into(&[], &mut []);
}
