"""Correlated noise (matrix mechanism), for devices that cannot be sampled in secret."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import _native
from .._native import Event


class Strategy:
    """The matrix that a server applies to the sums of rounds before adding noise, with its error.

    Assumes that a device takes part in at most `participations` rounds, any two of them at least
    `separation` apart. It makes no other assumption about which devices take part.

    Parameters
    ----------
    family : str
        One of `FAMILIES`: "identity", "tree", "square-root", "square-root-banded",
        "banded-optimal-mean" or "banded-optimal-max".
    rounds : int
        Rounds of the run.
    separation : int
        Least distance between two rounds of a device, and number of bands of the banded families.
    participations : int, optional
        By default the most rounds that are that far apart.
    sampling_rate : float, optional
        If given, `separation` parts of the population take turns, and each device of a round's part
        is sampled with this probability, in secret (block-cyclic sampling).

    Examples
    --------
    >>> from smolfed.accounting import Strategy, epsilon
    >>> strategy = Strategy("banded-optimal-mean", rounds=200, separation=20, participations=10)
    >>> round(strategy.rmse, 2), round(strategy.sensitivity, 2)
    (9.98, 5.31)
    >>> round(epsilon(strategy.event(noise_multiplier=2), delta=1e-5), 3)
    1.993
    """

    def __init__(
        self,
        family: str,
        *,
        rounds: int,
        separation: int,
        participations: int | None = None,
        sampling_rate: float | None = None,
    ) -> None:
        self._native = _native.Strategy(family, rounds, separation, participations, sampling_rate)

    def event(
        self,
        noise_multiplier: float,
        *,
        devices: int | None = None,
        grid_bits: int = 20,
        trust: str = "central",
    ) -> Event:
        """All rounds of a run with this noise, as a single release.

        `noise_multiplier` is the noise std on each release, divided by sensitivity and clip norm.
        """
        # Without a number, uses the smallest possible one.
        least = self.separation if devices is None else devices
        return self._native.event(noise_multiplier, least, grid_bits, trust)

    @property
    def family(self) -> str:
        """Name of the family."""
        return self._native.family

    @property
    def rounds(self) -> int:
        """Rounds of the run."""
        return self._native.rounds

    @property
    def separation(self) -> int:
        """Least distance between two rounds of a device."""
        return self._native.separation

    @property
    def participations(self) -> int:
        """Most rounds of a device."""
        return self._native.participations

    @property
    def sensitivity(self) -> float:
        """The norm by which one device moves all releases together, in clip norms."""
        return self._native.sensitivity

    @property
    def rmse(self) -> float:
        """Root mean squared error of all prefix sums, for noise multiplier 1."""
        return self._native.rmse

    @property
    def max_error(self) -> float:
        """Largest standard deviation of a prefix sum, for noise multiplier 1."""
        return self._native.max_error

    @property
    def prefix_stds(self) -> NDArray[np.float64]:
        """Standard deviation of each prefix sum, for noise multiplier 1; shape (rounds,)."""
        return self._native.prefix_stds

    @property
    def coefficients(self) -> NDArray[np.float64] | None:
        """Coefficients of the Toeplitz matrix C, from 1 on. None for the tree, which has none."""
        return self._native.coefficients

    def __repr__(self) -> str:
        return repr(self._native)
