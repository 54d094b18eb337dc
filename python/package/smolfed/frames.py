"""Columns of pandas and polars: numbers as they are, all others as the cells of a table file."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Cells = list[tuple[str, list[str]]]
"""Columns by their names, each with its cells as text. An empty cell is missing."""

# Packages and names of the types of columns that declare their categories.
_DECLARING = {("pandas", "CategoricalDtype"), ("polars", "Enum")}


def names_of(frame: Any) -> dict[str, Any]:
    """The columns by their names as text, which may be numbers."""
    columns = {str(name): name for name in frame.columns}
    if len(columns) < len(frame.columns):
        names = [str(name) for name in frame.columns]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two columns are called `{twice}`: give each its own name")
    return columns


def is_plain(column: NDArray[Any]) -> bool:
    """Whether a column has only numbers, and none is missing."""
    return column.dtype.kind in "iub" or (
        column.dtype.kind == "f" and not bool(np.isnan(column).any())
    )


def cells_of(frame: Any, names: Sequence[str]) -> Cells:
    """These columns as text.

    Raises
    ------
    ValueError
        For a column that is missing.
    """
    columns = names_of(frame)
    check(columns, names)
    return [(name, texts(frame[columns[name]].to_list())) for name in names]


def check(columns: Sequence[str] | dict[str, Any], names: Sequence[str]) -> None:
    """Refuses names without a column."""
    for name in names:
        if name not in columns:
            listed = ", ".join(columns)
            raise ValueError(f"there is no column `{name}`; the columns are {listed}")


def categories_of(column: Any) -> list[str] | None:
    """The categories of a column whose type declares them.

    These types are the categorical type of pandas and `Enum` of polars. All `Categorical` columns
    of polars share the categories of the process, including values of other columns, so they count
    as texts.
    """
    kind = type(column.dtype)
    if (kind.__module__.partition(".")[0], kind.__name__) not in _DECLARING:
        return None
    return texts(list(column.dtype.categories))


def texts(values: Sequence[Any]) -> list[str]:
    """Values as the cells of a file."""
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if is_missing(value):
        return ""
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    # Their shortest texts give the same numbers again.
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the NA of pandas."""
    try:
        # NaN alone differs from itself.
        return value is None or bool(value != value)
    except TypeError:
        # Whether NA differs from itself is NA.
        return True
