"""Import of events from Opacus, TensorFlow Privacy, jax-privacy and dp_accounting."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .._native import Event
from .events import event


def from_opacus_history(
    history: Iterable[tuple[float, float, int]], *, devices: int | None = None
) -> list[Event]:
    """Events of an Opacus accountant: ``privacy_engine.accountant.history``.

    Parameters
    ----------
    history : iterable of (noise_multiplier, sample_rate, steps)
        The history as Opacus keeps it.
    devices : int, optional
        Number of records, for statements and for a delta that is a power of it. Opacus samples
        records, so they are the unit: "device" stands for a record.

    Notes
    -----
    As in Opacus, epsilon assumes Poisson sampling, the default of its data loader
    (``poisson_sampling=True``). Nothing is proved for shuffled batches of fixed size.

    Examples
    --------
    >>> from smolfed import accounting
    >>> history = [(1.1, 0.01, 500), (1.0, 0.01, 500)]
    >>> round(accounting.epsilon(accounting.from_opacus_history(history), delta=1e-5), 2)
    1.68
    """
    events = []
    for entry in history:
        try:
            noise_multiplier, sample_rate, steps = entry
        except (TypeError, ValueError):
            raise ValueError(
                f"{entry!r} is not an entry of a history: Opacus keeps (noise_multiplier, "
                "sample_rate, steps)"
            ) from None
        described = event(
            noise_multiplier=noise_multiplier,
            sampling_rate=sample_rate,
            rounds=int(steps),
            devices=devices,
        )
        events.append(described)
    return events


def from_tensorflow_privacy(
    *, number_of_examples: int, batch_size: int, noise_multiplier: float, epochs: float
) -> list[Event]:
    """The event of ``compute_dp_sgd_privacy_statement`` of TensorFlow Privacy.

    It assumes Poisson sampling with batches of `batch_size` on average, and rounds the number of
    steps up.

    Examples
    --------
    >>> from smolfed import accounting
    >>> events = accounting.from_tensorflow_privacy(
    ...     number_of_examples=60_000, batch_size=250, noise_multiplier=1.3, epochs=15
    ... )
    >>> events[0].rounds
    3600
    """
    steps = math.ceil(epochs * number_of_examples / batch_size)
    return [
        event(
            noise_multiplier=noise_multiplier,
            cohort_size=batch_size,
            devices=number_of_examples,
            rounds=steps,
        )
    ]


def from_dp_event(dp_event: Any, *, devices: int | None = None) -> list[Event]:
    """Events of a ``DpEvent`` of dp_accounting, as created by TensorFlow Privacy and jax-privacy.

    Supports Gaussian mechanisms, Poisson-sampled or sampled without replacement (from a data set of
    known size), composed to any depth. dp_accounting's noise multiplier is relative to the
    sensitivity. Without replacement, this is the sensitivity to replacing a record, twice the norm
    of one, so ours is twice as large.

    Parameters
    ----------
    dp_event : dp_accounting.DpEvent
        The release.
    devices : int, optional
        Number of records, for a delta that is a power of it.

    Raises
    ------
    ValueError
        For an event of another kind, which it names.
    """
    return _of_dp_event(dp_event, 1, {"devices": devices})


def _of_dp_event(dp_event: Any, count: int, sampling: dict[str, Any]) -> list[Event]:
    """The events of `count` copies of an event under a sampling scheme."""
    # Compares names, so that dp_accounting need not be installed.
    name = type(dp_event).__name__
    is_sampled = "sampling" in sampling
    if name == "NoOpDpEvent":
        return []
    if name == "SelfComposedDpEvent" and not is_sampled:
        return _of_dp_event(dp_event.event, count * dp_event.count, sampling)
    if name == "ComposedDpEvent" and not is_sampled:
        parts = (_of_dp_event(part, count, sampling) for part in dp_event.events)
        return [found for part in parts for found in part]
    if name == "PoissonSampledDpEvent" and not is_sampled:
        rate = dp_event.sampling_probability
        drawn = {"sampling": "poisson", "sampling_rate": rate, **sampling}
        return _of_dp_event(dp_event.event, count, drawn)
    if name == "SampledWithoutReplacementDpEvent" and not is_sampled:
        drawn = {
            "sampling": "uniform",
            "cohort_size": dp_event.sample_size,
            "devices": dp_event.source_dataset_size,
        }
        return _of_dp_event(dp_event.event, count, drawn)
    if name == "GaussianDpEvent":
        is_uniform = sampling.get("sampling") == "uniform"
        noise = dp_event.noise_multiplier * (2 if is_uniform else 1)
        drawn = sampling if is_sampled else {"sampling": "full", **sampling}
        return [event(noise_multiplier=noise, rounds=count, **drawn)]
    place = " below sampling" if is_sampled else ""
    raise ValueError(
        f"a `{name}`{place} has no counterpart here: Gaussian mechanisms, sampled or not, and "
        "compositions of them have"
    )
