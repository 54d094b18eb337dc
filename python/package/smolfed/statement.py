"""The privacy statement: everything that a printed epsilon must name."""

from __future__ import annotations

import html
import json
import math
import textwrap
from typing import Any


class PrivacyStatement:
    """What a run, or a list of events, guarantees and under which assumptions.

    Printed, it is a few sentences for a reader who knows no formulas. Its figures are attributes
    by the names of ``privacy.json``, and ``to_dict`` gives all of them.

    Attributes
    ----------
    epsilon : float
        Infinite if nothing can be promised.
    delta : float
        The probability with which the bound may fail.
    is_upper_bound : bool
        Whether `epsilon` is proved, whatever the run depended on and without reservation.
    conditions : list of dict
        What `epsilon` depends on beside its figures, for example a known seed or a scale that was
        read from rows: ``kind``, ``text`` and ``effect``, which is "stated", "needs-schedule" or
        "no-bound".
    unit, adjacency, trust, accountant : str
        What is protected, which two federations an attacker cannot tell apart, against whom, and
        who says so.
    notes : list of str
        What else must be known, a sentence each.
    """

    def __init__(self, text: str, words: str, line: str) -> None:
        self._figures: dict[str, Any] = json.loads(text)
        # JSON has no infinity.
        if self._figures["epsilon"] is None:
            self._figures["epsilon"] = math.inf
        self._words = words
        self._line = line

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._figures[name]
        except KeyError:
            raise AttributeError(f"the privacy statement has no figure `{name}`") from None

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._figures})

    def to_dict(self) -> dict[str, Any]:
        """All figures, by the names of ``privacy.json``."""
        return dict(self._figures)

    @property
    def words(self) -> str:
        """The statement in one paragraph."""
        return self._words

    @property
    def line(self) -> str:
        """Epsilon, delta, what they protect and from whom, in one line."""
        return self._line

    def _with_note(self, note: str) -> PrivacyStatement:
        """The same with one more sentence."""
        figures = {**self._figures, "notes": [*self._figures["notes"], note]}
        return PrivacyStatement(json.dumps(figures), f"{self._words} {note}", self._line)

    def __str__(self) -> str:
        return textwrap.fill(self._words, 100, break_on_hyphens=False)

    def __repr__(self) -> str:
        return f"<PrivacyStatement: {self._line}>"

    def _repr_html_(self) -> str:
        first, _, rest = self._words.partition(". ")
        return f"<p><strong>{html.escape(first)}.</strong> {html.escape(rest)}</p>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (json.dumps(self._figures), self._words, self._line)
