"""The shared part of the accounting peers: the question, and the bench."""

from reference import Bench

NOISE, RATE, ROUNDS, DELTA, TARGET = 1.0, 0.05, 1_000, 1e-6, 8.0
# The same as in benches/benches/accounting_peers.rs.
DELTA_GROWTH = 1e-9

__all__ = ["DELTA", "DELTA_GROWTH", "NOISE", "RATE", "ROUNDS", "TARGET", "Bench"]
