//! Vectors give the same bits as single sums.

use std::vec;

use proptest::prelude::*;

use super::super::tests::{bits, sparse_values};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(256)
    })]

    #[test]
    fn vectors_give_the_bits_of_single_sums(
        length in 1usize..15,
        width in 1usize..35,
        hidden in 1usize..35,
        is_first in any::<bool>(),
        salt in any::<u32>(),
    ) {
        let lstm = Lstm { length, width, hidden, is_first };
        let count = 4 * hidden * (width + hidden + 1);
        let parameters = sparse_values(count, salt);
        let parts = lstm.split(&parameters).unwrap();
        let mut panels = vec![f32::NAN; lstm.panels_count()];
        lstm.fill_panels(parts, &mut panels);
        let input = sparse_values(length * width, !salt);
        let mut wide = vec![f32::NAN; length * 4 * hidden];
        lstm.project(&panels, &input, &mut wide);
        let states = sparse_values((length + 1) * hidden, salt ^ 1);
        for (t, wide) in wide.chunks_exact_mut(4 * hidden).enumerate() {
            let state = &states[t * hidden..(t + 1) * hidden];
            lstm.add_recurrent(&panels, state, wide);
            for (gate, bias) in wide.iter_mut().zip(parts.biases) {
                *gate += bias;
            }
            let mut plain = vec![f32::NAN; 4 * hidden];
            lstm.plain_sums(parts, [&input[t * width..(t + 1) * width], state], &mut plain);
            prop_assert_eq!(bits(wide), bits(&plain));
        }

        let derivatives = sparse_values(length * 4 * hidden, salt ^ 2);
        let mut column = vec![f32::NAN; lstm.column_count()];
        let mut sums = vec![0.0; lstm.wide_sums_count()];
        let (mut wide, mut plain) = (vec![f32::NAN; count], vec![0.0; count]);
        for _ in 0..2 {
            lstm.add_sums([&derivatives, &input, &states], &mut column, &mut sums);
            lstm.plain_gradient([&derivatives, &input, &states], &mut plain);
        }
        lstm.write_gradient(&sums, &mut wide);
        prop_assert_eq!(bits(&wide), bits(&plain));
        if !is_first {
            let (mut wide, mut plain) = (input.clone(), input.clone());
            lstm.project_back(&panels, &derivatives, &mut wide);
            lstm.plain_input_derivatives(parts.weights, &derivatives, &mut plain);
            prop_assert_eq!(bits(&wide), bits(&plain));
        }
    }
}
