"""Golden vectors for training in integers: tests/vectors/integer.json.

Written from docs/integer.md, without consulting the Rust code. Python's integers have no width, so
an overflow in the Rust code shows as a difference. Batches hold all samples, so their order does
not matter, as every sum is exact.

    python3 integer.py > integer.json
"""

import json
import math
import random
from fractions import Fraction

MAX_WEIGHT = 2**21 - 1
WHOLE = [round(Fraction(math.exp(-k)) * 2**17) for k in range(16)]
PART = [round(Fraction(math.exp(-i / 32)) * 2**16) for i in range(32)]
LN = [round(Fraction(math.log1p(i / 32)) * 2**16) for i in range(33)]


def half_up(value, places):
    """value / 2^places, rounded to the nearest integer, with halves rounded up."""
    return (value + (1 << places >> 1)) >> places


def exp_of_minus(x):
    if x >= 16 << 16:
        return 0
    k, i, r = x >> 16, x >> 11 & 31, x & 2047
    missing = (r << 4) - (r * r >> 13)
    fine = PART[i] - half_up(PART[i] * missing, 20)
    return fine if k == 0 else half_up(fine * WHOLE[k], 17)


def ln(x):
    places = x.bit_length() - 17
    digits = (x << 15 - places) - (1 << 31)
    index, place = digits >> 26, digits >> 10 & 0xFFFF
    return LN[index] + ((LN[index + 1] - LN[index]) * place >> 16) + places * LN[32]


def softmax(scores, target):
    largest = max(scores)
    exponentials = [exp_of_minus(largest - s) for s in scores]
    total = sum(exponentials)
    reciprocal = (2**32 - 1) // total
    residuals = [half_up(e * reciprocal, 16) for e in exponentials]
    if target < len(scores):
        residuals[target] -= 2**16
    loss = ln(total) + (largest - scores[target] if target < len(scores) else 0)
    return residuals, loss


def logistic(scores, target):
    residuals, loss = softmax([0, scores[0]], 1 if target else 0)
    return residuals[1:], loss


def linear(scores, target):
    residual = half_up(scores[0], 4) - target
    residual = max(-(2**16), min(2**16, residual))
    return [residual], residual * residual >> 9


def multiplier(factor):
    """factor as (m, p) with m of 15 bits: approximately m / 2^(16 + p)."""
    if factor == 0:
        return 0, 1
    assert factor < Fraction(1, 4)
    places = 0
    while factor * 2 ** (places + 1) < 2**15:
        places += 1
    # Sixteen binary digits, then rounded to fifteen.
    mantissa = (math.floor(factor * 2 ** (places + 1)) + 1) >> 1
    return (mantissa, places - 16) if places - 16 <= 31 else (0, 1)


def product(value, factor):
    mantissa, places = factor
    return half_up(value * mantissa, 16 + places)


def isqrt_up(n):
    root = math.isqrt(n)
    return root if root * root == n else root + 1


