"""The privacy statement: everything to report with a printed epsilon."""

from __future__ import annotations

import html
import json
import math
import textwrap
from typing import Any


class PrivacyStatement:
    """The guarantee of a run or a list of events, and its assumptions.

    Printing it gives a few sentences for readers without knowledge of formulas. Its figures are
    attributes with the names of ``privacy.json``, and ``to_dict`` returns all of them.

    Attributes
    ----------
    epsilon : float
        Infinite if nothing is guaranteed.
    delta : float
        The probability that the bound fails.
    is_upper_bound : bool
        Whether `epsilon` is proved without reservation, with all conditions taken into account.
    conditions : list of dict
        Conditions of `epsilon` besides its figures, for example a known seed or a scale computed
        from rows: ``kind``, ``text`` and ``effect``, which is "stated", "needs-schedule" or
        "no-bound".
    unit, adjacency, trust, accountant : str
        The protected unit, the two federations that an attacker cannot tell apart, the trust model,
        and the accountant.
    notes : list of str
        Further facts to know, one sentence each.
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
        """All figures, with the names of ``privacy.json``."""
        return dict(self._figures)

    @property
    def words(self) -> str:
        """The statement in one paragraph."""
        return self._words

    @property
    def line(self) -> str:
        """Epsilon, delta, the protected unit and the trust model, in one line."""
        return self._line

    def _with_note(self, note: str) -> PrivacyStatement:
        """A copy with one more sentence."""
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
