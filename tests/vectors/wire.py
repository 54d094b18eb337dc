#!/usr/bin/env python3
"""Writes wire.json: frames as docs/protocol.md describes them, read independently.

Usage: wire.py > wire.json
"""

import hashlib
import json
import struct
import zlib

TO_DEVICE, TO_COORDINATOR = 1, 2
DEVICE_KEY = bytes(range(32))
DEVICE = 42
DEVICE_NONCE = bytes(range(100, 116))
COORDINATOR_NONCE = bytes(range(200, 216))
LEDGER_NONCE = bytes(range(50, 66))


def cobs(raw):
    """Cheshire, Baker 1999; frames are shorter than 255 bytes."""
    assert len(raw) < 255
    return b"".join(bytes([len(piece) + 1]) + piece for piece in raw.split(b"\0")) + b"\0"


def frame(key, direction, kind, body, round=0, sequence=0, version=3):
    tagged = struct.pack("<BBII", version, kind, round, sequence) + body
    tag = hashlib.blake2s(bytes([direction]) + tagged, key=key, digest_size=16).digest()
    return cobs(tagged + tag + struct.pack("<I", zlib.crc32(tagged + tag)))


def session_key():
    text = b"smolfed session" + struct.pack("<I", DEVICE) + DEVICE_NONCE + COORDINATOR_NONCE
    return hashlib.blake2s(text, key=DEVICE_KEY, digest_size=32).digest()


def ledger_fingerprint():
    text = b"smolfed fingerprint" + struct.pack("<I", DEVICE) + LEDGER_NONCE
    return hashlib.blake2s(text, key=DEVICE_KEY, digest_size=8).digest()


def root_of_streams(root, nonce):
    return hashlib.blake2s(b"smolfed streams" + nonce, key=root, digest_size=32).digest()


