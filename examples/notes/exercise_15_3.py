"""No λ makes the soft margin as hard as the hard one for every sample ([SSBD] Exercise 15.3).

    python examples/notes/exercise_15_3.py

Answer: the claim is false. For any λ take the two samples s and -s of the line, with the labels 1 and -1 and s² < 2λ.
The hard margin asks for ws >= 1, so that w = 1/s. The soft margin minimises λw² + max(0, 1 - ws), so that w = s/(2λ) <
1/s.

With the quantifiers in the other order it is true: for any one separable sample there are such λ. The hard margin is
that of a soft one whose box does not bind, α <= 1/(2λn), and so the same for all λ <= 1/(2n max α).
"""

from __future__ import annotations

import numpy as np

from mercer import SVC, kkt_report, lambda_to_C


def counterexample(lam: float) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of the line whose hard and soft margin differ for this λ: s² = λ."""
    s = np.sqrt(lam)
    return np.array([[s], [-s]]), np.array([1, -1])


def hard(X: np.ndarray, y: np.ndarray) -> SVC:
    """(15.3)."""
    return SVC(C=np.inf, kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)


def soft(X: np.ndarray, y: np.ndarray, lam: float) -> SVC:
    """(15.6)."""
    return SVC(C=lambda_to_C(lam, len(y)), kernel="linear", fit_intercept=False, tol=1e-9).fit(X, y)


def largest_lambda(model: SVC, n: int) -> float:
    """The largest λ for which the soft margin is this hard one."""
    return 1.0 / (2 * n * float(np.abs(model.dual_coef_).max()))


def main() -> None:
    """Print both w for several λ, then the distance between them for one sample."""
    print("       λ   samples        hard w = 1/s   soft w = s/(2λ)")
    for lam in (1e-6, 1e-3, 1.0, 1e3):
        X, y = counterexample(lam)
        s, w, v = X[0, 0], hard(X, y).coef_[0, 0], soft(X, y, lam).coef_[0, 0]
        print(f"{lam:8.0e}   ±{s:<11.5g}   {w:12.5g}   {v:15.5g}")
        assert abs(w * s - 1) < 1e-6 and abs(v * 2 * lam / s - 1) < 1e-6
        assert v < 0.6 * w
        assert (kkt_report(soft(X, y, lam), X, y).problems[0].state == "bound").all()

    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[:, 0] += 0.3 * y
    rule = hard(X, y)
    limit = largest_lambda(rule, len(y))
    print(f"\none sample of {len(y)}: equal for λ <= {limit:.3g}\n   λ/limit   |hard w - soft w|/|hard w|")
    for factor in (0.1, 0.99, 1.1, 10.0):
        other = soft(X, y, factor * limit)
        away = np.linalg.norm(other.coef_ - rule.coef_) / np.linalg.norm(rule.coef_)
        print(f"{factor:10.2f}   {away:26.1e}")
        assert away < 1e-6 if factor < 1 else away > 1e-3


if __name__ == "__main__":
    main()
