"""Frames with texts, categories, times and gaps are read like the same table in a file."""

import datetime
import os
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

import smolfed
from smolfed import Federation, RunResult

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::smolfed.PrivacyWarning")

RNG = np.random.default_rng(5)
ROWS = 240
SIZE = RNG.normal(size=ROWS)
COLOUR = np.array(["red", "green", "blue"])[np.arange(ROWS) % 3]
START = datetime.datetime(2024, 3, 4, 6)
PLAN = {
    "rounds": 3,
    "data": {"scale": "standardise-features", "test": 0},
    "cohort": {"sampling": "full"},
    "train": {"learning_rate": 0.2},
    "privacy": {"epsilon": float("inf"), "clip_norm": 1.0},
}


def frame(**columns: object) -> "pandas.DataFrame":
    table = {
        "size": np.where(np.arange(ROWS) % 10 == 0, np.nan, SIZE),
        "colour": COLOUR,
        "at": [START + datetime.timedelta(hours=5 * row) for row in range(ROWS)],
        "phone": np.arange(ROWS) % 24,
        "label": (SIZE > 0) | (COLOUR == "red"),
    }
    return pandas.DataFrame({**table, **columns})


def trained(table: "pandas.DataFrame", **options: object) -> RunResult:
    data = Federation.from_pandas(table, label="label", groups="phone", **options)
    return smolfed.run(PLAN, data=data)


def test_columns_become_the_features_of_a_file(tmp_path: Path) -> None:
    """The bits match a run on the CSV file, as `smolfed init` would read it."""
    result = trained(frame())
    frame().to_csv(tmp_path / "table.csv", index=False)
    data = {
        "source": "csv", "path": str(tmp_path / "table.csv"), "label": "label",
        "device_column": "phone", "task": "classification", "missing": "mean",
        "categories": {"colour": ["blue", "green", "red"]}, "categories_are_public": False,
        "times": {"at": ["hour", "weekday"]}, **PLAN["data"],
    }
    file = smolfed.run({"name": "python", "method": "dp-fed", **PLAN, "data": data})
    np.testing.assert_array_equal(result.model["weights"], file.model["weights"])
    assert result.model["weights"].shape == (2, 6) and result.devices == file.devices == 24
    assert result.classes == file.classes == ["False", "True"]
    np.testing.assert_array_equal(result.predict_proba(frame()), file.predict_proba(frame()))
    assert result.predict(frame()).dtype == bool
    table, label = frame(), frame()["label"]
    assert result.evaluate(table, label) == file.evaluate(table, label)
    assert np.mean(result.predict(table) == label) == result.evaluate(table, label)["accuracy"]


