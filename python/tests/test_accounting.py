"""Accounting: the numbers of the crate, and refused arguments."""

import json
import math
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from smolfed import accounting
from smolfed.accounting import (
    Filter,
    Ledger,
    Strategy,
    TradeOff,
    epsilon,
    epsilon_over_rounds,
    estimate,
    event,
    from_dp_event,
    from_opacus_history,
    statement,
    trade_off,
)

VECTORS = Path(__file__).parents[2] / "tests" / "vectors"


def gaussian_delta(eps: float, mu: float) -> float:
    """Delta of a Gaussian mechanism: Balle, Wang 2018, Theorem 8."""
    return norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)


def sampled_delta(eps: float, noise: float, rate: float) -> float:
    """Delta of one Poisson-sampled Gaussian, by numerical integration of both directions."""
    x = np.linspace(-12 * noise, 12 * noise + 1, 400_001)
    without = norm.pdf(x, 0, noise)
    with_device = (1 - rate) * without + rate * norm.pdf(x, 1, noise)
    removed = np.trapezoid(np.maximum(with_device - math.exp(eps) * without, 0), x)
    added = np.trapezoid(np.maximum(without - math.exp(eps) * with_device, 0), x)
    return float(max(removed, added))


@pytest.mark.parametrize("noise", [0.7, 1.0, 4.0])
def test_full_participation_agrees_with_the_closed_form(noise: float) -> None:
    found = epsilon(noise_multiplier=noise, sampling="full", rounds=9, delta=1e-5)
    mu = 3 / noise
    assert gaussian_delta(found, mu) <= 1e-5 * (1 + 1e-9)
    assert gaussian_delta(found * 0.999, mu) > 1e-5


@pytest.mark.parametrize(("noise", "rate"), [(0.8, 0.01), (1.0, 0.1), (2.0, 0.5)])
def test_poisson_sampling_agrees_with_integration(noise: float, rate: float) -> None:
    found = epsilon(noise_multiplier=noise, sampling_rate=rate, delta=1e-5)
    assert sampled_delta(found, noise, rate) <= 1e-5 * 1.001
    assert sampled_delta(found - 2e-3, noise, rate) > 1e-5


def test_golden_values_of_another_program_agree() -> None:
    """If dp_accounting brackets epsilon, ours lies in the bracket, up to the bracket's width."""
    rows = json.loads((VECTORS / "accounting_epsilon.json").read_text())["poisson_eps"]
    bracketed = [row for row in rows if "eps_tight_upper" in row]
    assert len(bracketed) > 10
    for row in bracketed:
        found = estimate(
            noise_multiplier=row["z"], sampling_rate=row["q"], rounds=row["T"], delta=row["delta"]
        )
        assert found.epsilon_low <= row["eps_tight_upper"] * 1.001
        assert found.epsilon >= row["eps_tight_lower"] * 0.999
        assert found.epsilon <= row["eps_tight_upper"] * 1.005


def test_uniform_sampling_replaces_a_device() -> None:
    planned = dict(noise_multiplier=2, devices=1000, cohort_size=50, sampling="uniform", rounds=30)
    found = estimate(**planned, delta=1e-5)
    assert found.accountant == "uniform-profile"
    assert found.is_upper_bound
    assert found.epsilon > estimate(
        noise_multiplier=2, sampling_rate=0.05, rounds=30, delta=1e-5
    ).epsilon
    assert event(**planned).adjacency == "replace-one"


def test_calibration_meets_its_target() -> None:
    plan = dict(sampling_rate=0.02, rounds=400)
    noise = accounting.noise_multiplier(epsilon=2, delta=1e-6, **plan)
    assert 1.99 < epsilon(noise_multiplier=noise, delta=1e-6, **plan) <= 2
    most = accounting.rounds(epsilon=2, delta=1e-6, noise_multiplier=1, sampling_rate=0.02)
    plan = dict(noise_multiplier=1, sampling_rate=0.02)
    assert epsilon(rounds=most, delta=1e-6, **plan) <= 2
    assert epsilon(rounds=most + 1, delta=1e-6, **plan) > 2
    size = accounting.cohort_size(
        epsilon=2, delta=1e-6, devices=1000, noise_multiplier=1, rounds=100
    )
    plan = dict(noise_multiplier=1, rounds=100, devices=1000)
    assert epsilon(cohort_size=size, delta=1e-6, **plan) <= 2
    assert epsilon(cohort_size=size + 1, delta=1e-6, **plan) > 2
    spent = [event(noise_multiplier=1, sampling_rate=0.02, rounds=100)]
    more = accounting.noise_multiplier(
        epsilon=2, delta=1e-6, spent=spent, sampling_rate=0.02, rounds=400
    )
    assert more > noise


