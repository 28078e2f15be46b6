"""Draw pictures into docs/_static: ``python docs/draw_pages.py``.

They are those of the README, of the first pages of the site and of the tutorials.

The README's table of times is taken from docs/benchmarks.md and written by this script, too.
"""

import re
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import make_blobs, make_moons

from mercer import SVC, SVR, DecisionDisplay, GramDisplay, Mismatch, TubeDisplay, datasets

DOCS = Path(__file__).parent
# the sets of the README's table: rows of the table "Fit" in docs/benchmarks.md
SETS = ("svmguide1", "spam_C1", "letter", "mnist_20k", "a9a_C1", "mnist_60k_binary")
COLUMNS = ("set", "n × d", "classes", "mercer", "scikit-learn", "libsvm", "scikit-learn / mercer")
HEADS = ("set", "rows × columns", "classes", "mercer, s", "scikit-learn, s", "LIBSVM, s", "scikit-learn / mercer")
SPEED = re.compile(r"(<!-- speed: written by docs/draw_pages.py -->\n).*?(<!-- end -->)", re.DOTALL)


def moons():
    """Two half circles, the boundary and the margins."""
    X, y = make_moons(200, noise=0.15, random_state=0)
    return DecisionDisplay.from_estimator(SVC(C=10, gamma=1.0).fit(X, y), X, y).figure_


def promoters():
    """The kernel matrix of strings with and without a promoter."""
    X, y = datasets.make_promoters(120)
    return GramDisplay.from_kernel(Mismatch(5, 1, normalize=True), X, y).figure_


def first_screen():
    """Three machines side by side: two classes, four classes, a regression with its tube."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.9), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    X, y = make_moons(120, noise=0.2, random_state=3)
    model = SVC(C=10, gamma=1.0).fit(X, y)
    DecisionDisplay.from_estimator(model, X, y, ax=left)
    left.set_title(f"SVC: {len(model.support_)} of {len(X)} samples are support vectors", fontsize=11)
    X, y = make_blobs(160, centers=[[0, 0], [4, 1], [1, 4], [5, 5]], cluster_std=1.1, random_state=0)
    model = SVC(C=10, gamma=0.2).fit(X, y)
    DecisionDisplay.from_estimator(model, X, y, ax=middle)
    middle.set_title(f"four classes: relative gap {model.certificate_.relative_gap:.0e}", fontsize=11)
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 10, 90))[:, None]
    target = np.sin(x[:, 0]) + 0.3 * np.cos(3 * x[:, 0]) + rng.normal(0, 0.15, 90)
    TubeDisplay.from_estimator(SVR(C=10, gamma=1.0, epsilon=0.25).fit(x, target), x, target, ax=right)
    right.set_title("SVR: samples inside the tube cost nothing", fontsize=11)
    for axes in (left, middle, right):
        axes.set(xlabel="", ylabel="", xticks=[], yticks=[])
        if axes.get_legend() is not None:
            axes.get_legend().remove()
    return figure


def speed_table(benchmarks: str) -> str:
    """The rows of ``SETS`` from the table of fits, as Markdown."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in benchmarks.splitlines() if "|" in line]
    head = next(row for row in rows if row[0] == "set" and "scikit-learn / mercer" in row)
    first = rows.index(head)
    found = {row[0]: dict(zip(head, row, strict=False)) for row in rows[first:] if len(row) == len(head)}
    lines = ["| " + " | ".join(HEADS) + " |", "|---|---:|---:|---:|---:|---:|---:|"]
    lines += ["| " + " | ".join(found[name][column] for column in COLUMNS) + " |" for name in SETS]
    return "\n".join(lines) + "\n"


def with_table(readme: str, benchmarks: str) -> str:
    """The README with the table that follows from the benchmarks."""
    return SPEED.sub(lambda found: found[1] + "\n" + speed_table(benchmarks) + "\n" + found[2], readme)


def main() -> None:
    """Draw the pictures and write the table of the README."""
    matplotlib.use("Agg")
    for draw in (moons, promoters, first_screen):
        draw().savefig(DOCS / "_static" / f"{draw.__name__}.png", dpi=100)
    readme = DOCS.parent / "README.md"
    benchmarks = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), benchmarks), encoding="utf-8")


if __name__ == "__main__":
    main()
