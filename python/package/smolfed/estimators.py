"""Estimators for scikit-learn: linear models, trained by private federated learning.

`groups` names the device of each row. Epsilon protects one device with all its rows. In a pipeline
or a search, `groups` reaches `fit` by metadata routing::

    sklearn.set_config(enable_metadata_routing=True)
    model = FederatedClassifier().set_fit_request(groups=True)
    make_pipeline(FunctionTransformer(), model).fit(X, y, groups=device)

Epsilon does not cover steps before the estimator that learn from the rows, such as
``StandardScaler``, or the choice among several models, for example by ``GridSearchCV``. The
statement cannot know of them.
"""

from __future__ import annotations

import io
import secrets
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from .federation import Federation
from .requirement import unmet
from .running import PrivacyWarning, _execute
from .statement import PrivacyStatement

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    # `validate_data` is new in 1.6.
    raise unmet("smolfed.estimators", "scikit-learn", "1.6", "sklearn", error) from error

_SELECTION = (
    "If this model was chosen among several, by GridSearchCV for example, epsilon does not cover "
    "the choice; nor does it cover what a pipeline learned from the rows before this step."
)

# Seeds are whole numbers of TOML.
_SEEDS = 2**63


class _Federated(BaseEstimator):  # type: ignore[misc]
    """The shared part of both estimators."""

    def __init__(
        self,
        epsilon: float = 4.0,
        *,
        delta: float | str = "1/N^1.1",
        rounds: int | None = None,
        sampling_rate: float | None = None,
        clip_norm: float | str | None = None,
        learning_rate: float | str = "auto",
        epochs: int | None = None,
        batch_size: int = 10,
        smoothing_factor: float = 0.0,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        questions: Sequence[Mapping[str, Any]] | None = None,
        overrides: Mapping[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.sampling_rate = sampling_rate
        self.clip_norm = clip_norm
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.smoothing_factor = smoothing_factor
        self.bounds = bounds
        self.questions = questions
        self.overrides = overrides
        self.threads = threads
        self.random_state = random_state

    def _train(self, data: Federation) -> None:
        """Trains on the devices, and keeps the public results."""
        usual = _native.suggested(
            data._device_count(), self.n_features_in_, isinstance(self, RegressorMixin)
        )
        sampling_rate = _given(self.sampling_rate, usual["sampling_rate"])
        scale: dict[str, Any] = {"scale": _scale(self.bounds)}
        if self.bounds is None:
            # Bounds on the features bound the length of a sample.
            scale["norm_bound"] = usual["norm_bound"]
        described: dict[str, Any] = {
            "name": type(self).__name__,
            "method": "dp-fed-ls",
            "seed": self._seed(),
            "rounds": _given(self.rounds, usual["rounds"]),
            "evaluate_every": 0,
            "data": {**data.data_table, "test": 0, **scale},
            "cohort": {"sampling": "full"}
            if sampling_rate is None
            else {"sampling": "poisson", "sampling_rate": sampling_rate},
            "train": {
                "learning_rate": self.learning_rate,
                "epochs": _given(self.epochs, usual["epochs"]),
                "batch_size": self.batch_size,
                "clip": "final",
            },
            "server": {"smoothing_factor": self.smoothing_factor},
            "privacy": {
                "epsilon": self.epsilon,
                "delta": self.delta,
                "clip_norm": _given(self.clip_norm, usual["clip_norm"]),
            },
        }
        described["data"].update(self._targets())
        if self.questions is not None:
            described["questions"] = [dict(question) for question in self.questions]
        job: dict[str, Any] = {
            "experiment": described,
            "overrides": dict(self.overrides or {}),
            "samples": data._samples,
            "out": None,
            "resume": False,
            "threads": self.threads,
            "server_step": None,
            "resume_with": [],
        }
        result = _execute(job, progress=False, on_round=None, warn=False)
        self._model: _native.Model = result._whole()
        self.n_devices_: int = result.devices
        self.n_iter_: int = len(result.records)
        self.answers_: list[dict[str, Any]] = result.answers
        self.statement_: PrivacyStatement = result.statement._with_note(_SELECTION)
        self._keep_coefficients()

    def _keep_coefficients(self) -> None:
        """Keeps the weights and biases of a one-layer model in the units of the rows."""
        tensors = self._model.tensors()
        self._coefficients: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
        if set(tensors) != {"weights", "biases"}:
            return
        weights, biases = (np.asarray(tensors[name], float) for name in ("weights", "biases"))
        arrays = np.load(io.BytesIO(self._model.export("npz")))
        mean, std = arrays["mean"], arrays["std"]
        # Weights of computed features have no unit of the rows.
        if weights.shape[1] == mean.size:
            # A feature that never changed is 0, whatever its weight.
            weights = np.where(arrays["min"] == arrays["max"], 0, weights / std)
            biases = biases - weights @ mean
            if "target_std" in arrays:
                weights = weights * arrays["target_std"]
                biases = biases * arrays["target_std"] + arrays["target_mean"]
        self._coefficients = weights, biases

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features. Raises `AttributeError` for a model of several layers."""
        return self._linear()[0]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Biases. Raises `AttributeError` for a model of several layers."""
        return self._linear()[1]

    def _linear(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        check_is_fitted(self)
        if self._coefficients is None:
            raise AttributeError(
                "the model is not one layer of weights and biases, so it has no `coef_` and "
                "`intercept_`: use `predict`"
            )
        return self._coefficients

    def _targets(self) -> dict[str, Any]:
        return {}

    def _seed(self) -> int:
        if self.random_state is None:
            return secrets.randbelow(_SEEDS)
        drawn = check_random_state(self.random_state).randint(0, _SEEDS, dtype=np.int64)
        return int(drawn)

    def _rows(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows: NDArray[Any] = validate_data(
            self, X, dtype=(np.float64, np.float32), reset=False
        )
        return rows

    def _scores(self, X: ArrayLike) -> NDArray[np.float32]:
        rows = self._rows(X)
        return self._model.scores(rows)

    @property
    def epsilon_(self) -> float:
        """Epsilon of this fit. `statement_` describes its unit and its limits.

        It covers only the last `fit`. Several fits on the same rows compose, and the choice among
        them, for example by ``GridSearchCV``, is not covered.
        """
        check_is_fitted(self)
        return float(self.statement_.epsilon)


def _warn_of_rows(groups: ArrayLike | None) -> None:
    """Warns that a search or a pipeline may have kept the groups from `fit`."""
    if groups is None:
        warnings.warn(
            "`fit` got no `groups`, so each row is a device and epsilon protects one row. "
            "Give the device of each row, which a search or a pipeline passes on only by "
            "metadata routing. `groups=range(len(y))` confirms that each row is a device",
            PrivacyWarning,
            stacklevel=3,
        )


class FederatedClassifier(ClassifierMixin, _Federated):  # type: ignore[misc]
    """Softmax regression by private federated averaging.

    Parameters
    ----------
    epsilon : float
        The privacy cost of `fit`, to which the noise is calibrated. Infinite means no noise.
    delta : float or str
        A number, or a power of the number of devices.
    rounds : int, optional
        Communication rounds. By default, this and the next two depend on the number of devices, as
        in ``smolfed init``.
    sampling_rate : float, optional
        Probability that a device is in a round. By default 50 devices are expected, and with fewer
        than 50, all take part in every round.
    clip_norm : float or "adaptive", optional
        Bound on the norm of a device's update.
    learning_rate : float or "auto"
        Step size. "auto" follows from the bound on the length of a sample.
    epochs : int, optional
        Passes over the samples of a device. By default 5.
    batch_size : int
        Samples per local step.
    smoothing_factor : float
        Laplacian smoothing of the noisy average (DP-Fed-LS); 0 for none.
    classes : sequence, optional
        All classes, known beforehand. If omitted, they are taken from `y`, which no epsilon covers.
    class_weight : dict, optional
        Weights of classes, 1 by default. After training, the logarithm of each weight is added to
        the intercept of its class, which costs no privacy. If the probabilities are right, the
        predicted class then has the least cost, where a mistake about a class costs its weight
        (Elkan 2001, "The foundations of cost-sensitive learning", section 1). `predict_proba`
        includes the weights, and no longer returns the probability of a class. "balanced" is
        refused, as it counts classes in private rows, which no epsilon covers.
    bounds : (low, high), optional
        Bounds of the features, known beforehand: numbers, or one per feature. Values beyond them
        are clipped. If omitted, the features are standardised by the rows, which no epsilon covers,
        and long samples are shortened.
    questions : list of dict, optional
        Questions to the devices between rounds, with the keys of ``[[questions]]``:
        ``{"kind": "evaluate", "every": 5}`` measures the model on their samples after every five
        rounds. They share a tenth of `epsilon`, or the part given by ``privacy.questions`` in
        `overrides`.
    overrides : dict, optional
        Other keys of the experiment, by their dotted names.
    threads : int, optional
        By default one per core.
    random_state : int or RandomState, optional
        Seed of cohorts, training and noise. Anyone who knows it can subtract the noise.

    Attributes
    ----------
    classes_ : array of shape (classes,)
    coef_ : array of shape (classes, features)
        Weights of features in their own units, for rows inside `bounds` that were not shortened:
        ``X @ coef_.T + intercept_`` are the scores. For computed features (``features.kind`` in
        `overrides`), the weights are in the units of these features. A model of several layers
        (``model.layers``) has neither weights nor intercept.
    intercept_ : array of shape (classes,)
    statement_ : PrivacyStatement
        The guarantee of `fit`. Its ``is_upper_bound`` is false unless `classes` and `bounds` are
        given.
    epsilon_ : float
        Epsilon of the statement.
    answers_ : list of dict
        The answers to `questions`, as in ``RunResult.answers``.
    n_devices_, n_iter_, n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from smolfed import FederatedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, device = rng.uniform(-1, 1, size=(5000, 4)), np.arange(5000) % 500
    >>> y = X[:, 0] > X[:, 1]
    >>> model = FederatedClassifier(
    ...     epsilon=4, classes=[False, True], bounds=(-1, 1), random_state=1
    ... )
    >>> model.fit(X, y, groups=device).score(X, y) > 0.9
    True
    >>> model.epsilon_ <= 4, model.statement_.is_upper_bound, model.n_devices_
    (True, True, 500)
    """

    def __init__(
        self,
        epsilon: float = 4.0,
        *,
        delta: float | str = "1/N^1.1",
        rounds: int | None = None,
        sampling_rate: float | None = None,
        clip_norm: float | str | None = None,
        learning_rate: float | str = "auto",
        epochs: int | None = None,
        batch_size: int = 10,
        smoothing_factor: float = 0.0,
        classes: Sequence[Any] | None = None,
        class_weight: Mapping[Any, float] | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        questions: Sequence[Mapping[str, Any]] | None = None,
        overrides: Mapping[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            rounds=rounds,
            sampling_rate=sampling_rate,
            clip_norm=clip_norm,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            smoothing_factor=smoothing_factor,
            bounds=bounds,
            questions=questions,
            overrides=overrides,
            threads=threads,
            random_state=random_state,
        )
        self.classes = classes
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # At a useful epsilon, the noise hides the common signal of a few dozen devices.
        tags.classifier_tags.poor_score = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> FederatedClassifier:
        """Trains the model on devices.

        Parameters
        ----------
        X : array of shape (samples, features)
        y : array of shape (samples,)
        groups : array of shape (samples,), optional
            The device of each row. If omitted, each row is a device, and a `PrivacyWarning` and the
            statement say so.
        """
        _warn_of_rows(groups)
        X, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), ensure_min_samples=2
        )
        check_classification_targets(y)
        data = Federation.from_arrays(
            X, y, groups, task="classification", classes=self.classes
        )
        self.classes_ = np.unique(y) if self.classes is None else np.asarray(self.classes)
        weights = _weights(self.class_weight, self.classes_)
        self._train(data)
        if weights is not None:
            self._weigh(weights)
        return self

    def _weigh(self, weights: NDArray[np.float64]) -> None:
        """Adds the logarithms of weights to the intercepts, a function of the released model."""
        tensors = list(self._model.tensors().values())
        logs = np.log(weights)
        # The last tensor holds the biases. A logistic model has only that of the second class.
        added = logs if len(tensors[-1]) == len(logs) else logs[1:] - logs[:1]
        tensors[-1] = (tensors[-1] + added).astype(np.float32)
        flat = np.concatenate([tensor.reshape(-1) for tensor in tensors])
        self._model = _native.Model(self._model.preprocessing, flat.tolist())
        self._keep_coefficients()

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores of the classes, shape (samples, classes).

        For two classes it is the score of the second minus that of the first, shape (samples,).
        The class with the largest score is predicted, and the softmax of the scores gives the
        probabilities.
        """
        scores = self._scores(X).astype(np.float64)
        if scores.shape[1] == 1:
            return scores[:, 0]
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the classes, shape (samples, classes). `class_weight` shifts them."""
        _, shares = self._model_of(X)
        # In float32 they add up to 1 except for rounding.
        normal: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
        return normal

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The class of each row."""
        numbers, _ = self._model_of(X)
        chosen: NDArray[Any] = self.classes_[numbers]
        return chosen

    def _model_of(self, X: ArrayLike) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
        rows = self._rows(X)
        return self._model.predict(rows)


class FederatedRegressor(RegressorMixin, _Federated):  # type: ignore[misc]
    """Linear regression by private federated averaging.

    Parameters
    ----------
    target_bounds : (low, high), optional
        Bounds of the target, known beforehand. If omitted, the target is standardised by the rows,
        which no epsilon covers.
    epsilon, delta, rounds, sampling_rate, clip_norm, learning_rate, epochs, batch_size, \
smoothing_factor, bounds, questions, overrides, threads, random_state
        As for `FederatedClassifier`.

    Attributes
    ----------
    coef_, intercept_
        Weights and bias of features and a target in their own units, for rows inside `bounds` that
        were not shortened: ``X @ coef_.T + intercept_`` are the predictions. Otherwise as for
        `FederatedClassifier`.
    statement_, epsilon_, answers_, n_devices_, n_iter_, n_features_in_
        As for `FederatedClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from smolfed import FederatedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, device = rng.uniform(-1, 1, size=(5000, 3)), np.arange(5000) % 500
    >>> y = 3 * X[:, 0] - X[:, 2]
    >>> model = FederatedRegressor(
    ...     epsilon=4, bounds=(-1, 1), target_bounds=(-4, 4), random_state=1
    ... )
    >>> model.fit(X, y, groups=device).score(X, y) > 0.9
    True
    >>> model.statement_.is_upper_bound
    True
    """

    def __init__(
        self,
        epsilon: float = 4.0,
        *,
        delta: float | str = "1/N^1.1",
        rounds: int | None = None,
        sampling_rate: float | None = None,
        clip_norm: float | str | None = None,
        learning_rate: float | str = "auto",
        epochs: int | None = None,
        batch_size: int = 10,
        smoothing_factor: float = 0.0,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        target_bounds: tuple[float, float] | None = None,
        questions: Sequence[Mapping[str, Any]] | None = None,
        overrides: Mapping[str, Any] | None = None,
        threads: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta=delta,
            rounds=rounds,
            sampling_rate=sampling_rate,
            clip_norm=clip_norm,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            smoothing_factor=smoothing_factor,
            bounds=bounds,
            questions=questions,
            overrides=overrides,
            threads=threads,
            random_state=random_state,
        )
        self.target_bounds = target_bounds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # As in the classifier.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(
        self, X: ArrayLike, y: ArrayLike, groups: ArrayLike | None = None
    ) -> FederatedRegressor:
        """Trains the model on devices. Takes the parameters of `FederatedClassifier.fit`."""
        _warn_of_rows(groups)
        X, y = validate_data(
            self, X, y, dtype=(np.float64, np.float32), ensure_min_samples=2, y_numeric=True
        )
        y = column_or_1d(y).astype(np.float64)
        data = Federation.from_arrays(X, y, groups, task="regression")
        self._train(data)
        return self

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The value of each row, in its own unit."""
        rows = self._rows(X)
        _, values = self._model.predict(rows)
        return values[:, 0]

    def _targets(self) -> dict[str, Any]:
        scale = "standardise" if self.target_bounds is None else _scale(self.target_bounds)
        return {"target_scale": scale}


def _given(value: Any, usual: Any) -> Any:
    return usual if value is None else value


def _weights(
    given: Mapping[Any, float] | None, classes: NDArray[Any]
) -> NDArray[np.float64] | None:
    """The weight of each class."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        reason = ""
        if given == "balanced":
            reason = ": the counts of classes are private, and no epsilon would cover them"
        raise ValueError(
            f"`class_weight` is {given!r}{reason}; it must be a dictionary with a weight for each "
            "class"
        )
    known = classes.tolist()
    for label, weight in given.items():
        if label not in known:
            raise ValueError(f"`class_weight` has {label!r}: the classes are {known}")
        if not (np.isfinite(weight) and weight > 0):
            raise ValueError(f"`class_weight` of {label!r} is {weight}: it must be above 0, finite")
    return np.asarray([given.get(label, 1.0) for label in known], dtype=np.float64)


def _scale(bounds: tuple[ArrayLike, ArrayLike] | None) -> Any:
    """``data.scale``: constants that map bounds to -1 and 1, or statistics of the rows."""
    if bounds is None:
        return "standardise-features"
    try:
        low, high = (np.asarray(bound, dtype=np.float64) for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"the bounds are {bounds!r}: they must be (low, high), numbers or one per feature"
        ) from None
    if low.ndim != high.ndim:
        low, high = np.broadcast_arrays(low, high)
    middle, half = (low + high) / 2, (high - low) / 2
    parts = {"min": low, "max": high, "mean": middle, "std": half}
    return {name: part.tolist() for name, part in parts.items()}
