#!/usr/bin/env python3
"""Writes discrete_gaussian.json: the samples of smolfed_core::noise, computed independently.

Uses only Python integers and fractions, without table search or bounds. Compares uniform reals
with probabilities in exact arithmetic. Usage: discrete_gaussian.py [values per case] > FILE
"""

import json
import struct
import sys
from fractions import Fraction
from math import factorial

MASK = 0xFFFFFFFF
STRIP_0_UNITS = 204_000_000


def chacha20_words(key, nonce):
    """Key stream of RFC 8439 from block 0, as 32-bit little-endian words."""

    def quarter(s, a, b, c, d):
        for x, y, z, shift in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) & MASK
            s[z] ^= s[x]
            s[z] = (s[z] << shift | s[z] >> (32 - shift)) & MASK

    counter = 0
    while True:
        start = [*struct.unpack("<12I", b"expand 32-byte k" + key), counter, *nonce]
        state = start[:]
        for _ in range(10):
            for i in range(4):
                quarter(state, i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(state, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        yield from ((x + y) & MASK for x, y in zip(state, start))
        counter += 1


def coin(words, probability):
    """Whether U < probability. Draws U in words of 32 bits until the outcome is decided."""
    low, scale = 0, Fraction(1)
    while True:
        scale /= 2**32
        low += next(words) * scale
        if low + scale <= probability:
            return True
        if low >= probability:
            return False


def exp_minus(words, gamma):
    """Algorithm 1 of Canonne, Kamath, Steinke 2020, for any gamma >= 0."""
    while gamma >= 1:
        if not exp_minus_below_one(words, None):
            return False
        gamma -= 1
    return exp_minus_below_one(words, gamma)


def exp_minus_below_one(words, gamma):
    """The same algorithm for gamma <= 1. None means 1, for which the library draws no word."""
    k = 1
    while (gamma is None or coin(words, gamma)) and (k == 1 or coin(words, Fraction(1, k))):
        k += 1
    return k % 2 == 1


def strip_units():
    """Units of each strip without and with its window, rounded down and up step by step."""
    lower, upper = [STRIP_0_UNITS], [STRIP_0_UNITS]
    for k in range(1, 64):
        y = Fraction(2 * k - 1, 128)
        lower.append(int(lower[-1] * sum((-y) ** i / factorial(i) for i in range(8))))
        upper.append(-int(-upper[-1] * sum((-y) ** i / factorial(i) for i in range(9)) // 1))
    return lower, upper


LOWER, UPPER = strip_units()


def strip(units):
    """The strip of a word of 31 bits. None restarts the sampler."""
    for k, width in enumerate(LOWER):
        if units < width:
            return k
        units -= width
    if units <= sum(UPPER) - sum(LOWER):
        raise SystemExit("a window, or the unit beyond the table: choose another seed")
    return None


def sample(words, sigma):
    width = -(-sigma // 8)
    while True:
        word = next(words)
        k, negative = strip(word >> 1), word & 1
        if k is None:
            continue
        offset = 0
        while width > 1:
            assert width < 2**32
            product = next(words) * width
            offset = product >> 32
            if product & MASK >= 2**32 % width:
                break
        x = k * width + offset
        gamma = Fraction(x * x) / (2 * sigma * sigma) - Fraction(k * k, 128)
        if not (negative and x == 0) and exp_minus(words, gamma):
            return -x if negative else x


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    cases = []
    for numerator, denominator in ((1, 2), (37, 10), (8_000, 1), (11 << 20, 10), (1 << 34, 3)):
        seed, purpose, round_, device = 20_200_400_010, 3, 1, len(cases)
        key = struct.pack("<Q", seed) + b"smolfed simulation seed "
        words = chacha20_words(key, (purpose, round_, device))
        values = [sample(words, Fraction(numerator, denominator)) for _ in range(count)]
        cases.append({
            "seed": seed, "purpose": purpose, "round": round_, "device": device,
            "numerator": numerator, "denominator": denominator, "values": values,
        })
    print(json.dumps({
        "description": "First values of DiscreteGaussian::new(numerator, denominator) on the "
        "stream (purpose, round, device) of the root from seed.",
        "source": "discrete_gaussian.py beside this file, an independent reading in fractions.",
        "version": 1,
        "cases": cases,
    }, indent=1))


if __name__ == "__main__":
    main()
