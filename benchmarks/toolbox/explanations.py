"""Shapley values: ``mercer.explain`` against ``shap.KernelExplainer``, 500 rows × 20 columns.

    python benchmarks/toolbox/explanations.py [--rows 500] [--shap-rows 5]

Both explain the same SVC with a Gaussian kernel and the same 100 background rows, in one process, in CPU seconds.
KernelExplainer calls the decision function of mercer's machine, for a few rows: its time is proportional to their
number. mercer's values are exact up to rounding; their error is the largest difference of their sum from the decision
value. KernelExplainer's error is the largest difference from mercer's values. It is exact with all 2^20 coalitions,
whose time is extrapolated in the last line.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from mercer import SVC, explain


def seconds(function):
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--shap-rows", type=int, default=5)
    parser.add_argument("--nsamples", type=int, nargs="+", default=[256, 1024, 2088, 8192])
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 20))
    y = (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] > 0).astype(int)
    train, rows, background = X[:1000], X[1000 : 1000 + arguments.rows], X[:100]
    model = SVC().fit(train, y[:1000])
    explain(model, rows[:2], background)  # loops are compiled
    own, found = seconds(lambda: explain(model, rows, background))
    error = np.abs(found.values.sum(axis=1) + found.base - model.decision_function(rows)).max()
    print(f"{len(rows)} rows × 20 columns, {len(model.support_)} support vectors, 100 background rows\n")
    print("| method | CPU s | largest error | times mercer's |\n|---|---|---|---|")
    print(f"| mercer.explain (exact) | {own:.2f} | {error:.1e} | 1 |")
    try:
        import shap
    except ImportError:
        print("\nshap is not installed: left out")
        return
    explainer = shap.KernelExplainer(model.decision_function, background)
    few = rows[: arguments.shap_rows]
    explainer.shap_values(few[:1], nsamples=64, silent=True)
    for nsamples in arguments.nsamples:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spent, values = seconds(
                lambda: explainer.shap_values(few, nsamples=nsamples, silent=True, l1_reg="num_features(20)")  # noqa: B023
            )
        spent *= len(rows) / len(few)
        worst = np.abs(np.asarray(values) - found.values[: len(few)]).max()
        print(f"| shap.KernelExplainer, nsamples={nsamples} | {spent:.1f} | {worst:.1e} | {spent / own:,.0f} |")
    spent *= 2**20 / arguments.nsamples[-1]
    print(f"| shap.KernelExplainer, all coalitions (extrapolated) | {spent:,.0f} | 0 | {spent / own:,.0f} |")


if __name__ == "__main__":
    main()