def test_trade_off_curves_are_arrays() -> None:
    rates = np.linspace(0, 1, 11).reshape(1, 11)
    curve = trade_off(noise_multiplier=4, sampling="full", delta=1e-5)
    found = curve.false_negative_rate(rates)
    assert found.shape == rates.shape
    # The trade-off function of a Gaussian (Dong, Roth, Su 2022): at most this, and close.
    exact = norm.cdf(norm.ppf(1 - rates) - 0.25)
    assert np.all(found <= exact + 1e-9)
    assert np.all(found >= exact - 0.01)
    single = TradeOff.of_epsilon(1.0, 1e-5)
    assert np.all(curve.true_positive_rate(rates) <= 1)
    assert single.true_positive_rate(0.0) == pytest.approx(1e-5)


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan])
def test_rates_outside_of_0_to_1_are_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        TradeOff.of_epsilon(1.0, 1e-5).false_negative_rate([rate])
    with pytest.raises(ValueError, match="epsilon is"):
        TradeOff.of_epsilon(math.nan, 1e-5)


def test_correlated_noise_beats_independent_noise() -> None:
    shape = dict(rounds=200, separation=20, participations=10)
    banded = Strategy("banded-optimal-mean", **shape)
    alone = Strategy("identity", **shape)
    assert banded.rmse < alone.rmse / 3
    assert banded.coefficients is not None and banded.coefficients[0] == 1
    assert banded.prefix_stds.shape == (200,)
    assert np.sqrt(np.mean(banded.prefix_stds**2)) == pytest.approx(banded.rmse)
    # All rounds are one Gaussian release: mu = 1 / z.
    found = epsilon(banded.event(noise_multiplier=2), delta=1e-5)
    assert gaussian_delta(found, 0.5) == pytest.approx(1e-5, rel=1e-2)
    in_turn = Strategy("square-root-banded", rounds=200, separation=20, sampling_rate=0.1)
    drawn = epsilon(in_turn.event(noise_multiplier=1, devices=2000), delta=1e-5)
    assert drawn < epsilon(banded.event(noise_multiplier=1), delta=1e-5)
    assert Strategy("tree", **shape).coefficients is None


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (dict(noise_multiplier=-1, sampling_rate=0.1), "the noise multiplier is -1"),
        (dict(noise_multiplier=math.nan, sampling_rate=0.1), "the noise multiplier is NaN"),
        (dict(noise_multiplier=1), "the sampling is missing"),
        (dict(noise_multiplier=1, sampling_rate=1.5), "the sampling rate is 1.5"),
        (dict(noise_multiplier=1, sampling_rate=0.1, rounds=0), "`rounds` is 0"),
        (dict(noise_multiplier=1, cohort_size=5), "`devices` is missing"),
        (dict(noise_multiplier=1, cohort_size=5, devices=3), "the cohort size is 5"),
        (dict(noise_multiplier=1, cohort_size=5, sampling_rate=0.1), "give either"),
        (dict(noise_multiplier=1, sampling="uniform", devices=9), "needs `cohort_size`"),
        (dict(noise_multiplier=1, sampling="full", cohort_size=1), "belong to"),
        (dict(noise_multiplier=1, sampling="unsampled"), "needs `max_participations`"),
        (dict(noise_multiplier=1, sampling="some"), '`sampling` is "some"'),
        (dict(noise_multiplier=1, sampling="full", trust="me"), "the trust model is `me`"),
        (dict(noise_multiplier=1, sampling="full", unit="row"), '`unit` is "row"'),
        (dict(noise_multiplier=1, sampling="full", mechanism="x"), '`mechanism` is "x"'),
        (
            dict(noise_multiplier=1, sampling="full", mechanism="correlation-matrix"),
            "protects one example",
        ),
        (
            dict(noise_multiplier=1, sampling_rate=0.1, devices=3, devices_per_user=4),
            "the number of devices per user is 4",
        ),
        (
            dict(noise_multiplier=1, sampling_rate=0.1, max_participations=4),
            "belongs to `sampling`",
        ),
    ],
)
def test_arguments_are_refused_with_a_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        event(**arguments)


