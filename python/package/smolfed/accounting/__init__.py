"""Privacy accounting: epsilon of composed Gaussian and subsampled Gaussian mechanisms.

An `Event` describes a release: the noise, how devices were sampled, and how often. An accountant
turns events into epsilon at a delta, and says whether it is proved. "Device" is the sampled unit.
Read "record" or "user" where that is the unit.

======================================  ====================================================
`epsilon`, `estimate`, `statement`      the cost of events: a number, with its kind, in words
`noise_multiplier`, `rounds`,           noise, rounds or cohort size for a target epsilon
`cohort_size`
`event`, `Event`                        the description of a release
`trade_off`, `TradeOff`                 error rates of the best attack, as arrays
`Strategy`                              correlated noise, for devices that cannot be sampled
`Ledger`, `Filter`                      the privacy spent, and adaptive budgets
`from_opacus_history`, `from_dp_event`  events of other programs
======================================  ====================================================

Examples
--------
>>> from smolfed import accounting
>>> spent = accounting.epsilon(noise_multiplier=1.0, sampling_rate=0.05, rounds=1000, delta=1e-6)
>>> round(spent, 3)
12.241
>>> noise = accounting.noise_multiplier(epsilon=4, delta=1e-6, sampling_rate=0.05, rounds=1000)
>>> round(noise, 3)
2.062

Every figure above is an upper bound against anyone who sees the releases, under Poisson sampling
and add-remove adjacency. `statement` says so in words.
"""

from __future__ import annotations

from .._native import ACCOUNTANTS, FAMILIES, Estimate, Event
from .curves import TradeOff, epsilon_over_rounds, trade_off
from .events import event
from .figures import cohort_size, epsilon, estimate, noise_multiplier, rounds, statement
from .history import from_dp_event, from_opacus_history, from_tensorflow_privacy
from .ledger import Filter, Ledger
from .strategy import Strategy

__all__ = [
    "ACCOUNTANTS",
    "FAMILIES",
    "Estimate",
    "Event",
    "Filter",
    "Ledger",
    "Strategy",
    "TradeOff",
    "cohort_size",
    "epsilon",
    "epsilon_over_rounds",
    "estimate",
    "event",
    "from_dp_event",
    "from_opacus_history",
    "from_tensorflow_privacy",
    "noise_multiplier",
    "rounds",
    "statement",
    "trade_off",
]


def _event_from_json(text: str) -> Event:
    """Restores a pickled event."""
    from .._native import events_from_json

    return events_from_json(f"[{text}]")[0]
