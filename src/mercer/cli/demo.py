"""``mercer demo``: classify handwritten digits with mercer and with scikit-learn."""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import mercer
from mercer._compiled.compile import seconds_compiling
from mercer._compiled.machine_code import cache_directory
from mercer.exceptions import MissingExtraError

PICTURE = "mercer-demo.png"
PARAMETERS = {"C": 10.0, "gamma": "scale"}
REPEATS = 5
N_DIGITS = 6
N_NEIGHBOURS = 6
# above this many seconds of compilation, the summary says that the first fit compiled; loading takes less
LEAST_COMPILING = 2.0

Array = NDArray[Any]


@dataclass(frozen=True)
class Digits:
    """The data, split into training rows and held-out rows. Pixels are in [0, 1]."""

    X_train: Array
    X_test: Array
    y_train: Array
    y_test: Array


@dataclass(frozen=True)
class Measurement:
    """The measurements of one fitted model; times in seconds."""

    accuracy: float
    n_support: int
    first_fit: float
    compiling: float
    warm_fit: float
    warm_predict: float


def run(output: Path) -> int:
    """Fit, print the summary and draw the picture into the folder ``output``; return the exit status."""
    digits = load()
    print(
        f"Handwritten digits, 8x8 pixels, 10 classes: {len(digits.y_train):,} images to train on, "
        f"{len(digits.y_test):,} held out.\n"
    )
    model = mercer.SVC(**PARAMETERS)
    ours = measure(model, digits)
    theirs = measure(sklearn.svm.SVC(**PARAMETERS), digits)
    print(summary(model, ours, theirs))
    try:
        picture = draw(model, digits, output / PICTURE)
    except MissingExtraError as error:
        print(f"\n{error}", file=sys.stderr)
    else:
        print(f"\nPicture: {picture}")
    return 0


def load() -> Digits:
    """Load scikit-learn's digits. A third is held out, the same third in every run."""
    X, y = load_digits(return_X_y=True)
    return Digits(*train_test_split(X / 16, y, test_size=1 / 3, stratify=y, random_state=0))