def test_wrong_types_are_type_errors() -> None:
    with pytest.raises(TypeError):
        event(noise_multiplier="1", sampling_rate=0.1)
    with pytest.raises(TypeError, match="not an event"):
        epsilon(["x"], delta=1e-5)
    with pytest.raises(TypeError, match="describes an event"):
        epsilon(event(noise_multiplier=1, sampling="full"), delta=1e-5, rounds=3)
    with pytest.raises(TypeError, match="is the unknown"):
        accounting.noise_multiplier(
            epsilon=1, delta=1e-5, sampling_rate=0.1, noise_multiplier=1
        )


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan, "1/M", "x"])
def test_deltas_are_checked(delta: object) -> None:
    with pytest.raises(ValueError, match="delta"):
        epsilon(noise_multiplier=1, sampling="full", delta=delta)


def test_delta_may_be_a_power_of_the_devices() -> None:
    plan = dict(noise_multiplier=1, sampling_rate=0.1, rounds=10)
    assert epsilon(**plan, devices=1000, delta="1/N") == epsilon(**plan, delta=1e-3)


def test_accountants_refuse_what_they_do_not_cover() -> None:
    with pytest.raises(ValueError, match="`pld` refuses"):
        epsilon(
            noise_multiplier=1, sampling="uniform", devices=9, cohort_size=3, delta=1e-5,
            accountant="pld",
        )
    with pytest.raises(ValueError, match="is not an accountant"):
        epsilon(noise_multiplier=1, sampling="full", delta=1e-5, accountant="moments")
    mixed = [
        event(noise_multiplier=1, sampling="full"),
        event(noise_multiplier=1, sampling="uniform", devices=9, cohort_size=3),
    ]
    with pytest.raises(ValueError, match="cannot be added"):
        epsilon(mixed, delta=1e-5)


def test_an_approximation_is_no_upper_bound() -> None:
    plan = dict(noise_multiplier=1, sampling_rate=0.05, rounds=100, devices=1000, delta=1e-5)
    assert estimate(**plan).is_upper_bound
    figure = estimate(**plan, accountant="gdp")
    assert not figure.is_upper_bound and figure.kind == "approximation"
    assert not statement(**plan, accountant="gdp").is_upper_bound


def test_a_statement_names_what_epsilon_depends_on() -> None:
    said = statement(
        noise_multiplier=1, sampling_rate=0.05, rounds=100, devices=1000, delta=1e-6, clip_norm=0.5
    )
    for words in ("delta", "device", "drawn independently", "server is trusted"):
        assert words in str(said).replace("\n", " ")
    assert said.to_dict()["sampling"] == "poisson"
    assert said.noise_std == 0.5
    assert pickle.loads(pickle.dumps(said)).words == said.words
    assert "<strong>" in said._repr_html_()
    with pytest.raises(AttributeError):
        said.nothing_of_that_name
    with pytest.raises(ValueError, match="`devices` is missing"):
        statement(noise_multiplier=1, sampling_rate=0.05, delta=1e-6)
    silent = statement(noise_multiplier=0, sampling="full", devices=10, delta=1e-6)
    assert silent.epsilon == math.inf


def test_ledgers_add_up() -> None:
    one = event(noise_multiplier=1, sampling_rate=0.02)
    ledger = Ledger([one.with_rounds(40)])
    for _ in range(60):
        ledger.charge(one)
    assert (ledger.rounds, len(ledger)) == (100, 1)
    assert ledger.epsilon(delta=1e-5) == epsilon(one.with_rounds(100), delta=1e-5)
    assert ledger.odometer(delta=1e-5) > ledger.epsilon(delta=1e-5)
    said = ledger.statement(delta=1e-5)
    assert said.rounds == 100
    # A list does not record how many rounds were planned.
    assert not said.is_upper_bound and said.planned_is_upper_bound
    assert [condition["kind"] for condition in said.conditions] == ["no-plan"]
    assert Ledger().epsilon(delta=1e-5) == 0


