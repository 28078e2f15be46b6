"""How far to trust a tuned model: probabilities, sets of labels, and a score that the search has not seen.

    python examples/trust.py [--figure FILE]

SVCCV chooses C and gamma for handwritten digits. Its held-out decision values give probabilities, and sets of labels
that contain the true one in nine cases of ten; hard digits get two labels. `evaluate` repeats the whole search in each
fold.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from mercer import SVCCV, SearchMapDisplay, evaluate


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is known of the model, and draw the search if asked to."""
    parser = argparse.ArgumentParser(description="Probabilities and sets of labels of a tuned model.")
    parser.add_argument("--figure", help="file for a picture of the search")
    figure = parser.parse_args(arguments).figure

    X, y = load_digits(return_X_y=True)
    X = X / 16.0 + np.random.default_rng(0).normal(scale=0.35, size=X.shape)  # noise makes it hard
    X, X_test, y, y_test = train_test_split(X, y, train_size=600, stratify=y, random_state=0)

    model = SVCCV(Cs=4, gammas=4).fit(X, y)
    print(f"chosen: C = {model.best_params_['C']:.3g}, gamma = {model.best_params_['gamma']:.3g}")
    print(f"cross-validated accuracy {model.best_score_:.3f}, of new digits {model.score(X_test, y_test):.3f}")

    p = model.predict_proba(X_test)
    agree = np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_test))
    print(f"log loss of new digits {log_loss(y_test, p):.3f}; the likeliest is always the predicted one: {agree}")

    print("asked for   sets hold the truth   one label   two   more")
    for alpha in (0.2, 0.1, 0.05):
        sets = model.predict_set(X_test, alpha)
        covered = np.mean([label in labels for label, labels in zip(y_test, sets, strict=True)])
        sizes = np.array([len(labels) for labels in sets])
        shares = [np.mean(sizes == size) for size in (1, 2)]
        more = np.mean(sizes > 2)
        print(f"{1 - alpha:8.0%} {covered:20.1%} {shares[0]:13.0%} {shares[1]:6.0%} {more:6.0%}")

    print(evaluate(SVCCV(Cs=4, gammas=4), X, y, cv=3))
    if figure:
        SearchMapDisplay.from_estimator(model, "C", "gamma").figure_.savefig(figure)


if __name__ == "__main__":
    main()
