"""Stored results, which are loaded from a directory, pickled, evaluated and exported."""

import json
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest

import smolfed
from smolfed import Federation, RunResult

RNG = np.random.default_rng(3)
X = RNG.uniform(-1, 1, size=(400, 3)).astype(np.float32)
DEVICES = np.arange(400) % 40
CLASSES = X[:, 0] > X[:, 1]
VALUES = 3 * X[:, 0] - X[:, 2]
PLAN = {
    "rounds": 4,
    "data": {"scale": "none"},
    "cohort": {"sampling": "poisson", "sampling_rate": 0.5},
    "privacy": {"epsilon": 8.0, "clip_norm": 0.5},
}


def trained(targets: np.ndarray, out: Path | None = None, **options: object) -> RunResult:
    data = Federation.from_arrays(
        X[:300], targets[:300], DEVICES[:300], test=(X[300:], targets[300:], DEVICES[300:]),
        feature_names=["a", "b", "c"], **options,
    )
    plan = {**PLAN, "data": {"scale": "none", "test": 0}}
    if targets.dtype.kind == "f":
        plan["data"]["target_scale"] = {"min": -4, "max": 4}
    return smolfed.run(plan, data=data, out=out)


def same(one: RunResult, two: RunResult) -> None:
    """Asserts that all parts of two results are equal."""
    assert one.records == two.records
    assert str(one.statement) == str(two.statement) and one.epsilon == two.epsilon
    assert one.statement.to_dict() == two.statement.to_dict()
    assert one.config == two.config and one.devices == two.devices
    assert one.assessment == two.assessment and one.test == two.test
    assert one.classes == two.classes and one.ending == two.ending
    assert list(one.model) == list(two.model)
    for name, values in one.model.items():
        np.testing.assert_array_equal(two.model[name], values)
    np.testing.assert_array_equal(two.predict_proba(X), one.predict_proba(X))
    assert one.report().html == two.report().html


def test_a_directory_is_loaded(tmp_path: Path) -> None:
    result = trained(CLASSES, tmp_path / "run", classes=[False, True])
    loaded = smolfed.load(tmp_path / "run")
    same(loaded, result)
    assert loaded.path == str(tmp_path / "run")
    # The directory does not record that classes were truth values.
    assert loaded.predict(X[:5]).tolist() == [str(label) for label in result.predict(X[:5])]
    digits = smolfed.run(overrides={"rounds": 2}, out=tmp_path / "digits")
    assert smolfed.load(str(tmp_path / "digits")).statement.line == digits.statement.line


def test_what_is_not_a_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is not a run directory"):
        smolfed.load(tmp_path)
    trained(CLASSES, tmp_path / "run", classes=[False, True])
    (tmp_path / "run" / "privacy.json").unlink()
    with pytest.raises(ValueError, match="the run has not ended.*resume"):
        smolfed.load(tmp_path / "run")
    trained(CLASSES, tmp_path / "other", classes=[False, True])
    model = tmp_path / "other" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:40])
    with pytest.raises(ValueError, match="damaged"):
        smolfed.load(tmp_path / "other")


def test_a_complete_run_has_its_model(tmp_path: Path) -> None:
    trained(CLASSES, tmp_path / "run", classes=[False, True])
    other = Federation.from_arrays(X[:, :2], CLASSES, DEVICES, classes=[False, True])
    smolfed.run(PLAN, data=other, out=tmp_path / "other")
    model = tmp_path / "run" / "model.safetensors"
    model.write_bytes((tmp_path / "other" / "model.safetensors").read_bytes())
    with pytest.raises(ValueError, match="model.safetensors.*6 parameters.*8"):
        smolfed.load(tmp_path / "run")
    model.unlink()
    with pytest.raises(ValueError, match="model.safetensors is missing"):
        smolfed.load(tmp_path / "run")
    # Models that devices train locally are not shared.
    alone = {**PLAN, "method": "local", "cohort": {"sampling": "full"}, "privacy": {}}
    data = Federation.from_arrays(X, CLASSES, DEVICES, classes=[False, True])
    result = smolfed.run(alone, data=data, out=tmp_path / "alone")
    assert smolfed.load(tmp_path / "alone").records == result.records


def test_an_interrupted_run_is_loaded_with_its_rounds(tmp_path: Path) -> None:
    def stop(record: dict) -> None:
        if record["round"] == 1:
            raise RuntimeError("enough")

    data = Federation.from_arrays(X, CLASSES, DEVICES, classes=[False, True])
    with pytest.raises(RuntimeError, match="enough"):
        smolfed.run(PLAN, data=data, out=tmp_path / "run", on_round=stop)
    loaded = smolfed.load(tmp_path / "run")
    assert loaded.ending == "interrupted" and len(loaded.records) == loaded.statement.rounds


def test_a_result_survives_pickling(tmp_path: Path) -> None:
    result = trained(CLASSES, classes=[False, True])
    again = pickle.loads(pickle.dumps(result))
    same(again, result)
    assert again.path is None
    # Classes keep their types from the arrays.
    assert again.predict(X).dtype == bool
    np.testing.assert_array_equal(again.predict(X), result.predict(X))
    values = trained(VALUES)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(values)).predict(X), values.predict(X))
    loaded = smolfed.load(trained(CLASSES, tmp_path / "run", classes=[False, True]).path or "")
    same(pickle.loads(pickle.dumps(loaded)), loaded)


