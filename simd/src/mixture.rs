//! Sums over filtered vectors, and their mixtures: the server's automatic denoising for each
//! parameter.
//!
//! Entries are in single precision, sums in double precision. Entry i of a slice is added in lane i
//! modulo 16, and lanes are added in order, regardless of the machine's vector width.

use pulp::{Arch, NullaryFnOnce};

/// Number of parallel sums.
const LANES: usize = 16;

/// Returns ⟨a, f − g⟩ and ‖f − g‖².
///
/// * Shape: three slices of one length.
#[inline(never)]
#[must_use]
pub fn evidence(a: &[f32], f: &[f32], g: &[f32]) -> [f64; 2] {
    Arch::new().dispatch(Evidence { a, f, g })
}

/// Returns ‖x − y‖².
///
/// * Shape: two slices of one length.
#[must_use]
pub fn square_distance(x: &[f32], y: &[f32]) -> f64 {
    let [_, squares] = evidence(x, x, y);
    squares
}

/// Returns ‖x‖².
#[inline(never)]
#[must_use]
pub fn squares(x: &[f32]) -> f64 {
    Arch::new().dispatch(Squares { x })
}

/// Adds `rate` · `steps` to `sum`, and sets `mean` to `decay` · `mean` + (1 − `decay`) · `sum`.
///
/// * Shape: three slices of one length.
#[inline(never)]
pub fn accumulate(sum: &mut [f32], mean: &mut [f32], steps: &[f32], rate: f32, decay: f32) {
    Arch::new().dispatch(|| {
        for ((v, m), a) in sum.iter_mut().zip(mean).zip(steps) {
            *v += rate * a;
            *m = decay * *m + (1.0 - decay) * *v;
        }
    });
}

/// Adds `weight` · `x` to `sum`, over the common length.
#[inline(never)]
pub fn add_weighted(sum: &mut [f32], x: &[f32], weight: f32) {
    Arch::new().dispatch(|| {
        for (y, x) in sum.iter_mut().zip(x) {
            *y += weight * x;
        }
    });
}

/// Adds the square of each entry of `x` to `sums`, over the common length.
#[inline(never)]
pub fn add_squares(sums: &mut [f64], x: &[f32]) {
    Arch::new().dispatch(|| {
        for (sum, x) in sums.iter_mut().zip(x) {
            *sum += f64::from(*x) * f64::from(*x);
        }
    });
}

/// Writes the products of the entries of `x` and `factors`, over the common length.
#[inline(never)]
pub fn products(out: &mut [f32], x: &[f32], factors: &[f32]) {
    Arch::new().dispatch(|| {
        for ((y, x), factor) in out.iter_mut().zip(x).zip(factors) {
            *y = factor * x;
        }
    });
}

struct Evidence<'a> {
    a: &'a [f32],
    f: &'a [f32],
    g: &'a [f32],
}

impl NullaryFnOnce for Evidence<'_> {
    type Output = [f64; 2];

    #[inline(always)]
    fn call(self) -> [f64; 2] {
        let (mut products, mut squares) = ([0.0; LANES], [0.0; LANES]);
        let (a, a_rest) = self.a.as_chunks::<LANES>();
        let (f, f_rest) = self.f.as_chunks::<LANES>();
        let (g, g_rest) = self.g.as_chunks::<LANES>();
        for ((a, f), g) in a.iter().zip(f).zip(g) {
            for lane in 0..LANES {
                let change = f64::from(f[lane] - g[lane]);
                products[lane] += f64::from(a[lane]) * change;
                squares[lane] += change * change;
            }
        }
        let rest = a_rest.iter().zip(f_rest).zip(g_rest);
        for (lane, ((a, f), g)) in rest.enumerate() {
            let change = f64::from(f - g);
            products[lane] += f64::from(*a) * change;
            squares[lane] += change * change;
        }
        [products, squares].map(|lanes| lanes.iter().sum())
    }
}

struct Squares<'a> {
    x: &'a [f32],
}

impl NullaryFnOnce for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn call(self) -> f64 {
        let mut squares = [0.0; LANES];
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        for chunk in chunks {
            for (sum, x) in squares.iter_mut().zip(chunk) {
                *sum += f64::from(*x) * f64::from(*x);
            }
        }
        for (sum, x) in squares.iter_mut().zip(rest) {
            *sum += f64::from(*x) * f64::from(*x);
        }
        squares.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// The sums equal those of the entries at any width.
        #[test]
        fn sums_are_sums(rows in vec([-1f32..1.0, -1f32..1.0, -1f32..1.0], 0..100)) {
            let [a, f, g] = [0, 1, 2].map(|k| rows.iter().map(|row| row[k]).collect::<Vec<_>>());
            let sums = evidence(&a, &f, &g);
            let [product, square] = rows.iter().fold([0.0; 2], |[product, square], [a, f, g]| {
                let change = f64::from(f - g);
                [product + f64::from(*a) * change, square + change * change]
            });
            prop_assert!((sums[0] - product).abs() < 1e-12);
            prop_assert!((sums[1] - square).abs() < 1e-12);
            let narrow = Arch::Scalar.dispatch(Evidence { a: &a, f: &f, g: &g });
            prop_assert_eq!(sums, narrow);
            prop_assert_eq!(squares(&f), Arch::Scalar.dispatch(Squares { x: &f }));
        }
    }
}
