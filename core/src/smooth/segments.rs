//! Long vectors: twelve interleaved chains, and one pass over memory.
//!
//! A recursion is one chain of dependent operations, on which a desktop processor mostly waits. But
//! it forgets its start after `reach` steps, so it can be entered anywhere: a warm-up over the
//! `reach` elements before (forward) or after (backward) gives the running value there to within
//! half of a rounding error. The vector is cut twice:
//!
//! ```text
//! vector    block | block | ... | block | tail          two blocks fit the cache, the tail is < 48
//! block     segment 0 | segment 1 | ... | segment 11    twelve chains, advanced together
//! segment   row | row | ... | row                       four elements each
//! ```
//!
//! *One pass over memory.* The backward pass of a block starts from a weighted sum of the first
//! forward values of the next block, so it can follow as soon as that one has run forward:
//! forward 0, forward 1, backward 0, forward 2, backward 1, .. Both touch a block while it is in
//! the cache. Across the seam only two scalars matter: the forward pass starts from the last
//! elements of the vector, and block 0's weighted sum is kept for the end of the tail.
//!
//! *Vector registers.* Four segments advance together as the four lanes of a register. The rows of
//! equal place in four segments form a 4 x 4 tile: element t of segment l is at `[l][t]`. The
//! forward pass transposes the tile so that a register holds one step of four chains, and leaves it
//! transposed. The backward pass reads the transposed tile and transposes it back. The arithmetic
//! is the same as in `recursion` except for the warm-ups, whatever the width of the machine.

use core::iter;
use core::slice::SliceIndex;

use super::recursion::Recursion;

/// Longest vector for the plain passes. A microcontroller gains nothing from the chains and pays
/// for the warm-ups. Its vectors have up to this length, for which a desktop takes at most 5 us.
pub(super) const MAX_PLAIN: usize = 1_024;

/// Chains advanced together: three registers hide most of the 8 cycles that a step takes on x86-64,
/// and the addresses of twelve segments still fit its integer registers.
const SEGMENTS: usize = 12;

/// Elements in a row, lanes in a register.
const LANES: usize = 4;

/// Longest segment in rows. Two blocks of `48 * 341` floats take 128 KiB of second-level cache. An
/// odd number keeps the segments from competing for the same cache sets.
const MAX_ROWS: usize = 341;

/// Four elements: neighbours in memory, or one step of four chains.
type Row = [f32; LANES];

/// Four rows at the same position in four segments, as in memory or transposed.
type Tile = [Row; LANES];

/// The running values of all chains.
type Chains = [Row; SEGMENTS / LANES];

/// Partition of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SegmentPlan {
    /// Number of blocks, 1 or more.
    blocks: usize,
    /// Rows of a segment in every block.
    rows: usize,
    /// Blocks whose segments have one row more: the first ones.
    longer: usize,
    /// Rows of a warm-up, at most `rows`.
    warm_up: usize,
}

impl SegmentPlan {
    /// Cuts `d` elements. Returns `None` if the vector is short, or its segments would be shorter
    /// than a warm-up.
    pub fn new(d: usize, reach: usize) -> Option<Self> {
        let rows = d / (SEGMENTS * LANES);
        let blocks = rows.div_ceil(MAX_ROWS).max(1);
        let plan = Self {
            blocks,
            rows: rows / blocks,
            longer: rows % blocks,
            warm_up: reach.div_ceil(LANES),
        };
        (d > MAX_PLAIN && plan.warm_up <= plan.rows).then_some(plan)
    }

    /// Returns the number of elements in block `index`.
    fn block_length(&self, index: usize) -> usize {
        (self.rows + usize::from(index < self.longer)) * SEGMENTS * LANES
    }
}

