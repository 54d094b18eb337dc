"""Private averages for your own training loops, for example in PyTorch.

The loop may train in any way. `PrivateAverage` is responsible for privacy: it samples the devices
of a round in secret, clips their updates and rounds them onto an integer grid, sums integers
exactly, adds exact discrete Gaussian noise, and accounts for it::

    average = PrivateAverage(
        parameters, clip_norm=1.0, noise_multiplier=1.2, sampling_rate=0.1, devices=1000, rounds=50
    )
    for _ in range(50):
        for device in average.draw():
            average.add(device, update_of(device, parameters))
        step = average.release()
        parameters = {name: parameters[name] + step[name] for name in parameters}
    print(average.statement(delta="1/N^1.1"))

``examples/torch_module.py`` is a complete program.
"""

from __future__ import annotations

import json
import math
import operator
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from .accounting import Ledger, epsilon, event
from .statement import PrivacyStatement

# Seeds have 64 bits.
_SEEDS = 2**64


class Accounted:
    """Rounds of one kind of release, and their total cost.

    The attributes match the constructor's arguments. They are read-only, as they determine epsilon.
    """

    def __init__(
        self,
        *,
        clip_norm: float,
        noise_multiplier: float,
        sampling_rate: float,
        devices: int,
        grid_bits: int,
        max_epsilon: float | None,
        delta: float | str | None,
        rounds: int | None,
        seed: int | None,
    ) -> None:
        self._event: _native.Event = event(
            noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate,
            devices=devices,
            mechanism="discrete-gaussian",
            grid_bits=grid_bits,
        )
        if max_epsilon is not None:
            if delta is None:
                raise ValueError("`max_epsilon` needs `delta`")
            # NaN is not above 0 either.
            if not max_epsilon > 0:
                raise ValueError(f"`max_epsilon` is {max_epsilon}: it must be above 0")
        if rounds is not None and operator.index(rounds) < 1:
            raise ValueError(f"`rounds` is {rounds}: it must be above 0, or None")
        if seed is not None and not 0 <= operator.index(seed) < _SEEDS:
            raise ValueError(f"`seed` is {seed}: it must be from 0 to {_SEEDS - 1}")
        # Fixes everything that determines epsilon, as later changes would not reach the event.
        self._clip_norm = float(clip_norm)
        self._noise_multiplier = float(noise_multiplier)
        self._sampling_rate = float(sampling_rate)
        self._devices = int(devices)
        self._grid_bits = int(grid_bits)
        self._max_epsilon = None if max_epsilon is None else float(max_epsilon)
        self._delta = delta
        self._rounds = None if rounds is None else int(rounds)
        self._seed = None if seed is None else int(seed)
        self._ledger = Ledger()

    @property
    def clip_norm(self) -> float:
        """Bound on the L2 norm of an update."""
        return self._clip_norm

    @property
    def noise_multiplier(self) -> float:
        """Noise std on the sum of the updates, in clip norms."""
        return self._noise_multiplier

    @property
    def sampling_rate(self) -> float:
        """Probability that a device is in a round."""
        return self._sampling_rate

    @property
    def devices(self) -> int:
        """Devices of the federation."""
        return self._devices

    @property
    def grid_bits(self) -> int:
        """Updates are multiples of ``clip_norm * 2**-grid_bits``."""
        return self._grid_bits

    @property
    def max_epsilon(self) -> float | None:
        """A round that would exceed this epsilon is refused."""
        return self._max_epsilon

    @property
    def delta(self) -> float | str | None:
        """The delta of `epsilon`."""
        return self._delta

    @property
    def rounds(self) -> int | None:
        """The planned number of rounds."""
        return self._rounds

    @property
    def seed(self) -> int | None:
        """The seed of cohorts and noise. None if they are secret."""
        return self._seed

    @property
    def ledger(self) -> Ledger:
        """The cost of the rounds so far."""
        return self._ledger

    @property
    def epsilon(self) -> float:
        """Epsilon of the rounds so far, at `delta`."""
        if self.delta is None:
            raise ValueError("`delta` is missing: give it beforehand")
        return self.ledger.epsilon(delta=self.delta)

    def statement(self, *, delta: float | str | None = None) -> PrivacyStatement:
        """The privacy statement of the rounds so far."""
        chosen = self.delta if delta is None else delta
        if chosen is None:
            raise ValueError("`delta` is missing")
        if not self.ledger.events:
            raise ValueError("no round was done: there is nothing to state")
        parts = _native.statement(
            self.ledger.events, chosen, None, float(self.clip_norm), self._conditions()
        )
        return PrivacyStatement(*parts)

    def _conditions(self) -> list[str]:
        """Conditions of epsilon besides the events, as in `PrivacyStatement.conditions`."""
        found: list[dict[str, Any]] = []
        if self.seed is not None:
            found.append({"kind": "known-seed", "seed": self.seed, "of": "coordinator"})
        done = self.ledger.rounds
        if self.rounds is None or done > self.rounds:
            found.append({"kind": "no-plan"})
        elif done < self.rounds:
            found.append({"kind": "stopped"})
        return [json.dumps(condition) for condition in found]

    def _refuse_over_budget(self) -> None:
        if self.max_epsilon is None or self.delta is None:
            return
        planned = [*self.ledger.events, self._event]
        next_epsilon = epsilon(planned, delta=self.delta)
        # Written so that NaN is refused.
        if not next_epsilon <= self.max_epsilon:
            raise RuntimeError(
                f"the next round would have epsilon {next_epsilon:.4f}, above `max_epsilon` = "
                f"{self.max_epsilon}"
            )


