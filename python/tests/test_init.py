"""Proposals for your own data, which match `smolfed init`, also for frames."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import smolfed
from smolfed import Federation

pandas = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::smolfed.PrivacyWarning")

RNG = np.random.default_rng(7)
ROWS = 600
SIZE = RNG.normal(size=ROWS)
TABLE = pandas.DataFrame(
    {
        "size": np.where(np.arange(ROWS) % 9 == 0, np.nan, SIZE),
        "colour": np.array(["red", "green", "blue"])[np.arange(ROWS) % 3],
        "same": "x",
        "phone": np.arange(ROWS) % 60,
        "activity": np.where(SIZE > 0, "walk", "sit"),
    }
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    TABLE.to_csv(tmp_path / "phones.csv", index=False)
    return tmp_path / "phones.csv"


def proposed(data: object, **options: object) -> str:
    with pytest.warns(UserWarning, match="1 column is left out: `same`"):
        return smolfed.init(data, label="activity", **options)


def test_a_file_has_an_experiment_that_runs(file: Path) -> None:
    text = proposed(file, device="phone")
    assert text.startswith("# Written by") and "smolfed.init(" in text[:300]
    assert '"blue", "green", "red"' in text
    saved = file.with_suffix(".toml")
    saved.write_text(text)
    result = smolfed.run(saved, overrides={"rounds": 3})
    assert result.devices == 60 and result.classes == ["sit", "walk"]
    # The text itself is also an experiment.
    again = smolfed.run(text, overrides={"rounds": 3})
    np.testing.assert_array_equal(again.model["weights"], result.model["weights"])
    assert smolfed.complete(text) == smolfed.complete(saved)
    repeated = smolfed.run(result.config)
    np.testing.assert_array_equal(repeated.model["weights"], result.model["weights"])


def test_a_frame_has_the_experiment_of_its_file(file: Path) -> None:
    text = proposed(TABLE, device="phone")
    assert 'source = "memory"' in text and "smolfed.run(EXPERIMENT, data=" in text
    with pytest.warns(UserWarning, match="`same`"):
        devices = Federation.from_pandas(TABLE, label="activity", groups="phone")
    result = smolfed.run(text, data=devices, overrides={"rounds": 3})
    expected = smolfed.run(proposed(file, device="phone"), overrides={"rounds": 3})
    np.testing.assert_array_equal(result.model["weights"], expected.model["weights"])
    assert result.statement.line == expected.statement.line
    assert [found["kind"] for found in result.statement.conditions] == [
        found["kind"] for found in expected.statement.conditions
    ]


def test_rows_are_dealt_where_no_column_names_devices() -> None:
    table = TABLE.drop(columns="phone")
    text = proposed(table)
    assert 'partition = "iid"' in text and "give `device`" in text
    with pytest.warns(UserWarning, match="`same`"):
        devices = Federation.from_pandas(table, label="activity")
    assert smolfed.run(text, data=devices, overrides={"rounds": 2}).devices == 60


def test_columns_are_chosen() -> None:
    table = TABLE.drop(columns="same").fillna({"size": 0.0})
    with pytest.warns(UserWarning, match="1 column is left out: `colour` .as you asked"):
        text = smolfed.init(table, label="size", device="phone", ignore=["colour"])
    assert 'task = "regression"' in text and "target_scale" in text


def test_known_sets_have_experiments() -> None:
    text = smolfed.init("digits")
    assert 'source = "digits"' in text


@pytest.mark.parametrize(
    ("data", "options", "error", "sentence"),
    [
        ("none.csv", {}, FileNotFoundError, "neither a file nor a known data set"),
        ("mine.toml", {}, ValueError, "is an experiment already"),
        ("digits", {"label": "x"}, ValueError, "for files with columns"),
        (TABLE, {}, ValueError, "which column should be predicted. give `label`"),
        (TABLE, {"label": "activty"}, ValueError, "there is no column `activty`"),
        (TABLE, {"label": "same"}, ValueError, "cannot be predicted"),
        (TABLE, {"label": "activity", "task": "ranking"}, ValueError, "`task` is"),
    ],
)
def test_data_without_a_proposal_are_refused(data, options, error, sentence) -> None:
    with pytest.raises(error, match=sentence):
        smolfed.init(data, **options)


def test_the_proposal_is_that_of_the_program(file: Path) -> None:
    """Skipped without the program, which `./test` builds."""
    program = os.environ.get("SMOLFED_BIN")
    if program is None:
        pytest.skip("SMOLFED_BIN does not name the program")
    command = [program, "init", file, "--label", "activity", "--device-column", "phone"]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    ours = proposed(file, device="phone")
    # The head names the command, and its lines may be wrapped differently.
    assert said[said.index("\nname =") :] == ours[ours.index("\nname =") :]
