//! Vectors of channels give the bits of one sum after the other.

use std::vec;

use proptest::prelude::*;

use super::super::tests::{bits, sparse_values};
use super::*;

fn convolutions() -> impl Strategy<Value = Convolution> {
    let pair = |low: usize, high: usize| [low..high, low..high];
    let channels = prop_oneof![1usize..4, 6usize..10, 15usize..28];
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

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

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
            c.plain_forward(weights, biases, &input, &mut plain);
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
            c.plain_gradient(&input, &derivatives, &mut plain_gradient);
            c.plain_input_derivatives(weights, &derivatives, &mut plain);
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