class PrivateAverage(Accounted):
    """Averages of device updates. Epsilon covers everything that it releases.

    Parameters
    ----------
    like : array, or dict of arrays
        Arrays with the shapes of an update, such as the model.
    clip_norm : float
        Bound on the L2 norm of a device's update, over all its arrays together.
    noise_multiplier : float
        Noise std on the sum of the updates, in clip norms.
    sampling_rate : float
        Probability that a device is in a round. Devices are sampled independently and in secret.
    devices : int
        Devices of the federation, a public number. The sum is divided by
        ``sampling_rate * devices``.
    grid_bits : int
        Updates are multiples of ``clip_norm * 2**-grid_bits``.
    max_epsilon, delta : float, optional
        A round that would exceed this epsilon is refused.
    rounds : int, optional
        The planned number of rounds. After exactly this many, the statement is an upper bound
        without reservation. If omitted, epsilon is proved only if the number was fixed beforehand.
    seed : int, optional
        For tests. Determines cohorts and noise, and the statement says so.

    Attributes
    ----------
    clip_norm, noise_multiplier, sampling_rate, devices, grid_bits, max_epsilon, delta, rounds, seed
        The constructor's arguments, read-only.
    ledger : smolfed.accounting.Ledger
        The cost of the rounds so far.

    Notes
    -----
    The unit of privacy is a device with all its data, and the program is trusted. Epsilon covers
    the averages that `release` returns. It does not cover anything else that the loop takes from
    devices, such as their losses, the cohorts of `draw`, or running statistics of layers outside
    the update.

    Examples
    --------
    >>> import numpy as np
    >>> from smolfed.aggregate import PrivateAverage
    >>> average = PrivateAverage(
    ...     np.zeros(3), clip_norm=1.0, noise_multiplier=2.0, sampling_rate=0.5, devices=100,
    ...     rounds=1,
    ... )
    >>> for device in average.draw():
    ...     average.add(device, np.ones(3) / 2)
    >>> average.release().shape
    (3,)
    >>> average.statement(delta=1e-3).is_upper_bound
    True
    """

    def __init__(
        self,
        like: ArrayLike | Mapping[str, ArrayLike],
        *,
        clip_norm: float,
        noise_multiplier: float,
        sampling_rate: float,
        devices: int,
        grid_bits: int = 20,
        max_epsilon: float | None = None,
        delta: float | str | None = None,
        rounds: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            clip_norm=clip_norm, noise_multiplier=noise_multiplier, sampling_rate=sampling_rate,
            devices=devices, grid_bits=grid_bits, max_epsilon=max_epsilon, delta=delta,
            rounds=rounds, seed=seed,
        )
        self._shapes = {name: np.shape(array) for name, array in _named(like).items()}
        self._is_named = isinstance(like, Mapping)
        length = sum(map(math.prod, self._shapes.values()))
        if length == 0:
            raise ValueError("`like` has no numbers, so nothing would be averaged")
        self._aggregator = _native.Aggregator(
            length, self.clip_norm, self.grid_bits, self.noise_multiplier, self.seed
        )
        # Sampled devices that have not sent anything yet. None between rounds.
        self._waiting: set[int] | None = None

    def draw(self) -> list[int]:
        """Starts a round and returns its devices, numbered from 0. They are secret.

        Raises
        ------
        RuntimeError
            If the round would exceed `max_epsilon`, or the previous round was not released.
        """
        if self._waiting is not None:
            raise RuntimeError("the previous round was not released: call `release` first")
        self._refuse_over_budget()
        drawn = self._aggregator.draw(self.devices, self.sampling_rate)
        self._waiting = set(drawn)
        return drawn

    def add(self, device: int, update: ArrayLike | Mapping[str, ArrayLike]) -> None:
        """Adds the update of a device, clipped and rounded onto the grid.

        A sampled device that adds nothing counts as zeros. An update whose norm is not finite in
        float32 also counts as zeros, with a warning: stopping the loop there would reveal that a
        device's training diverged.

        Raises
        ------
        ValueError
            For a device that is not in the cohort or has already added an update, and for an update
            with other arrays. The device then counts as zeros.
        """
        if self._waiting is None or device not in self._waiting:
            raise ValueError(
                f"device {device} is not one of this round that has still to add an update"
            )
        # Each device counts once, because a retry could depend on its data.
        self._waiting.discard(device)
        flat = self._flat(update)
        try:
            integers = _native.quantize(flat, self.clip_norm, self.grid_bits)
        except ValueError as error:
            # The grid was already checked, so the update is at fault.
            warnings.warn(
                f"the update of device {device} counts as zeros: {error}", stacklevel=2
            )
            return
        self._aggregator.add(device, integers)

    def release(self) -> Any:
        """Ends the round: returns the noisy sum of updates over ``sampling_rate * devices``.

        Returns float32 arrays in the form of `like`. The round is charged before its release.
        """
        if self._waiting is None:
            raise RuntimeError("no round has begun: call `draw` first")
        self.ledger.charge(self._event)
        self._waiting = None
        average = self._aggregator.release(self.sampling_rate * self.devices)
        arrays, start = {}, 0
        for name, shape in self._shapes.items():
            end = start + math.prod(shape)
            arrays[name] = average[start:end].reshape(shape)
            start = end
        return arrays if self._is_named else arrays[""]

    def _flat(self, update: ArrayLike | Mapping[str, ArrayLike]) -> NDArray[np.float32]:
        """All arrays, concatenated."""
        arrays = {name: np.asarray(array) for name, array in _named(update).items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != self._shapes:
            raise ValueError(f"the update has arrays of {shapes}, but must have {self._shapes}")
        ordered = [arrays[name].reshape(-1) for name in self._shapes]
        # Numbers beyond float32 become infinite, and the update counts as zeros.
        with np.errstate(over="ignore"):
            return np.concatenate(ordered).astype(np.float32)


def _named(arrays: ArrayLike | Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
    return arrays if isinstance(arrays, Mapping) else {"": arrays}
