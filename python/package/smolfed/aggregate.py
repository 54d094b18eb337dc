"""Private averages for training loops of your own, such as those of PyTorch.

The loop trains as it likes, and `PrivateAverage` does what privacy rests on: it draws the devices
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

``examples/torch_module.py`` is a whole program.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from .accounting import Ledger, epsilon, event
from .statement import PrivacyStatement


class Accounted:
    """Rounds of one kind of release, and what they cost together."""

    def __init__(
        self,
        release: _native.Event,
        *,
        clip_norm: float,
        max_epsilon: float | None,
        delta: float | str | None,
        rounds: int | None,
        seed: int | None,
    ) -> None:
        if max_epsilon is not None and delta is None:
            raise ValueError("`max_epsilon` needs `delta`")
        self.clip_norm = clip_norm
        self.max_epsilon = max_epsilon
        self.delta = delta
        self.rounds = rounds
        self.seed = seed
        self.ledger = Ledger()
        self._event = release

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
        """What epsilon depends on beside the events, as `PrivacyStatement.conditions` has it."""
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
        if next_epsilon > self.max_epsilon:
            raise RuntimeError(
                f"the next round would have epsilon {next_epsilon:.4f}, above `max_epsilon` = "
                f"{self.max_epsilon}"
            )


class PrivateAverage(Accounted):
    """Averages of updates of devices, of which epsilon covers everything that is released.

    Parameters
    ----------
    like : array, or dict of arrays
        Arrays with the shapes of an update, such as the model.
    clip_norm : float
        Bound on the L2 norm of a device's update, over all of its arrays together.
    noise_multiplier : float
        Noise std on the sum of the updates, in clip norms.
    sampling_rate : float
        Probability with which each device is in a round, drawn independently and in secret.
    devices : int
        Devices of the federation, a public number. The sum is divided by
        ``sampling_rate * devices``.
    grid_bits : int
        Updates are multiples of ``clip_norm * 2**-grid_bits``.
    max_epsilon, delta : float, optional
        A round that would exceed this epsilon is refused.
    rounds : int, optional
        The planned number of rounds. The statement is an upper bound without reservation after
        exactly so many. Without it, epsilon is proved only if the number was fixed beforehand.
    seed : int, optional
        For tests: cohorts and noise follow from it, and the statement says so.

    Notes
    -----
    The unit of privacy is a device with all of its data, and the program is trusted. Epsilon covers
    the averages that `release` returns. It does not cover anything else that the loop takes from
    devices, such as their losses, the cohorts of `draw`, or running statistics of layers that are
    not part of the update.

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
        release = event(
            noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate,
            devices=devices,
            mechanism="discrete-gaussian",
            grid_bits=grid_bits,
        )
        super().__init__(
            release, clip_norm=clip_norm, max_epsilon=max_epsilon, delta=delta, rounds=rounds,
            seed=seed,
        )
        self.devices = devices
        self.sampling_rate = sampling_rate
        self.grid_bits = grid_bits
        self._shapes = {name: np.shape(array) for name, array in _named(like).items()}
        self._is_named = isinstance(like, Mapping)
        length = sum(map(math.prod, self._shapes.values()))
        self._aggregator = _native.Aggregator(
            length, clip_norm, grid_bits, noise_multiplier, seed
        )
        # Devices that are drawn and have not sent anything; None between rounds.
        self._waiting: set[int] | None = None

    def draw(self) -> list[int]:
        """Begins a round: its devices, numbers from 0. They are secret.

        Raises
        ------
        RuntimeError
            If the round would exceed `max_epsilon`, or the one before was not released.
        """
        if self._waiting is not None:
            raise RuntimeError("the round before was not released: call `release` first")
        self._refuse_over_budget()
        drawn = self._aggregator.draw(self.devices, self.sampling_rate)
        self._waiting = set(drawn)
        return drawn

    def add(self, device: int, update: ArrayLike | Mapping[str, ArrayLike]) -> None:
        """Adds the update of a device, which is clipped and rounded onto the grid.

        A device that is drawn and adds nothing counts as zeros.

        Raises
        ------
        ValueError
            For a device that was not drawn or has added one before, and for an update with other
            arrays, or a number that is not finite. The device then counts as zeros.
        """
        if self._waiting is None or device not in self._waiting:
            raise ValueError(
                f"device {device} is not one of this round that has still to add an update"
            )
        # Each device counts once, and a retry could depend on its data.
        self._waiting.discard(device)
        flat = self._flat(update)
        self._aggregator.add(
            device, _native.quantize(flat, self.clip_norm, self.grid_bits)
        )

    def release(self) -> Any:
        """Ends the round: the sum of its updates with noise, over ``sampling_rate * devices``.

        Arrays of float32 in the form of `like`. The round is charged before it is released.
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
        """All arrays behind each other."""
        arrays = {name: np.asarray(array) for name, array in _named(update).items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != self._shapes:
            raise ValueError(f"the update has arrays of {shapes}, but must have {self._shapes}")
        ordered = [arrays[name].reshape(-1) for name in self._shapes]
        return np.concatenate(ordered).astype(np.float32)


def _named(arrays: ArrayLike | Mapping[str, ArrayLike]) -> Mapping[str, ArrayLike]:
    return arrays if isinstance(arrays, Mapping) else {"": arrays}