def shorten(d, radius, squares):
    if squares <= radius**2:
        return d, False
    places = max(radius.bit_length() - 16, 0)
    root = -(-isqrt_up(squares) // 2**places)
    factor = (radius >> places << 16) // root
    return [(x * factor >> 16) + (1 if x < 0 else 0) for x in d], True


def f32(x):
    """The nearest number with 24 binary digits, as a fraction."""
    x = Fraction(x)
    if x == 0:
        return x
    exponent = math.floor(math.log2(x)) - 23
    return round(x / Fraction(2) ** exponent) * Fraction(2) ** exponent


def train(case):
    loss_of = {"softmax": softmax, "logistic": logistic, "linear": linear}[case["model"]]
    fraction, bits = case["fraction"], case["bits"]
    features, samples = case["features"], len(case["targets"])
    outputs = len(case["global"]) // (features + 1)
    rows = [case["x"][i * features : (i + 1) * features] for i in range(samples)]
    start = case["global"]
    radius = math.floor(f32(case["clip_norm"]) * 2**18)
    left = 30 - 16 - bits - (samples - 1).bit_length()
    residual_fraction = (12 if case["model"] == "linear" else 16) + left
    rate = f32(case["learning_rate"])
    gradient_rate = multiplier(rate / samples * Fraction(2) ** (18 - residual_fraction - fraction))
    decay, proximal = (multiplier(rate * f32(case[key])) for key in ["weight_decay", "proximal"])
    w, clipped, saturated, loss = list(start), 0, 0, 0
    for _ in range(case["epochs"]):
        gradient, loss = [0] * len(w), 0
        for row, target in zip(rows, case["targets"]):
            scores = []
            for c in range(outputs):
                exact = sum(a * b for a, b in zip(w[c * features :], row))
                exact += w[features * outputs + c] << fraction
                score = half_up(exact, fraction + 2)
                scores.append(max(-(2**31), min(2**31 - 1, score)))
            residuals, sample_loss = loss_of(scores, target)
            loss += sample_loss
            for c, residual in enumerate(residuals):
                residual = residual << left if left >= 0 else half_up(residual, -left)
                for j, x in enumerate(row + [1 << fraction]):
                    gradient[c * features + j if j < features else features * outputs + c] += residual * x
        d = []
        for g, x, x0 in zip(gradient, w, start):
            end = x - product(g, gradient_rate) - product(x, decay) - product(x - x0, proximal)
            kept = max(-MAX_WEIGHT, min(MAX_WEIGHT, end))
            saturated += kept != end
            d.append(kept - x0)
        squares = sum(x * x for x in d)
        is_clipped = False
        if not case["final"]:
            d, is_clipped = shorten(d, radius, squares)
        clipped += is_clipped
        w = [x0 + x for x0, x in zip(start, d)]
    if case["final"]:
        d, is_clipped = shorten(d, radius, squares)
        clipped = int(is_clipped)
    return {
        "update": d,
        "clipped_steps": clipped,
        "saturated_weights": saturated,
        "last_loss": loss // samples,
        "norm": isqrt_up(squares),
    }


def main():
    rng = random.Random(7)
    cases = []
    for model in ["softmax", "logistic", "linear"]:
        for bits, fraction in [(7, 6), (7, 0), (15, 12)]:
            for features, samples, spread in [(3, 2, 17), (9, 7, 17), (20, 33, 17), (8, 1, 20)]:
                outputs = rng.randint(2, 5) if model == "softmax" else 1
                reach = min(2**bits, 2 ** (fraction + 1))
                case = {
                    "model": model,
                    "bits": bits,
                    "fraction": fraction,
                    "features": features,
                    "x": [
                        max(-(2**bits), min(2**bits - 1, rng.randint(-reach, reach)))
                        for _ in range(features * samples)
                    ],
                    "targets": [
                        rng.randint(-(2**15), 2**15)
                        if model == "linear"
                        else rng.randrange(max(outputs, 2) + 1)
                        for _ in range(samples)
                    ],
                    "global": [
                        rng.randint(-(2**spread), 2**spread)
                        for _ in range((features + 1) * outputs)
                    ],
                    "epochs": 3,
                    "learning_rate": rng.choice([0.01, 0.1, 0.3]),
                    "weight_decay": rng.choice([0, 0.01]),
                    "proximal": rng.choice([0, 0.1]),
                    "clip_norm": rng.choice([0.05, 0.3, 5.0]),
                    "final": rng.random() < 0.3,
                }
                cases.append(case | train(case))
    header = {
        "source": "docs/integer.md",
        "generator": "tests/vectors/integer.py",
        "exponential": [[x, exp_of_minus(x)] for x in range(0, 1 << 20, 65_521)],
    }
    print(json.dumps(header)[:-1] + ', "cases": [')
    print(",\n".join(json.dumps(case) for case in cases))
    print("]}")


main()