/// Runs both passes over a whole tensor, cut by `plan`.
pub(super) fn apply(recursion: &Recursion, v: &mut [f32], plan: SegmentPlan) {
    let passes = Passes {
        gain: recursion.gain,
        decay: recursion.decay,
        warm_up: plan.warm_up,
    };
    let unseen = v.len().saturating_sub(recursion.reach);
    let mut y = recursion.weigh(v.iter().skip(unseen).map(|x| recursion.gain * x));

    let (mut block, mut rest) = v.split_at_mut(plan.block_length(0).min(v.len()));
    let mut heads = passes.forward(block, &mut y);
    let seam = heads[0][0];
    for index in 1..plan.blocks {
        let (next, after) = rest.split_at_mut(plan.block_length(index).min(rest.len()));
        let next_heads = passes.forward(next, &mut y);
        passes.backward(block, heads, next_heads[0][0]);
        (block, rest, heads) = (next, after, next_heads);
    }
    recursion.forward(rest, y);
    let u = recursion.backward(rest, seam);
    passes.backward(block, heads, u);
}

/// The two passes over one block.
///
/// The loops are separate functions, not inlined: the compiler keeps four chains in one register
/// only if it does not see how the chains are shifted between loops.
struct Passes {
    gain: f32,
    decay: f32,
    warm_up: usize,
}

impl Passes {
    /// Runs a block forward from `y`, the value before it, and stores the value at its end in `y`.
    /// Leaves the tiles transposed, and returns the heads: the value that each segment passes to
    /// the backward pass of the segment before it.
    fn forward(&self, block: &mut [f32], y: &mut f32) -> Chains {
        let (rows, _) = block.as_chunks_mut();
        let ends = self.ends(rows);
        let mut chains = gather(iter::once(*y).chain(ends.into_iter().flatten()));
        self.run_forward(rows, &mut chains);
        *y = chains[2][LANES - 1];
        self.heads(rows)
    }

    /// Runs a block backward from `u`, the value after it, and transposes the tiles back.
    fn backward(&self, block: &mut [f32], heads: Chains, u: f32) {
        let (rows, _) = block.as_chunks_mut();
        let mut chains = gather(heads.into_iter().flatten().skip(1).chain(iter::once(u)));
        self.run_backward(rows, &mut chains);
    }

    /// Returns the forward value at the end of each segment, from its last rows.
    #[inline(never)]
    fn ends(&self, rows: &[Row]) -> Chains {
        let [mut low, mut mid, mut high] = Chains::default();
        let unseen = (rows.len() / SEGMENTS).saturating_sub(self.warm_up);
        for (a, b, c) in tiles(rows, unseen..) {
            self.forward_tile(&mut low, a);
            self.forward_tile(&mut mid, b);
            self.forward_tile(&mut high, c);
        }
        [low, mid, high]
    }

    #[inline(never)]
    fn run_forward(&self, rows: &mut [Row], chains: &mut Chains) {
        let [mut low, mut mid, mut high] = *chains;
        for (a, b, c) in tiles_mut(rows) {
            store(self.forward_tile(&mut low, load(&a)), a);
            store(self.forward_tile(&mut mid, load(&b)), b);
            store(self.forward_tile(&mut high, load(&c)), c);
        }
        *chains = [low, mid, high];
    }

    /// Returns the backward value at the start of each segment, from its first rows, transposed.
    #[inline(never)]
    fn heads(&self, rows: &[Row]) -> Chains {
        let [mut low, mut mid, mut high] = Chains::default();
        for (a, b, c) in tiles(rows, ..self.warm_up).rev() {
            self.backward_tile(&mut low, a);
            self.backward_tile(&mut mid, b);
            self.backward_tile(&mut high, c);
        }
        [low, mid, high]
    }

    #[inline(never)]
    fn run_backward(&self, rows: &mut [Row], chains: &mut Chains) {
        let [mut low, mut mid, mut high] = *chains;
        for (a, b, c) in tiles_mut(rows).rev() {
            store(transpose(self.backward_tile(&mut low, load(&a))), a);
            store(transpose(self.backward_tile(&mut mid, load(&b))), b);
            store(transpose(self.backward_tile(&mut high, load(&c))), c);
        }
        *chains = [low, mid, high];
    }

