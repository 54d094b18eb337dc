//! The grids of Rényi orders, and the search over them.
//!
//! The grid is that of TF-Privacy, so figures can be compared with published ones. No order below
//! 1.1 is used: near 1 the conversion divides by a number close to its rounding error.

/// Above this the grid has only integers.
pub(super) const MAX_FRACTIONAL_ORDER: f64 = 10.9;

/// Orders for full participation and Poisson sampling, increasing.
pub(super) fn poisson_orders() -> Vec<f64> {
    let fractional = (11..=109).map(|tenths| f64::from(tenths) / 10.0);
    let integers = (12..=63).map(f64::from);
    let large = [64.0, 72.0, 80.0, 96.0, 128.0, 160.0, 192.0, 256.0, 512.0];
    fractional.chain(integers).chain(large).collect()
}

/// Orders for uniform sampling: the integers from 2 to 256.
pub(super) fn uniform_orders() -> impl Iterator<Item = f64> {
    (2..=256).map(f64::from)
}

/// Returns the smallest value of a quasi-convex `objective` over increasing `orders`, with its
/// order.
///
/// Bisects on the sign of the step between neighbours: about 2·log2(n) evaluations. If the
/// objective were not quasi-convex, the result would still be one of its values, and therefore a
/// bound.
pub(super) fn min_over_orders(orders: &[f64], objective: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut left = 0;
    let mut right = orders.len() - 1;
    let mut best = (f64::INFINITY, f64::INFINITY);
    let mut ask = |index: usize| {
        let order = orders[index];
        let value = objective(order);
        if value < best.0 {
            best = (value, order);
        }
        value
    };
    while left < right {
        let middle = left.midpoint(right);
        if ask(middle) <= ask(middle + 1) {
            right = middle;
        } else {
            left = middle + 1;
        }
    }
    ask(left);
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_the_documented_one() {
        let orders = poisson_orders();
        assert_eq!(orders.len(), 99 + 52 + 9);
        assert!(orders.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(uniform_orders().count(), 255);
    }

    #[test]
    fn the_search_finds_the_minimum_wherever_it_is() {
        let orders = poisson_orders();
        for (index, &target) in orders.iter().enumerate() {
            let (_, found) = min_over_orders(&orders, |order| (order.ln() - target.ln()).abs());
            assert_eq!(found.to_bits(), orders[index].to_bits());
        }
    }
}
