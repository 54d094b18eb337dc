"""Queries epsilon, or calibrates, with the privacy loss distributions of dp_accounting."""

import importlib.metadata
import sys

from accounting import DELTA, DELTA_GROWTH, NOISE, RATE, ROUNDS, TARGET, Bench
import dp_accounting
from dp_accounting import pld


def event(noise):
    """Poisson-sampled Gaussians."""
    sampled = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(noise))
    return dp_accounting.SelfComposedDpEvent(sampled, ROUNDS)


def epsilon(noise, delta):
    """Epsilon by the default accountant for such events."""
    return pld.PLDAccountant().compose(event(noise)).get_epsilon(delta)


question, delta = sys.argv[1], DELTA
bench = Bench(importlib.metadata.version("dp_accounting"))
while bench.goes_on():
    delta *= 1 + DELTA_GROWTH
    if question == "epsilon":
        epsilon(NOISE, delta)
    else:
        dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant, event, TARGET, delta, dp_accounting.ExplicitBracketInterval(0.5, 8)
        )
