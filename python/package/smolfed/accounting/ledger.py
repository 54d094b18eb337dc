"""Privacy ledgers (the privacy spent so far), and budgets for rounds that are chosen adaptively."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from .. import _native
from .._native import Event
from ..statement import PrivacyStatement
from .events import as_events

# Sampling under which rounds of one event are alike. Other schemes bound the participations within
# the rounds of one event, which is one run, so rounds of two runs are two events.
_INDEPENDENT = ("poisson", "uniform", "full")

# The condition of a list of events, which does not record how many rounds were planned.
NO_PLAN = json.dumps({"kind": "no-plan"})


class Ledger:
    """A list of releases, with their cost.

    Parameters
    ----------
    events : iterable of Event
        Earlier releases.

    Examples
    --------
    >>> from smolfed.accounting import Ledger, event
    >>> ledger = Ledger()
    >>> for _ in range(100):
    ...     ledger.charge(event(noise_multiplier=1.0, sampling_rate=0.02))
    >>> ledger.rounds
    100
    >>> round(ledger.epsilon(delta=1e-5), 3)
    1.428
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events: list[Event] = []
        self._conditions: list[str] = [NO_PLAN]
        for item in as_events(events, {}):
            self.charge(item)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, unit: str = "device") -> Ledger:
        """Reads the ledger that runs with the key ``privacy.ledger`` wrote.

        Parameters
        ----------
        path : path
            ``privacy.ledger`` or ``ledger.jsonl`` in a run's directory.
        unit : {"device", "example"}
            Selects the charges for this unit.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If it is damaged.
        """
        events, _, conditions = _native.read_ledger(os.fspath(path), unit)
        ledger = cls(events)
        ledger._conditions = conditions
        return ledger

    def charge(self, event: Event) -> None:
        """Adds a release. Rounds of one kind are counted together."""
        (event,) = as_events(event, {})
        if NO_PLAN not in self._conditions:
            self._conditions.append(NO_PLAN)
        for index, known in enumerate(self._events):
            if event.sampling in _INDEPENDENT and known.with_rounds(1) == event.with_rounds(1):
                self._events[index] = known.with_rounds(known.rounds + event.rounds)
                return
        self._events.append(event)

    @property
    def events(self) -> list[Event]:
        """The releases."""
        return list(self._events)

    @property
    def rounds(self) -> int:
        """Number of rounds of all events."""
        return sum(event.rounds for event in self._events)

    @property
    def uncovered(self) -> list[str]:
        """Short names of all that no figure covers. Empty if nothing invalidates the bound."""
        parts = [json.loads(condition) for condition in self._conditions]
        return [part["text"] for part in parts if part.get("effect") == "no-bound"]

    def epsilon(self, *, delta: float | str, accountant: str | None = None) -> float:
        """Epsilon of all releases, if the schedule was fixed beforehand."""
        return _native.estimate(self._events, delta, accountant).epsilon

    def odometer(self, *, delta: float | str) -> float:
        """Epsilon that holds even if each round was chosen after seeing earlier ones."""
        return _native.odometer(self._events, delta)

    def statement(
        self, *, delta: float | str, accountant: str | None = None
    ) -> PrivacyStatement:
        """The privacy statement of all releases.

        A list of events does not record how many rounds were planned, so ``is_upper_bound`` is true
        only for a ledger of one run that was not stopped. Otherwise ``planned_is_upper_bound`` says
        whether `epsilon` is proved for a schedule that was fixed beforehand.
        """
        parts = _native.statement(self._events, delta, accountant, None, self._conditions)
        return PrivacyStatement(*parts)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<Ledger: {self.rounds} rounds, {len(self._events)} kinds>"

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Ledger) and self._events == other._events

    __hash__ = None  # type: ignore[assignment]


class Filter:
    """A budget, fixed beforehand, for rounds whose choice depends on earlier ones.

    The budget is the cost of `plan` at one Rényi order. Source: Feldman, Zrnic 2021
    (arXiv:2008.11193).

    Examples
    --------
    >>> from smolfed.accounting import Filter, event
    >>> plan = event(noise_multiplier=8, sampling="full", rounds=20)
    >>> budget = Filter(plan, delta=1e-5)
    >>> budget.charge(plan.with_rounds(12))
    >>> budget.admits(plan.with_rounds(9))
    False
    """

    def __init__(self, plan: Event | Iterable[Event], *, delta: float | str) -> None:
        self._native = _native.Filter(as_events(plan, {}), delta)

    def admits(self, event: Event) -> bool:
        """Whether the budget has room for the event."""
        return self._native.admits(event)

    def charge(self, event: Event) -> None:
        """Charges the event. Raises ValueError and charges nothing if it does not fit."""
        self._native.charge(event)

    @property
    def epsilon(self) -> float:
        """Epsilon of the whole budget."""
        return self._native.epsilon
