"""Data of a run: devices with samples, from arrays, tables or a data set by name, with checks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from .frames import categories_of, cells_of, check, is_missing, is_plain, names_of

# Types in which features are passed on. Other numbers become float32.
_NATIVE = ("float32", "float64", "uint8")

# More different whole numbers than a likely number of classes, as for tables in files.
_MANY_CLASSES = 20

# float32 steps by 2 or more from here on.
_LARGE = 2**24


class Federation:
    """Devices with their samples, for `run`.

    Create it with `from_arrays`, `from_pandas`, `from_polars` or `dataset`. The arrays are kept as
    they are. Each run copies them once, and scales and sorts its copy.
    """

    def __init__(
        self,
        table: dict[str, Any],
        samples: dict[str, Any] | _native.Table | None = None,
        labels: NDArray[Any] | None = None,
    ) -> None:
        self._table = table
        self._samples = samples
        # The classes as in `y`. Samples have their names.
        self._labels = labels

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        task: str | None = None,
        classes: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        test: tuple[ArrayLike, ...] | None = None,
    ) -> Federation:
        """Devices from arrays.

        Parameters
        ----------
        X : array of shape (samples, features) or (samples, rows, columns)
            Finite numbers. With more than two dimensions, samples are grids, which can be smoothed
            along their axes. Pixels as uint8 stay bytes.
        y : array of shape (samples,)
            Classes, or numbers to predict.
        groups : array of shape (samples,), optional
            The device of each sample: numbers or texts. If omitted, **each row is a device**, and
            the privacy statement says so. Epsilon then protects one row.
        task : {"classification", "regression"}, optional
            By default regression if `y` has floats, and classification otherwise, with a warning if
            `y` has more than 20 different whole numbers.
        classes : sequence, optional
            All classes, known beforehand. If omitted, they are taken from `y`, which no epsilon
            covers, and the statement's ``is_upper_bound`` is false.
        feature_names : sequence of str, optional
            Names of the features.
        test : (X, y) or (X, y, groups), optional
            A test part, with devices if `groups` is given. By default the fraction ``data.test`` of
            the samples is held out.

        Raises
        ------
        ValueError
            For arrays of other shapes or lengths, or values that are not finite.
        TypeError
            For arrays that do not hold numbers.

        Examples
        --------
        >>> import numpy as np, smolfed
        >>> rng = np.random.default_rng(0)
        >>> X, device = rng.normal(size=(400, 5)), np.arange(400) % 40
        >>> federation = smolfed.Federation.from_arrays(X, X[:, 0] > 0, groups=device)
        >>> federation
        <Federation: 400 samples of 5 features, 40 devices>
        """
        features, axes = _features(X)
        targets = _vector(y, "y")
        task = _task(task, targets)
        test_rows = 0
        if test is not None:
            parts = 2 if groups is None else 3
            if len(test) != parts:
                expected = "(X, y)" if groups is None else "(X, y, groups), as there are groups"
                raise ValueError(f"`test` has {len(test)} arrays: it must be {expected}")
            more, more_axes = _features(test[0])
            if more_axes != axes:
                raise ValueError(
                    f"the test part has samples of shape {more_axes}, but the others have {axes}"
                )
            more_targets = _vector(test[1], "y of the test part")
            _same_length("y of the test part", len(more_targets), len(more))
            _same_length("y", len(targets), len(features))
            test_rows = len(more)
            features = np.concatenate([features, more])
            targets = np.concatenate([targets, more_targets])
        _same_length("y", len(targets), len(features))
        table: dict[str, Any] = {"source": "memory", "task": task}
        if len(axes) > 1:
            table["axes"] = list(axes)
        samples = _no_samples(features, test_rows, feature_names)
        labels = None
        if task == "regression":
            samples["values"] = _values(targets)
        else:
            samples["labels"], labels = _classes(targets, classes)
            names = [str(name) for name in labels.tolist()]
            samples["class_names"] = names
            samples["class_count"] = len(names)
            if classes is not None:
                table["classes"] = names
        if groups is None:
            table["partition"] = "rows"
        else:
            all_groups = _groups(groups, len(features) - test_rows)
            if test is not None:
                all_groups = np.concatenate([all_groups, _groups(test[2], test_rows)])
            table["partition"] = "natural"
            samples["devices"], samples["device_names"] = _devices(all_groups)
        return cls(table, samples, labels)

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        *,
        label: str,
        groups: str | None = None,
        features: Sequence[str] | None = None,
        **options: Any,
    ) -> Federation:
        """Devices from a DataFrame of pandas.

        Parameters
        ----------
        frame : pandas.DataFrame
            One row per sample.
        label : str
            The column to predict.
        groups : str, optional
            The column with the device of each row.
        features : sequence of str, optional
            The feature columns. By default all other columns.
        **options
            `task`, `classes` and `test` as for `from_arrays`.

        Notes
        -----
        A frame with texts, categories, times or missing values is read as ``smolfed init`` proposes
        for such a file: each category becomes a feature, times become their parts, and the mean
        replaces a missing number (``data.missing``). Useless columns are left out with a warning
        that names them. Categories, means, and the choice and kind of the feature columns are
        computed from the rows. No epsilon covers them, so the statement's ``is_upper_bound`` is
        then false. ``categories_are_public=True`` declares that all categories, and the choice and
        kind of the feature columns, were public before. Missing numbers then also need a constant
        in ``data.missing``.

        A pandas ``CategoricalDtype`` and a polars ``Enum`` declare their categories, also of
        numbers. A polars ``Categorical`` is text.
        """
        return cls._from_frame(frame, label, groups, features, options)

    @classmethod
    def from_polars(
        cls,
        frame: Any,
        *,
        label: str,
        groups: str | None = None,
        features: Sequence[str] | None = None,
        **options: Any,
    ) -> Federation:
        """Devices from a DataFrame of polars. Takes the parameters of `from_pandas`."""
        return cls._from_frame(frame, label, groups, features, options)

    @classmethod
    def _from_frame(
        cls,
        frame: Any,
        label: str,
        groups: str | None,
        features: Sequence[str] | None,
        options: dict[str, Any],
    ) -> Federation:
        # Names may be numbers, as in a frame made from an array.
        columns = names_of(frame)
        label, groups = str(label), None if groups is None else str(groups)
        features = None if features is None else [str(name) for name in features]
        names = _feature_columns(list(columns), label, groups, features)
        arrays = {name: frame[columns[name]].to_numpy() for name in names}
        targets = frame[columns[label]].to_numpy()
        devices = None if groups is None else frame[columns[groups]].to_numpy()
        declared = {name: categories_of(frame[columns[name]]) for name in names}
        if any(declared.values()) or not all(map(is_plain, arrays.values())):
            _refuse_missing(targets, devices)
            used = [*names, label] if groups is None else [*names, groups, label]
            reading: dict[str, Any] = {"label": label, "groups": groups}
            reading["categories"] = [(name, known) for name, known in declared.items() if known]
            return cls._from_cells(cells_of(frame, used), targets, reading, **options)
        for name, column in arrays.items():
            _warn_of_digits(column, f"the column `{name}`")
        matrix = np.column_stack([column.astype(np.float32) for column in arrays.values()])
        options.pop("categories_are_public", None)
        return cls.from_arrays(matrix, targets, devices, feature_names=names, **options)

    @classmethod
    def _from_cells(
        cls,
        cells: list[tuple[str, list[str]]],
        targets: NDArray[Any],
        reading: dict[str, Any],
        *,
        task: str | None = None,
        classes: Sequence[Any] | None = None,
        test: tuple[Any, ...] | None = None,
        categories_are_public: bool = False,
    ) -> Federation:
        """Devices from cells, read by the code that reads files."""
        if test is not None:
            raise ValueError(
                "`test` needs columns of numbers without gaps: use `evaluate` of the result, or "
                "`data.test` of the experiment"
            )
        task = _task(task, targets)
        table: dict[str, Any] = {"source": "memory", "task": task}
        keys: dict[str, Any] = {}
        if classes is not None and task == "classification":
            _classes(targets, classes)
            table["classes"] = keys["classes"] = [str(name) for name in classes]
        samples = _native.read_frame(cells, {**reading, "task": task, "keys": keys})
        for sentence in [samples.left_out, *samples.remarks]:
            if sentence is not None:
                warnings.warn(sentence, stacklevel=4)
        table["partition"] = "rows" if reading["groups"] is None else "natural"
        # Even without categories, the rows determine which columns are features, and of which kind.
        table["categories_are_public"] = categories_are_public
        labels = None
        if samples.labels is not None:
            # The classes as in the column, from the first row of each.
            first = np.unique(samples.labels, return_index=True)[1]
            labels = targets[first] if classes is None else np.asarray(classes)
        return cls(table, samples, labels)

    @classmethod
    def dataset(cls, source: str, **keys: Any) -> Federation:
        """A data set selected by the name of its source, with the keys of ``[data]``.

        Examples
        --------
        >>> import smolfed
        >>> smolfed.Federation.dataset("digits", devices=100)
        <Federation: source digits>
        """
        return cls({"source": source, **keys})

    @property
    def data_table(self) -> dict[str, Any]:
        """The ``[data]`` table of an experiment on this federation, without its defaults."""
        return dict(self._table)

    def _device_count(self) -> int:
        """Number of devices in the arrays. Without groups, each row is a device."""
        assert self._samples is not None, "a data set counts its devices when it is read"
        if isinstance(self._samples, _native.Table):
            return self._samples.device_count or self._samples.shape[0]
        return len(self._samples["device_names"]) or len(self._samples["features"])

    def __repr__(self) -> str:
        if self._samples is None:
            return f"<Federation: source {self._table['source']}>"
        if isinstance(self._samples, _native.Table):
            (count, width), found = self._samples.shape, self._samples.device_count
        else:
            count, width = self._samples["features"].shape
            found = len(self._samples["device_names"])
        devices = f"{found} devices" if found else "each row a device"
        return f"<Federation: {count} samples of {width} features, {devices}>"


def _task(task: str | None, targets: NDArray[Any]) -> str:
    """The task: by default regression if `y` has floats."""
    if task is None:
        _warn_of_many_classes(targets)
        return "regression" if targets.dtype.kind == "f" else "classification"
    if task not in ("classification", "regression"):
        raise ValueError(f'`task` is {task!r}: it must be "classification" or "regression"')
    return task


def _no_samples(
    features: NDArray[Any], test_rows: int, feature_names: Sequence[str] | None
) -> dict[str, Any]:
    names = [] if feature_names is None else [str(name) for name in feature_names]
    if names and len(names) != features.shape[1]:
        raise ValueError(
            f"`feature_names` has {len(names)} names, but there are {features.shape[1]} features"
        )
    return {
        "features": features,
        "labels": None,
        "class_count": 0,
        "values": None,
        "devices": None,
        "device_names": [],
        "feature_names": names,
        "class_names": [],
        "test_rows": test_rows,
    }


def _features(X: ArrayLike) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The features as a matrix, and the shape of a sample."""
    array = np.asarray(X)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"features must be numbers, but X has dtype {array.dtype}")
    if array.ndim < 2:
        raise ValueError(
            f"X has {array.ndim} dimension(s), but features need two or more: one sample along "
            "the first"
        )
    _warn_of_digits(array, "X")
    if array.dtype.name not in _NATIVE or not array.dtype.isnative:
        array = array.astype(np.float32)
    return array.reshape(len(array), math.prod(array.shape[1:])), array.shape[1:]


