#!/usr/bin/env python3
"""Writes wire.json: the frames of docs/protocol.md, implemented independently.

Usage: wire.py > wire.json
"""

import hashlib
import hmac
import json
import struct
import zlib

TO_DEVICE, TO_COORDINATOR = 1, 2
VERSION = 5
CHAIN_KEY = bytes(range(32))
DEVICE = 42
DEVICE_NONCE = bytes(range(100, 116))
COORDINATOR_NONCE = bytes(range(200, 216))
LEDGER_NONCE = bytes(range(50, 58))
DEVICE_EPHEMERAL = bytes(range(120, 152))
COORDINATOR_EPHEMERAL = bytes(range(160, 192))


def rounds(state):
    """The ten double rounds of ChaCha20, RFC 8439, section 2.3."""
    x = list(state)

    def quarter(a, b, c, d):
        for first, second, last, bits in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)]:
            x[first] = (x[first] + x[second]) % 2**32
            mixed = x[last] ^ x[first]
            x[last] = (mixed << bits | mixed >> (32 - bits)) % 2**32

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return x


def start(key, sixteen):
    return struct.unpack("<16I", b"expand 32-byte k" + key + sixteen)


def block(key, counter, nonce):
    state = start(key, struct.pack("<I", counter) + nonce)
    words = [(a + b) % 2**32 for a, b in zip(rounds(state), state)]
    return struct.pack("<16I", *words)


def h(key, sixteen):
    """HChaCha20, draft-irtf-cfrg-xchacha-03, section 2.2."""
    assert len(sixteen) == 16, sixteen
    x = rounds(start(key, sixteen))
    return struct.pack("<8I", *x[:4], *x[12:])


