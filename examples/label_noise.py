"""Wrong labels and the ramp loss: SVC follows them, RampSVC gives them up.

    python examples/label_noise.py

Two clouds lie side by side. A seventh of the training samples lies far inside the right cloud, but has the label of the
left one, as if a whole batch had been mixed up. Both machines are judged on new samples with true labels.
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, RampSVC


def clouds(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples left and right of a gap, with their true labels 0 and 1."""
    X = rng.normal(size=(n, 2))
    X[:, 0] += np.where(rng.random(n) < 0.5, -2.0, 2.0)
    X = X[np.abs(X[:, 0]) > 0.3]
    return X, (X[:, 0] > 0).astype(int)


def mixed_up(X: np.ndarray, y: np.ndarray, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same, but a share of all samples is moved to the right and up, and labelled 0."""
    X, labels = X.copy(), y.copy()
    wrong = rng.permutation(np.flatnonzero(y == 1))[: int(share * len(y))]
    X[wrong] += 3.0
    labels[wrong] = 0
    return X, labels


def main() -> None:
    """Print a table of accuracies, and how the last procedure went."""
    rng = np.random.default_rng(0)
    X_test, y_test = clouds(5000, rng)
    X, truth = clouds(300, rng)
    print("wrong labels   SVC: accuracy   RampSVC: accuracy   given up   of them wrong   rounds")
    for share in (0.0, 0.05, 0.1, 0.15):
        X_noisy, y_noisy = mixed_up(X, truth, share, rng)
        plain = SVC(kernel="linear", C=10).fit(X_noisy, y_noisy)
        robust = RampSVC(kernel="linear", C=10).fit(X_noisy, y_noisy)
        wrong = int((y_noisy != truth)[robust.given_up_].sum())
        print(
            f"{np.mean(y_noisy != truth):12.1%}   {plain.score(X_test, y_test):13.1%}   "
            f"{robust.score(X_test, y_test):17.1%}   {len(robust.given_up_):8d}   {wrong:13d}   "
            f"{robust.n_rounds_[0]:6d}"
        )
    objectives = ", ".join(f"{value:.1f}" for value in robust.objective_traces_[0])
    print(f"\nThe objective of the ramp loss, round by round: {objectives}.")
    print("The last is a stationary point: no small change is better, which does not exclude that something else is.")
    print(f"Certificate of the {robust.certificate_.of}: {robust.certificate_}")


if __name__ == "__main__":
    main()