def measure(model: Any, digits: Digits) -> Measurement:
    """Fit ``model`` in place and time it: the first fit on its own, then the median of several more."""
    before = seconds_compiling()
    first_fit = _seconds(lambda: model.fit(digits.X_train, digits.y_train))
    compiling = seconds_compiling() - before
    accuracy = model.score(digits.X_test, digits.y_test)
    return Measurement(
        accuracy=accuracy,
        n_support=int(np.sum(model.n_support_)),
        first_fit=first_fit,
        compiling=compiling,
        warm_fit=median(_seconds(lambda: model.fit(digits.X_train, digits.y_train)) for _ in range(REPEATS)),
        warm_predict=median(_seconds(lambda: model.predict(digits.X_test)) for _ in range(REPEATS)),
    )


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def summary(model: Any, ours: Measurement, theirs: Measurement) -> str:
    """Format both measurements as a table, followed by the certificate of ``model`` and notes on the times."""
    rows = [
        ("", "mercer", "scikit-learn", "ratio"),
        ("accuracy on held-out rows", f"{ours.accuracy:.2%}", f"{theirs.accuracy:.2%}", ""),
        ("support vectors", f"{ours.n_support:,}", f"{theirs.n_support:,}", ""),
        ("smallest margin", f"{np.min(model.margin_):.4f}", "-", ""),
        _time_row("fit", ours.warm_fit, theirs.warm_fit),
        _time_row("predict held-out rows", ours.warm_predict, theirs.warm_predict),
        _time_row("first fit", ours.first_fit, theirs.first_fit),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    table = [
        f"{row[0]:<{widths[0]}}" + "".join(f"   {row[column]:>{widths[column]}}" for column in (1, 2, 3))
        for row in rows
    ]
    n_classes = len(model.classes_)
    notes = [
        f"Model: SVC(C={PARAMETERS['C']:g}, gamma={PARAMETERS['gamma']!r}), Gaussian kernel, "
        f"{n_classes * (n_classes - 1) // 2} pairwise classifiers.",
        f"Certificate: {model.certificate_}",
        f"fit and predict: the median of {REPEATS} warm runs, on {os.cpu_count()} cores.",
        _first_fit_note(ours),
        "ratio: scikit-learn's time over mercer's; above 1, mercer is faster.",
    ]
    return "\n".join([*(line.rstrip() for line in table), "", *notes])


def _time_row(label: str, ours: float, theirs: float) -> tuple[str, str, str, str]:
    return label, f"{ours:.3g} s", f"{theirs:.3g} s", f"{theirs / ours:.2g}x"


def _first_fit_note(ours: Measurement) -> str:
    if ours.compiling > LEAST_COMPILING:
        if cache_directory() is None:
            return f"first fit: {ours.first_fit:.1f} s in each process, because it compiles code that cannot be kept."
        return (
            f"first fit: {ours.first_fit:.1f} s, because code was compiled for this computer, once. Later processes "
            "load the compiled code."
        )
    return f"first fit: {ours.first_fit:.1f} s in each process, because it loads compiled code."


def influence(model: Any, digits: Digits, x: Array, pair: tuple[int, int]) -> Array:
    """Contribution of each support vector to f(x) of a pair of classes: |dual_coef| k(x, sv); 0 for other classes.

    k(x, z) = exp(-γ |x - z|²) with gamma="scale", which is γ = 1 / (d var(X)). Row r of dual_coef_ holds, for a support
    vector of class c, its coefficient against the r-th of the other classes.
    """
    gamma = 1.0 / (digits.X_train.shape[1] * digits.X_train.var())
    similarity = np.exp(-gamma * np.square(model.support_vectors_ - x).sum(axis=1))
    labels = digits.y_train[model.support_]
    strength = np.zeros(len(labels))
    for own, other in (pair, pair[::-1]):
        members = labels == own
        row = other - 1 if other > own else other
        strength[members] = np.abs(model.dual_coef_[row, members]) * similarity[members]
    return strength


def rivals(model: Any, X: Array, truth: Array, guess: Array) -> Array:
    """The class to compare each prediction with: the true class if it is wrong, else the second best class."""
    decision = model.decision_function(X)
    decision[np.arange(len(X)), guess] = -np.inf
    return np.where(truth != guess, truth, decision.argmax(axis=1))


def choose(y_true: Array, y_predicted: Array) -> Array:
    """Choose rows to draw: first wrong predictions, at most half of the rows, then one right prediction per class."""
    wrong = np.flatnonzero(y_true != y_predicted)[: N_DIGITS // 2]
    right = np.flatnonzero(y_true == y_predicted)
    _, first_of_class = np.unique(y_true[right], return_index=True)
    unseen = [row for row in right[first_of_class] if y_true[row] not in y_true[wrong]]
    return np.concatenate([wrong, unseen])[:N_DIGITS].astype(np.intp)


def draw(model: Any, digits: Digits, path: Path) -> Path:
    """Draw some held-out digits next to their most influential support vectors; return the path of the picture."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("The picture", package="matplotlib", extra="report") from None

    predicted = model.predict(digits.X_test)
    rows = choose(digits.y_test, predicted)
    X, truth, guess = digits.X_test[rows], digits.y_test[rows], predicted[rows]
    rival = rivals(model, X, truth, guess)

    figure = Figure(figsize=(1.25 * (N_NEIGHBOURS + 1.6), 1.5 * len(rows) + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("Held-out digits and the support vectors that decide them", fontsize=13)
    grid = figure.subplots(len(rows), N_NEIGHBOURS + 1, width_ratios=[1.6] + [1] * N_NEIGHBOURS, squeeze=False)
    for i, axes in enumerate(grid):
        colour = "black" if guess[i] == truth[i] else "firebrick"
        _show(axes[0], X[i], f"true {truth[i]}, predicted {guess[i]}", colour)
        axes[0].set_ylabel(f"{guess[i]} or {rival[i]}?", fontsize=9)
        strength = influence(model, digits, X[i], (guess[i], rival[i]))
        for panel, sv in zip(axes[1:], np.argsort(-strength)[:N_NEIGHBOURS], strict=True):
            label = digits.y_train[model.support_[sv]]
            colour = "seagreen" if label == truth[i] else "firebrick"
            _show(panel, model.support_vectors_[sv], f"{label}   ({strength[sv]:.2f})", colour)
    figure.supxlabel(
        "Right of each digit: the most influential support vectors of the classifier for the two classes named,\n"
        "with their label and |dual_coef| k(x, sv); green if the label is the true one, else red.",
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return path


def _show(axes: Any, pixels: Array, title: str, colour: str) -> None:
    """Draw one digit with a title and a frame in ``colour``. Edits ``axes``."""
    axes.imshow(pixels.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
    axes.set_title(title, fontsize=9, color=colour)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(colour)