def test_rounds_of_two_unsampled_runs_are_two_events() -> None:
    """If merged, the bound on participations would count once for both."""
    run = event(noise_multiplier=4, sampling="unsampled", max_participations=2, rounds=10)
    ledger = Ledger([run])
    ledger.charge(run)
    assert len(ledger) == 2
    assert ledger.epsilon(delta=1e-5) == epsilon([run, run], delta=1e-5)
    assert ledger.epsilon(delta=1e-5) > epsilon(run.with_rounds(20), delta=1e-5)


def test_a_filter_keeps_its_budget() -> None:
    plan = event(noise_multiplier=8, sampling="full", rounds=20)
    budget = Filter(plan, delta=1e-5)
    budget.charge(plan.with_rounds(12))
    assert budget.admits(plan.with_rounds(8)) and not budget.admits(plan.with_rounds(9))
    with pytest.raises(ValueError, match="budget"):
        budget.charge(plan.with_rounds(9))
    assert budget.epsilon >= epsilon(plan, delta=1e-5)


def test_opacus_histories_are_events() -> None:
    events = from_opacus_history([(1.1, 0.01, 500), (1.0, 0.02, 10)], devices=1000)
    assert [e.rounds for e in events] == [500, 10]
    assert events[1].sampling_rate == 0.02
    with pytest.raises(ValueError, match="not an entry of a history"):
        from_opacus_history([(1.1, 0.01)])


class GaussianDpEvent:
    def __init__(self, noise_multiplier: float) -> None:
        self.noise_multiplier = noise_multiplier


class PoissonSampledDpEvent:
    def __init__(self, sampling_probability: float, event: object) -> None:
        self.sampling_probability, self.event = sampling_probability, event


class SampledWithoutReplacementDpEvent:
    def __init__(self, source: int, size: int, event: object) -> None:
        self.source_dataset_size, self.sample_size, self.event = source, size, event


class SelfComposedDpEvent:
    def __init__(self, event: object, count: int) -> None:
        self.event, self.count = event, count


class ComposedDpEvent:
    def __init__(self, events: list) -> None:
        self.events = events


class LaplaceDpEvent:
    pass


def test_events_of_dp_accounting_are_events() -> None:
    sampled = PoissonSampledDpEvent(0.02, GaussianDpEvent(1.0))
    both = ComposedDpEvent([SelfComposedDpEvent(sampled, 300), GaussianDpEvent(5.0)])
    found = from_dp_event(both)
    assert [(e.rounds, e.sampling) for e in found] == [(300, "poisson"), (1, "full")]
    uniform = SampledWithoutReplacementDpEvent(1000, 50, GaussianDpEvent(1.0))
    # Relative to the sensitivity of replacing a record, which is two clip norms.
    assert from_dp_event(uniform)[0].noise_multiplier == 2.0
    with pytest.raises(ValueError, match="LaplaceDpEvent"):
        from_dp_event(LaplaceDpEvent())
    with pytest.raises(ValueError, match="below sampling"):
        from_dp_event(PoissonSampledDpEvent(0.1, both))


def test_events_are_values() -> None:
    one = event(noise_multiplier=1, sampling_rate=0.1)
    again = pickle.loads(pickle.dumps(one))
    assert one == again and hash(one) == hash(again)
    assert one != one.with_noise_multiplier(2)
    assert "poisson" in repr(one)


def test_epsilon_grows_with_the_rounds() -> None:
    curve = epsilon_over_rounds(
        event(noise_multiplier=1, sampling_rate=0.1), [1, 10, 100], delta=1e-5
    )
    assert np.all(np.diff(curve) > 0)


def test_plots_need_nothing_but_matplotlib() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = trade_off(noise_multiplier=1, sampling="full", delta=1e-5).plot(label="one")
    assert axes.get_xlabel() == "false-positive rate"


def test_threads_ask_at_the_same_time() -> None:
    found: list[float] = []

    def ask(rounds: int) -> None:
        found.append(
            epsilon(noise_multiplier=1.3, sampling_rate=0.03, rounds=rounds, delta=1e-6)
        )

    threads = [threading.Thread(target=ask, args=(100 + i % 2,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 2
