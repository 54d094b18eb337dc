#!/usr/bin/env python3
"""Signed model files (docs/protocol-delivery.md), with Ed25519 as RFC 8032, section 5.1, defines it.

    python3 tests/vectors/delivery.py > tests/vectors/delivery.json

Softmax regression with 20 features and 3 classes, version 3, whose parameters are steps of 2^-10:
i - 21 for i from 0 to 62. The secret seed is 32 bytes of 1.
"""

import hashlib
import json
import struct

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def add(a, b):
    """Add two points of the twisted Edwards curve, in affine coordinates."""
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2
    x = (x1 * y2 + x2 * y1) * pow(1 + product, -1, P)
    y = (y1 * y2 + x1 * x2) * pow(1 - product, -1, P)
    return x % P, y % P


def multiply(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def base():
    """Return the base point: y = 4/5, with even x."""
    y = 4 * pow(5, -1, P) % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (P - x if x & 1 else x), y


def encoded(point):
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def number(*parts):
    return int.from_bytes(hashlib.sha512(b"".join(parts)).digest(), "little")


def keys(seed):
    digest = hashlib.sha512(seed).digest()
    scalar = int.from_bytes(digest[:32], "little") & (2**254 - 8) | 2**254
    return scalar, digest[32:], encoded(multiply(scalar, base()))


def sign(seed, message):
    scalar, prefix, public = keys(seed)
    r = number(prefix, message) % ORDER
    point = encoded(multiply(r, base()))
    s = (r + number(point, public, message) * scalar) % ORDER
    return point + s.to_bytes(32, "little")


SEED = b"\1" * 32
SHAPE = struct.pack("<BHH", 3, 20, 3)
STEPS = [i - 21 for i in range(63)]


def file(encoding, parameters):
    header = b"SFM1" + struct.pack("<IIBBBB", 3, len(STEPS), encoding, len(SHAPE), 0, 0)
    content = (header + SHAPE).ljust(128, b"\0") + parameters
    signed = b"smolfed model file 1\0" + hashlib.sha512(content).digest()
    return (content + sign(SEED, signed)).hex()


print(
    json.dumps(
        {
            "public": keys(SEED)[2].hex(),
            "words": file(0, struct.pack("<63f", *(step / 2**10 for step in STEPS))),
            "short": file(1 + 10, struct.pack("<63h", *STEPS)),
        },
        indent=1,
    )
)
