//! Vectors of channels give the same bits as single sums.

use std::{vec, vec::Vec};

use proptest::prelude::*;

use super::super::tests::{bits, sparse_values};
use super::*;

fn convolutions() -> impl Strategy<Value = Convolution> {
    let pair = |low: usize, high: usize| [low..high, low..high];
    let channels = prop_oneof![1usize..10, 15usize..28];
    let sizes = (pair(1, 11), pair(1, 6), pair(1, 4), pair(0, 5));
    ([channels.clone(), channels], sizes).prop_filter_map(
        "a kernel in its image",
        |([inputs, outputs], (image, kernel, stride, padding))| {
            let result = |axis: usize| {
                let padded = image[axis] + 2 * padding[axis];
                let room = padded.checked_sub(kernel[axis])?;
                (padding[axis] < kernel[axis]).then_some(room / stride[axis] + 1)
            };
            Some(Convolution {
                image,
                inputs,
                result: [result(0)?, result(1)?],
                outputs,
                kernel,
                stride,
                padding,
                is_first: false,
            })
        },
    )
}

/// Results, gradient and derivatives with respect to the input, by the definition.
struct Sums {
    results: Vec<f32>,
    gradient: Vec<f32>,
    below: Vec<f32>,
}

/// Calls with the indices of result, weight and entry of each product, in the order of the sums.
fn each_product(c: &Convolution, mut product: impl FnMut(usize, usize, usize)) {
    let [height, width] = c.kernel;
    for (y, x) in (0..c.result[0]).flat_map(|y| (0..c.result[1]).map(move |x| (y, x))) {
        for (row, column) in (0..height).flat_map(|row| (0..width).map(move |at| (row, at))) {
            let at = [y * c.stride[0] + row, x * c.stride[1] + column];
            let inside = |axis: usize| at[axis].checked_sub(c.padding[axis]);
            let (Some(down), Some(along)) = (inside(0), inside(1)) else {
                continue;
            };
            if down >= c.image[0] || along >= c.image[1] {
                continue;
            }
            let result = (y * c.result[1] + x) * c.outputs;
            let entry = (down * c.image[1] + along) * c.inputs;
            for channel in 0..c.inputs {
                for filter in 0..c.outputs {
                    let weight = ((filter * c.inputs + channel) * height + row) * width + column;
                    product(result + filter, weight, entry + channel);
                }
            }
        }
    }
}

fn by_definition(c: &Convolution, parameters: &[f32], input: &[f32], derivatives: &[f32]) -> Sums {
    let weights = c.outputs * c.patch();
    let mut sums = Sums {
        results: vec![0.0; derivatives.len()],
        gradient: vec![0.0; parameters.len()],
        below: vec![0.0; input.len()],
    };
    each_product(c, |result, weight, entry| {
        sums.results[result] += parameters[weight] * input[entry];
        sums.gradient[weight] += derivatives[result] * input[entry];
        sums.below[entry] += parameters[weight] * derivatives[result];
    });
    for (result, derivative) in derivatives.iter().enumerate() {
        let filter = result % c.outputs;
        sums.results[result] += parameters[weights + filter];
        sums.gradient[weights + filter] += derivative;
    }
    sums
}

/// Calls the same in tiles.
fn in_tiles<const N: usize, const P: usize>(
    c: &Convolution,
    parameters: &[f32],
    input: &[f32],
    derivatives: &[f32],
) -> Sums {
    let (weights, biases) = parameters.split_at(c.outputs * c.patch());
    let mut sums = Sums {
        results: vec![f32::NAN; derivatives.len()],
        gradient: vec![0.0; parameters.len()],
        below: vec![f32::NAN; input.len()],
    };
    c.plain_forward::<N, P>(weights, biases, input, &mut sums.results);
    c.plain_gradient::<N, P>(input, derivatives, &mut sums.gradient);
    c.plain_input_derivatives::<N, P>(weights, derivatives, &mut sums.below);
    sums
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn tiles_give_the_bits_of_single_sums(c in convolutions(), salt in any::<u32>()) {
        let parameters = sparse_values(c.outputs * (c.patch() + 1), salt);
        let input = sparse_values(c.image[0] * c.image[1] * c.inputs, !salt);
        let derivatives = sparse_values(c.outputs * c.result[0] * c.result[1], salt ^ 1);
        let expected = by_definition(&c, &parameters, &input, &derivatives);
        for tiles in [in_tiles::<1, 1>, in_tiles::<4, 2>, in_tiles::<3, 1>, in_tiles::<8, 2>] {
            let found = tiles(&c, &parameters, &input, &derivatives);
            prop_assert_eq!(bits(&found.results), bits(&expected.results), "results");
            prop_assert_eq!(bits(&found.gradient), bits(&expected.gradient), "gradient");
            prop_assert_eq!(bits(&found.below), bits(&expected.below), "derivatives");
        }
    }

    #[test]
    fn vectors_give_the_bits_of_single_sums(
        mut convolution in convolutions(),
        is_first in any::<bool>(),
        salt in any::<u32>(),
    ) {
        convolution.is_first = is_first;
        let (c, area) = (convolution, convolution.image[0] * convolution.image[1]);
        let weight_count = c.outputs * c.patch();
        let parameters = sparse_values(weight_count + c.outputs, salt);
        let (weights, biases) = parameters.split_at(weight_count);
        let results = c.outputs * c.result[0] * c.result[1];
        let mut sums = vec![0.0; c.wide_sums_count()];
        let mut panels = vec![f32::NAN; c.panels_count()];
        let mut work = vec![f32::NAN; c.frames_count()];
        c.fill_panels(&parameters, &mut panels);
        let mut plain_gradient = vec![0.0; parameters.len()];
        for sample in 0..2 {
            let input = sparse_values(area * c.inputs, salt ^ sample);
            let mut plain = vec![f32::NAN; results];
            let mut wide = plain.clone();
            c.plain_forward::<TILE, PAIR>(weights, biases, &input, &mut plain);
            c.wide_forward(Forward {
                parameters: &parameters,
                prepared: &panels,
                input: &input,
                work: &mut work,
                region: &mut wide,
            });
            prop_assert_eq!(bits(&wide), bits(&plain), "results");

            let mut derivatives = sparse_values(results, !salt ^ sample);
            let mut plain = vec![f32::NAN; input.len()];
            c.plain_gradient::<TILE, PAIR>(&input, &derivatives, &mut plain_gradient);
            c.plain_input_derivatives::<TILE, PAIR>(weights, &derivatives, &mut plain);
            let mut wide = vec![f32::NAN; input.len()];
            c.wide_backward(Backward {
                parameters: &parameters,
                prepared: &panels,
                input: &input,
                region: &mut [],
                derivatives: &mut derivatives,
                work: &mut work,
                gradient: &mut [],
                sums: &mut sums,
                input_derivatives: (!is_first).then_some(&mut wide),
            });
            if !is_first {
                prop_assert_eq!(bits(&wide), bits(&plain), "derivatives");
            }
        }
        let mut gradient = vec![f32::NAN; parameters.len()];
        c.write_gradient(&sums, &mut gradient);
        prop_assert_eq!(bits(&gradient), bits(&plain_gradient), "gradient");
    }
}
