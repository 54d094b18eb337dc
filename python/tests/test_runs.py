"""Runs: the bits of the program, results, callbacks, interrupts and threads."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import smolfed
from smolfed import Federation, PrivacyWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(400, 4)).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(int)
DATA = Federation.from_arrays(X, Y, groups=np.arange(400) % 40, classes=[0, 1])
PLAN = {
    "rounds": 4,
    "data": {"scale": "none", "test": 0.2},
    "cohort": {"sampling": "poisson", "sampling_rate": 0.5},
    "privacy": {"epsilon": 8.0, "clip_norm": 0.5},
}


def test_the_built_in_experiment_runs() -> None:
    result = smolfed.run(overrides={"rounds": 3})
    assert [record["round"] for record in result.records] == [0, 1, 2]
    assert result.statement.rounds == 3 and result.epsilon <= 1
    assert result.model["weights"].shape == (10, 64)
    assert result.ending == "done" and result.path is None
    assert 0 < result.test["accuracy"] < 1


def test_the_bits_are_those_of_the_program(tmp_path: Path) -> None:
    """Skipped without the program, which `./test` builds."""
    program = os.environ.get("SMOLFED_BIN")
    if program is None:
        pytest.skip("SMOLFED_BIN does not name the program")
    out = tmp_path / "run"
    command = [program, "run", "--set", "rounds=3", "--json", "--out", str(out)]
    said = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    result = smolfed.run(overrides={"rounds": 3}, out=tmp_path / "again")
    assert said["epsilon"] == result.epsilon
    model = (out / "model.safetensors").read_bytes()
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == model
    assert json.loads((out / "privacy.json").read_text())[0]["epsilon"] == result.epsilon


def test_a_dictionary_a_file_and_overrides_are_the_same(tmp_path: Path) -> None:
    table = {
        "method": "dp-fed", "rounds": 2, "seed": np.int64(3),
        "data": {"source": "digits", "devices": 30, "scale": {"mean": 0.25, "std": 0.5}},
        "cohort": {"cohort_size": 10},
        "privacy": {"epsilon": 4, "clip_norm": np.float64(0.5), "ledger": None},
    }
    path = tmp_path / "mine.toml"
    path.write_text(smolfed.complete(table))
    first = smolfed.run(table).model["weights"]
    np.testing.assert_array_equal(smolfed.run(path).model["weights"], first)
    np.testing.assert_array_equal(smolfed.run(str(path)).model["weights"], first)
    other = smolfed.run(path, overrides={"seed": 4}).model["weights"]
    assert np.any(other != first)
    removed = smolfed.complete(table, overrides={"privacy.epsilon": None})
    assert "epsilon" not in removed


def test_threads_change_nothing() -> None:
    one = smolfed.run(PLAN, data=DATA, threads=1)
    two = smolfed.run(PLAN, data=DATA, threads=2)
    np.testing.assert_array_equal(one.model["weights"], two.model["weights"])


def test_metrics_are_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    metrics = smolfed.run(PLAN, data=DATA).metrics
    assert isinstance(metrics, pandas.DataFrame)
    assert list(metrics.index) == [0, 1, 2, 3]
    assert metrics["epsilon"].is_monotonic_increasing
    assert metrics["test.accuracy"].between(0, 1).all()
    silent = {**PLAN, "privacy": {"epsilon": float("inf"), "clip_norm": 0.5}}
    with pytest.warns(PrivacyWarning, match="nothing protects them"):
        metrics = smolfed.run(silent, data=DATA).metrics
    assert np.isinf(metrics["epsilon"]).all()


def test_windows_have_updates_by_age_and_wasted_participations() -> None:
    """With a staleness of 2, updates are for the model of this window or of the two before."""
    example = Path(__file__).parents[2] / "examples" / "sleeping.toml"
    result = smolfed.run(example, overrides={"rounds": 30})
    for record in result.records:
        assert len(record["ages"]) == 3 and sum(record["ages"]) == record["cohort"]
        assert record["wasted"] >= 0
        assert record["origin"]["ages"] == record["origin"]["wasted"] == "public"
    pytest.importorskip("pandas")
    metrics = result.metrics
    assert list(metrics["ages.1"]) == [record["ages"][1] for record in result.records]
    assert metrics["ages.1"].sum() > 0 and (metrics["wasted"] >= 0).all()
    assert "ages" not in metrics


def test_a_training_that_diverged_is_named() -> None:
    x = np.tile([[0.5, 1.0]], (40, 1)).astype(np.float32)
    x[7, 1] = 1e30
    far = smolfed.Federation.from_arrays(x, x[:, 0], groups=np.arange(40) % 8)
    plan = {
        "method": "dp-fed", "rounds": 2, "seed": 1, "data": {"scale": "none"},
        "cohort": {"sampling": "full"},
        "train": {"learning_rate": 0.1}, "privacy": {"noise_multiplier": 1.0, "clip_norm": 0.5},
    }
    said = r"diverged in 2 of 16 participations .* lower `train.learning_rate`"
    with pytest.warns(RuntimeWarning, match=said):
        smolfed.run(plan, data=far)


def test_the_statement_is_that_of_what_was_done() -> None:
    said = smolfed.run(PLAN, data=DATA).statement
    expected = smolfed.accounting.epsilon(
        noise_multiplier=said.noise_multiplier, sampling_rate=0.5, rounds=4, devices=40,
        mechanism="discrete-gaussian", delta="1/N^1.1",
    )
    assert said.epsilon == expected
    assert said.is_upper_bound and said.devices == 40
    assert "known seed" in said.words


def test_reading_rows_is_warned_of_and_stated() -> None:
    plan = {**PLAN, "data": {"scale": "standardise"}}
    with pytest.warns(PrivacyWarning, match="no epsilon covers"):
        said = smolfed.run(plan, data=DATA).statement
    assert not said.is_upper_bound
    assert any("scale of the features" in note for note in said.notes)


def test_a_report_shows_itself(tmp_path: Path) -> None:
    result = smolfed.run(PLAN, data=DATA)
    report = result.report()
    assert report.html.startswith("<!")
    assert report._repr_html_().startswith("<iframe")
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == report.html
    assert "epsilon" in result._repr_html_() and "rounds" in repr(result)


def test_predictions_are_those_of_the_model() -> None:
    result = smolfed.run({**PLAN, "rounds": 20}, data=DATA)
    scores = X @ result.model["weights"].T + result.model["biases"]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.predict_proba(X), shares, atol=1e-6)
    assert (result.predict(X) == scores.argmax(axis=1)).all()
    with pytest.raises(ValueError, match="4"):
        result.predict(X[:, :3])
    with pytest.raises(ValueError, match="row 2, feature 1 is NaN"):
        wrong = X.copy()
        wrong[2, 1] = np.nan
        result.predict(wrong)
    personal = smolfed.run(
        {**PLAN, "method": "local", "privacy": {}, "cohort": {"sampling": "full"}}, data=DATA
    )
    with pytest.raises(ValueError, match="no shared model"):
        personal.predict(X)


def test_a_denoiser_takes_the_place_of_the_servers() -> None:
    seen = []

    def halved(update, noise_std):
        seen.append(noise_std)
        return {name: values / 2 for name, values in update.items()}

    plan = {**PLAN, "server": {"learning_rate": 0.5}}
    expected = smolfed.run(plan, data=DATA, overrides={"rounds": 1})
    plain = smolfed.run(PLAN, data=DATA, overrides={"rounds": 1}, denoiser=halved)
    for name, values in expected.model.items():
        np.testing.assert_array_equal(plain.model[name], values)
    said = plain.statement
    assert seen == [pytest.approx(said.noise_std / 20, rel=1e-3)]
    assert said.epsilon == expected.statement.epsilon


def test_a_servers_step_is_a_function_of_arrays() -> None:
    def momentum(model, update, noise_std, learning_rate):
        assert model["weights"].shape == update["weights"].shape == (2, 4)
        assert learning_rate == 1.0 and noise_std > 0
        return {name: values + update[name] for name, values in model.items()}

    own = smolfed.run(PLAN, data=DATA, server_step=momentum)
    np.testing.assert_array_equal(
        own.model["weights"], smolfed.run(PLAN, data=DATA).model["weights"]
    )


@pytest.mark.parametrize(
    ("step", "error", "sentence"),
    [
        (lambda *_: 1 / 0, ZeroDivisionError, "division"),
        (lambda *_: None, ValueError, "must return a dictionary"),
        (lambda model, *_: {"weights": model["weights"]}, ValueError, "no array `biases`"),
        (
            lambda model, *_: {**model, "weights": np.zeros(3)},
            ValueError,
            r"shape \[3\], but must have \[2, 4\]",
        ),
        (
            lambda model, *_: {**model, "biases": model["biases"] * np.nan},
            ValueError,
            "must be finite",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_errors_of_a_step_end_the_run(step, error, sentence) -> None:
    with pytest.raises(error, match=sentence):
        smolfed.run(PLAN, data=DATA, server_step=step)


def test_two_denoisers_are_refused() -> None:
    step = lambda model, *_: model  # noqa: E731
    with pytest.raises(ValueError, match="`server.smoothing_factor` cannot be combined"):
        smolfed.run(overrides={"rounds": 1}, server_step=step)
    with pytest.raises(ValueError, match="`server.denoiser` cannot be combined"):
        smolfed.run(
            PLAN, data=DATA, overrides={"server.denoiser": "james-stein"}, server_step=step
        )
    with pytest.raises(ValueError, match="give either"):
        smolfed.run(PLAN, data=DATA, server_step=step, denoiser=lambda update, _: update)


def test_rounds_are_watched() -> None:
    seen = []
    smolfed.run(PLAN, data=DATA, on_round=lambda record: seen.append(record["round"]))
    assert seen == [0, 1, 2, 3]

    def fail(record):
        raise KeyError("watched")

    with pytest.raises(KeyError, match="watched"):
        smolfed.run(PLAN, data=DATA, on_round=fail)


def test_progress_is_shown(capsys) -> None:
    pytest.importorskip("tqdm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smolfed.run(PLAN, data=DATA, progress=True)
    assert "4/4" in capsys.readouterr().err


def test_a_directory_is_written_and_resumed(tmp_path: Path) -> None:
    out = tmp_path / "run"
    stop_after = 2

    def stop(record):
        if record["round"] + 1 == stop_after:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        smolfed.run(PLAN, data=DATA, out=out, on_round=stop)
    assert (out / "checkpoint").is_dir()
    resumed = smolfed.resume(out, data=DATA)
    whole = smolfed.run(PLAN, data=DATA)
    np.testing.assert_array_equal(resumed.model["weights"], whole.model["weights"])
    assert resumed.statement.epsilon == whole.statement.epsilon
    assert (out / "report.html").is_file() and resumed.path == str(out)
    ledger = smolfed.accounting.Ledger.read(out / "ledger.jsonl")
    assert ledger.rounds == 4
    assert ledger.epsilon(delta=whole.statement.delta) == pytest.approx(whole.epsilon)
    other = Federation.from_arrays(X * 2, Y, groups=np.arange(400) % 40, classes=[0, 1])
    with pytest.raises(ValueError, match="checkpoint|another"):
        smolfed.resume(out, data=other)
    with pytest.raises(ValueError, match="memory"):
        smolfed.resume(out)
    with pytest.raises(ValueError):
        smolfed.run(PLAN, data=DATA, out=out)


def test_a_run_with_a_step_of_ones_own_is_not_resumed_without_it(tmp_path: Path) -> None:
    def halve(update, _noise_std):
        return {name: values / 2 for name, values in update.items()}

    def stop(record):
        if record["round"] == 1:
            raise InterruptedError("enough")

    out = tmp_path / "run"
    with pytest.raises(InterruptedError):
        smolfed.run(PLAN, data=DATA, out=out, on_round=stop, denoiser=halve)
    with pytest.raises(ValueError, match="resume it from there"):
        smolfed.resume(out, data=DATA)
    resumed = smolfed.resume(out, data=DATA, denoiser=halve)
    whole = smolfed.run(PLAN, data=DATA, denoiser=halve)
    np.testing.assert_array_equal(resumed.model["weights"], whole.model["weights"])


def test_an_interrupt_says_a_command_that_continues_the_run(tmp_path: Path) -> None:
    def halve(update, _noise_std):
        return {name: values / 2 for name, values in update.items()}

    def stop(record):
        if record["round"] == 1:
            raise KeyboardInterrupt

    def said(**arguments) -> str:
        with pytest.raises(KeyboardInterrupt) as caught:
            smolfed.run(**arguments, on_round=stop)
        return str(caught.value)

    needed = {"data": DATA, "denoiser": halve}
    words = said(experiment=PLAN, out=tmp_path / "arrays", **needed)
    assert words.endswith("with the same data and denoiser")
    command = re.search(r"resume with: (smolfed\.resume\(.*\))", words)
    assert command is not None and "2 of 4 rounds" in words
    resumed = eval(command[1], {"smolfed": smolfed, **needed})
    whole = smolfed.run(PLAN, **needed)
    np.testing.assert_array_equal(resumed.model["weights"], whole.model["weights"])
    # An experiment that names its data needs no arguments again.
    words = said(overrides={"rounds": 3}, out=tmp_path / "digits")
    assert words.endswith(f'smolfed.resume("{tmp_path / "digits"}")')
    assert "resume" not in said(experiment=PLAN, data=DATA)


def test_interrupts_end_a_run_after_its_round(tmp_path: Path) -> None:
    script = f"""
        import numpy as np, smolfed, sys
        def started(record):
            print("round", record["round"], flush=True)
        try:
            smolfed.run(overrides={{"rounds": 100_000}}, out={str(tmp_path / "run")!r},
                        on_round=started)
        except KeyboardInterrupt as error:
            print(error, flush=True)
            sys.exit(7)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 7
    assert "stopped after" in rest and "smolfed.resume" in rest
    assert (tmp_path / "run" / "privacy.json").is_file()


