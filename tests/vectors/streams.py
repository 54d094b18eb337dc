#!/usr/bin/env python3
"""Writes streams.json: random streams from names (docs/same-bits.md), implemented independently.

Usage: streams.py > streams.json
"""

import json

from discrete_gaussian import chacha20_words

SEED_DOMAIN = b"smolfed simulation seed "


def below(words, bound):
    """Uniform integer below bound: upper half of word * bound. Skips words of the last stretch."""
    while True:
        product = next(words) * bound
        if product % 2**32 >= 2**32 % bound:
            return product >> 32


def shuffled(words, count):
    items = list(range(count))
    for last in range(count - 1, 0, -1):
        other = below(words, last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def case(seed, purpose, round, device):
    key = seed.to_bytes(8, "little") + SEED_DOMAIN
    name = (purpose, round, device)
    words = chacha20_words(key, name)
    shuffle = shuffled(chacha20_words(key, name), 10)
    return {
        "seed": seed,
        "purpose": purpose,
        "round": round,
        "device": device,
        "words": [next(words) for _ in range(20)],
        "shuffle_of_10": shuffle,
    }


names = [(0, 1, 0, 0), (1, 2, 3, 4), (2**63 - 1, 3, 2**32 - 1, 0), (7, 4, 0, 2**32 - 1), (7, 7, 1, 1)]
print(
    json.dumps(
        {
            "description": "First 32-bit words of the stream (purpose, round, device) under the root "
            "of a seed, and the order that shuffling 0..10 takes from its beginning.",
            "source": "streams.py beside this file, from RFC 8439 and docs/same-bits.md.",
            "version": 1,
            "cases": [case(*name) for name in names],
        },
        indent=1,
    )
)
