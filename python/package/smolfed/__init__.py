"""Differentially private federated learning that fits in a microcontroller.

=============================================  ==================================================
`accounting`                                   privacy accounting: events, accountants, calibration
`run`, `resume`                                train simulated devices; return the result with
                                               its privacy statement
`init`                                         propose an experiment for your own data
`load`                                         load the result of a run from its directory
`Federation`                                   devices with their samples, from arrays or tables
`FederatedClassifier`, `FederatedRegressor`    estimators for scikit-learn
`aggregate`                                    private averages for your own training loops
`flower`                                       the exact integer path for Flower
=============================================  ==================================================

Modules that need more than NumPy are imported on first use.

Examples
--------
>>> import smolfed
>>> result = smolfed.run(overrides={"rounds": 5})     # the built-in experiment
>>> result.statement.unit, result.statement.trust
('device', 'central')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import accounting
from ._native import VERSION as __version__
from .federation import Federation
from .result import RunResult
from .running import PrivacyWarning, complete, init, load, resume, run
from .statement import PrivacyStatement

if TYPE_CHECKING:
    from .estimators import FederatedClassifier, FederatedRegressor

__all__ = [
    "FederatedClassifier",
    "FederatedRegressor",
    "Federation",
    "PrivacyStatement",
    "PrivacyWarning",
    "RunResult",
    "__version__",
    "accounting",
    "complete",
    "init",
    "load",
    "resume",
    "run",
]


def __getattr__(name: str) -> Any:
    # scikit-learn takes half a second to import.
    if name in ("FederatedClassifier", "FederatedRegressor"):
        from . import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module `smolfed` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
