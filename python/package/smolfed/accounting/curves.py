"""Trade-off curves: error rates of an attacker, epsilon over the rounds, and plots of both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _native
from .._native import Event
from .events import Release, as_events

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TradeOff:
    """The least false-negative rate of any attack at each false-positive rate.

    The attack tests whether one device took part. Create it with `trade_off` or
    `TradeOff.of_epsilon`.
    """

    def __init__(self, curve: _native.TradeOff) -> None:
        self._curve = curve

    @classmethod
    def of_epsilon(cls, epsilon: float, delta: float) -> TradeOff:
        """The curve of a single guarantee.

        Examples
        --------
        >>> from smolfed.accounting import TradeOff
        >>> round(TradeOff.of_epsilon(1.0, 1e-5).advantage, 4)
        0.4621
        """
        return cls(_native.TradeOff.of_epsilon(epsilon, delta))

    def false_negative_rate(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
        """The least false-negative rates (type II errors), in the shape of the argument."""
        rates = np.asarray(false_positive_rate, dtype=np.float64)
        found = self._curve.false_negative_rate(np.ascontiguousarray(rates.reshape(-1)))
        return found.reshape(rates.shape)

    def true_positive_rate(self, false_positive_rate: ArrayLike) -> NDArray[np.float64]:
        """The largest true-positive rates (power), in the shape of the argument."""
        return 1.0 - self.false_negative_rate(false_positive_rate)

    @property
    def advantage(self) -> float:
        """The largest true-positive rate minus false-positive rate of any attack."""
        return self._curve.advantage

    def __repr__(self) -> str:
        return f"<TradeOff: no attack has an advantage above {self.advantage:.4f}>"

    def plot(self, ax: Any = None, **line: Any) -> Any:
        """Draws the receiver operating characteristic that no attack exceeds.

        Needs matplotlib. Draws on `ax` and passes `line` to its ``plot``. Returns the axes.
        """
        ax = _axes(ax)
        rates = np.linspace(0, 1, 501)
        ax.plot(rates, self.true_positive_rate(rates), **line)
        ax.plot([0, 1], [0, 1], color="grey", linewidth=0.8, linestyle="--")
        ax.set(xlabel="false-positive rate", ylabel="true-positive rate (at most)")
        return ax


def trade_off(
    events: Event | Iterable[Event] | None = None,
    *,
    delta: float | str,
    accountant: str | None = None,
    **release: Unpack[Release],
) -> TradeOff:
    """The trade-off curve of events. Takes the parameters of `estimate`.

    The curve follows from the whole privacy loss where it can be composed, and from a single
    (epsilon, delta) elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> from smolfed.accounting import trade_off
    >>> curve = trade_off(noise_multiplier=4, sampling="full", delta=1e-5)
    >>> round(curve.advantage, 4)
    0.0995
    >>> np.round(curve.true_positive_rate([0.01, 0.1]), 3)
    array([0.019, 0.151])
    """
    return TradeOff(_native.TradeOff(as_events(events, release), delta, accountant))


def epsilon_over_rounds(
    events: Event,
    rounds: Sequence[int] | NDArray[np.integer[Any]],
    *,
    delta: float | str,
    accountant: str | None = None,
    ax: Any = None,
) -> NDArray[np.float64]:
    """Epsilon of the first rounds of an event, for each of several numbers of rounds.

    If `ax` is a matplotlib axes, the curve is also drawn on it.

    Examples
    --------
    >>> import numpy as np
    >>> from smolfed.accounting import epsilon_over_rounds, event
    >>> planned = event(noise_multiplier=1, sampling_rate=0.01, rounds=1000)
    >>> np.round(epsilon_over_rounds(planned, [10, 100, 1000], delta=1e-5), 2)
    array([0.38, 0.72, 1.83])
    """
    counts = np.asarray(rounds)
    found = [
        _native.estimate([events.with_rounds(int(count))], delta, accountant).epsilon
        for count in counts
    ]
    curve = np.array(found, dtype=np.float64)
    if ax is not None:
        ax.plot(counts, curve)
        ax.set(xlabel="rounds", ylabel="epsilon")
    return curve


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'smolfed[plot]'") from error
    return plt.figure().add_subplot()
