"""Private averages for custom training loops: sums, sampling, charges and refusals."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from smolfed import accounting
from smolfed.aggregate import PrivateAverage

EXAMPLE = Path(__file__).parents[1] / "examples" / "torch_module.py"


def average(like=np.zeros(4), **parameters) -> PrivateAverage:
    settings = dict(
        clip_norm=1.0, noise_multiplier=1.0, sampling_rate=0.5, devices=40, rounds=3, seed=1
    )
    return PrivateAverage(like, **{**settings, **parameters})


def test_the_average_is_that_of_clipped_updates() -> None:
    sums = average(noise_multiplier=1e-6, sampling_rate=1.0)
    assert sums.draw() == list(range(40))
    for device in range(40):
        # Lengths 5, which is clipped to 1, and 0.1.
        sums.add(device, [3.0, 4.0, 0.0, 0.0] if device < 20 else [0.0, 0.0, 0.1, 0.0])
    np.testing.assert_allclose(sums.release(), [0.3, 0.4, 0.05, 0], atol=1e-5)


def test_arrays_keep_their_names_and_shapes() -> None:
    like = {"w": np.zeros((2, 3)), "b": np.zeros(2)}
    sums = average(like, noise_multiplier=1e-6, sampling_rate=1.0, devices=1)
    sums.draw()
    update = {"b": np.asarray([0.1, 0.2]), "w": np.arange(6).reshape(2, 3) / 20}
    sums.add(0, update)
    found = sums.release()
    assert list(found) == ["w", "b"]
    np.testing.assert_allclose(found["w"], update["w"], atol=1e-5)
    np.testing.assert_allclose(found["b"], update["b"], atol=1e-5)


def test_devices_are_drawn_anew_and_at_their_rate() -> None:
    sums = average(devices=2000, sampling_rate=0.1, seed=None)
    cohorts = []
    for _ in range(20):
        cohorts.append(sums.draw())
        sums.release()
    # 4000 draws are expected, with a standard deviation of 60.
    assert abs(sum(map(len, cohorts)) - 4000) < 360
    assert len(set(map(tuple, cohorts))) == 20
    assert set(average(devices=2000, sampling_rate=0.1).draw()) != set(cohorts[0])


def test_noise_has_its_std_and_is_new_in_each_round() -> None:
    sums = average(np.zeros(20_000), noise_multiplier=2.0, clip_norm=3.0)
    drawn = []
    for _ in range(2):
        sums.draw()
        drawn.append(sums.release() * 20)
    # The std of 20,000 values is within 3 % except in 1 case in 10^8.
    assert [np.std(noise) for noise in drawn] == pytest.approx([6.0, 6.0], rel=0.03)
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.05


def test_what_was_released_is_stated() -> None:
    sums = average(seed=None, delta=1e-3)
    for done in range(1, 4):
        sums.draw()
        sums.release()
        expected = accounting.epsilon(
            noise_multiplier=1.0, sampling_rate=0.5, rounds=done, devices=40, delta=1e-3,
            mechanism="discrete-gaussian",
        )
        assert sums.epsilon == expected
        assert sums.statement().is_upper_bound == (done == 3)
    said = sums.statement()
    assert (said.devices, said.rounds, said.trust) == (40, 3, "central")
    sums.draw()
    sums.release()
    assert not sums.statement().is_upper_bound
    known = average()
    known.draw()
    known.release()
    kinds = {found["kind"] for found in known.statement(delta=1e-3).conditions}
    assert {"known-seed", "stopped"} <= kinds


def test_a_limit_refuses_the_next_round() -> None:
    one = accounting.epsilon(
        noise_multiplier=1.0, sampling_rate=0.5, rounds=1, devices=40, delta=1e-3,
        mechanism="discrete-gaussian",
    )
    sums = average(max_epsilon=one * 1.01, delta=1e-3)
    sums.draw()
    sums.release()
    with pytest.raises(RuntimeError, match="the next round would have epsilon"):
        sums.draw()
    assert sums.ledger.rounds == 1


def test_a_device_counts_once_and_only_if_it_was_drawn() -> None:
    sums = average(noise_multiplier=1e-6)
    with pytest.raises(RuntimeError, match="call `draw` first"):
        sums.release()
    with pytest.raises(ValueError, match="not one of this round"):
        sums.add(0, np.zeros(4))
    drawn = sums.draw()
    with pytest.raises(RuntimeError, match="call `release` first"):
        sums.draw()
    absent = next(device for device in range(40) if device not in drawn)
    with pytest.raises(ValueError, match="not one of this round"):
        sums.add(absent, np.ones(4))
    sums.add(drawn[0], [0.5, 0, 0, 0])
    with pytest.raises(ValueError, match="not one of this round"):
        sums.add(drawn[0], [0.5, 0, 0, 0])
    np.testing.assert_allclose(sums.release(), [0.025, 0, 0, 0], atol=1e-5)


def test_what_is_no_update_counts_as_zeros() -> None:
    sums = average(noise_multiplier=1e-6, sampling_rate=1.0)
    sums.draw()
    for device, update, sentence in [
        (0, np.ones(5), "the update has arrays of"),
        (1, {"w": np.ones(4)}, "the update has arrays of"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            sums.add(device, update)
        with pytest.raises(ValueError, match="not one of this round"):
            sums.add(device, np.zeros(4))
    np.testing.assert_allclose(sums.release(), np.zeros(4), atol=1e-5)


@pytest.mark.parametrize("number", [np.nan, -np.inf, 1e300, 3e38])
def test_a_device_that_diverges_does_not_end_the_loop(number: float) -> None:
    sums = average(noise_multiplier=1e-6, sampling_rate=1.0)
    sums.draw()
    with pytest.warns(UserWarning, match="the update of device 2 counts as zeros: .*finite"):
        sums.add(2, [number, number, 0, 0])
    with pytest.raises(ValueError, match="not one of this round"):
        sums.add(2, np.zeros(4))
    sums.add(3, [0.4, 0, 0, 0])
    np.testing.assert_allclose(sums.release(), [0.01, 0, 0, 0], atol=1e-5)


def test_what_epsilon_follows_from_is_fixed() -> None:
    clip_norm = np.ones(())
    sums = average(clip_norm=clip_norm, max_epsilon=9, delta=1e-3)
    fixed = dict(
        clip_norm=1.0, noise_multiplier=1.0, sampling_rate=0.5, devices=40, rounds=3, seed=1,
        grid_bits=20, max_epsilon=9.0, delta=1e-3, ledger=sums.ledger,
    )
    for name, value in fixed.items():
        with pytest.raises(AttributeError):
            setattr(sums, name, value)
    clip_norm[...] = 5
    assert {name: getattr(sums, name) for name in fixed} == fixed


def test_wrong_use_is_refused() -> None:
    with pytest.raises(ValueError, match="`max_epsilon` needs `delta`"):
        average(max_epsilon=1.0)
    with pytest.raises(ValueError, match="no round was done"):
        average().statement(delta=1e-3)
    with pytest.raises(ValueError, match="clip_norm"):
        average(clip_norm=0.0)
    for limit in [np.nan, 0.0, -1.0]:
        with pytest.raises(ValueError, match="`max_epsilon` is .*above 0"):
            average(max_epsilon=limit, delta=1e-3)
    for seed in [-1, 2**64]:
        with pytest.raises(ValueError, match="`seed` is"):
            average(seed=seed)
    for rounds in [0, -2]:
        with pytest.raises(ValueError, match="`rounds` is"):
            average(rounds=rounds)
    for empty in [[], {}, {"w": np.zeros((3, 0))}]:
        with pytest.raises(ValueError, match="`like` has no numbers"):
            average(empty)
    largest = average(seed=2**64 - 1)
    largest.draw()
    largest.release()
    assert not largest.statement(delta=1e-3).is_upper_bound
    with pytest.raises(ValueError, match="delta"):
        _ = average().epsilon


def test_a_module_of_torch_is_trained() -> None:
    """Runs the example, whose model reads other people's digits within its epsilon."""
    pytest.importorskip("torch", reason="needs torch")
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    module, trained, accuracy = runpy.run_path(str(EXAMPLE))["main"]()
    assert accuracy > 0.7
    assert trained.statement().is_upper_bound and trained.epsilon <= 8
    assert sum(values.numel() for values in module.parameters()) == 2410
