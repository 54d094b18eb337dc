"""Measures the effect of each default of `smolfed init` on real tables by reverting one at a time.

    venv/bin/python tests/tables/causes.py target/release/smolfed

Prints a Markdown table for each epsilon with R2 or accuracy on held-out rows: means of ten seeds
and their standard errors. Uses the tables and the virtual environment of `check.py`.
"""

import pathlib
import sys
import tempfile

import numpy as np
import pandas as pd
from check import EPSILONS, TABLES, Table, describe, split, train

NAMES = ("star", "modechoice", "gapminder", "cars", "anes96")
SEEDS = range(1, 11)

# The reverted defaults, and the settings that revert them. Without a bound, no step size can be
# derived from it.
CAUSES = (
    ("the defaults", ()),
    ("categories are standardised", ()),
    ("step 0.1", ("train.learning_rate=0.1",)),
    ("step 0.1, samples of any length", ("train.learning_rate=0.1", "data.norm_bound=")),
    ("adaptive clip norm", ("privacy.clip_norm=adaptive",)),
    ("one epoch", ("train.epochs=1",)),
    ("200 rounds", ("rounds=200",)),
)
STANDARDISED = CAUSES[1][0]

Rows = tuple[pd.DataFrame, pd.DataFrame]


def as_numbers(rows: Rows, listed: dict[str, list[str]]) -> Rows:
    """The rows with a 0 or 1 for each category, which `init` standardises as numbers."""

    def encoded(part: pd.DataFrame) -> pd.DataFrame:
        columns = {
            f"{column} is {category}": (part[column].astype(str) == category).astype(float)
            for column, categories in listed.items()
            for category in categories
        }
        return part.drop(columns=list(listed)).assign(**columns)

    return encoded(rows[0]), encoded(rows[1])


def measure(smolfed: str, table: Table) -> dict[tuple[str, int], str]:
    """Returns a cell for each cause and epsilon."""
    cells = {}
    rows = split(table)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = describe(smolfed, folder, table, rows)
        key = "r2" if data.get("task") == "regression" else "accuracy"
        listed = data.get("categories", {})
        for cause, settings in CAUSES:
            of_numbers = folder
            if cause == STANDARDISED:
                if not listed:
                    cells.update({(cause, epsilon): "–" for epsilon in EPSILONS})
                    continue
                of_numbers = folder / "numbers"
                of_numbers.mkdir()
                describe(smolfed, of_numbers, table, as_numbers(rows, listed))
            for epsilon in EPSILONS:
                runs = (train(smolfed, of_numbers, epsilon, of, settings) for of in SEEDS)
                scores = np.array([run[key] for run in runs])
                error = scores.std(ddof=1) / np.sqrt(len(scores))
                cells[cause, epsilon] = f"{scores.mean():.3f} ± {error:.3f}"
                for path in of_numbers.glob("run-*"):
                    path.rename(folder / f"done-{len(list(folder.glob('done-*')))}")
    return cells


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    tables = [next(table for table in TABLES if table.name == name) for name in NAMES]
    measured = [measure(sys.argv[1], table) for table in tables]
    for epsilon in EPSILONS:
        print(f"\n| ε = {epsilon} | {' | '.join(NAMES)} |")
        print("| --- |" + " ---: |" * len(NAMES))
        for cause, _ in CAUSES:
            print(f"| {cause} | {' | '.join(cells[cause, epsilon] for cells in measured)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
