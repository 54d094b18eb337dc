"""Computes the bytes of a link between a coordinator and a helper (docs/protocol.md), independently
from the Noise Protocol Framework, revision 34. Needs the package cryptography.

    python3 tests/vectors/link.py > tests/vectors/link.json
"""

import hashlib
import hmac
import json

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NAME = b"Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s"


def blake2s(data):
    return hashlib.blake2s(data).digest()


def hkdf(chaining, data, outputs):
    key = hmac.new(chaining, data, hashlib.blake2s).digest()
    found, last = [], b""
    for number in range(1, outputs + 1):
        last = hmac.new(key, last + bytes([number]), hashlib.blake2s).digest()
        found.append(last)
    return found


def public(secret):
    return secret.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


class Symmetric:
    def __init__(self, prologue):
        self.hash = blake2s(NAME)
        self.chaining, self.key, self.count = self.hash, None, 0
        self.mix_hash(prologue)

    def mix_hash(self, data):
        self.hash = blake2s(self.hash + data)

    def mix_key(self, data):
        self.chaining, self.key = hkdf(self.chaining, data, 2)
        self.count = 0

    def mix_key_and_hash(self, data):
        self.chaining, hashed, self.key = hkdf(self.chaining, data, 3)
        self.count = 0
        self.mix_hash(hashed)

    def encrypt(self, text):
        sealed = seal(self.key, self.count, self.hash, text)
        self.count += 1
        self.mix_hash(sealed)
        return sealed


def seal(key, count, associated, text):
    nonce = bytes(4) + count.to_bytes(8, "little")
    return ChaCha20Poly1305(key).encrypt(nonce, text, associated)


def main():
    psk, helper, text = bytes([0x42] * 32), 0, b"smolfed"
    coordinator = X25519PrivateKey.from_private_bytes(bytes([1] * 32))
    other = X25519PrivateKey.from_private_bytes(bytes([2] * 32))
    state = Symmetric(b"smolfed helper 1" + bytes([helper]))
    state.mix_key_and_hash(psk)
    state.mix_hash(public(coordinator))
    state.mix_key(public(coordinator))
    first = bytes([1]) + public(coordinator) + state.encrypt(b"")
    state.mix_hash(public(other))
    state.mix_key(public(other))
    state.mix_key(other.exchange(X25519PublicKey.from_public_bytes(public(coordinator))))
    second = public(other) + state.encrypt(b"")
    _, from_helper = hkdf(state.chaining, b"", 2)
    sealed = seal(from_helper, 0, b"", text)
    frame = len(sealed).to_bytes(2, "little") + sealed
    vectors = {
        "source": "docs/protocol.md, The link to a helper; tests/vectors/link.py",
        "psk": psk.hex(),
        "helper": helper,
        "coordinator_secret": ("01" * 32),
        "helper_secret": ("02" * 32),
        "first": first.hex(),
        "second": second.hex(),
        "text": text.decode(),
        "frame_of_helper": frame.hex(),
    }
    print(json.dumps(vectors, indent=2))


main()
