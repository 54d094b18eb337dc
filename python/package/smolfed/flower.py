"""A bridge to Flower: exact integer clipping, sums and noise, and their accounting.

`exact_mod` runs on the client, after all other mods: it clips the update, rounds it toward zero
onto an integer grid, and sends nothing else. `PrivateStrategy` wraps any Flower strategy. It
samples the nodes of a round in secret, checks and sums their integers exactly, adds exact discrete
Gaussian noise, and hands the noisy average to the wrapped strategy as if one node had sent it.

::

    app = ClientApp(mods=[exact_mod])
    strategy = PrivateStrategy(
        FedAvg(), clip_norm=1.0, noise_multiplier=1.2, sampling_rate=0.1, devices=1000
    )
    strategy.start(grid=grid, initial_arrays=arrays, num_rounds=50)
    print(strategy.statement(delta="1/N^1.1"))

Needs flwr 1.21 or newer, which has strategies for the message API.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .aggregate import Accounted
from .requirement import unmet

try:
    from flwr.app import (
        Array,
        ArrayRecord,
        ConfigRecord,
        Context,
        Error,
        Message,
        MessageType,
        MetricRecord,
        RecordDict,
    )
    from flwr.serverapp.strategy import Strategy
except ImportError as error:
    # `flwr.serverapp.strategy` is new in 1.21.
    raise unmet("smolfed.flower", "flwr", "1.21", "flower", error) from error

CLIP_NORM = "smolfed.clip-norm"
GRID_BITS = "smolfed.grid-bits"
UPDATE = "smolfed.update"

# Flower's code for a mod whose preconditions do not hold.
_MOD_FAILED = 6

def exact_mod(
    message: Message, context: Context, call_next: Callable[[Message, Context], Message]
) -> Message:
    """Clips and quantises the update of a client, and sends only its integers.

    The metrics of a reply are not sent, because no epsilon would cover them.
    """
    if message.metadata.message_type != MessageType.TRAIN:
        return call_next(message, context)
    try:
        before = _only(message.content.array_records, "array record")
        config = _only(message.content.config_records, "config record")
        if CLIP_NORM not in config or GRID_BITS not in config:
            raise ValueError(f"`{CLIP_NORM}` is missing: the server must use PrivateStrategy")
        clip_norm, grid_bits = float(config[CLIP_NORM]), int(config[GRID_BITS])
        start = _flat(before)
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        after = _only(reply.content.array_records, "array record of the reply")
        if list(after) != list(before):
            raise ValueError("the arrays of the reply are not those of the model")
        update = _flat(after) - start
        integers = _native.quantize(update, clip_norm, grid_bits)
    except ValueError as error:
        return Message(Error(code=_MOD_FAILED, reason=f"exact_mod: {error}"), reply_to=message)
    reply.content = RecordDict({UPDATE: ArrayRecord({UPDATE: Array(integers)})})
    return reply


class PrivateStrategy(Accounted, Strategy):  # type: ignore[misc]
    """Wraps a Flower strategy, which then sees only the noisy average of a cohort.

    Parameters
    ----------
    strategy : flwr.serverapp.strategy.Strategy
        The strategy that applies the average, such as `FedAvg` or `FedAdam`. Its own sampling and
        weights are not used.
    clip_norm : float
        Bound on the L2 norm of a node's update.
    noise_multiplier : float
        Noise std on the sum of the updates, in clip norms.
    sampling_rate : float
        Probability that a node is in a round. Nodes are sampled independently and in secret.
    devices : int
        Nodes of the federation, a public number. The sum is divided by ``sampling_rate * devices``.
    grid_bits : int
        Updates are multiples of ``clip_norm * 2**-grid_bits``.
    max_epsilon, delta : float, optional
        A round that would exceed this epsilon is refused.
    with_evaluation : bool
        Whether nodes evaluate the model. Their figures are private and no epsilon covers them, so
        the statement's ``is_upper_bound`` is then false.
    rounds : int, optional
        The planned number of rounds. After exactly this many, the statement is an upper bound
        without reservation. If omitted, epsilon is proved only if the number was fixed beforehand.
    seed : int, optional
        For tests. Determines cohorts and noise.

    Attributes
    ----------
    clip_norm, noise_multiplier, sampling_rate, devices, grid_bits, max_epsilon, delta, rounds, \
