"""Devices from arrays and tables, and refused arguments."""

import math
import warnings

import numpy as np
import pytest

import smolfed
from smolfed import Federation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)
GROUPS = np.arange(120) % 12

# Every device in every round, without noise, so only the shuffles are random.
PLAIN = {
    "rounds": 2,
    "data": {"scale": "none", "test": 0},
    "cohort": {"sampling": "full"},
    "privacy": {"epsilon": float("inf"), "clip_norm": 1.0},
}


# test_runs.py tests the texts of the warnings.
pytestmark = pytest.mark.filterwarnings("ignore::smolfed.PrivacyWarning")


def weights(federation: Federation, **overrides) -> np.ndarray:
    return smolfed.run(PLAIN, data=federation, overrides=overrides).model["weights"]


def test_groups_are_devices() -> None:
    result = smolfed.run(PLAIN, data=Federation.from_arrays(X, Y, groups=GROUPS))
    assert result.devices == 12
    names = np.array([f"phone {group}" for group in GROUPS])
    by_name = Federation.from_arrays(X, Y, groups=names)
    assert smolfed.run(PLAIN, data=by_name).devices == 12
    rows = smolfed.run(PLAIN, data=Federation.from_arrays(X, Y))
    assert rows.devices == 120


def test_the_unit_is_the_row_without_groups_and_the_statement_says_so() -> None:
    private = {"privacy.epsilon": 8.0}
    said = smolfed.run(PLAIN, data=Federation.from_arrays(X, Y), overrides=private).statement
    assert (said.devices, said.unit) == (120, "device")
    assert "Each row of the data is its own device" in said.words
    data = Federation.from_arrays(X, Y, groups=GROUPS)
    said = smolfed.run(PLAIN, data=data, overrides=private).statement
    assert said.devices == 12 and "Each row" not in said.words


DTYPES = ["float64", "float32", "float16", "int64", "uint8", "bool", ">f8"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_all_kinds_give_the_same_model(dtype: str) -> None:
    whole = RNG.integers(0, 2, size=X.shape)
    expected = weights(Federation.from_arrays(whole.astype("float32"), Y, groups=GROUPS))
    found = weights(Federation.from_arrays(whole.astype(dtype), Y, groups=GROUPS))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "view",
    [
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
        lambda rows: rows[:, ::-1][:, ::-1],
        lambda rows: np.broadcast_to(rows, rows.shape),
    ],
)
def test_the_order_in_memory_does_not_matter(view) -> None:
    rows = X.astype(np.float32)
    expected = weights(Federation.from_arrays(rows, Y, groups=GROUPS))
    np.testing.assert_array_equal(
        weights(Federation.from_arrays(view(rows), Y, groups=GROUPS)), expected
    )


def test_arrays_are_not_changed() -> None:
    rows = X.astype(np.float32)
    before = rows.copy()
    weights(Federation.from_arrays(rows, Y, groups=GROUPS), **{"data.scale": "standardise"})
    np.testing.assert_array_equal(rows, before)


def test_tables_are_federations() -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": Y, "phone": GROUPS}
    expected = weights(
        Federation.from_arrays(X.astype(np.float32), Y, groups=GROUPS)
    )
    frame = pandas.DataFrame(columns)
    data = Federation.from_pandas(frame, label="label", groups="phone")
    np.testing.assert_array_equal(weights(data), expected)
    few = Federation.from_pandas(frame, label="label", groups="phone", features=["b"])
    assert weights(few).shape == (2, 1)
    with pytest.raises(ValueError, match="there is no column `phones`"):
        Federation.from_pandas(frame, label="label", groups="phones")
    polars = pytest.importorskip("polars")
    data = Federation.from_polars(polars.DataFrame(columns), label="label", groups="phone")
    np.testing.assert_array_equal(weights(data), expected)


def test_images_are_grids() -> None:
    images = RNG.integers(0, 255, size=(120, 4, 5), dtype=np.uint8)
    data = Federation.from_arrays(images, Y, groups=GROUPS)
    config = smolfed.complete({**PLAIN, "method": "dp-fed", "data": data.data_table})
    assert "axes = [4, 5]" in config
    assert weights(data, **{"data.scale": "unit"}).shape == (2, 20)
    gradients = {"features.kind": "gradients", "features.cell": 2}
    result = smolfed.run(PLAIN, data=data, overrides=gradients)
    # Eight for each of four cells.
    assert result.model["weights"].shape == (2, 32)
    assert result.predict(images.reshape(120, -1)).shape == (120,)