def test_figures_of_classes_are_those_of_the_run() -> None:
    result = trained(CLASSES, classes=[False, True])
    figures = result.evaluate(X[300:], CLASSES[300:])
    expected = dict(result.assessment or {})
    assert expected.pop("part") == "test" and expected.pop("is_simulation_only")
    assert figures == expected
    right = result.predict(X[300:]) == CLASSES[300:]
    assert figures["accuracy"] == np.mean(right) and figures["rows"] == 100
    # Classes by name, as in a directory.
    assert result.evaluate(X[300:], CLASSES[300:].astype(str)) == figures


def test_figures_of_values_are_those_of_the_run() -> None:
    result = trained(VALUES)
    figures = result.evaluate(X[300:], VALUES[300:])
    expected = dict(result.assessment or {})
    assert figures == {key: expected[key] for key in figures}
    errors = result.predict(X[300:]) - VALUES[300:]
    assert figures["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-5)
    assert figures["mae"] == pytest.approx(np.mean(np.abs(errors)), rel=1e-5)


def test_figures_of_each_device() -> None:
    result = trained(CLASSES, classes=[False, True])
    figures = result.evaluate(X, CLASSES, groups=DEVICES)
    devices = figures["devices"]
    assert len(devices) == 40 and sum(found["rows"] for found in devices.values()) == 400
    of_seven = DEVICES == 7
    assert devices["7"] == result.evaluate(X[of_seven], CLASSES[of_seven])


def test_rows_that_cannot_be_evaluated_are_refused() -> None:
    result = trained(CLASSES, classes=[False, True])
    with pytest.raises(ValueError, match="the label of row 0.*`maybe`"):
        result.evaluate(X[:2], ["maybe", "True"])
    with pytest.raises(ValueError, match="y has 3 entries for 2"):
        result.evaluate(X[:2], [True, False, True])
    with pytest.raises(ValueError, match="missing"):
        result.evaluate(X[:2], [None, True])
    with pytest.raises(ValueError, match="2 features"):
        result.evaluate(X[:2, :2], [True, False])


def test_models_are_exported(tmp_path: Path) -> None:
    result = trained(CLASSES, classes=[False, True])
    result.export(tmp_path / "model.npz")
    arrays = np.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(arrays["weights"], result.model["weights"])
    result.export(tmp_path / "model.h")
    assert "#include <math.h>" in (tmp_path / "model.h").read_text()
    result.export(tmp_path / "model", format="onnx")
    assert b"smolfed" in (tmp_path / "model").read_bytes()
    with pytest.raises(ValueError, match=r"the ending of the file is '\.txt'"):
        result.export(tmp_path / "model.txt")
    with pytest.raises(ValueError, match='must be one of "c-header", "onnx", "npz"'):
        result.export(tmp_path / "model.txt", format="pickle")


def test_figures_and_files_are_those_of_the_program(tmp_path: Path) -> None:
    """Skipped without the program, which `./test` builds."""
    program = os.environ.get("SMOLFED_BIN")
    if program is None:
        pytest.skip("SMOLFED_BIN does not name the program")
    result = trained(CLASSES, tmp_path / "run", classes=[False, True])
    rows = tmp_path / "rows.csv"
    lines = [",".join(map(repr, [*row, label])) for row, label in zip(X.tolist(), CLASSES.tolist())]
    rows.write_text("\n".join(["a,b,c,label", *lines]))
    command = [program, "evaluate", str(tmp_path / "run"), "--label", "label", "--json", "--data"]
    said = json.loads(subprocess.run([*command, rows], capture_output=True, check=True).stdout)
    figures = result.evaluate(X, CLASSES)
    assert {key: said[key] for key in figures} == figures
    for form in ["onnx", "c-header", "npz"]:
        result.export(tmp_path / "ours", format=form)
        command = [program, "export", str(tmp_path / "run"), "--format", form, "--out"]
        subprocess.run([*command, tmp_path / "theirs"], check=True)
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


def test_answers_are_there_by_round(tmp_path: Path) -> None:
    data = Federation.from_arrays(X, CLASSES, DEVICES, classes=[False, True])
    plan = {
        **PLAN,
        "questions": [{"kind": "evaluate", "every": 2}, {"kind": "count", "name": "how many"}],
    }
    result = smolfed.run(plan, data=data, out=tmp_path / "run")
    names = [(answer["round"], answer["name"]) for answer in result.answers]
    assert names == [(1, "evaluate"), (3, "evaluate"), (3, "how many")]
    first = result.answers[0]
    assert first["kind"] == "evaluate" and first["confidence"] == 0.99
    accuracy = first["estimates"][0]
    assert accuracy["name"] == "accuracy"
    low, high = accuracy["interval"]
    assert low <= accuracy["value"] <= high
    assert smolfed.load(tmp_path / "run").answers == result.answers
    assert pickle.loads(pickle.dumps(result)).answers == result.answers
    pytest.importorskip("pandas")
    column = result.metrics["answers.evaluate.accuracy"]
    assert column.count() == 2 and column[1] == accuracy["value"]
    assert result.metrics["answers.evaluate.accuracy.high"][1] == high


def test_a_run_without_questions_has_no_answers() -> None:
    assert smolfed.run(overrides={"rounds": 1}).answers == []