def _vector(y: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions, but one entry per sample is needed")
    return array


def _same_length(name: str, found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"{name} has {found} entries for {expected} samples")


def _values(targets: NDArray[Any]) -> NDArray[np.float64]:
    if targets.dtype.kind not in "fiub":
        raise TypeError(f"numbers to predict are needed, but y has dtype {targets.dtype}")
    return targets.astype(np.float64)


def _classes(
    targets: NDArray[Any], classes: Sequence[Any] | None
) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """The number of each sample's class, and the classes."""
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        raise ValueError("y has NaN or infinity, but every sample needs a class")
    _refuse_missing(targets, None)
    if classes is None:
        try:
            known, codes = np.unique(targets, return_inverse=True)
        except TypeError:
            raise TypeError("y mixes classes of several types: texts and numbers") from None
    else:
        known = np.asarray(classes)
        order = np.argsort(known)
        try:
            places = np.searchsorted(known, targets, sorter=order)
        except TypeError:
            raise TypeError("`classes` and y are of different types") from None
        codes = order[np.minimum(places, len(known) - 1)]
        unknown = known[codes] != targets
        if np.any(unknown):
            first = targets[np.argmax(unknown)]
            raise ValueError(f"y has the label {first!r}, which is not one of `classes`")
    return codes.astype(np.uint32), known


def _refuse_missing(targets: NDArray[Any], devices: NDArray[Any] | None) -> None:
    missing = _missing(targets)
    if missing:
        raise ValueError(
            f"y has {missing} missing values, but every sample needs a class: leave these rows out"
        )
    if devices is not None and _missing(devices):
        raise ValueError("groups has missing values, but every sample needs a device")


def _missing(array: NDArray[Any]) -> int:
    """The number of entries that are None, NaN, or the NA of pandas."""

    if array.dtype.kind not in "OfM":
        return 0
    if array.dtype.kind != "O":
        return int(np.count_nonzero(array != array))
    return sum(map(is_missing, array.tolist()))


def _warn_of_many_classes(targets: NDArray[Any]) -> None:
    """Warns of many whole numbers, which are more likely values than classes."""
    count = len(np.unique(targets)) if targets.dtype.kind in "iu" else 0
    if count > _MANY_CLASSES:
        warnings.warn(
            f"y has {count} different whole numbers, each of which is a class: to predict numbers, "
            'give task="regression"; task="classification" confirms classes',
            stacklevel=4,
        )


def _warn_of_digits(array: NDArray[Any], name: str) -> None:
    """Warns of numbers whose differences float32 rounds away, such as epochs in milliseconds."""
    if array.dtype.itemsize < 4 or array.dtype.name == "float32" or array.size == 0:
        return
    columns = array.reshape(len(array), -1).T
    if any(_loses_digits(column) for column in columns):
        warnings.warn(
            f"{name} has numbers whose differences are lost in the 32 bits that samples have: "
            "subtract a constant first",
            stacklevel=4,
        )


def _loses_digits(column: NDArray[Any]) -> bool:
    """Whether float32 rounds a column by more than a thousandth of its standard deviation."""
    if np.abs(column).max() < _LARGE:
        return False
    exact = column.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lost = np.abs(exact - exact.astype(np.float32)).max()
        return bool(lost > 1e-3 * exact.std())


def _groups(groups: ArrayLike, expected: int) -> NDArray[Any]:
    array = np.asarray(groups)
    if array.ndim != 1:
        raise ValueError(f"groups has {array.ndim} dimensions, but one device per sample is needed")
    _same_length("groups", len(array), expected)
    if _missing(array):
        raise ValueError("groups has missing values, but every sample needs a device")
    return array


def _devices(array: NDArray[Any]) -> tuple[NDArray[np.uint32], list[str]]:
    """The number of each sample's device, and the names of the devices."""
    try:
        names, codes = np.unique(array, return_inverse=True)
    except TypeError:
        raise TypeError("groups mixes devices of several types: texts and numbers") from None
    return codes.astype(np.uint32), [str(name) for name in names.tolist()]


def _feature_columns(
    columns: Sequence[str], label: str, groups: str | None, features: Sequence[str] | None
) -> list[str]:
    check(columns, [label, *([] if groups is None else [groups]), *(features or [])])
    if features is not None:
        return list(features)
    return [name for name in columns if name not in (label, groups)]
