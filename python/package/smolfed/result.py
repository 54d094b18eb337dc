"""The result of a run: metrics, privacy statement, model (predictions, exports) and report."""

from __future__ import annotations

import html
import json
import math
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .federation import _devices, _features, _groups, _missing, _same_length, _values, _vector
from .frames import Cells, cells_of, check, is_plain, names_of, texts
from .statement import PrivacyStatement

if TYPE_CHECKING:
    import pandas

    from . import _native


# Export formats by file extension.
_FORMATS = {".onnx": "onnx", ".h": "c-header", ".npz": "npz"}


class Report:
    """A page about a run. A notebook displays it, and `save` writes it."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page as a self-contained file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        # In its own frame, because the page's styles apply to a whole document.
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="800" frameborder="0"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {len(self.html)} characters of HTML>"


class RunResult:
    """The result of a run. It holds no samples of devices.

    It can be pickled and read by the same version of the package.

    Attributes
    ----------
    records : list of dict
        One record per round, as in ``metrics.jsonl``. Figures below "simulation_only" are computed
        from private data without noise, and exist only in simulations. If rounds are windows of
        time, a record has "ages", the number of updates by the age of their model (starting with
        the model of the same window), and "wasted", the number of participations spent without an
        update that counts.
    statement : PrivacyStatement
        The guarantee of the run, and its assumptions.
    statements : list of PrivacyStatement
        All statements, if devices also send other messages.
    model : dict of arrays
        The shared parameters, with the names and shapes of ``model.safetensors``.
    ending : {"done", "interrupted", "over-budget", "gave-up"}
        How the run ended.
    path : str or None
        The run directory, if it has one.
    """

    def __init__(self, outcome: _native.Outcome) -> None:
        self._outcome = outcome
        self._labels: NDArray[Any] | None = None
        self.records: list[dict[str, Any]] = json.loads(outcome.records)
        self.statements = [PrivacyStatement(*parts) for parts in outcome.statements]
        self.model: dict[str, NDArray[np.float32]] = outcome.tensors()
        self.ending: str = outcome.ending[0]
        self.path: str | None = None if outcome.dir is None else os.fspath(outcome.dir)

    @property
    def statement(self) -> PrivacyStatement:
        """The guarantee of the run. Raises ValueError if no round was done."""
        if not self.statements:
            raise ValueError("no round was done: there is nothing to state")
        return self.statements[0]

    @property
    def epsilon(self) -> float:
        """Epsilon of the statement, which names its conditions. 0 before the first round."""
        return self.statements[0].epsilon if self.statements else 0.0

    @property
    def config(self) -> str:
        """The complete experiment, as the text of a file."""
        return self._outcome.config

    @property
    def devices(self) -> int:
        """Number of devices in the federation."""
        return self._outcome.device_count

    @property
    def assessment(self) -> dict[str, Any] | None:
        """All figures of the final model on held-out samples. None without such samples."""
        figures: dict[str, Any] | None = json.loads(self._outcome.assessment)
        return figures

    @property
    def test(self) -> dict[str, float]:
        """Loss and accuracy, or RMSE, on the test part after the last round. Empty without one."""
        return dict((self.records[-1].get("test") or {}) if self.records else {})

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The answers to ``questions``, round by round. Empty without questions.

        Each has ``round`` (from 0), ``question`` (its number from 0), ``kind``, ``name``,
        ``confidence``, ``answered`` and ``estimates``. The last two are figures with ``name``,
        ``value`` and ``interval``, in which None is an open end. They include noise, and epsilon
        covers them.

        Examples
        --------
        >>> import smolfed
        >>> question = {"kind": "count", "every": 5}
        >>> result = smolfed.run(overrides={"rounds": 10, "questions": [question]})
        >>> [(answer["round"], answer["name"]) for answer in result.answers]
        [(4, 'count'), (9, 'count')]
        """
        return [
            {"round": record["round"], **answer}
            for record in self.records
            for answer in record.get("answers", [])
        ]

    @property
    def metrics(self) -> pandas.DataFrame:
        """One row per round, one column per figure by its dotted name (needs pandas).

        Lists have a column for each part, such as ``ages.0``.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "`metrics` needs pandas: pip install 'smolfed[pandas]'; `records` does not"
            ) from error
        rows = [_figures(record) for record in self.records]
        return pandas.DataFrame(rows).set_index("round") if rows else pandas.DataFrame()

    def predict(self, X: ArrayLike, *, unknown: str = "ignore") -> NDArray[Any]:
        """The class of each row, or its value in the unit of the target.

        `X` has the features used in training, in the same units. Rows are prepared as in training.
        The columns of a DataFrame are matched by name, if the features have names. The columns of
        an array are in the order of training. Classes are as in `y` for a `Federation` from arrays,
        and texts otherwise.

        Parameters
        ----------
        X : array of shape (rows, features), or DataFrame
            New rows. A DataFrame may have texts, times and gaps where the training data had them.
        unknown : {"ignore", "error"}
            The treatment of a category that was absent in training. By default it counts as none of
            the known ones, and a warning counts such rows.

        Raises
        ------
        ValueError
            For a missing column, or a wrong number of columns.
        """
        classes, figures = self._predict(X, unknown)
        if len(classes) == 0:
            return figures[:, 0] if figures.shape[1:] == (1,) else figures
        labels = self._labels
        if labels is None or len(labels) != len(self.classes):
            labels = np.asarray(self.classes)
        predicted: NDArray[Any] = labels[classes]
        return predicted

    def evaluate(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        unknown: str = "ignore",
    ) -> dict[str, Any]:
        """Evaluates the model on rows with known targets, with the figures of ``smolfed evaluate``.

        Parameters
        ----------
        X : array of shape (rows, features), or DataFrame
            As for `predict`.
        y : array of shape (rows,)
            The class of each row, or its value in the unit of the target.
        groups : array of shape (rows,), optional
            The device of each row. ``devices`` then has the figures of each device by its name.
        unknown : {"ignore", "error"}
            As for `predict`.

        Returns
        -------
        dict
            ``rows`` and ``loss``; for classes ``accuracy``, ``accuracy_of_majority``, ``f1`` and
            ``confusion`` (rows are classes, columns predicted ones); for values ``rmse``,
            ``rmse_of_mean``, ``r2`` and ``mae`` in the unit of the target.

        Raises
        ------
        ValueError
            For a label that is not a class of the model, or rows that `predict` refuses.

        Notes
        -----
        Epsilon does not cover figures on private rows.
        """
        is_refused, cells = _is_refused(unknown), self._cells(X)
        rows = self._rows(X) if cells is None else cells
        targets = _vector(y, "y")
        count = len(rows) if cells is None else len(cells[0][1])
        _same_length("y", len(targets), count)
        missing = _missing(targets)
        if missing:
            raise ValueError(f"y has {missing} missing values, but every row needs its target")
        figures = self._assess(rows, targets, np.arange(count), is_refused)
        _warn_of_unknown(figures.pop("unknown_rows"))
        if groups is not None:
            codes, names = _devices(_groups(groups, count))
            figures["devices"] = {}
            for code, name in enumerate(names):
                found = self._assess(rows, targets, np.flatnonzero(codes == code), is_refused)
                del found["unknown_rows"]
                figures["devices"][name] = found
        return figures

    def _assess(
        self,
        rows: NDArray[Any] | Cells,
        targets: NDArray[Any],
        chosen: NDArray[np.intp],
        is_refused: bool,
    ) -> dict[str, Any]:
        """The figures of some rows."""
        model, targets, unknown_rows = self._whole(), targets[chosen], 0
        if isinstance(rows, list):
            name = "target"
            while name in dict(rows):
                name += "_"
            columns = [(column, [cells[at] for at in chosen]) for column, cells in rows]
            columns.append((name, texts(targets.tolist())))
            text, unknown_rows = model.assess_frame(columns, name, is_refused)
        elif self.classes:
            labels = [str(label) for label in targets.tolist()]
            text = model.assess(rows[chosen], labels, None)
        else:
            text = model.assess(rows[chosen], None, _values(targets))
        return {**json.loads(text), "unknown_rows": unknown_rows}

    def export(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Writes the model with its preprocessing for other programs, like ``smolfed export``.

        Parameters
        ----------
        path : path
            The file to write.
        format : {"onnx", "c-header", "npz"}, optional
            By default chosen by the file extension: ``.onnx``, ``.h`` or ``.npz``.

        Raises
        ------
        ValueError
            For another format, or a network of ``model.layers``, which cannot be exported in it.
        """
        if format is None:
            ending = os.path.splitext(os.fspath(path))[1]
            if ending not in _FORMATS:
                known = ", ".join(_FORMATS)
                raise ValueError(
                    f"`format` is missing: the ending of the file is {ending!r}, and not one of "
                    f"{known}"
                )
            format = _FORMATS[ending]
        content = self._whole().export(format)
        with open(path, "wb") as file:
            file.write(content)

    def predict_proba(self, X: ArrayLike, *, unknown: str = "ignore") -> NDArray[np.float64]:
        """Class probabilities, shape (rows, classes). Takes the parameters of `predict`."""
        if not self.classes:
            raise ValueError("the model predicts no classes")
        return self._predict(X, unknown)[1]

    @property
    def classes(self) -> list[str]:
        """Names of the classes, in the order of `predict_proba`. Empty for other models."""
        target = json.loads(self._whole().preprocessing).get("target", {})
        return list(target.get("classes", []))

    def _predict(
        self, X: ArrayLike, unknown: str
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        is_refused, cells = _is_refused(unknown), self._cells(X)
        if cells is None:
            return self._whole().predict(self._rows(X))
        found, unknown_rows = self._whole().predict_frame(cells, is_refused)
        _warn_of_unknown(unknown_rows)
        return found

    def _rows(self, X: ArrayLike) -> NDArray[Any]:
        """The features in the order of training."""
        return _features(_in_order(X, self._names("columns")))[0]

    def _cells(self, X: Any) -> Cells | None:
        """The columns of a DataFrame as cells, if it or the model has more than numbers."""
        if getattr(X, "columns", None) is None:
            return None
        encoded = self._names("cells")
        names = [str(name) for name in encoded or self._names("columns") if name is not None]
        columns = names_of(X)
        if not encoded:
            if not names or not set(names) <= set(columns):
                return None
            if all(is_plain(X[columns[name]].to_numpy()) for name in names):
                return None
        return cells_of(X, names)

    def _names(self, kind: str) -> list[str | None]:
        """The names of the model's inputs: its number columns, or the columns of a table."""
        columns = json.loads(self._whole().preprocessing).get(kind, [])
        return [column.get("name") for column in columns]

    def _whole(self) -> _native.Model:
        model = self._outcome.model
        if model is None:
            raise ValueError(
                "the run has no shared model that predicts: each device keeps a part of it"
            )
        return model

    def report(self) -> Report:
        """The page about the run, which a notebook displays."""
        return Report(self._outcome.report())

    def _figure(self) -> str:
        figures = self.test
        if "accuracy" in figures:
            return f"test accuracy {100 * figures['accuracy']:.2f} %"
        if "rmse" in figures:
            return f"test RMSE {figures['rmse']:.4g}"
        return "no test part"

    def __repr__(self) -> str:
        said = self.statement.line if self.statements else "nothing released"
        return f"<RunResult: {len(self.records)} rounds, {self._figure()}; {said}>"

    def _repr_html_(self) -> str:
        said = self.statement._repr_html_() if self.statements else "<p>Nothing released.</p>"
        rounds, figure = len(self.records), html.escape(self._figure())
        return f"<p>{rounds} rounds of {self.devices} devices: {figure}.</p>{said}"


def _is_refused(unknown: str) -> bool:
    if unknown not in ("ignore", "error"):
        raise ValueError(f'`unknown` is {unknown!r}: it must be "ignore" or "error"')
    return unknown == "error"


def _warn_of_unknown(rows: int) -> None:
    if rows:
        warnings.warn(
            f"{rows} rows have a category that the model was not trained with: they count as none "
            'of the known ones (unknown="error" refuses them)',
            stacklevel=4,
        )


def _figures(record: dict[str, Any], above: str = "") -> dict[str, Any]:
    """All numbers of a record by their dotted names."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            flat.update(_figures(value, f"{name}."))
        elif name == "answers":
            for answer in value:
                flat.update(_answer(answer))
        elif isinstance(value, list):
            parts = {str(index): part for index, part in enumerate(value)}
            flat.update(_figures(parts, f"{name}."))
        elif name == "epsilon" and value is None:
            # JSON has no infinity.
            flat[name] = math.inf
        elif isinstance(value, (bool, int, float)):
            flat[name] = value
    return flat


def _answer(answer: dict[str, Any]) -> dict[str, float]:
    """The figures of an answer, like ``answers.evaluate.accuracy``, and the ends of intervals."""
    flat: dict[str, float] = {}
    for figure in [answer["answered"], *answer["estimates"]]:
        name = f"answers.{answer['name']}.{figure['name']}"
        low, high = figure["interval"]
        parts = {name: figure["value"], f"{name}.low": low, f"{name}.high": high}
        flat.update({part: value for part, value in parts.items() if value is not None})
    return flat


def _in_order(X: Any, names: list[str | None]) -> Any:
    """The columns of a DataFrame with these names. Anything else is unchanged."""
    found = getattr(X, "columns", None)
    if found is None or not names or None in names:
        return X
    columns = {str(name): name for name in found}
    check(columns, [str(name) for name in names])
    return X[[columns[str(name)] for name in names]]
