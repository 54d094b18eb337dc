#!/usr/bin/env python3
"""Writes masks.json: the masks and tags of docs/protocol.md, implemented independently.

Usage: masks.py > masks.json
"""

import json
import struct

from wire import block, h, packed, padded, poly1305

ROOT = bytes(range(32, 64))
SEEDED_ROOT = struct.pack("<Q", 11) + b"smolfed simulation seed "
MODEL = [0.5, -0.25, 0.0, 1.0, -1e-3, 3.0, -0.0]


def mask_root(root, device):
    return h(root, b"smolfed mask" + struct.pack("<I", device))


def mask_key(root, device, helper):
    return h(mask_root(root, device), b"smolfed help" + struct.pack("<I", helper))


def round_key(key, round, ledger):
    return h(key, b"rnd " + struct.pack("<I", round) + ledger)


def masks(key, width, count):
    """The key stream, cut into pieces of `width` bits, lowest first."""
    blocks = (count * width + 511) // 512
    stream = b"".join(block(key, i, bytes(12)) for i in range(blocks))
    bits = int.from_bytes(stream, "little")
    return [bits >> i * width & (1 << width) - 1 for i in range(count)]


def tag(key, terms, invitation, model):
    values = struct.pack(f"<{len(model)}f", *model)
    text = padded(invitation) + padded(values)
    text += struct.pack("<4BIII", *terms, 0, len(invitation), len(model), 0)
    one_time = block(key, 0, struct.pack("<III", 1, 0, 0))[:32]
    return poly1305(one_time, text)


def case(root, device, round, ledger, terms, updates, invitation):
    """A device's keys, its masked update and its tags, in a round with `terms` (grid bits, width
    and number of helpers)."""
    bits, width, helpers = terms
    keys = [mask_key(root, device, helper) for helper in range(helpers)]
    rounds = [round_key(key, round, ledger) for key in keys]
    streams = [masks(key, width, len(updates)) for key in rounds]
    masked = [(sum(entry) + q) % 2**width for q, *entry in zip(updates, *streams)]
    return {
        "root": root.hex(),
        "device": device,
        "round": round,
        "ledger": ledger.hex(),
        "grid_bits": bits,
        "width": width,
        "invitation": invitation.hex(),
        "model": list(struct.unpack(f"<{len(MODEL)}I", struct.pack(f"<{len(MODEL)}f", *MODEL))),
        "update": updates,
        "masked": packed(masked, width).hex(),
        "helpers": [
            {
                "key": key.hex(),
                "masks": stream,
                "tag": tag(of_round, terms, invitation, MODEL).hex(),
            }
            for key, of_round, stream in zip(keys, rounds, streams)
        ],
    }


INVITATION = bytes(range(70))
cases = [
    case(ROOT, 42, 3, b"ledger 1", (8, 19, 1), [1, -1, 0, 255, -256, 7] * 5, INVITATION),
    case(ROOT, 42, 4, b"ledger 1", (8, 19, 2), [1, -1, 0, 255, -256, 7], INVITATION),
    case(ROOT, 2**32 - 1, 2**32 - 2, b"ledger 2", (20, 32, 1), [5] * 20, INVITATION[:5]),
    case(SEEDED_ROOT, 0, 0, b"\xff" * 8, (24, 57, 8), [-(2**24), 2**24, 1], INVITATION[:64]),
    case(SEEDED_ROOT, 7, 9, bytes(8), (1, 33, 1), [2, -2, 0], b""),
]
print(
    json.dumps(
        {
            "description": "Masked updates: the key that a device shares with each helper, the "
            "masks of a round, the update modulo 2^width, packed, and the tags of what the device "
            "was asked for. The model as bits of its parameters.",
            "source": "masks.py beside this file, from docs/protocol.md, RFC 8439 and "
            "draft-irtf-cfrg-xchacha-03.",
            "version": 1,
            "cases": cases,
        },
        indent=1,
    )
)
