"""The epsilon of events, and noise, rounds or cohort size for a target epsilon (calibration)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._native import Estimate, Event
from ..statement import PrivacyStatement
from .events import Release, as_events, event

if TYPE_CHECKING:
    from typing_extensions import Unpack


def estimate(
    events: Event | Iterable[Event] | None = None,
    *,
    delta: float | str,
    accountant: str | None = None,
    **release: Unpack[Release],
) -> Estimate:
    """Epsilon of events, with the kind of claim and the accountant behind it.

    Parameters
    ----------
    events : Event or iterable of Event, optional
        The releases. Alternatively, the keyword arguments of `event`.
    delta : float or str
        The probability that the bound fails: a number, or a power of the number of devices such as
        "1/N^1.1".
    accountant : str, optional
        One of `ACCOUNTANTS`. By default the tightest sound one: "pld" for Poisson sampling and
        full participation, "uniform-profile" for uniform sampling.

    Returns
    -------
    Estimate
        With `epsilon`, `is_upper_bound`, `epsilon_low` (a proved lower bound, if there is one),
        `kind`, `accountant` and `notes`.

    Raises
    ------
    ValueError
        If the accountant does not cover the events, or an argument is out of range.

    Examples
    --------
    >>> from smolfed.accounting import estimate
    >>> found = estimate(noise_multiplier=1, sampling_rate=0.05, rounds=1000, delta=1e-6)
    >>> found
    <Estimate: epsilon = 12.2406 at delta = 1e-6, upper bound (pld)>
    >>> found.epsilon_low < found.epsilon
    True
    """
    return _native.estimate(as_events(events, release), delta, accountant)


def epsilon(
    events: Event | Iterable[Event] | None = None,
    *,
    delta: float | str,
    accountant: str | None = None,
    **release: Unpack[Release],
) -> float:
    """Epsilon of events, as a number. Takes the parameters of `estimate`.

    By default it is an upper bound. Always report it with delta, the protected unit, adjacency,
    sampling and trust model, as `statement` does.

    Examples
    --------
    >>> from smolfed.accounting import epsilon, event
    >>> round(epsilon(noise_multiplier=4, sampling="full", delta=1e-5), 4)
    0.9263
    >>> warm_up = event(noise_multiplier=2, sampling_rate=0.01, rounds=100)
    >>> training = event(noise_multiplier=1, sampling_rate=0.01, rounds=900)
    >>> round(epsilon([warm_up, training], delta=1e-5), 3)
    1.751
    """
    return _native.estimate(as_events(events, release), delta, accountant).epsilon


def statement(
    events: Event | Iterable[Event] | None = None,
    *,
    delta: float | str,
    accountant: str | None = None,
    clip_norm: float | None = None,
    **release: Unpack[Release],
) -> PrivacyStatement:
    """The privacy statement of events: epsilon with everything on which it depends.

    Takes the parameters of `estimate`. `devices` is required, as a statement names the federation.

    Examples
    --------
    >>> from smolfed.accounting import statement
    >>> said = statement(
    ...     noise_multiplier=1, sampling_rate=0.05, rounds=100, devices=1000, delta=1e-6
    ... )
    >>> said.is_upper_bound, said.unit, said.adjacency
    (True, 'device', 'add-remove')
    """
    if events is None and release.get("devices") is None:
        raise ValueError("`devices` is missing: a privacy statement names the federation")
    listed = as_events(events, release)
    return PrivacyStatement(*_native.statement(listed, delta, accountant, clip_norm, []))


def _target(
    epsilon: float,
    delta: float | str,
    accountant: str | None,
    spent: Iterable[Event],
    release: dict[str, Any],
) -> dict[str, Any]:
    return {
        "event": event(**release),
        "spent": as_events(spent, {}),
        "epsilon": epsilon,
        "delta": delta,
        "accountant": accountant,
    }


def noise_multiplier(
    *,
    epsilon: float,
    delta: float | str,
    accountant: str | None = None,
    spent: Iterable[Event] = (),
    **release: Unpack[Release],
) -> float:
    """The least noise multiplier whose epsilon is at or just below the target.

    Parameters
    ----------
    epsilon : float
        The target. Infinite means no noise.
    delta, accountant
        As for `estimate`.
    spent : iterable of Event
        Earlier releases, which count against the same target.
    **release
        The keyword arguments of `event`, without `noise_multiplier`.

    Examples
    --------
    >>> from smolfed import accounting
    >>> plan = dict(sampling_rate=0.01, rounds=1000)
    >>> z = accounting.noise_multiplier(epsilon=1, delta=1e-5, **plan)
    >>> 0.999 < accounting.epsilon(noise_multiplier=z, delta=1e-5, **plan) <= 1
    True
    """
    if "noise_multiplier" in release:
        raise TypeError("`noise_multiplier` is the unknown: leave it out")
    found = _target(epsilon, delta, accountant, spent, {"noise_multiplier": 0.0, **release})
    return _native.noise_multiplier(found)


def rounds(
    *,
    epsilon: float,
    delta: float | str,
    accountant: str | None = None,
    spent: Iterable[Event] = (),
    **release: Unpack[Release],
) -> int:
    """The largest number of rounds within the target. Takes the parameters of `noise_multiplier`.

    Examples
    --------
    >>> from smolfed import accounting
    >>> accounting.rounds(epsilon=4, delta=1e-6, noise_multiplier=1, sampling_rate=0.01)
    3627
    """
    if "rounds" in release:
        raise TypeError("`rounds` is the unknown: leave it out")
    return _native.rounds(_target(epsilon, delta, accountant, spent, dict(release)))


def cohort_size(
    *,
    epsilon: float,
    delta: float | str,
    accountant: str | None = None,
    spent: Iterable[Event] = (),
    **release: Unpack[Release],
) -> int:
    """The largest cohort within the target. Takes the parameters of `noise_multiplier`.

    `devices` is required.

    Examples
    --------
    >>> from smolfed import accounting
    >>> accounting.cohort_size(
    ...     epsilon=4, delta=1e-6, devices=10_000, noise_multiplier=1, rounds=1000
    ... )
    181
    """
    if "cohort_size" in release or "sampling_rate" in release:
        raise TypeError("the cohort is the unknown: leave its size and rate out")
    # One device stands in for the cohort size, which is the unknown.
    planned = {**release, "cohort_size": 1}
    return _native.cohort_size(_target(epsilon, delta, accountant, spent, planned))
