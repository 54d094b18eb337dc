"""Privacy events: the noise, sampling and number of releases, from keyword arguments (`event`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict

from .. import _native
from .._native import Event

if TYPE_CHECKING:
    from collections.abc import Mapping


class Release(TypedDict, total=False):
    """The keyword arguments of `event`, which other functions accept too."""

    noise_multiplier: float
    sampling_rate: float | None
    cohort_size: int | None
    devices: int | None
    sampling: str | None
    max_participations: int | None
    rounds: int
    mechanism: str
    grid_bits: int
    trust: str
    unit: str
    devices_per_user: int


def event(
    *,
    noise_multiplier: float,
    sampling_rate: float | None = None,
    cohort_size: int | None = None,
    devices: int | None = None,
    sampling: str | None = None,
    max_participations: int | None = None,
    rounds: int = 1,
    mechanism: str = "gaussian",
    grid_bits: int = 20,
    trust: str = "central",
    unit: str = "device",
    devices_per_user: int = 1,
) -> Event:
    """Rounds of one Gaussian mechanism under one sampling scheme.

    Parameters
    ----------
    noise_multiplier : float
        Noise std on the sum of the updates divided by their clip norm, for either adjacency.
    sampling_rate : float, optional
        Probability with which a device is in a round.
    cohort_size : int, optional
        Devices in a round, instead of `sampling_rate`. For Poisson sampling, the expected number.
    devices : int, optional
        Devices of the federation. Needed for ``sampling="uniform"``, for `cohort_size`, and for a
        delta that is a power of this number.
    sampling : {"poisson", "uniform", "full", "unsampled"}, optional
        How the devices of a round are sampled. By default "poisson": each device independently, in
        secret. "uniform" draws cohorts of fixed size without replacement. "full" takes all devices.
        "unsampled" claims no randomness, only `max_participations`.
    max_participations : int, optional
        The largest number of rounds of one device, for "unsampled".
    rounds : int
        Number of rounds.
    mechanism : {"gaussian", "discrete-gaussian", "correlation-matrix"}
        `smolfed.run` adds "discrete-gaussian" on its grid of ``clip_norm * 2**-grid_bits``. Its
        cost agrees to ten digits.
    grid_bits : int
        For "discrete-gaussian".
    trust : str
        "central": the server adds the noise. "local": each device adds all of its own.
        "distributed" or "distributed=M/T": parties add noise to masked sums.
    unit : {"device", "example"}
        The protected unit.
    devices_per_user : int
        The most devices of one user, which are protected together.

    Returns
    -------
    Event

    Raises
    ------
    ValueError
        For a missing, superfluous or out-of-range argument.

    Examples
    --------
    >>> from smolfed.accounting import event
    >>> event(noise_multiplier=1.1, sampling_rate=0.01, rounds=500)
    <Event: 500 rounds, noise multiplier 1.1, poisson sampling at rate 0.01, add-remove>
    >>> event(noise_multiplier=2, sampling="uniform", devices=1000, cohort_size=50).adjacency
    'replace-one'
    """
    return _native.event(
        {
            "noise_multiplier": noise_multiplier,
            "sampling": sampling,
            "sampling_rate": sampling_rate,
            "cohort_size": cohort_size,
            "devices": devices,
            "max_participations": max_participations,
            "rounds": rounds,
            "mechanism": mechanism,
            "grid_bits": grid_bits,
            "trust": trust,
            "unit": unit,
            "devices_per_user": devices_per_user,
        }
    )


def as_events(
    events: Event | Iterable[Event] | None, release: Mapping[str, Any]
) -> list[Event]:
    """The given events, or the one that the keyword arguments describe."""
    if events is None:
        return [event(**release)]
    if release:
        name = next(iter(release))
        raise TypeError(f"`{name}` describes an event: give either events or keyword arguments")
    if isinstance(events, Event):
        return [events]
    listed = list(events)
    for item in listed:
        if not isinstance(item, Event):
            raise TypeError(f"{item!r} is not an event: smolfed.accounting.event makes them")
    return listed
