//! Poly1305 (RFC 8439, section 2.5): the one-time authenticator, in five limbs of 26 bits.
//!
//! All products are of 32 bits by 32 bits, and there is no branch and no address that depends on a
//! secret. The time of a product does not depend on its factors on a Cortex-M0, M4 and M33 and on
//! the RISC-V cores that we know; on a Cortex-M3 `umull` is faster for small ones (its technical
//! reference manual, table 3-1), and what that shows is of a key that is used once.

/// Bits of a limb.
const LIMB: u32 = 26;
const MASK: u32 = (1 << LIMB) - 1;

/// The state between two blocks. The key belongs to one message: what is left of it on the stack
/// forges nothing but a frame whose number was used.
pub(crate) struct Poly1305 {
    /// Limbs 1 to 4 of r times 5, then limbs 0 to 4: what a limb of the product takes is in a row,
    /// from the last to the first, since 2¹³⁰ = 5 modulo the prime.
    factors: [u32; 9],
    sum: [u32; 5],
    pad: [u32; 4],
}

impl Poly1305 {
    /// Before the first block; r is clamped here (section 2.5.1).
    pub(crate) const fn new([r0, r1, r2, r3, pad @ ..]: [u32; 8]) -> Self {
        let [a, b, c, d, e] = limbs(
            [
                r0 & 0x0fff_ffff,
                r1 & 0x0fff_fffc,
                r2 & 0x0fff_fffc,
                r3 & 0x0fff_fffc,
            ],
            0,
        );
        Self {
            factors: [5 * b, 5 * c, 5 * d, 5 * e, a, b, c, d, e],
            sum: [0; 5],
            pad,
        }
    }

    /// Takes a block. `end` is the bit behind its sixteen bytes: 1, but for a shorter last block of
    /// a message, which has it within.
    #[inline(never)]
    pub(crate) fn block(&mut self, block: &[u8; 16], end: u32) {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        // Below 2²⁶ + 2⁷ from the last block, and 2²⁶ more.
        for (sum, limb) in self.sum.iter_mut().zip(limbs(words, end)) {
            *sum += limb;
        }
        let mut product = [0_u64; 5];
        for (limb, factors) in product.iter_mut().zip(self.factors.windows(5)) {
            // Five products below 2²⁷·²⁹ 2: no overflow.
            for (sum, factor) in self.sum.iter().zip(factors.iter().rev()) {
                *limb += u64::from(*sum) * u64::from(*factor);
            }
        }
        let mut carry = 0;
        for (sum, limb) in self.sum.iter_mut().zip(product) {
            let limb = limb + carry;
            *sum = limb as u32 & MASK;
            carry = limb >> LIMB;
        }
        // The highest limb has no factor of 5 in it: its carry is below 2³⁰.
        let [first, second, ..] = &mut self.sum;
        *first += 5 * carry as u32;
        *second += *first >> LIMB;
        *first &= MASK;
    }

    /// Takes bytes, with zeros up to a whole block (section 2.8).
    pub(crate) fn padded(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(16) {
            let mut block = [0; 16];
            for (place, byte) in block.iter_mut().zip(piece) {
                *place = *byte;
            }
            self.block(&block, 1);
        }
    }

    /// The tag.
    #[inline(never)]
    pub(crate) fn finish(&mut self) -> [u8; 16] {
        // Carried twice, each limb is below 2²⁶; the sum is then below 2¹³⁰.
        for _ in 0..2 {
            let mut carry = 0;
            for sum in &mut self.sum {
                *sum += carry;
                carry = *sum >> LIMB;
                *sum &= MASK;
            }
            let [first, ..] = &mut self.sum;
            *first += 5 * carry;
        }
        // The sum plus 5: it reaches 2¹³⁰ if the sum is at least the prime, 2¹³⁰ − 5.
        let mut carry = 5;
        let reduced = self.sum.map(|sum| {
            carry += sum;
            let limb = carry & MASK;
            carry >>= LIMB;
            limb
        });
        let mask = carry.wrapping_neg();
        for (sum, reduced) in self.sum.iter_mut().zip(reduced) {
            *sum ^= (*sum ^ reduced) & mask;
        }
        let [a, b, c, d, e] = self.sum;
        let words = [
            a | b << 26,
            b >> 6 | c << 20,
            c >> 12 | d << 14,
            d >> 18 | e << 8,
        ];
        let mut tag = [0; 16];
        let mut carry = 0;
        let places = tag.as_chunks_mut().0.iter_mut();
        for ((place, word), pad) in places.zip(words).zip(self.pad) {
            carry += u64::from(word) + u64::from(pad);
            *place = (carry as u32).to_le_bytes();
            carry >>= 32;
        }
        tag
    }
}