seed, with_evaluation
        The constructor's arguments, read-only.
    ledger : smolfed.accounting.Ledger
        The cost of the rounds so far.

    Notes
    -----
    The unit of privacy is a node with all its data, and the server is trusted. A sampled node that
    does not answer, or sends anything but a clipped update, counts as zeros.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        clip_norm: float,
        noise_multiplier: float,
        sampling_rate: float,
        devices: int,
        grid_bits: int = 20,
        max_epsilon: float | None = None,
        delta: float | str | None = None,
        with_evaluation: bool = False,
        rounds: int | None = None,
        seed: int | None = None,
    ) -> None:
        Accounted.__init__(
            self, clip_norm=clip_norm, noise_multiplier=noise_multiplier,
            sampling_rate=sampling_rate, devices=devices, grid_bits=grid_bits,
            max_epsilon=max_epsilon, delta=delta, rounds=rounds, seed=seed,
        )
        self.strategy = strategy
        self._with_evaluation = with_evaluation
        # Refused here rather than in the first round.
        self._aggregator_of(1)
        self._random = random.SystemRandom() if seed is None else random.Random(seed)
        self._aggregator: _native.Aggregator | None = None
        self._numbers: dict[int, int] = {}
        self._drawn: set[int] = set()
        self._arrays: ArrayRecord | None = None
        self._template: RecordDict | None = None

    @property
    def with_evaluation(self) -> bool:
        """Whether nodes evaluate the model."""
        return self._with_evaluation

    def _aggregator_of(self, length: int) -> _native.Aggregator:
        return _native.Aggregator(
            length, self.clip_norm, self.grid_bits, self.noise_multiplier, self.seed
        )

    def _conditions(self) -> list[str]:
        found = super()._conditions()
        if self.with_evaluation:
            found.insert(0, json.dumps({"kind": "evaluated-on-devices"}))
        return found

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any
    ) -> Iterable[Message]:
        """Samples the nodes of a round. Raises RuntimeError if it would exceed `max_epsilon`."""
        self._refuse_over_budget()
        config[CLIP_NORM], config[GRID_BITS] = self.clip_norm, self.grid_bits
        planned = list(self.strategy.configure_train(server_round, arrays, config, grid))
        if not planned:
            raise ValueError("the wrapped strategy trains no node: raise its `fraction_train`")
        nodes = sorted(grid.get_node_ids())
        if len(nodes) > self.devices:
            raise ValueError(
                f"there are {len(nodes)} nodes, but `devices` is {self.devices}: the privacy "
                "statement would be about another federation"
            )
        for node in nodes:
            self._numbers.setdefault(node, len(self._numbers))
        if self._aggregator is None:
            self._aggregator = self._aggregator_of(len(_flat(arrays)))
        drawn = [node for node in nodes if self._random.random() < self.sampling_rate]
        self._drawn, self._arrays = set(drawn), arrays
        self._template = planned[0].content
        return [
            Message(content=self._template, message_type=MessageType.TRAIN, dst_node_id=node)
            for node in drawn
        ]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Sums the integers of the cohort, and releases the sum with noise."""
        aggregator, arrays = self._aggregator, self._arrays
        if aggregator is None or arrays is None or self._template is None:
            raise ValueError("`configure_train` comes first")
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error() or node not in self._drawn:
                continue
            try:
                record = _only(reply.content.array_records, "array record")
                integers = record[UPDATE].numpy()
                aggregator.add(self._numbers[node], integers)
            except (KeyError, TypeError, ValueError):
                # A late, dead or dishonest node costs only its own update.
                continue
            self._drawn.discard(node)
        # Charged before it is released.
        self.ledger.charge(self._event)
        average = aggregator.release(self.sampling_rate * self.devices)
        summed = _added(arrays, average)
        # Each sampled set is used once.
        self._drawn, self._arrays = set(), None
        weight = getattr(self.strategy, "weighted_by_key", "num-examples")
        content = RecordDict(
            {"arrays": summed, "metrics": MetricRecord({weight: 1})}
        )
        whole = Message(content=content, message_type=MessageType.TRAIN, dst_node_id=0)
        found, _ = self.strategy.aggregate_train(server_round, [whole])
        return found, None

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Any
    ) -> Iterable[Message]:
        """Configures the evaluation on nodes, if requested."""
        if not self.with_evaluation:
            return []
        found: Iterable[Message] = self.strategy.configure_evaluate(
            server_round, arrays, config, grid
        )
        return found

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """The wrapped strategy's average of the nodes' metrics."""
        if not self.with_evaluation:
            return None
        return self.strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Logs the wrapped strategy's summary."""
        self.strategy.summary()


def _only(records: Any, what: str) -> Any:
    """The only record of a message."""
    if len(records) != 1:
        raise ValueError(f"exactly one {what} is needed, but there are {len(records)}")
    return next(iter(records.values()))


def _flat(record: ArrayRecord) -> NDArray[np.float32]:
    """All arrays, concatenated."""
    arrays = [array.numpy() for array in record.values()]
    for name, array in zip(record, arrays):
        if array.dtype.kind != "f":
            raise ValueError(f"the array `{name}` has dtype {array.dtype}: only floats are trained")
    return np.concatenate([np.asarray(array, np.float32).reshape(-1) for array in arrays])


def _added(record: ArrayRecord, update: NDArray[np.float32]) -> ArrayRecord:
    """The arrays of a record plus an update of all of them."""
    summed, start = {}, 0
    for name, array in record.items():
        values = array.numpy()
        part = update[start : start + values.size].reshape(values.shape)
        summed[name] = Array(np.asarray(values + part, values.dtype))
        start += values.size
    return ArrayRecord(summed)
