//! The rounds of ChaCha20 (RFC 8439, section 2.3.1), without the final addition.

/// Words of a block.
pub(super) const BLOCK: usize = 16;

/// Runs a quarter round (section 2.1) on four words of the state, by index.
macro_rules! quarter {
    ($x:ident: $a:literal $b:literal $c:literal $d:literal) => {
        $x[$a] = $x[$a].wrapping_add($x[$b]);
        $x[$d] = ($x[$d] ^ $x[$a]).rotate_left(16);
        $x[$c] = $x[$c].wrapping_add($x[$d]);
        $x[$b] = ($x[$b] ^ $x[$c]).rotate_left(12);
        $x[$a] = $x[$a].wrapping_add($x[$b]);
        $x[$d] = ($x[$d] ^ $x[$a]).rotate_left(8);
        $x[$c] = $x[$c].wrapping_add($x[$d]);
        $x[$b] = ($x[$b] ^ $x[$c]).rotate_left(7);
    };
}

/// Runs the ten double rounds in place, without a second block on the stack of every function that
/// draws.
#[inline(never)]
pub(super) fn rounds(x: &mut [u32; BLOCK]) {
    for _ in 0..10 {
        quarter!(x: 0 4 8 12);
        quarter!(x: 1 5 9 13);
        quarter!(x: 2 6 10 14);
        quarter!(x: 3 7 11 15);
        quarter!(x: 0 5 10 15);
        quarter!(x: 1 6 11 12);
        quarter!(x: 2 7 8 13);
        quarter!(x: 3 4 9 14);
    }
}