def packed(values, width):
    number = sum((value % 2**width) << (i * width) for i, value in enumerate(values))
    return number.to_bytes((len(values) * width + 7) // 8, "little")


def record(code, *numbers):
    """The shape of a sample or a layer, in the encoding of a network."""
    return struct.pack("<B7H", code, *numbers, *[0] * (7 - len(numbers)))


def network_digest(*records):
    text = b"smolfed network" + b"".join(records)
    return hashlib.blake2s(text, key=bytes(32), digest_size=32).digest()[:8]


# Windows of six channels of 50 samples: 8 kernels of 5, the larger of each two, 16 kernels of 5, the
# mean of each channel, 7 classes.
CONVOLUTIONS = [
    record(1, 6, 1, 50),
    record(1, 8, 1, 5, 1, 1, 0, 0),
    record(2),
    record(3, 1, 2, 1, 2),
    record(1, 16, 1, 5, 1, 1, 0, 0),
    record(2),
    record(4),
    record(5, 7),
]
# Texts of 40 symbols out of 80, in 8 numbers each; an LSTM of 64; 80 classes.
RECURRENT = [record(2, 40, 1), record(6, 80, 8), record(7, 64), record(8), record(5, 80)]
# A dense layer on 9 features.
FLAT = [record(3, 9), record(5, 3)]

SHAPE = struct.pack("<BHH", 3, 64, 10)
PARAMETERS = (6 * 5 + 1) * 8 + (8 * 5 + 1) * 16 + 17 * 7
NETWORK = struct.pack("<BHHI", 5, 300, 7, PARAMETERS) + network_digest(*CONVOLUTIONS)
SESSION = session_key()
ROOT = bytes(range(32, 64))
GREETING = struct.pack("<I", DEVICE) + DEVICE_NONCE + bytes([3, 3])
HELLO = GREETING + SHAPE + bytes([1])
HELLO_NETWORK = GREETING + NETWORK + bytes([0])
NO_BIT, BIT, BIT_WITH_NOISE = [
    struct.pack("<BQQ", *bit) for bit in [(0, 0, 0), (1, 0, 0), (1, 9 << 20, 4)]
]
INVITATION = SHAPE + struct.pack(
    "<IIfffBffBQQ", 5, 10, 0.125, 0.0, 0.0, 1, 2.0, 0.5, 20, 11 << 20, 10
)
CENTRAL_SETTINGS = struct.pack("<IIfffBffBQQ", 1, 1, 0.5, 0.25, 1.0, 0, 0.0, 1.0, 8, 0, 0)
CENTRAL = SHAPE + CENTRAL_SETTINGS
MODEL = struct.pack("<H3f", 2, 1.0, -0.5, 0.0)
VALUES = [1, -1, 0, 2**20 - 1, -(2**20), 12345]
UPDATE = struct.pack("<HB", 3, 0) + packed(VALUES, 21)
# The bit +2^b of an update without noise of the device, b = 20; it is not negated with the update.
UPDATE_BIT = struct.pack("<HB", 4, 1) + packed([2**20], 22)


def noisy_width(grid_bits, numerator, denominator):
    """Bits of a value with noise of the device on the line."""
    return 1 + (2**grid_bits + 12 * (numerator // denominator + 1)).bit_length()



cases = [
    ("call", TO_DEVICE, frame(bytes(32), TO_DEVICE, 1, b"", version=0)),
    ("hello", TO_COORDINATOR, frame(DEVICE_KEY, TO_COORDINATOR, 2, HELLO, version=0)),
    (
        "hello, network",
        TO_COORDINATOR,
        frame(DEVICE_KEY, TO_COORDINATOR, 2, HELLO_NETWORK, version=0),
    ),
    (
        "welcome",
        TO_DEVICE,
        frame(SESSION, TO_DEVICE, 3, bytes([3]) + COORDINATOR_NONCE, version=0),
    ),
    (
        "refused",
        TO_DEVICE,
        frame(SESSION, TO_DEVICE, 4, COORDINATOR_NONCE + bytes([3, 4, 1]), version=0),
    ),
    (
        "ready",
        TO_COORDINATOR,
        frame(SESSION, TO_COORDINATOR, 16, ledger_fingerprint(), 0, 1),
    ),
    ("invitation, local trust", TO_DEVICE, frame(SESSION, TO_DEVICE, 17, INVITATION + NO_BIT, 7, 1)),
    ("invitation, central trust", TO_DEVICE, frame(SESSION, TO_DEVICE, 17, CENTRAL + NO_BIT, 8, 2)),
    (
        "invitation, adaptive, local trust",
        TO_DEVICE,
        frame(SESSION, TO_DEVICE, 17, INVITATION + BIT_WITH_NOISE, 9, 3),
    ),
    (
        "invitation, adaptive, central trust",
        TO_DEVICE,
        frame(SESSION, TO_DEVICE, 17, CENTRAL + BIT, 10, 4),
    ),
    (
        "invitation, network, central trust",
        TO_DEVICE,
        frame(SESSION, TO_DEVICE, 17, NETWORK + CENTRAL_SETTINGS + NO_BIT, 11, 5),
    ),
    ("want model", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 18, b"\2\0", 7, 2)),
    ("model chunk", TO_DEVICE, frame(SESSION, TO_DEVICE, 19, MODEL, 7, 3)),
    ("update chunk", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 20, UPDATE, 7, 3)),
    ("update chunk, bit", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 20, UPDATE_BIT, 10, 4)),
    ("want update", TO_DEVICE, frame(SESSION, TO_DEVICE, 21, b"\4\0", 7, 4)),
    ("done", TO_DEVICE, frame(SESSION, TO_DEVICE, 22, b"", 7, 5)),
    ("decline", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 23, b"\1", 8, 4)),
    ("decline, too far ahead", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 23, b"\t", 8, 5)),
    ("decline, settings", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 23, b"\n", 8, 6)),
    ("decline, too soon", TO_COORDINATOR, frame(SESSION, TO_COORDINATOR, 23, b"\x0b", 8, 7)),
    ("abort", TO_DEVICE, frame(SESSION, TO_DEVICE, 24, b"\2", 8, 6)),
    ("wait", TO_DEVICE, frame(SESSION, TO_DEVICE, 25, b"", 0, 7)),
]

if __name__ == "__main__":
    print(
        json.dumps(
            {
                "description": "Frames on the line, one of each kind: bytes in hexadecimal, "
                "direction 1 to the device and 2 to the coordinator.",
                "source": "wire.py beside this file, from docs/protocol.md; RFC 7693 and the CRC-32 of "
                "IEEE 802.3 as Python's hashlib and zlib have them.",
                "version": 3,
                "device": DEVICE,
                "device_key": DEVICE_KEY.hex(),
                "device_nonce": DEVICE_NONCE.hex(),
                "coordinator_nonce": COORDINATOR_NONCE.hex(),
                "session_key": SESSION.hex(),
                "ledger_nonce": LEDGER_NONCE.hex(),
                "root": ROOT.hex(),
                "root_of_streams": root_of_streams(ROOT, LEDGER_NONCE).hex(),
                "packed": {"width": 21, "values": VALUES, "bytes": packed(VALUES, 21).hex()},
                "noisy_widths": [
                    {"bits": bits, "sigma": sigma, "width": noisy_width(bits, *sigma)}
                    for bits, sigma in [(20, (11 << 20, 10)), (20, (9 << 20, 4)), (4, (1, 3))]
                ],
                "networks": {
                    "convolutions": network_digest(*CONVOLUTIONS).hex(),
                    "recurrent": network_digest(*RECURRENT).hex(),
                    "flat": network_digest(*FLAT).hex(),
                },
                "cases": [
                    {"name": name, "direction": direction, "frame": frame.hex()}
                    for name, direction, frame in cases
                ],
            },
            indent=1,
        )
    )
