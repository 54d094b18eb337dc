"""Queries epsilon, or calibrates, with the Python package of this repository."""

import sys

from accounting import DELTA, DELTA_GROWTH, NOISE, RATE, ROUNDS, TARGET, Bench
import smolfed
from smolfed import accounting

question, delta = sys.argv[1], DELTA
bench = Bench(smolfed.__version__)
while bench.goes_on():
    # Answers are cached, but each must be computed.
    delta *= 1 + DELTA_GROWTH
    plan = dict(sampling_rate=RATE, rounds=ROUNDS, delta=delta)
    if question == "epsilon":
        accounting.epsilon(noise_multiplier=NOISE, **plan)
    else:
        accounting.noise_multiplier(epsilon=TARGET, **plan)