/// Four words and a bit behind them, in limbs of 26 bits.
const fn limbs([a, b, c, d]: [u32; 4], end: u32) -> [u32; 5] {
    [
        a & MASK,
        (a >> 26 | b << 6) & MASK,
        (b >> 20 | c << 12) & MASK,
        (c >> 14 | d << 18) & MASK,
        d >> 8 | end << 24,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let digit = |byte: &u8| (*byte as char).to_digit(16).unwrap() as u8;
        let pairs = digits.chunks(2);
        pairs
            .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
            .collect()
    }

    /// The tag of a message of any length.
    fn tag(key: &[u8], message: &[u8]) -> Vec<u8> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
        let words: Vec<u32> = key.chunks(4).map(word).collect();
        let mut state = Poly1305::new(words.try_into().unwrap());
        for piece in message.chunks(16) {
            let mut block = [0; 16];
            block[..piece.len()].copy_from_slice(piece);
            if let Some(end) = block.get_mut(piece.len()) {
                *end = 1;
            }
            state.block(&block, u32::from(piece.len() == 16));
        }
        state.finish().to_vec()
    }

    const IETF: &[u8] =
        b"Any submission to the IETF intended by the Contributor for publication as \
        all or part of an IETF Internet-Draft or RFC and any statement made within the context of \
        an IETF activity is considered an \"IETF Contribution\". Such statements include oral \
        statements in IETF sessions, as well as written and electronic communications made at any \
        time or place, which are addressed to";

    const JABBERWOCKY: &[u8] = b"'Twas brillig, and the slithy toves\nDid gyre and gimble in the \
        wabe:\nAll mimsy were the borogoves,\nAnd the mome raths outgrabe.";

    /// RFC 8439, section 2.5.2 and appendix A.3, vectors 1 to 11.
    #[test]
    fn tags_are_those_of_the_rfc() {
        let zeros = "00000000000000000000000000000000";
        let ones = "ffffffffffffffffffffffffffffffff";
        let (two, one) = (
            "02000000000000000000000000000000",
            "01000000000000000000000000000000",
        );
        let r = "36e5f6b5c5e06070f0efca96227a863e";
        let four = "01000000000000000400000000000000";
        let check = |key: [&str; 2], message: &[u8], expected: &str| {
            let found = tag(&hex(&key.concat()), message);
            assert_eq!(found, hex(expected), "{key:?}");
        };
        let parts = |parts: &[&str]| hex(&parts.concat());
        check(
            [
                "85d6be7857556d337f4452fe42d506a8",
                "0103808afb0db2fd4abff6af4149f51b",
            ],
            b"Cryptographic Forum Research Group",
            "a8061dc1305136c6c22b8baf0c0127a9",
        );
        check([zeros, zeros], &[0; 64], zeros);
        check([zeros, r], IETF, r);
        check([r, zeros], IETF, "f3477e7cd95417af89a6b8794c310cf0");
        check(
            [
                "1c9240a5eb55d38af333888604f6b5f0",
                "473917c1402b80099dca5cbc207075c0",
            ],
            JABBERWOCKY,
            "4541669a7eaaee61e708dc7cbcc5eb62",
        );
        check([two, zeros], &hex(ones), "03000000000000000000000000000000");
        check([two, ones], &hex(two), "03000000000000000000000000000000");
        let message = parts(&[ones, "f0ffffffffffffffffffffffffffffff", "11", &zeros[2..]]);
        check([one, zeros], &message, "05000000000000000000000000000000");
        let message = parts(&[
            ones,
            "fbfefefefefefefefefefefefefefefe",
            "01010101010101010101010101010101",
        ]);
        check([one, zeros], &message, zeros);
        let message = hex("fdffffffffffffffffffffffffffffff");
        check([two, zeros], &message, "faffffffffffffffffffffffffffffff");
        let first = "e33594d7505e43b900000000000000003394d7505e4379cd01000000000000000000000000";
        let first = parts(&[
            first,
            "000000000000000000000001000000000000000000000000000000",
        ]);
        let tag = "14000000000000005500000000000000";
        check([four, zeros], &first[..64], tag);
        check(
            [four, zeros],
            &first[..48],
            "13000000000000000000000000000000",
        );
    }
}