def test_what_is_read_from_rows_is_stated() -> None:
    private = {**PLAN, "privacy": {"epsilon": 8.0, "clip_norm": 1.0, "delta": 1e-3}}
    data = Federation.from_pandas(frame(), label="label", groups="phone", classes=[False, True])
    with pytest.warns(smolfed.PrivacyWarning) as caught:
        said = smolfed.run(private, data=data).statement
    sentences = " ".join(str(warning.message) for warning in caught)
    assert "`data.categories`" in sentences and "`data.missing`" in sentences
    assert "`data.classes`" not in sentences and not said.is_upper_bound
    public = Federation.from_pandas(
        frame().fillna({"size": 0.0}), label="label", groups="phone", classes=[False, True],
        categories_are_public=True,
    )
    plan = {**private, "data": {"scale": "none", "test": 0}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert smolfed.run(plan, data=public).statement.is_upper_bound


def test_uses_of_columns_are_read_from_rows_without_categories_too() -> None:
    """A counter is left out because of its rows, and a column of texts may hold numbers."""
    private = {
        **PLAN, "data": {"scale": "none", "test": 0, "missing": 0},
        "privacy": {"epsilon": 8.0, "clip_norm": 1.0, "delta": 1e-3},
    }
    table = frame().drop(columns=["colour", "at"])

    def said(**options: bool) -> smolfed.PrivacyStatement:
        known = {"label": "label", "groups": "phone", "classes": [False, True]}
        data = Federation.from_pandas(table, **known, **options)
        return smolfed.run(private, data=data).statement

    with pytest.warns(smolfed.PrivacyWarning, match="`data.categories`: the uses .* of columns"):
        found = said()
    assert not found.is_upper_bound and "`data.categories`" in str(found)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert said(categories_are_public=True).is_upper_bound


def test_columns_that_are_left_out_are_counted() -> None:
    table = frame(same="x", note=[f"note {row}" for row in range(ROWS)])
    with pytest.warns(UserWarning, match="2 columns are left out: `same`.*`note`"):
        data = Federation.from_pandas(table, label="label", groups="phone")
    assert repr(data) == "<Federation: 240 samples of 6 features, 24 devices>"
    # As in a file, a column with anything but numbers is text.
    with pytest.warns(UserWarning, match="1 column is left out: `size`.*`inf` among numbers"):
        Federation.from_pandas(frame(size=[np.inf, *SIZE[1:]]), label="label", groups="phone")
    table = frame(price=[f"${row % 7}" for row in range(ROWS)])
    with pytest.warns(UserWarning, match=r"the frame: .*\$"):
        Federation.from_pandas(table, label="label", groups="phone")


def test_declared_categories_are_categories_though_they_are_numbers() -> None:
    table = frame(level=pandas.Categorical(np.arange(ROWS) % 4))
    data = Federation.from_pandas(table, label="label", groups="phone")
    assert "10 features" in repr(data)
    plain = Federation.from_pandas(
        frame(level=np.arange(ROWS) % 4), label="label", groups="phone"
    )
    assert "7 features" in repr(plain)
    # Whether another column is text makes no difference.
    numbers = {"size": SIZE, "phone": np.arange(ROWS) % 24, "label": SIZE > 0}
    table = pandas.DataFrame({**numbers, "level": pandas.Categorical(np.arange(ROWS) % 4)})
    data = Federation.from_pandas(table, label="label", groups="phone")
    assert "5 features" in repr(data)
    result = smolfed.run(PLAN, data=data)
    assert result.model["weights"].shape == (2, 5)
    assert result.predict(table).shape == (ROWS,)
    whole = frame(count=pandas.array([None, *range(1, ROWS)], dtype="Int64"))
    assert "7 features" in repr(Federation.from_pandas(whole, label="label", groups="phone"))


@pytest.mark.parametrize("labels", [SIZE, np.where(SIZE > 0, "high", "low"), (SIZE > 0) * 2])
def test_targets_keep_their_type(labels: np.ndarray) -> None:
    result = trained(frame(label=labels))
    found = result.predict(frame())
    assert found.dtype == frame(label=labels)["label"].to_numpy().dtype
    if labels.dtype.kind != "f":
        assert set(found.tolist()) <= set(labels.tolist())
    figures = result.evaluate(frame(), labels, groups=frame()["phone"])
    assert figures["rows"] == ROWS and len(figures["devices"]) == 24
    of_three = frame()["phone"] == 3
    assert figures["devices"]["3"] == result.evaluate(frame()[of_three], labels[of_three])


def test_unknown_categories_are_counted_or_refused() -> None:
    result = trained(frame())
    new = frame().head(8).assign(colour=["red", "pink", None, "blue", "grey", "red", "red", "red"])
    none = new.assign(colour=[None if x in ("pink", "grey") else x for x in new["colour"]])
    with pytest.warns(UserWarning, match="2 rows have a category"):
        found = result.predict_proba(new)
    np.testing.assert_array_equal(found, result.predict_proba(none))
    with pytest.warns(UserWarning, match="2 rows have a category"):
        result.evaluate(new, new["label"])
    for use in [result.predict, result.predict_proba]:
        with pytest.raises(ValueError, match="row 2.*colour.*`pink`"):
            use(new, unknown="error")
    with pytest.raises(ValueError, match="pink"):
        result.evaluate(new, new["label"], unknown="error")
    with pytest.raises(ValueError, match='must be "ignore" or "error"'):
        result.predict(new, unknown="drop")
    with pytest.raises(ValueError, match="there is no column `colour`"):
        result.predict(new.drop(columns="colour"))


def test_gaps_in_columns_of_numbers_are_filled() -> None:
    table = frame()[["size", "phone", "label"]]
    result = trained(table)
    mean = table.fillna({"size": table["size"].mean()})
    np.testing.assert_allclose(result.predict_proba(table), result.predict_proba(mean), atol=1e-6)
    plan = {**PLAN, "data": {"scale": "none", "test": 0, "missing": 7}}
    data = Federation.from_pandas(table, label="label", groups="phone")
    filled = Federation.from_pandas(table.fillna(7.0), label="label", groups="phone")
    constant, expected = (smolfed.run(plan, data=found) for found in (data, filled))
    np.testing.assert_array_equal(constant.model["weights"], expected.model["weights"])
    assert "missing = 7" in constant.config
    # Without gaps and a scale in training, no value replaces a gap.
    whole = smolfed.run({**plan, "data": {"scale": "none"}}, data=filled)
    with pytest.raises(ValueError, match="row 1.*is empty"):
        whole.predict(table)


def test_frames_of_polars_are_read_alike() -> None:
    polars = pytest.importorskip("polars")
    table = frame()
    other = polars.DataFrame(
        {name: [None if x != x else x for x in table[name].to_list()] for name in table.columns}
    )
    data = Federation.from_polars(other, label="label", groups="phone")
    result = smolfed.run(PLAN, data=data)
    np.testing.assert_array_equal(result.model["weights"], trained(table).model["weights"])
    np.testing.assert_array_equal(result.predict(other), result.predict(table))


def test_categories_of_unrelated_columns_are_not_declared() -> None:
    """All `Categorical` columns of polars share the categories of the process."""
    polars = pytest.importorskip("polars")
    unrelated = polars.Series(["a secret", "another"]).cast(polars.Categorical)
    level = [str(row % 4) for row in range(ROWS)]
    columns = {"size": SIZE, "phone": np.arange(ROWS) % 24, "label": SIZE > 0}

    def read(kind: object) -> str:
        table = polars.DataFrame({**columns, "level": polars.Series(level).cast(kind)})
        return repr(Federation.from_polars(table, label="label", groups="phone"))

    # Like the texts of a file, which are numbers.
    assert read(polars.Categorical) == read(polars.String)
    assert "of 2 features" in read(polars.Categorical)
    assert "of 5 features" in read(polars.Enum(["0", "1", "2", "3"]))
    assert len(unrelated) == 2


def test_runs_of_frames_are_resumed_and_loaded(tmp_path: Path) -> None:
    def stop(record: dict) -> None:
        if record["round"] == 0:
            raise InterruptedError

    data = Federation.from_pandas(frame(), label="label", groups="phone")
    with pytest.raises(InterruptedError):
        smolfed.run(PLAN, data=data, out=tmp_path / "run", on_round=stop)
    resumed = smolfed.resume(tmp_path / "run", data=data)
    expected = trained(frame())
    np.testing.assert_array_equal(resumed.model["weights"], expected.model["weights"])
    loaded = smolfed.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict_proba(frame()), expected.predict_proba(frame()))


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ({"label": [None, *[True] * (ROWS - 1)]}, {}, "y has 1 missing values"),
        ({"phone": [None, *range(ROWS - 1)]}, {}, "groups has missing values"),
        ({"label": "x"}, {}, "cannot be predicted: it has the same value"),
        ({}, {"classes": [False]}, "True.*not one of `classes`"),
        ({}, {"classes": ["a", "b"]}, "True.*not one of `classes`"),
        ({}, {"test": (frame(), frame()["label"])}, "`test` needs columns of numbers"),
        ({}, {"task": "ranking"}, "`task` is 'ranking'"),
    ],
)
def test_frames_that_nothing_is_learned_from_are_refused(columns, options, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        Federation.from_pandas(frame(**columns), label="label", groups="phone", **options)


def test_predictions_are_those_of_the_program(tmp_path: Path) -> None:
    """Skipped without the program, which `./test` builds."""
    program = os.environ.get("SMOLFED_BIN")
    if program is None:
        pytest.skip("SMOLFED_BIN does not name the program")
    data = Federation.from_pandas(frame(), label="label", groups="phone")
    result = smolfed.run(PLAN, data=data, out=tmp_path / "run")
    frame().to_csv(tmp_path / "rows.csv", index=False)
    command = [program, "predict", tmp_path / "run", "--data", tmp_path / "rows.csv"]
    said = subprocess.run([*command, "--out", tmp_path / "said.csv"], check=True)
    assert said.returncode == 0
    found = pandas.read_csv(tmp_path / "said.csv")
    np.testing.assert_array_equal(found["prediction"], result.predict(frame()))