    /// Runs four steps of four chains on a tile as in memory. The result is transposed.
    #[inline(always)]
    fn forward_tile(&self, y: &mut Row, tile: Tile) -> Tile {
        let [a, b, c, d] = transpose(tile);
        [
            self.forward_step(y, a),
            self.forward_step(y, b),
            self.forward_step(y, c),
            self.forward_step(y, d),
        ]
    }

    /// Runs four backward steps of four chains on a transposed tile. The result is also transposed.
    #[inline(always)]
    fn backward_tile(&self, u: &mut Row, [a, b, c, d]: Tile) -> Tile {
        let d = self.backward_step(u, d);
        let c = self.backward_step(u, c);
        let b = self.backward_step(u, b);
        [self.backward_step(u, a), b, c, d]
    }

    #[inline(always)]
    fn forward_step(&self, y: &mut Row, v: Row) -> Row {
        for lane in 0..LANES {
            y[lane] = self.gain * v[lane] + self.decay * y[lane];
        }
        *y
    }

    #[inline(always)]
    fn backward_step(&self, u: &mut Row, y: Row) -> Row {
        for lane in 0..LANES {
            u[lane] = y[lane] + self.decay * u[lane];
        }
        *u
    }
}

/// Collects running values for the segments in order.
fn gather(values: impl Iterator<Item = f32>) -> Chains {
    let mut chains = Chains::default();
    for (chain, value) in chains.as_flattened_mut().iter_mut().zip(values) {
        *chain = value;
    }
    chains
}

/// Returns the tiles at some places of the segments: of the four lower, middle and upper segments,
/// side by side.
#[inline(always)]
fn tiles<'a>(
    rows: &'a [Row],
    places: impl SliceIndex<[Row], Output = [Row]> + Clone,
) -> impl DoubleEndedIterator<Item = (Tile, Tile, Tile)> {
    let mut segments = rows.chunks_exact((rows.len() / SEGMENTS).max(1));
    let mut next = || {
        let segment: &'a [Row] = segments.next().unwrap_or_default();
        segment.get(places.clone()).unwrap_or_default().iter()
    };
    let mut quad = || {
        let rows = next().zip(next()).zip(next()).zip(next());
        rows.map(|(((a, b), c), d)| [*a, *b, *c, *d])
    };
    quad()
        .zip(quad())
        .zip(quad())
        .map(|((low, mid), high)| (low, mid, high))
}

/// A tile in its place.
type TileMut<'a> = [&'a mut Row; LANES];

/// Returns all tiles of a block, mutably.
#[inline(always)]
fn tiles_mut(
    rows: &mut [Row],
) -> impl DoubleEndedIterator<Item = (TileMut<'_>, TileMut<'_>, TileMut<'_>)> {
    let mut segments = rows.chunks_exact_mut((rows.len() / SEGMENTS).max(1));
    let mut next = || segments.next().unwrap_or_default().iter_mut();
    let mut quad = || {
        let rows = next().zip(next()).zip(next()).zip(next());
        rows.map(|(((a, b), c), d)| [a, b, c, d])
    };
    quad()
        .zip(quad())
        .zip(quad())
        .map(|((low, mid), high)| (low, mid, high))
}

#[inline(always)]
fn load([a, b, c, d]: &TileMut<'_>) -> Tile {
    [**a, **b, **c, **d]
}

#[inline(always)]
fn store(rows: Tile, [a, b, c, d]: TileMut<'_>) {
    [*a, *b, *c, *d] = rows;
}

/// Converts four elements of each of four chains to four steps of all of them, and back.
#[inline(always)]
fn transpose([a, b, c, d]: Tile) -> Tile {
    [
        [a[0], b[0], c[0], d[0]],
        [a[1], b[1], c[1], d[1]],
        [a[2], b[2], c[2], d[2]],
        [a[3], b[3], c[3], d[3]],
    ]
}
