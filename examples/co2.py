"""Carbon dioxide above Mauna Loa: trend, seasons and noise, each a kernel, learnt together and carried into the future.

    python examples/co2.py --data DIR [--output co2.png]      # DIR/mauna_loa_co2.npz: X, the years; y, the ppm
    python examples/co2.py                                    # the record that comes with statsmodels

The concentration is a sum of independent Gaussian processes, so its kernel is a sum (Rasmussen & Williams, 5.4.3):

    a trend over the decades          Gaussian, or Polynomial of degree 2
    seasons that slowly change        Gaussian × Periodic, the period fixed at one year
    irregularities of a few years     RationalQuadratic
    what is left: weather, errors     Gaussian of a few weeks, White

Each part has its own posterior mean, with the kernel of that part alone in the place of k. The last years are not shown
to the model: the share of them in its band tells whether its deviations are honest.

They need not be. Both trends explain the past about equally well, and differ in what they assume of the future: the
Gaussian one, the book's, returns to the mean, the parabola goes on. With the last 5, 10 and 15 years of either record
(to 2001, to 2012) held out, the parabola was nearer four times, the Gaussian twice; the likelihood preferred the nearer
one in three of the six; and the bands held between 3 % and 100 % of the months. A band is as good as its kernel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mercer import Fixed, Gaussian, GaussianProcessRegressor, Periodic, Polynomial, RationalQuadratic, White

# years at the end that the model does not see, and years beyond the record that it predicts
HELD_OUT, FUTURE = 10.0, 15.0
BAND = 1.96  # deviations on either side that hold 95 %
ORIGIN = 1985.0  # where the parabola has its zero: polynomials of numbers like 2000 lose digits


TRENDS: dict[str, Any] = {
    "gaussian": 2500.0 * Gaussian.from_sigma(50.0),
    "parabola": 100.0 * Fixed(Polynomial(degree=2, gamma=0.01, coef0=1.0), "coef0"),
}


def kernel(trend: Any) -> Any:
    """Trend, seasons, irregularities and noise, in ppm and years; the values are where learning starts."""
    seasons = 4.0 * Gaussian.from_sigma(100.0) * Fixed(Periodic(length_scale=1.0, period=1.0), "period")
    irregular = 0.25 * RationalQuadratic(alpha=1.0, length_scale=1.0)
    rest = 0.01 * Gaussian.from_sigma(0.1) + White(0.01)
    return trend + seasons + irregular + rest


def parts(learnt: Any) -> dict[str, Any]:
    """The terms of the learnt sum."""
    return {
        "trend": learnt.left.left.left,
        "seasons": learnt.left.left.right,
        "irregularities": learnt.left.right,
    }


def record(folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Years and concentrations, a month each."""
    if folder is not None:
        path = folder / "mauna_loa_co2.npz"
        if not path.is_file():
            raise SystemExit(f"{path} does not exist: --data is the folder that holds mauna_loa_co2.npz (X, y).")
        with np.load(path) as stored:
            return stored["X"].astype(float).ravel(), stored["y"].astype(float)
    try:
        from statsmodels.datasets import co2
    except ImportError:
        raise SystemExit(
            "The record is not at hand: give its folder with --data DIR, or run  pip install statsmodels"
        ) from None
    months = co2.load_pandas().data["co2"].resample("MS").mean().dropna()
    return (months.index.year + (months.index.month - 0.5) / 12).to_numpy(float), months.to_numpy(float)


def samples(years: np.ndarray) -> np.ndarray:
    """Years as the model sees them, a row each."""
    return years[:, None] - ORIGIN


def study(
    years: np.ndarray, ppm: np.ndarray, trend: str, held_out: float = HELD_OUT
) -> tuple[GaussianProcessRegressor, float]:
    """The model of all years but the last, its parts printed, and the share of the others in its band."""
    seen = years < years.max() - held_out
    level = ppm[seen].mean()
    model = GaussianProcessRegressor(kernel(TRENDS[trend])).fit(samples(years[seen]), ppm[seen] - level)
    mean, deviation = model.predict(samples(years[~seen]), return_std=True)
    error = mean + level - ppm[~seen]
    covered = float(np.mean(np.abs(error) <= BAND * deviation))
    value, tries = model.log_marginal_likelihood_value_, model.n_evaluations_
    print(f"Trend: {trend}. {seen.sum()} months learnt, {(~seen).sum()} held out.")
    print(f"log marginal likelihood {value:.2f} after {tries} evaluations, equations solved to {model.residual_:.0e}")
    for name, part in [*parts(model.kernel_).items(), ("noise", model.kernel_.right)]:
        print(f"  {name:<15} {rounded(part)}")
    print(f"held-out months: error {np.sqrt(np.mean(error**2)):.2f} ppm, {covered:.0%} within the 95 % band")
    return model, covered


def rounded(part: Any) -> Any:
    """The kernel with three digits of each parameter."""
    return part.with_values([float(f"{h.value:.3g}") for h in part.hyperparameters()])


def draw(model: GaussianProcessRegressor, years: np.ndarray, ppm: np.ndarray, path: Path) -> None:
    """The record with the model's band into the future, and the parts of the mean below."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("The picture needs matplotlib: please run  pip install 'mercer[report]'") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    last = model.X_train_.max() + ORIGIN
    hidden = years > last + 1e-6
    level = ppm[~hidden].mean()
    grid = np.linspace(years.min(), years.max() + FUTURE, 1500)
    mean, deviation = model.predict(samples(grid), return_std=True)
    figure, axes = plt.subplots(4, 1, figsize=(9, 10), sharex=True, height_ratios=(3, 1, 1, 1), layout="constrained")
    top = axes[0]
    top.fill_between(
        grid, mean + level - BAND * deviation, mean + level + BAND * deviation, color="C0", alpha=0.25, lw=0,
        label="95 % of the posterior",
    )  # fmt: skip
    top.plot(grid, mean + level, color="C0", lw=0.8, label="mean")
    top.plot(years[~hidden], ppm[~hidden], ".", color="black", ms=2, label="learnt from")
    top.plot(years[hidden], ppm[hidden], ".", color="C3", ms=3, label="held out")
    top.set_ylabel("CO₂ (ppm)")
    top.set_title("Carbon dioxide above Mauna Loa")
    top.legend(loc="upper left", frameon=False)
    for axis, (name, part) in zip(axes[1:], parts(model.kernel_).items(), strict=True):
        own = part(samples(grid), model.X_train_) @ model.alpha_
        axis.plot(grid, own, color="C0", lw=0.8)
        axis.set_ylabel(f"{name}\n(ppm)")
    for axis in axes:
        axis.axvline(last, color="gray", lw=0.8, ls=":")
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("year")
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"Picture: {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the record, learn, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with mauna_loa_co2.npz")
    parser.add_argument("--trend", choices=[*TRENDS], default="gaussian", help="the trend of the picture")
    parser.add_argument("--output", type=Path, default=Path("co2.png"), help="the picture")
    given = parser.parse_args(arguments)
    years, ppm = record(given.data)
    models = {trend: study(years, ppm, trend)[0] for trend in TRENDS}
    draw(models[given.trend], years, ppm, given.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