def test_a_test_part_is_held_out() -> None:
    train, test = slice(0, 100), slice(100, 120)
    data = Federation.from_arrays(X[train], Y[train], test=(X[test], Y[test]))
    result = smolfed.run(PLAIN, data=data)
    assert result.devices == 100 and 0 <= result.test["accuracy"] <= 1
    data = Federation.from_arrays(
        X[train], Y[train], groups=GROUPS[train], test=(X[test], Y[test], GROUPS[test])
    )
    assert smolfed.run(PLAIN, data=data).devices == 12
    with pytest.raises(ValueError, match=r"must be \(X, y, groups\)"):
        Federation.from_arrays(X, Y, groups=GROUPS, test=(X, Y))
    with pytest.raises(ValueError, match="samples of shape"):
        Federation.from_arrays(X, Y, test=(X[:, :2], Y))


def test_samples_are_dealt_in_other_ways() -> None:
    data = Federation.from_arrays(X, Y)
    dealt = {**PLAIN, "data": {"partition": "iid", "devices": 6, "test": 0, "scale": "none"}}
    assert smolfed.run(dealt, data=data).devices == 6


def test_data_sets_have_names() -> None:
    data = Federation.dataset("digits", devices=20, test=0, scale={"mean": 0.25, "std": 0.5})
    assert smolfed.run({**PLAIN, "data": {}}, data=data).devices == 20
    with pytest.raises(ValueError, match="digit"):
        smolfed.run({**PLAIN, "data": {}}, data=Federation.dataset("digit", devices=20))


def test_floats_are_values_and_the_rest_are_classes() -> None:
    result = smolfed.run(PLAIN, data=Federation.from_arrays(X, X[:, 0], groups=GROUPS))
    assert result.model["weights"].shape == (1, 3)
    assert result.predict(X).shape == (120,)
    data = Federation.from_arrays(X, Y.astype(float), groups=GROUPS, task="classification")
    result = smolfed.run(PLAIN, data=data)
    assert result.classes == ["0.0", "1.0"]
    assert set(result.predict(X).tolist()) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("arrays", "error", "sentence"),
    [
        ((X[:, 0], Y), ValueError, "features need two or more"),
        ((X, Y[:-1]), ValueError, "y has 119 entries for 120 samples"),
        ((X, np.stack([Y, Y], 1)), ValueError, "y has 2 dimensions"),
        ((X, Y, GROUPS[:-1]), ValueError, "groups has 119 entries for 120 samples"),
        ((X, Y, GROUPS.reshape(-1, 1)), ValueError, "groups has 2 dimensions"),
        ((X.astype(object), Y), TypeError, "X has dtype object"),
        ((X.astype(str), Y), TypeError, "features must be numbers"),
        ((X.astype(complex), Y), TypeError, "features must be numbers"),
        ((X, np.where(Y == 0, np.nan, 1.0), GROUPS, "classification"), ValueError, "NaN"),
        ((X, [1, "a"] * 60), TypeError, "several types|no numbers"),
        ((X, [math.nan, "a"] * 60), ValueError, "y has 60 missing values"),
        ((X, ["b", None, "a"] * 40), ValueError, "y has 40 missing values"),
        ((X, Y, np.where(GROUPS == 1, np.nan, GROUPS)), ValueError, "missing values"),
        ((X, Y, [None, *GROUPS[1:]]), ValueError, "missing values"),
        ((X, Y.astype(str), GROUPS, "regression"), TypeError, "numbers to predict"),
        ((X, Y, GROUPS, "ranking"), ValueError, "`task` is 'ranking'"),
    ],
)
def test_wrong_arrays_are_refused(arrays, error, sentence) -> None:
    X, y, groups, task = (*arrays, *[None] * (4 - len(arrays)))
    if isinstance(y, list):
        y = np.array(y, dtype=object)
    with pytest.raises(error, match=sentence):
        Federation.from_arrays(X, y, groups, task=task)


