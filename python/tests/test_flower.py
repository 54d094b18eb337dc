"""The bridge to Flower, in its simulation with a few nodes."""

import random

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs flwr[simulation], which a job of its own installs")

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MessageType,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from smolfed import accounting
from smolfed.flower import CLIP_NORM, GRID_BITS, UPDATE, PrivateStrategy, exact_mod

# For warnings of Ray and Typer.
pytestmark = pytest.mark.filterwarnings("default")

NODES = 8
TARGET = np.arange(6, dtype=np.float32).reshape(2, 3) / 10


def strategy(**parameters) -> PrivateStrategy:
    settings = dict(
        clip_norm=1.0, noise_multiplier=0.01, sampling_rate=0.7, devices=NODES, seed=1
    )
    return PrivateStrategy(FedAvg(min_train_nodes=1), **{**settings, **parameters})


class FakeGrid:
    """A grid of nodes that answer in this process."""

    def __init__(self, nodes: int = NODES) -> None:
        self.nodes = [10**15 + node for node in range(nodes)]

    def get_node_ids(self) -> list[int]:
        return self.nodes


def sent(message: Message, content: RecordDict) -> Message:
    reply = Message(content=content, reply_to=message)
    reply.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
    return reply


def train(message: Message, arrays: dict, **metrics) -> Message:
    """The message from `exact_mod` for a client that ends at `arrays`."""

    def app(message: Message, context: object) -> Message:
        record = {name: Array(np.asarray(value)) for name, value in arrays.items()}
        content = RecordDict(
            {"arrays": ArrayRecord(record), "metrics": MetricRecord({"num-examples": 5, **metrics})}
        )
        return sent(message, content)

    return exact_mod(message, None, app)


def begun(private: PrivateStrategy, grid: FakeGrid) -> list[Message]:
    arrays = ArrayRecord({"w": Array(np.zeros((2, 3), np.float32))})
    return list(private.configure_train(1, arrays, ConfigRecord(), grid))