def test_two_runs_go_on_at_the_same_time() -> None:
    results: dict[int, np.ndarray] = {}

    def train(seed: int) -> None:
        results[seed] = smolfed.run(PLAN, data=DATA, overrides={"seed": seed}).model["weights"]

    threads = [threading.Thread(target=train, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, weights in results.items():
        alone = smolfed.run(PLAN, data=DATA, overrides={"seed": seed}).model["weights"]
        np.testing.assert_array_equal(weights, alone)
    assert len(results) == 4


def test_a_run_lets_other_threads_work() -> None:
    """The interpreter is free while devices train, and this thread counts meanwhile."""
    done = threading.Event()

    def train() -> None:
        smolfed.run(overrides={"rounds": 40})
        done.set()

    thread = threading.Thread(target=train)
    thread.start()
    counted = 0
    while not done.is_set():
        counted += 1
        time.sleep(0)
    thread.join()
    assert counted > 10


def test_a_limit_ends_a_run() -> None:
    plan = {**PLAN, "rounds": 50, "privacy": {
        "noise_multiplier": 1.0, "clip_norm": 0.5, "max_epsilon": 6.0, "delta": 1e-3}}
    with pytest.warns(RuntimeWarning, match="max_epsilon|limit|epsilon"):
        result = smolfed.run(plan, data=DATA)
    assert result.ending == "over-budget"
    assert 0 < len(result.records) < 50 and result.epsilon <= 6


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"rounds": 0}, "`rounds`"),
        ({"privacy.epsilon": -1}, "`privacy.epsilon`"),
        ({"privacy.epsilom": 1}, "did you mean `epsilon`"),
        ({"cohort.sampling": "poison"}, "poisson"),
        ({"rounds.x": 1}, "is a value, not a table"),
        ({"data.bounds": 1}, "data"),
    ],
)
def test_wrong_experiments_have_the_sentence_of_the_program(changes, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        smolfed.run(PLAN, data=DATA, overrides=changes)


def test_wrong_arguments_have_their_types(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no experiment"):
        smolfed.run(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="is data, not an experiment"):
        smolfed.run("digits.csv")
    with pytest.raises(TypeError, match="`rounds` is of type"):
        smolfed.run({**PLAN, "rounds": object()}, data=DATA)
    with pytest.raises(TypeError, match="not a text"):
        smolfed.run({**PLAN, 3: 1}, data=DATA)
    with pytest.raises(ValueError, match="`threads` is 0"):
        smolfed.run(PLAN, data=DATA, threads=0)
    with pytest.raises(ValueError, match="run"):
        smolfed.resume(tmp_path / "none")
    table = {"source": "csv", "path": "none.csv", "label": "y", "devices": 3}
    missing = {**PLAN, "method": "dp-fed", "data": table}
    with pytest.raises(FileNotFoundError, match="none.csv"):
        smolfed.run(missing)
    with pytest.raises(FileNotFoundError):
        smolfed.accounting.Ledger.read(tmp_path / "none.jsonl")


def test_a_damaged_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "privacy.ledger"
    path.write_text("nothing\n")
    with pytest.raises(ValueError, match="damaged"):
        smolfed.accounting.Ledger.read(path)
    with pytest.raises(ValueError, match="`unit`"):
        smolfed.accounting.Ledger.read(path, unit="row")