def test_frames_with_numbers_as_names_and_missing_cells() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.column_stack([X, Y, GROUPS]))
    data = Federation.from_pandas(
        frame, label=3, groups="4", task="classification", features=[0, 2]
    )
    assert repr(data) == "<Federation: 120 samples of 2 features, 12 devices>"
    frame["4"] = 1.0
    with pytest.raises(ValueError, match="two columns are called `4`"):
        Federation.from_pandas(frame, label=3, groups=4)
    frame = pandas.DataFrame({"x": X[:, 0], "y": Y, "phone": GROUPS}).astype({"y": object})
    frame["phone"] = frame["phone"].astype(object)
    for column, sentence in [
        ("y", "y has 1 missing values"),
        ("phone", "groups has missing values"),
    ]:
        spoilt = frame.copy()
        spoilt.loc[3, column] = pandas.NA
        with pytest.raises(ValueError, match=sentence):
            Federation.from_pandas(spoilt, label="y", groups="phone")
    frame["whole"] = pandas.Series([pandas.NA, *range(119)], dtype=object)
    data = Federation.from_pandas(frame, label="y", groups="phone")
    assert repr(data) == "<Federation: 120 samples of 2 features, 12 devices>"


def test_columns_are_found_by_name_and_labels_keep_their_type() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"][: X.shape[1]])
    for labels in (Y.astype(bool), Y.astype(int), np.where(Y > 0, "high", "low")):
        table = frame.assign(y=labels, phone=GROUPS)
        federation = Federation.from_pandas(table, label="y", groups="phone")
        result = smolfed.run(PLAIN, data=federation)
        expected = result.predict(X)
        assert expected.dtype == table["y"].to_numpy().dtype and len(set(expected.tolist())) == 2
        for columns in (frame.columns, frame.columns[::-1]):
            assert (result.predict(frame[columns]) == expected).all()
            assert (result.predict(table[[*columns, "y"]]) == expected).all()
        with pytest.raises(ValueError, match="there is no column `b`; the columns are a, "):
            result.predict(frame.drop(columns="b"))
    # Without names, the order counts.
    unnamed = smolfed.run(PLAIN, data=Federation.from_arrays(X, Y.astype(int), groups=GROUPS))
    assert (unnamed.predict(frame) == unnamed.predict(X)).all()


def test_arrays_that_are_rarely_meant_warn() -> None:
    many = np.arange(120) % 100
    with pytest.warns(UserWarning, match="100 different whole numbers"):
        Federation.from_arrays(X, many, groups=GROUPS)
    epochs = X.copy()
    epochs[:, 1] = 1.7e12 + np.arange(120)
    with pytest.warns(UserWarning, match="lost in the 32 bits"):
        Federation.from_arrays(epochs, Y, groups=GROUPS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Federation.from_arrays(X, many, groups=GROUPS, task="classification")
        Federation.from_arrays(1e6 * X, Y, groups=GROUPS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_and_targets_are_finite(value: float) -> None:
    wrong = X.copy()
    wrong[7, 2] = value
    with pytest.raises(ValueError, match="row 7, feature 2 is"):
        smolfed.run(PLAIN, data=Federation.from_arrays(wrong, Y, groups=GROUPS))
    targets = X[:, 0].copy()
    targets[5] = value
    with pytest.raises(ValueError, match="the target of row 5 is"):
        smolfed.run(PLAIN, data=Federation.from_arrays(X, targets, groups=GROUPS))


def test_what_nothing_can_be_learned_from_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two classes"):
        smolfed.run(PLAIN, data=Federation.from_arrays(X, np.zeros(120, int)))
    with pytest.raises(ValueError, match="has no samples"):
        smolfed.run(PLAIN, data=Federation.from_arrays(X[:0], Y[:0]))
    with pytest.raises(ValueError, match="not one of `classes`"):
        Federation.from_arrays(X, Y, classes=[0, 2])
    with pytest.raises(ValueError, match="`feature_names` has 1 names"):
        Federation.from_arrays(X, Y, feature_names=["a"])


def test_declared_classes_are_not_read_from_rows() -> None:
    private = {"privacy.epsilon": 8.0}
    known = Federation.from_arrays(X, Y, groups=GROUPS, classes=[0, 1])
    assert smolfed.run(PLAIN, data=known, overrides=private).statement.is_upper_bound
    found = Federation.from_arrays(X, Y, groups=GROUPS)
    said = smolfed.run(PLAIN, data=found, overrides=private).statement
    assert not said.is_upper_bound and "list of classes" in said.words