def test_a_simulation_learns_and_accounts_for_it() -> None:
    private = strategy(noise_multiplier=0.05)
    seen = {}

    client = ClientApp(mods=[exact_mod])

    @client.train()
    def fit(message: Message, context: Context) -> Message:
        arrays = message.content["arrays"].to_numpy_ndarrays()
        moved = arrays[0] + 0.5 * (TARGET - arrays[0])
        content = RecordDict(
            {
                "arrays": ArrayRecord({"w": Array(moved.astype(np.float32))}),
                "metrics": MetricRecord({"num-examples": 7, "loss": 0.5}),
            }
        )
        return Message(content=content, reply_to=message)

    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        arrays = ArrayRecord({"w": Array(np.zeros((2, 3), np.float32))})
        seen["result"] = private.start(grid=grid, initial_arrays=arrays, num_rounds=6)

    run_simulation(
        server,
        client,
        num_supernodes=NODES,
        backend_config={"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2}},
    )
    found = seen["result"].arrays["w"].numpy()
    assert np.abs(found - TARGET).max() < 0.15
    # No client metric is aggregated without noise.
    assert not seen["result"].train_metrics_clientapp
    said = private.statement(delta=1e-3)
    expected = accounting.epsilon(
        noise_multiplier=0.05, sampling_rate=0.7, rounds=6, devices=NODES, delta=1e-3,
        mechanism="discrete-gaussian",
    )
    assert (said.epsilon, said.rounds, said.devices) == (expected, 6, NODES)
    assert "known seed" in said.words


def test_the_average_is_that_of_integers_with_noise() -> None:
    private, grid = strategy(), FakeGrid()
    messages = begun(private, grid)
    assert 0 < len(messages) < NODES
    update = np.full((2, 3), 0.1, np.float32)
    replies = [train(message, {"w": update}) for message in messages]
    arrays, metrics = private.aggregate_train(1, replies)
    expected = 0.1 * len(messages) / (0.7 * NODES)
    assert np.abs(arrays["w"].numpy() - expected).max() < 0.02
    assert metrics is None


def test_updates_are_clipped_and_only_integers_are_sent() -> None:
    message = begun(strategy(), FakeGrid())[0]
    reply = train(message, {"w": np.full((2, 3), 100.0, np.float32)}, loss=0.3)
    assert list(reply.content) == [UPDATE]
    integers = reply.content[UPDATE][UPDATE].numpy()
    assert integers.dtype == np.int32
    squares = int((integers.astype(object) ** 2).sum())
    assert 4**20 * 0.99 < squares <= 4**20


@pytest.mark.parametrize(
    "integers",
    [
        np.full(6, 2**20, np.int32),
        np.zeros(5, np.int32),
        np.zeros(6, np.float32),
        np.zeros((2, 3), np.int32),
    ],
)
def test_what_is_no_clipped_update_costs_only_itself(integers: np.ndarray) -> None:
    private = strategy()
    messages = begun(private, FakeGrid())
    good = train(messages[0], {"w": np.full((2, 3), 0.1, np.float32)})
    bad = sent(messages[1], RecordDict({UPDATE: ArrayRecord({UPDATE: Array(integers)})}))
    arrays, _ = private.aggregate_train(1, [bad, good])
    assert np.abs(arrays["w"].numpy() - 0.1 / (0.7 * NODES)).max() < 0.02


def test_a_node_counts_once_and_only_if_it_was_drawn() -> None:
    private, grid = strategy(), FakeGrid()
    messages = begun(private, grid)
    drawn = {message.metadata.dst_node_id for message in messages}
    update = {"w": np.full((2, 3), 0.4, np.float32)}
    twice = [train(messages[0], update)] * 2
    other = train(messages[1], update)
    stranger = next(node for node in grid.nodes if node not in drawn)
    other.metadata.__dict__["_src_node_id"] = stranger
    arrays, _ = private.aggregate_train(1, [*twice, other])
    assert np.abs(arrays["w"].numpy() - 0.4 / (0.7 * NODES)).max() < 0.02


def test_noise_is_new_in_each_round_and_has_its_std() -> None:
    private = strategy(noise_multiplier=2.0, seed=3)
    found = []
    for _ in range(200):
        begun(private, FakeGrid())
        arrays, _ = private.aggregate_train(1, [])
        found.append(arrays["w"].numpy().reshape(-1))
    noise = np.concatenate(found)
    # The std of 1200 values is within 15 % except with probability 2e-13.
    assert abs(noise.std() / (2.0 / (0.7 * NODES)) - 1) < 0.15
    assert len({values.tobytes() for values in found}) == len(found)
    assert private.ledger.rounds == 200


def test_secret_randomness_differs_from_run_to_run() -> None:
    def first() -> np.ndarray:
        private = strategy(noise_multiplier=1.0, seed=None)
        begun(private, FakeGrid())
        return private.aggregate_train(1, [])[0]["w"].numpy()

    assert np.any(first() != first())
    private = strategy(seed=None)
    assert isinstance(private._random, random.SystemRandom)


def test_a_limit_refuses_the_next_round() -> None:
    private = strategy(noise_multiplier=1.0, max_epsilon=3.0, delta=1e-2)
    rounds = 0
    with pytest.raises(RuntimeError, match="max_epsilon"):
        while True:
            begun(private, FakeGrid())
            private.aggregate_train(1, [])
            rounds += 1
    assert rounds > 0 and private.epsilon <= 3.0


def test_evaluation_on_nodes_is_no_upper_bound() -> None:
    for with_evaluation in (False, True):
        private = strategy(noise_multiplier=1.0, with_evaluation=with_evaluation, rounds=1)
        begun(private, FakeGrid())
        private.aggregate_train(1, [])
        said = private.statement(delta=1e-3)
        assert said.is_upper_bound != with_evaluation
        kinds = [condition["kind"] for condition in said.conditions]
        assert ("evaluated-on-devices" in kinds) == with_evaluation
        assert ("without noise" in said.words) == with_evaluation
    assert strategy().configure_evaluate(1, None, None, None) == []


@pytest.mark.parametrize(("rounds", "kind"), [(None, "no-plan"), (2, "stopped"), (1, None)])
def test_a_statement_needs_a_plan(rounds: int | None, kind: str | None) -> None:
    private = strategy(noise_multiplier=1.0, rounds=rounds)
    begun(private, FakeGrid())
    private.aggregate_train(1, [])
    said = private.statement(delta=1e-3)
    kinds = [condition["kind"] for condition in said.conditions]
    assert (kind in kinds) == (kind is not None)
    assert said.is_upper_bound == (kind is None)


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="8 nodes, but `devices` is 7"):
        begun(strategy(devices=7), FakeGrid())
    with pytest.raises(ValueError, match="needs `delta`"):
        strategy(max_epsilon=1.0)
    with pytest.raises(ValueError, match="comes first"):
        strategy().aggregate_train(1, [])
    with pytest.raises(ValueError, match="nothing to state"):
        strategy().statement(delta=1e-3)
    with pytest.raises(ValueError, match="the sampling rate is 2"):
        strategy(sampling_rate=2)
    private = strategy()
    message = begun(private, FakeGrid())[0]
    nan = train(message, {"w": np.full((2, 3), np.nan, np.float32)})
    assert nan.has_error() and "exact_mod" in nan.error.reason
    assert train(message, {"v": np.zeros((2, 3), np.float32)}).has_error()
    assert message.content["config"][CLIP_NORM] == 1.0
    assert message.content["config"][GRID_BITS] == 20
    assert message.metadata.message_type == MessageType.TRAIN


def test_what_epsilon_follows_from_is_fixed() -> None:
    private = strategy()
    for name in ["clip_norm", "noise_multiplier", "sampling_rate", "devices", "grid_bits",
                 "max_epsilon", "delta", "rounds", "seed", "with_evaluation", "ledger"]:
        with pytest.raises(AttributeError):
            setattr(private, name, getattr(private, name))
    for wrong in [{"seed": -1}, {"rounds": 0}, {"max_epsilon": np.nan, "delta": 1e-3},
                  {"clip_norm": 0.0}]:
        with pytest.raises(ValueError):
            strategy(**wrong)
