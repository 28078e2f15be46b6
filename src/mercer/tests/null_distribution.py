"""The distribution of a test statistic if the hypothesis holds, and the result of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from mercer.display.canvas import CHOSEN, GREY, axes, colour
from mercer.kernels.features import Vector

# a permuted statistic within this share of the observed one counts as equal: both are sums in different orders
TIES = 1e-10


@dataclass(frozen=True, eq=False)
class NullDistribution:
    """Values of the statistic under the hypothesis, or a gamma distribution with their mean and variance.

    Parameters
    ----------
    kind : {"permutation", "spectral", "gamma"}
        How it was found.
    values : ndarray or None
        Drawn values; None for a gamma distribution.
    shape, scale, shift : float
        The gamma distribution: ``shift`` plus a variable with this shape and scale; NaN if values were drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tests import NullDistribution
    >>> NullDistribution("permutation", np.arange(99.0)).p_value(97.0)
    0.03
    >>> round(NullDistribution.gamma(mean=2.0, variance=2.0).p_value(2.0), 3)
    0.406
    """

    kind: str
    values: Vector | None = None
    shape: float = np.nan
    scale: float = np.nan
    shift: float = np.nan

    def __repr__(self) -> str:
        if self.values is not None:
            return f"NullDistribution({self.kind!r}, {len(self.values):,} values)"
        numbers = f"shape={self.shape:.6g}, scale={self.scale:.6g}, shift={self.shift:.6g}"
        return f"NullDistribution({self.kind!r}, {numbers})"

    @classmethod
    def gamma(cls, mean: float, variance: float, shift: float = 0.0) -> NullDistribution:
        """The gamma distribution of this mean and variance, moved by ``shift``; a point at the shift if both are 0."""
        if not (mean > 0 and variance > 0):
            return cls("gamma", None, 0.0, 0.0, shift)
        return cls("gamma", None, mean * mean / variance, variance / mean, shift)

    def p_value(self, statistic: float) -> float:
        """The probability of a value of at least ``statistic``. With B drawn values at least 1 / (B + 1)."""
        if self.values is not None:
            least = statistic - TIES * abs(statistic)
            return float((1 + np.count_nonzero(self.values >= least)) / (1 + len(self.values)))
        if self.shape == 0.0:  # the statistic can only have one value
            return 1.0
        return float(stats.gamma.sf(statistic - self.shift, self.shape, scale=self.scale))

    def quantile(self, level: float) -> float:
        """The value that a share ``level`` of the distribution does not exceed."""
        if self.values is not None:
            return float(np.quantile(self.values, level))
        return (
            self.shift
            if self.shape == 0.0
            else float(self.shift + stats.gamma.ppf(level, self.shape, scale=self.scale))
        )


@dataclass(frozen=True, eq=False)
class KernelTestResult:
    """The outcome of a hypothesis test.

    Attributes
    ----------
    statistic : float, the observed value; large values speak against the hypothesis.
    p_value : float, the probability of such a value or a larger one if the hypothesis holds.
    null : NullDistribution, the distribution of the statistic if the hypothesis holds.
    method : str, the test, its statistic and how the null distribution was found.
    hypothesis : str, what is tested.
    n_samples : tuple of int, the sizes of the samples.
    kernels : tuple of Kernel, the kernels with their parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.tests import hsic_test
    >>> x = np.linspace(-1, 1, 50)
    >>> result = hsic_test(x, x**2, null="gamma")
    >>> result.p_value < 1e-4
    True
    >>> print(result.hypothesis)
    X and Y are independent
    """

    statistic: float
    p_value: float
    null: NullDistribution
    method: str
    hypothesis: str
    n_samples: tuple[int, ...]
    kernels: tuple[Any, ...]

    def __str__(self) -> str:
        drawn = "" if self.null.values is None else f" of {len(self.null.values):,} values"
        sizes = " and ".join(f"{n:,}" for n in self.n_samples)
        return (
            f"{self.method}\n"
            f"  hypothesis: {self.hypothesis} ({sizes} samples)\n"
            f"  statistic {self.statistic:.4g}, p-value {self.p_value:.3g}\n"
            f"  95 % quantile{drawn} under the hypothesis ({self.null.kind}): {self.null.quantile(0.95):.4g}\n"
            f"  kernels: {', '.join(map(str, self.kernels))}"
        )

    def __repr__(self) -> str:
        return f"KernelTestResult(statistic={self.statistic:.6g}, p_value={self.p_value:.4g}, method={self.method!r})"

    def plot(self, ax: Any = None) -> Any:
        """Draw the null distribution and the observed statistic.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None for a new figure.

        Returns
        -------
        ax : matplotlib axes
            The axes.
        """
        _, ax = axes(ax)
        null = self.null
        if null.values is not None:
            ax.hist(null.values, bins=40, density=True, color=colour(0), alpha=0.55, label=f"hypothesis ({null.kind})")
        elif null.shape > 0:
            x = np.linspace(null.quantile(1e-4), null.quantile(0.9995), 300)
            y = stats.gamma.pdf(x - null.shift, null.shape, scale=null.scale)
            ax.fill_between(x, y, color=colour(0), alpha=0.35, lw=0, label="hypothesis (gamma)")
            ax.plot(x, y, color=colour(0))
        ax.axvline(self.statistic, color=CHOSEN, lw=2, label=f"observed, p = {self.p_value:.3g}")
        ax.axvline(null.quantile(0.95), color=GREY, ls="--", lw=1.2, label="95 % quantile")
        ax.set(xlabel="statistic", ylabel="density", title=self.method)
        ax.legend(frameon=False, loc="upper center")
        return ax


def result_of(
    statistic: float,
    null: NullDistribution,
    method: str,
    hypothesis: str,
    sizes: tuple[int, ...],
    kernels: tuple[Any, ...],
) -> KernelTestResult:
    """The result with the p-value of this null distribution."""
    return KernelTestResult(float(statistic), null.p_value(float(statistic)), null, method, hypothesis, sizes, kernels)
