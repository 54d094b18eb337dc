"""Runs: `run`, `resume`, `load` and `init`, their defaults, progress bar, and privacy warnings."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from .federation import Federation
from .frames import cells_of, names_of
from .result import RunResult

Tensors = dict[str, NDArray[np.float32]]
"""Parameters of a model, or an update of them, by tensor name."""

ServerStep = Callable[[Tensors, Tensors, float, float], Tensors]
"""Maps the model, the noisy average, its noise std and the learning rate to the next model."""

Denoiser = Callable[[Tensors, float], Tensors]
"""Maps the noisy average and its noise std to the average to apply."""

# Defaults for an experiment on a given federation.
_DEFAULTS = {"name": "python", "method": "dp-fed", "rounds": 30}


class PrivacyWarning(UserWarning):
    """Something in the privacy statement of a run that a reader may not expect."""


def run(
    experiment: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    data: Federation | None = None,
    overrides: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
    on_round: Callable[[dict[str, Any]], None] | None = None,
    denoiser: Denoiser | None = None,
    server_step: ServerStep | None = None,
) -> RunResult:
    """Trains simulated devices, with the same bits as ``smolfed run``.

    Parameters
    ----------
    experiment : dict, path or text, optional
        An experiment file, its contents as a dictionary, or its text of more than one line. The
        default is the built-in experiment. With `data`, the default is DP-Fed with 30 rounds, and
        ``cohort`` and ``privacy`` must be given.
    data : Federation, optional
        The devices, instead of the experiment's ``data.source``. Other keys of its ``data`` still
        apply.
    overrides : dict, optional
        Keys by their dotted names, as for ``--set``: ``{"privacy.epsilon": 2}``. None removes a
        key.
    out : path, optional
        The run directory to write, as for ``smolfed run --out``. By default nothing is written.
    threads : int, optional
        By default one per core. The result does not depend on it.
    progress : bool
        Show a progress bar (needs tqdm).
    on_round : callable, optional
        Called with the record of each round, a dictionary as in ``metrics.jsonl``.
    denoiser : callable, optional
        ``denoiser(update, noise_std)`` returns the denoised average to apply. Both are dictionaries
        of arrays. Replaces ``server.denoiser``.
    server_step : callable, optional
        ``server_step(model, update, noise_std, learning_rate)`` returns the next model.

    Returns
    -------
    RunResult

    Raises
    ------
    ValueError
        For a refused experiment or refused samples, with the message of the command line.
    FileNotFoundError
        For a missing file.
    RuntimeError
        If the run fails.
    KeyboardInterrupt
        If the run is interrupted. It then ends after the round, and can be resumed if it has a
        directory.

    Warns
    -----
    PrivacyWarning
        If rows were read without noise, for example to scale the features.

    Notes
    -----
    `denoiser` and `server_step` see only released values, so they are post-processing and cost no
    privacy. If they use device data from elsewhere, no epsilon covers it. The private steps (local
    training, clipping, sums) are not visible to Python.

    Examples
    --------
    >>> import smolfed
    >>> result = smolfed.run(overrides={"rounds": 3, "privacy.epsilon": 2})
    >>> len(result.records), result.epsilon <= 2
    (3, True)
    """
    changes = dict(overrides or {})
    described: Any
    if experiment is None and data is None:
        described = None
    else:
        described = _described({} if experiment is None else experiment)
        if isinstance(described, dict):
            described = {**(_DEFAULTS if data is not None else {}), **described}
    samples = None
    if data is not None:
        described, samples = _with_data(described, changes, data)
    job = {
        "experiment": described,
        "overrides": changes,
        "samples": samples,
        "out": None if out is None else os.fspath(out),
        "resume": False,
        "threads": threads,
        "server_step": _step(denoiser, server_step),
        "resume_with": _needed(samples, denoiser, server_step),
    }
    return _with_labels(_execute(job, progress, on_round), data)


def resume(
    directory: str | os.PathLike[str],
    *,
    data: Federation | None = None,
    threads: int | None = None,
    progress: bool = False,
    on_round: Callable[[dict[str, Any]], None] | None = None,
    denoiser: Denoiser | None = None,
    server_step: ServerStep | None = None,
) -> RunResult:
    """Continues an interrupted run from the last checkpoint in its directory.

    For a run from arrays, `data` must be the same federation as before. Any other one is refused. A
    run with your own `denoiser` or `server_step` needs it again, and is refused without it. Whether
    it is the same function cannot be checked.
    """
    samples = None if data is None else data._samples
    job = {
        "experiment": os.fspath(directory),
        "overrides": {},
        "samples": samples,
        "out": None,
        "resume": True,
        "threads": threads,
        "server_step": _step(denoiser, server_step),
        "resume_with": _needed(samples, denoiser, server_step),
    }
    return _with_labels(_execute(job, progress, on_round), data)


def load(directory: str | os.PathLike[str]) -> RunResult:
    """Loads the result of a run from its directory, whichever program wrote it.

    The result matches the one that `run` returned, except that classes are always texts, because
    the files do not record their types in the arrays of a `Federation`. The `ending` of a run with
    fewer rounds than planned is "interrupted".

    The files are trusted: anyone who can write to the directory controls the statement.
    ``smolfed account --verify DIR`` checks it against the ledger and the configuration, for which
    it reads the data again. It cannot check a run on arrays or frames, as these are not in files.

    Raises
    ------
    FileNotFoundError
        If the directory is missing, or holds no run.
    ValueError
        For a run that has not ended, a damaged file, or a complete run without its model.

    Examples
    --------
    >>> import smolfed, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = smolfed.run(overrides={"rounds": 3}, out=f"{folder}/run")
    ...     smolfed.load(f"{folder}/run").statement.rounds
    3
    """
    return RunResult(_native.load(os.fspath(directory)))


def init(
    data: Any,
    *,
    label: str | None = None,
    device: str | None = None,
    task: str | None = None,
    ignore: Sequence[str] = (),
) -> str:
    """Proposes an experiment for your data, like ``smolfed init``: a text with comments.

    `run` accepts the text, or a file with it. For a DataFrame it also needs
    ``data=Federation.from_pandas(frame, ..)`` with the same frame.

    Parameters
    ----------
    data : path, name of a known data set, or DataFrame of pandas or polars
        The devices' data.
    label : str, optional
        The column to predict. By default one called label, class, target, y or outcome.
    device : str, optional
        The column with the device of each row. By default one called user, phone, patient or the
        like.
    task : {"classification", "regression"}, optional
        By default regression if the labels are many different numbers.
    ignore : sequence of str
        Columns to leave out.

    Raises
    ------
    FileNotFoundError
        If there is no such file or data set.
    ValueError
        For data from which nothing can be learned.

    Warns
    -----
    UserWarning
        For columns that are left out, and signs that are removed from numbers.

    Examples
    --------
    >>> import smolfed
    >>> text = smolfed.init("digits")
    >>> smolfed.run(text, overrides={"rounds": 2}).statement.rounds
    2
    """
    said = {"label": label, "device": device, "task": task, "ignore": list(ignore)}
    given = ", ".join(f"{name}={value!r}" for name, value in said.items() if value)
    if getattr(data, "columns", None) is not None:
        said["command"] = f"smolfed.init(frame, {given})" if given else "smolfed.init(frame)"
        text, remarks = _native.propose_frame(cells_of(data, list(names_of(data))), said)
    else:
        path = os.fspath(data)
        said["command"] = f"smolfed.init({path!r}, {given})" if given else f"smolfed.init({path!r})"
        text, remarks = _native.propose(path, said)
    for sentence in remarks:
        warnings.warn(sentence, stacklevel=2)
    return text


def complete(
    experiment: Mapping[str, Any] | str | os.PathLike[str],
    *,
    overrides: Mapping[str, Any] | None = None,
) -> str:
    """Completes an experiment with every default, as the text of a file.

    Examples
    --------
    >>> import smolfed
    >>> text = smolfed.complete(
    ...     {"method": "dp-fed", "rounds": 2, "data": {"source": "digits", "devices": 50}}
    ... )
    >>> "evaluate_every = 1" in text
    True
    """
    return _native.complete(_described(experiment), dict(overrides or {}))


def _described(experiment: Mapping[str, Any] | str | os.PathLike[str]) -> Any:
    """An experiment as a dictionary, or the path of its file."""
    if isinstance(experiment, Mapping):
        return dict(experiment)
    if isinstance(experiment, str) and "\n" in experiment:
        return _native.read_toml(experiment)
    return os.fspath(experiment)


def _with_data(
    described: Any, changes: dict[str, Any], data: Federation
) -> tuple[Any, dict[str, Any] | _native.Table | None]:
    """The experiment on these devices."""
    table = data.data_table
    if isinstance(described, dict):
        own = dict(described.get("data", {}))
        if "partition" in own and own["partition"] != table.get("partition"):
            # These keys deal the same samples in another way.
            table.pop("partition", None)
        described = {**described, "data": {**table, **own}}
    else:
        for key, value in table.items():
            changes.setdefault(f"data.{key}", value)
    return described, data._samples


def _with_labels(result: RunResult, data: Federation | None) -> RunResult:
    """The result, which predicts classes as in the arrays."""
    if data is not None:
        result._labels = data._labels
    return result


def _needed(
    samples: Any, denoiser: Denoiser | None, server_step: ServerStep | None
) -> list[str]:
    """The arguments that `resume` needs again, because no directory stores them."""
    given = {"data": samples, "denoiser": denoiser, "server_step": server_step}
    return [name for name, value in given.items() if value is not None]


def _step(denoiser: Denoiser | None, server_step: ServerStep | None) -> ServerStep | None:
    if denoiser is not None and server_step is not None:
        raise ValueError("give either `denoiser` or `server_step`")
    if denoiser is None:
        return server_step

    def step(model: Tensors, update: Tensors, noise_std: float, learning_rate: float) -> Tensors:
        applied = denoiser(update, noise_std)
        return {
            name: values + np.float32(learning_rate) * np.asarray(applied[name], np.float32)
            for name, values in model.items()
        }

    return step


def _execute(
    job: dict[str, Any],
    progress: bool,
    on_round: Callable[[dict[str, Any]], None] | None,
    warn: bool = True,
) -> RunResult:
    bar = _bar() if progress else None

    def report(rounds: int, record: str) -> None:
        if bar is not None:
            bar.total = rounds
            bar.update()
        if on_round is not None:
            on_round(json.loads(record))

    watched = progress or on_round is not None
    try:
        outcome, sentences, diverged = _native.run(
            {**job, "on_round": report if watched else None}
        )
    finally:
        if bar is not None:
            bar.close()
    for sentence in sentences if warn else []:
        warnings.warn(sentence, PrivacyWarning, stacklevel=3)
    if diverged is not None:
        warnings.warn(diverged, RuntimeWarning, stacklevel=3)
    result = RunResult(outcome)
    if result.ending in ("over-budget", "gave-up"):
        warnings.warn(str(outcome.ending[1]), RuntimeWarning, stacklevel=3)
    return result


def _bar() -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress needs tqdm: pip install 'smolfed[progress]'") from error
    return tqdm(unit="round")