def poly1305(key, text):
    """RFC 8439, section 2.5, in Python integers."""
    r = int.from_bytes(key[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    sum = 0
    for at in range(0, len(text), 16):
        sum = (sum + int.from_bytes(text[at : at + 16] + b"\1", "little")) * r % (2**130 - 5)
    return ((sum + int.from_bytes(key[16:], "little")) % 2**128).to_bytes(16, "little")


def padded(text):
    return text + bytes(-len(text) % 16)


def sealed(key, nonce, associated, text):
    """RFC 8439, section 2.8: ciphertext and tag."""
    pad = b"".join(block(key, 1 + i, nonce) for i in range((len(text) + 63) // 64))
    ciphertext = bytes(a ^ b for a, b in zip(text, pad))
    lengths = struct.pack("<QQ", len(associated), len(ciphertext))
    one_time = block(key, 0, nonce)[:32]
    return ciphertext + poly1305(one_time, padded(associated) + padded(ciphertext) + lengths)


def x25519(secret, point):
    """RFC 7748, section 5, in Python integers."""
    p = 2**255 - 19
    k = int.from_bytes(secret, "little") & ~7 & ~(1 << 255) | 1 << 254
    u = int.from_bytes(point, "little") % 2**255
    x2, z2, x3, z3 = 1, 0, u, 1
    for t in reversed(range(255)):
        if k >> t & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        x3, z3 = (d * a + c * b) ** 2 % p, u * (d * a - c * b) ** 2 % p
        e = a * a - b * b
        x2, z2 = a * a * b * b % p, e * (a * a + 121665 * e) % p
        if k >> t & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, p - 2, p) % p).to_bytes(32, "little")


def public(secret):
    return x25519(secret, (9).to_bytes(32, "little"))


class Noise:
    """Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s, The Noise Protocol Framework, revision 34."""

    NAME = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s"

    def __init__(self, prologue):
        self.hash = self.chaining = hashlib.blake2s(self.NAME).digest()
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = hashlib.blake2s(self.hash + data).digest()

    def hkdf(self, material, count):
        """Section 4.3."""
        key = hmac.digest(self.chaining, material, "blake2s")
        outputs = [b""]
        for i in range(count):
            outputs.append(hmac.digest(key, outputs[-1] + bytes([i + 1]), "blake2s"))
        return outputs[1:]

    def mix_key(self, material):
        self.chaining, self.key = self.hkdf(material, 2)
        self.count = 0

    def mix_key_and_hash(self, material):
        self.chaining, hash, self.key = self.hkdf(material, 3)
        self.mix_hash(hash)
        self.count = 0

    def encrypt_and_hash(self, text):
        nonce = struct.pack("<IQ", 0, self.count)
        self.count += 1
        ciphertext = sealed(self.key, nonce, self.hash, text)
        self.mix_hash(ciphertext)
        return ciphertext

    def e(self, public):
        self.mix_hash(public)
        self.mix_key(public)
        return public


def cobs(raw):
    """Cheshire, Baker 1999. Frames are shorter than 255 bytes."""
    assert len(raw) < 255
    return b"".join(bytes([len(piece) + 1]) + piece for piece in raw.split(b"\0")) + b"\0"


def on_the_line(checked):
    return cobs(checked + struct.pack("<I", zlib.crc32(checked)))


def frame(direction, kind, body, round=0, sequence=0):
    associated = struct.pack("<BBI", direction, VERSION, sequence)
    nonce = struct.pack("<IQ", direction, sequence)
    text = struct.pack("<BI", kind, round) + body
    clear = struct.pack("<BI", VERSION, sequence)
    return on_the_line(clear + sealed(SESSION, nonce, associated, text))


def greeting(kind, body):
    return on_the_line(bytes([0, kind]) + body)


def hello(hidden, name, lowest=VERSION, highest=VERSION):
    key = h(CHAIN_KEY, b"smolfed greeting")
    name = struct.pack("<B8s", hidden, name)
    versions = bytes([lowest, highest])
    tag = h(h(key, DEVICE_NONCE), padded(name + versions))[:16]
    return greeting(2, name + DEVICE_NONCE + versions + tag)


def x25519_greeting(hidden, name):
    """Both frames and the session key of a greeting with X25519."""
    key = h(CHAIN_KEY, b"smolfed greeting")
    name = struct.pack("<B8s", hidden, name)
    versions = bytes([VERSION, VERSION])
    tag = h(h(key, DEVICE_NONCE), padded(name + versions + b"\1"))[:16]
    clear = name + DEVICE_NONCE + versions + tag
    noise = Noise(bytes([0, 5]) + clear)
    noise.mix_key_and_hash(h(CHAIN_KEY, b"smolfed psk " + struct.pack("<I", DEVICE)))
    first = noise.e(public(DEVICE_EPHEMERAL)) + noise.encrypt_and_hash(b"")
    second = noise.e(public(COORDINATOR_EPHEMERAL))
    noise.mix_key(x25519(DEVICE_EPHEMERAL, public(COORDINATOR_EPHEMERAL)))
    second += noise.encrypt_and_hash(versions)
    to_coordinator, _ = noise.hkdf(b"", 2)
    return {
        "hello": greeting(5, clear + first).hex(),
        "welcome": greeting(6, second).hex(),
        "session_key": h(to_coordinator, b"smolfed cipher  ").hex(),
    }


def session_root():
    key = h(CHAIN_KEY, b"smolfed sess" + struct.pack("<I", DEVICE))
    return h(h(key, DEVICE_NONCE), COORDINATOR_NONCE)


def answer(kind, lowest, highest):
    versions = bytes([lowest, highest])
    tag = h(h(session_root(), b"smolfed welcome "), padded(bytes([kind]) + versions))[:16]
    return greeting(kind, COORDINATOR_NONCE + versions + tag)


def ledger_fingerprint():
    return h(h(bytes(32), b"smolfed ledger  "), bytes(8) + LEDGER_NONCE)[:8]


def expand(secret, info):
    """The first block of HKDF-Expand with SHA-256, RFC 5869, section 2.3."""
    return hmac.new(secret, info + b"\1", hashlib.sha256).digest()


def element():
    """The keys of a device whose root and chain key are in a secure element."""
    after = expand(CHAIN_KEY, b"smolfed ratchet ")
    session = expand(CHAIN_KEY, b"smolfed sess" + struct.pack("<I", DEVICE))
    for nonce in [DEVICE_NONCE, COORDINATOR_NONCE]:
        session = h(session, nonce)
    names = {"pseudonym": b"smolfed number  ", "fingerprint": b"smolfed key     "}
    return {
        "chain_keys": [after.hex(), expand(after, b"smolfed ratchet ").hex()],
        **{key: expand(CHAIN_KEY, name)[:8].hex() for key, name in names.items()},
        "session_key": h(session, b"smolfed cipher  ").hex(),
        "check_of_root": expand(ROOT, b"smolfed check   ")[:16].hex(),
        "round": 7,
        "root_of_round": expand(ROOT, b"streams " + LEDGER_NONCE + struct.pack("<I", 7)).hex(),
        "root_of_masks": expand(ROOT, b"smolfed mask" + struct.pack("<I", DEVICE)).hex(),
    }


def root_of_streams(root, nonce):
    return h(root, b"streams " + nonce)


def packed(values, width):
    number = sum((value % 2**width) << (i * width) for i, value in enumerate(values))
    return number.to_bytes((len(values) * width + 7) // 8, "little")


def record(code, *numbers):
    """The shape of a sample or a layer, in the encoding of a network."""
    return struct.pack("<B7HB", code, *numbers, *[0] * (7 - len(numbers)), 0)


def network_digest(*records):
    key = h(bytes(32), b"smolfed network ")
    for record in records:
        key = h(key, record)
    return key[:8]


# Windows of six channels of 50 samples: 8 kernels of 5, the larger of each pair, 16 kernels of 5,
# the mean of each channel, 7 classes.
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
# Texts of 40 symbols out of 80, embedded in 8 numbers each, an LSTM of 64, 80 classes.
RECURRENT = [record(2, 40, 1), record(6, 80, 8), record(7, 64), record(8), record(5, 80)]
# A dense layer on 9 features.
FLAT = [record(3, 9), record(5, 3)]

SHAPE = struct.pack("<BHH", 3, 64, 10)
PARAMETERS = (6 * 5 + 1) * 8 + (8 * 5 + 1) * 16 + 17 * 7
NETWORK = struct.pack("<BHHI", 5, 300, 7, PARAMETERS) + network_digest(*CONVOLUTIONS)
SESSION = h(session_root(), b"smolfed cipher  ")
ROOT = bytes(range(32, 64))
PSEUDONYM = h(CHAIN_KEY, b"smolfed number  ")[:8]
READY = ledger_fingerprint() + SHAPE + bytes([1])
READY_NETWORK = ledger_fingerprint() + NETWORK + bytes([0])
# The bit of adaptive clipping with its noise, the helpers, and the bits of a masked entry.
BARE, BIT, BIT_WITH_NOISE, MASKED = [
    struct.pack("<BQQBB", *behind)
    for behind in [(0, 0, 0, 0, 0), (1, 0, 0, 0, 0), (1, 9 << 20, 4, 0, 0), (0, 0, 0, 2, 19)]
]
INVITATION = SHAPE + struct.pack(
    "<IIfffBffBQQ", 5, 10, 0.125, 0.0, 0.0, 1, 2.0, 0.5, 20, 11 << 20, 10
)
CENTRAL_SETTINGS = struct.pack("<IIfffBffBQQ", 1, 1, 0.5, 0.25, 1.0, 0, 0.0, 1.0, 8, 0, 0)
CENTRAL = SHAPE + CENTRAL_SETTINGS
# PMTL with a pull of 0.5 and 7 local steps, after round 3. The network without its last layer.
PMTL = struct.pack("<BfIII", 1, 0.5, 7, 650, 3 + 1)
HEAD = struct.pack("<BfIII", 4, 0.0, 0, PARAMETERS - 17 * 7, 3 + 1)
# Fine-tuning with a pull of 0.5.
TUNED = struct.pack("<BfIII", 5, 0.5, 0, 0, 0)
# An encoder of 64 features to 16 numbers, without biases. Its matrix has 16 * 17 / 2 entries,
# followed by the number of samples, which is at most 300. A sample has two pairs of views. In
# training, representations are clipped to the root of 8.
ENCODER = struct.pack("<BHH", 6, 64, 16)
MATRIX = struct.pack("<BfIII", 6, 0.0, 2, 16 * 17 // 2 + 1, 300)
ALONE = struct.pack("<BfIII", 7, 8.0, 2, 64 * 16, 0)
WITH_OTHERS = struct.pack("<BfIII", 8, 8.0, 2, 64 * 16, 0)
LOCAL_SETTINGS = INVITATION[len(SHAPE) :]
MODEL = struct.pack("<H3f", 2, 1.0, -0.5, 0.0)
# Steps of 2^-12, unchanged and as differences from -299, 0, 5 and -5. The last needs two bytes.
SHORT = struct.pack("<HB4h", 2, 12, -300, 127, 0, 900)
DIFFERENCES = struct.pack("<HB4bh", 2, 12 | 128, -1, 127, -5, -128, 900)
VALUES = [1, -1, 0, 2**20 - 1, -(2**20), 12345]
UPDATE = struct.pack("<HB", 3, 0) + packed(VALUES, 21)
UPDATE_MORE = struct.pack("<HB", 3, 2) + packed(VALUES, 21)
NOTHING = struct.pack("<HB", 0, 0)
# The bit +2^b of an update without the device's noise, b = 20. It is not negated with the update.
UPDATE_BIT = struct.pack("<HB", 4, 1) + packed([2**20], 22)
# The tag for the second helper, after 650 entries of 19 bits, 93 per chunk.
UPDATE_TAG = struct.pack("<HB", 8, 0) + bytes(range(16))


def noisy_width(grid_bits, numerator, denominator):
    """Transmitted bits of a value with the device's noise."""
    return 1 + (2**grid_bits + 12 * (numerator // denominator + 1)).bit_length()


def digest_of_bounds(ranges):
    """Digest of steps, with a block for each value. An unchanged value has a block of zeros."""
    key = h(bytes(32), b"smolfed bounds  ")
    for bounds in ranges:
        key = h(key, struct.pack("<Bff7x", 1, *bounds) if bounds else bytes(16))
    return key[:8]


# Firmware that computes features: gradients of 28 x 32 pixels of three colours in cells of 4, and 8
# steps of two values, the second of which is unchanged.
GRADIENTS = struct.pack("<BBHHH", 1, 3, 28, 32, 4)
STEPS = struct.pack("<BBH", 3, 8, 2) + digest_of_bounds([(-1.0, 2.5), None])

cases = [
    ("call", TO_DEVICE, greeting(1, b"")),
    ("hello", TO_COORDINATOR, hello(0, struct.pack("<Q", DEVICE))),
    ("hello, hidden", TO_COORDINATOR, hello(1, PSEUDONYM)),
    ("welcome", TO_DEVICE, answer(3, VERSION, VERSION)),
    ("incompatible", TO_DEVICE, answer(4, 6, 7)),
    ("ready", TO_COORDINATOR, frame(TO_COORDINATOR, 16, READY, 0, 1)),
    ("ready, network", TO_COORDINATOR, frame(TO_COORDINATOR, 16, READY_NETWORK, 0, 8)),
    (
        "ready, gradients",
        TO_COORDINATOR,
        frame(TO_COORDINATOR, 16, READY + GRADIENTS, 0, 13),
    ),
    ("ready, steps", TO_COORDINATOR, frame(TO_COORDINATOR, 16, READY + STEPS, 0, 14)),
    ("invitation, local trust", TO_DEVICE, frame(TO_DEVICE, 17, INVITATION + BARE, 7, 1)),
    ("invitation, central trust", TO_DEVICE, frame(TO_DEVICE, 17, CENTRAL + BARE, 8, 2)),
    (
        "invitation, adaptive, local trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, INVITATION + BIT_WITH_NOISE, 9, 3),
    ),
    (
        "invitation, adaptive, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, CENTRAL + BIT, 10, 4),
    ),
    (
        "invitation, masked",
        TO_DEVICE,
        frame(TO_DEVICE, 17, CENTRAL + MASKED, 16, 12),
    ),
    (
        "invitation, network, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, NETWORK + CENTRAL_SETTINGS + BARE, 11, 5),
    ),
    (
        "invitation, personal, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, CENTRAL + BARE + PMTL, 12, 6),
    ),
    (
        "invitation, network, personal, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, NETWORK + CENTRAL_SETTINGS + BARE + HEAD, 13, 7),
    ),
    (
        "invitation, tuned, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, CENTRAL + BARE + TUNED, 14, 8),
    ),
    (
        "invitation, encoder, matrix, local trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, ENCODER + LOCAL_SETTINGS + BARE + MATRIX, 15, 9),
    ),
    (
        "invitation, encoder without labels, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, ENCODER + CENTRAL_SETTINGS + BARE + ALONE, 15, 10),
    ),
    (
        "invitation, encoder with others, central trust",
        TO_DEVICE,
        frame(TO_DEVICE, 17, ENCODER + CENTRAL_SETTINGS + BARE + WITH_OTHERS, 15, 11),
    ),
    ("want model", TO_COORDINATOR, frame(TO_COORDINATOR, 18, b"\2\0\x10", 7, 2)),
    ("model chunk", TO_DEVICE, frame(TO_DEVICE, 19, MODEL, 7, 3)),
    ("update chunk", TO_COORDINATOR, frame(TO_COORDINATOR, 20, UPDATE, 7, 3)),
    ("update chunk, more", TO_COORDINATOR, frame(TO_COORDINATOR, 20, UPDATE_MORE, 7, 9)),
    ("update chunk, bit", TO_COORDINATOR, frame(TO_COORDINATOR, 20, UPDATE_BIT, 10, 4)),
    ("update chunk, tag", TO_COORDINATOR, frame(TO_COORDINATOR, 20, UPDATE_TAG, 16, 10)),
    ("update chunk, nothing", TO_COORDINATOR, frame(TO_COORDINATOR, 20, NOTHING, 14, 5)),
    ("want update", TO_DEVICE, frame(TO_DEVICE, 21, b"\4\0", 7, 4)),
    ("done", TO_DEVICE, frame(TO_DEVICE, 22, b"", 7, 5)),
    ("decline", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\1", 8, 4)),
    ("decline, too far ahead", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\t", 8, 5)),
    ("decline, settings", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\n", 8, 6)),
    ("decline, too soon", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\x0b", 8, 7)),
    ("decline, memory", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\r", 8, 8)),
    ("decline, helpers", TO_COORDINATOR, frame(TO_COORDINATOR, 23, b"\x0e", 8, 9)),
    ("abort", TO_DEVICE, frame(TO_DEVICE, 24, b"\2", 8, 6)),
    ("wait", TO_DEVICE, frame(TO_DEVICE, 25, b"", 0, 7)),
    ("refused", TO_DEVICE, frame(TO_DEVICE, 26, b"\4", 0, 8)),
    ("refused, model", TO_DEVICE, frame(TO_DEVICE, 26, b"\2" + NETWORK, 0, 9)),
    ("refused, recipe", TO_DEVICE, frame(TO_DEVICE, 26, b"\6" + GRADIENTS, 0, 10)),
    ("short, want", TO_COORDINATOR, frame(TO_COORDINATOR, 27, b"\2\0\x10", 7, 10)),
    (
        "short, want, difference",
        TO_COORDINATOR,
        frame(TO_COORDINATOR, 27, b"\2\0\x10\6\0\0\0", 7, 11),
    ),
    ("short, chunk", TO_DEVICE, frame(TO_DEVICE, 28, SHORT, 7, 11)),
    ("short, difference", TO_DEVICE, frame(TO_DEVICE, 28, DIFFERENCES, 7, 12)),
    (
        "delivery, installed",
        TO_COORDINATOR,
        frame(TO_COORDINATOR, 29, struct.pack("<I", 4) + SHAPE + GRADIENTS, 0, 12),
    ),
    ("delivery, offered", TO_DEVICE, frame(TO_DEVICE, 30, struct.pack("<I", 2792), 5, 13)),
    (
        "delivery, want",
        TO_COORDINATOR,
        frame(TO_COORDINATOR, 31, struct.pack("<IB", 384, 16), 5, 13),
    ),
    (
        "delivery, chunk",
        TO_DEVICE,
        frame(TO_DEVICE, 32, struct.pack("<I", 384) + bytes(range(192)), 5, 14),
    ),
]

if __name__ == "__main__":
    print(
        json.dumps(
            {
                "description": "Frames on the line, one of each kind: bytes in hexadecimal, "
                "direction 1 to the device and 2 to the coordinator.",
                "source": "wire.py beside this file, from docs/protocol.md, RFC 8439, "
                "draft-irtf-cfrg-xchacha-03, RFC 7748 and Noise, revision 34; the CRC-32 of IEEE "
                "802.3 as Python's zlib has it, BLAKE2s and HMAC as its hashlib and hmac do.",
                "version": VERSION,
                "device": DEVICE,
                "chain_key": CHAIN_KEY.hex(),
                "next_chain_key": h(CHAIN_KEY, b"smolfed ratchet ").hex(),
                "pseudonym": PSEUDONYM.hex(),
                "device_nonce": DEVICE_NONCE.hex(),
                "coordinator_nonce": COORDINATOR_NONCE.hex(),
                "session_key": SESSION.hex(),
                "ledger_nonce": LEDGER_NONCE.hex(),
                "root": ROOT.hex(),
                "root_of_streams": root_of_streams(ROOT, LEDGER_NONCE).hex(),
                "element": element(),
                "packed": {"width": 21, "values": VALUES, "bytes": packed(VALUES, 21).hex()},
                "noisy_widths": [
                    {"bits": bits, "sigma": sigma, "width": noisy_width(bits, *sigma)}
                    for bits, sigma in [(20, (11 << 20, 10)), (20, (9 << 20, 4)), (4, (1, 3))]
                ],
                "x25519": {
                    "device_ephemeral": DEVICE_EPHEMERAL.hex(),
                    "coordinator_ephemeral": COORDINATOR_EPHEMERAL.hex(),
                    "cases": [
                        x25519_greeting(0, struct.pack("<Q", DEVICE)),
                        x25519_greeting(1, PSEUDONYM),
                    ],
                },
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
