"""Computes window features by definition, for window.json: python3 window.py > window.json

Uses only the standard library. The Fourier transform is the defining sum, added without rounding
errors (math.fsum). It is not a fast transform, unlike in the code under test.
"""

import json
import math


def noise(count, state):
    """Numbers from -1 to 1 by linear congruence."""
    values = []
    for _ in range(count):
        state = (state * 1_664_525 + 1_013_904_223) % 2**32
        values.append((state >> 8) / 2**23 - 1)
    return values


def wave(count, periods, amplitude, phase=0.0):
    return [amplitude * math.sin(2 * math.pi * periods * t / count + phase) for t in range(count)]


def features(samples, bounds):
    length = len(samples)
    mean = math.fsum(samples) / length
    deviations = [x - mean for x in samples]
    count = 1 << (length - 1).bit_length()

    def energy(k):
        # k * t is reduced as an integer, so that no angle is large.
        turns = [2 * math.pi * (k * t % count) / count for t in range(length)]
        re = math.fsum(x * math.cos(a) for x, a in zip(deviations, turns))
        im = math.fsum(x * math.sin(a) for x, a in zip(deviations, turns))
        twice = 1 if k in (0, count // 2) else 2
        return twice * (re * re + im * im) / (count * length)

    # Computed in integers, so that rounding of the mean cannot matter.
    total = sum(samples)
    signs = [x * length >= total for x in samples]
    return {
        "mean": mean,
        "deviation": math.sqrt(math.fsum(x * x for x in deviations) / length),
        "minimum": min(samples),
        "maximum": max(samples),
        "energy": math.fsum(x * x for x in samples) / length,
        "zero_crossings": sum(a != b for a, b in zip(signs, signs[1:])),
        "bands": [math.fsum(map(energy, range(a, b))) for a, b in zip(bounds, bounds[1:])],
    }


def case(name, samples, bounds):
    samples = [max(-32768, min(32767, round(x))) for x in samples]
    return {"name": name, "samples": samples, "bounds": bounds, **features(samples, bounds)}


CASES = [
    case("nothing", [0] * 16, [0, 1, 9]),
    case("constant", [-1234] * 20, [0, 1, 17]),
    case("two samples", [3, -4], [0, 1, 2]),
    case("three samples", [100, -4, 7], [0, 1, 2, 3]),
    case("impulse", [0] * 5 + [20000] + [0] * 26, [1, 2, 3, 9, 16, 17]),
    case("steps of the largest size", [32767, -32768] * 32, [1, 31, 32, 33]),
    case("a slow step of the largest size", [32767] * 32 + [-32768] * 32, [1, 2, 3, 4, 33]),
    case("a wave of five periods", wave(64, 5, 12000, 0.3), [1, 4, 5, 6, 7, 33]),
    case("a wave between frequencies", wave(64, 5.5, 12000), [1, 4, 5, 6, 7, 33]),
    case("gravity and steps", [8192 + x + y for x, y in zip(
        wave(100, 3.7, 1500), wave(100, 11.1, 300, 1.0))], [1, 3, 6, 12, 25, 65]),
    case("noise", [9000 * x for x in noise(128, 1)], [1, 2, 4, 8, 16, 32, 65]),
    case("faint noise", [3 * x for x in noise(64, 2)], [1, 2, 4, 8, 16, 33]),
    case("loud noise", [32767 * x for x in noise(50, 3)], [1, 3, 6, 12, 33]),
    case("a rise", [113 * t - 14000 for t in range(250)], [1, 2, 3, 6, 24, 129]),
]

print(json.dumps({
    "source": "tests/vectors/window.py: definitions in double precision, sums without rounding",
    "cases": CASES,
}, indent=0))
