//! In-place reordering of rows.

/// Moves row `order[i]`, of `width` values, to place i, for all i.
///
/// * `order`: each row once.
/// * Memory: one row, and one byte per row.
pub(super) fn reorder<T: Copy>(values: &mut [T], width: usize, order: &[u32]) {
    let mut is_done = vec![false; order.len()];
    let mut first = Vec::with_capacity(width);
    for start in 0..order.len() {
        if is_done[start] {
            continue;
        }
        first.clear();
        first.extend_from_slice(&values[start * width..][..width]);
        // Follows the cycle of `start`: each place gets its row before its own row is overwritten.
        let mut place = start;
        loop {
            is_done[place] = true;
            let row = order[place] as usize;
            if row == start {
                break;
            }
            values.copy_within(row * width..(row + 1) * width, place * width);
            place = row;
        }
        values[place * width..][..width].copy_from_slice(&first);
    }
}

/// Returns the place of each row after [`reorder`].
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, &row) in (0..).zip(order) {
        places[row as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_row_is_where_it_is_to_be(
            order in (0u32..40)
                .prop_flat_map(|rows| Just(Vec::from_iter(0..rows)).prop_shuffle()),
            width in 1usize..4,
        ) {
            let of_row = |row: u32| (0..width as u32).map(move |column| row * 4 + column);
            let mut values: Vec<u32> = (0..order.len() as u32).flat_map(of_row).collect();
            reorder(&mut values, width, &order);
            let expected: Vec<u32> = order.iter().copied().flat_map(of_row).collect();
            prop_assert_eq!(values, expected);
            let found: Vec<u32> = order.iter().map(|row| places(&order)[*row as usize]).collect();
            prop_assert_eq!(found, (0..order.len() as u32).collect::<Vec<u32>>());
        }
    }
}
