"""How landmarks are chosen: matching pursuit, growth on a part of the samples, and the bound from bets."""

import numpy as np
import pytest

from mercer import SVC, SVR, KernelRidge, OneClassSVM
from mercer.landmarks.landmark_certificate import bound
from mercer.landmarks.landmark_solver import PART, PART_FROM
from mercer.landmarks.matching_pursuit import pursue


def residual_matrix(n=60, rank=40, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, rank)) * np.linspace(2.0, 0.1, rank)
    return A @ A.T, rng.standard_normal(n)


def without(R, index):
    """R after these landmarks: its Schur complement."""
    return R - R[:, index] @ np.linalg.solve(R[np.ix_(index, index)], R[index])


def test_each_pursued_candidate_lowers_the_loss_most():
    """The pursuit takes, one after the other, the candidate after which β'Rβ is the smallest."""
    R, beta = residual_matrix()
    found = pursue(R @ beta, R.copy(), 30, 1e-9)
    for k in range(30):
        before = list(found[:k])
        lost = np.array([beta @ without(R, [*before, j]) @ beta if j not in before else np.inf for j in range(60)])
        assert np.isclose(lost[found[k]], lost.min(), rtol=1e-7)


def test_more_pivots_than_one_update_and_dependent_candidates():
    """A matrix of rank 40 has 40 independent candidates, which explain everything."""
    for n, rank in ((60, 40), (300, 150)):
        R, beta = residual_matrix(n, rank)
        found = pursue(R @ beta, R.copy(), n, 1e-8)
        assert len(set(found)) == len(found) == rank
        assert abs(beta @ without(R, found) @ beta) <= 1e-8 * (beta @ R @ beta)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_bets_hold_and_come_nearer_with_more_terms(share):
    """The bound is above the mean of the distribution for every seed, and near it for many terms."""
    # terms are ±√q S with the mean q = share S²
    scale, q = 3.0, share * 9.0
    largest = np.sqrt(q) * scale
    ratios = {}
    for count in (500, 50_000):
        values = []
        for seed in range(20):
            signs = np.random.default_rng(seed).random(count) < 0.5 * (1.0 + q / largest)
            values.append(bound(np.where(signs, largest, -largest), scale).value / q)
        ratios[count] = np.array(values)
        assert ratios[count].min() >= 1.0
    assert ratios[50_000].max() <= 1.4 and ratios[50_000].mean() < ratios[500].mean()


def large(seed=0, n=PART_FROM * PART + 1000):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    return X, X[:, 0] * X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.mark.parametrize("machine", ["svc", "squared", "svr", "ridge", "one class"])
def test_landmarks_chosen_on_a_part_are_certified_for_all_samples(machine):
    """Landmarks chosen on a part of the samples meet landmark_tol for all of them."""
    X, y = large()
    more = {"gamma": 1.0, "landmarks": "auto", "landmark_tol": 0.02, "max_landmarks": 500}
    models = {
        "svc": SVC(**more),
        "squared": SVC(loss="squared_hinge", **more),
        "svr": SVR(epsilon=0.2, **more),
        "ridge": KernelRidge(kernel="rbf", alpha=1.0, **more),
        "one class": OneClassSVM(nu=0.2, **more),
    }
    model = models[machine].fit(X, y > 0 if machine in ("svc", "squared") else y)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 0.02
    rounds = model.growth_
    assert [now.n_landmarks for now in rounds] == sorted(now.n_landmarks for now in rounds)
    # the first rounds estimate the primal of all samples from a part
    assert abs(rounds[-2].primal - rounds[-1].primal) <= 0.1 * abs(rounds[-1].primal)


def test_a_part_without_one_of_the_classes():
    """Two positive samples among many, which no part is likely to have, get a certified machine."""
    X, _ = large()
    y = np.zeros(len(X), dtype=int)
    y[[5, 17]] = 1
    X[[5, 17]] = [[2.0, 2.0], [2.1, 2.0]]
    model = SVC(gamma=1.0, landmarks="auto").fit(X, y)
    assert model.certificate_.valid and model.certificate_.relative_gap <= 0.01
    assert (model.predict(X[[5, 17]]) == 1).all()


@pytest.mark.parametrize("n", [4000, PART_FROM * PART + 1000])
def test_the_primal_is_that_of_float64_decision_values(n):
    """Samples far from paying, whose values are not computed in float64 or left out, do not change the primal."""
    X, y = large(n=n)
    model = SVC(gamma=1.0, C=2.0, landmarks=60).fit(X, y > 0)
    f = model.decision_function(X)
    paid = 2.0 * np.maximum(0.0, 1.0 - np.where(y > 0, f, -f)).sum()
    coef, vectors = model.dual_coef_[0], model.support_vectors_
    K = np.exp(-np.square(vectors[:, None] - vectors[None]).sum(-1))
    assert np.isclose(model.certificate_.primal, 0.5 * coef @ K @ coef + paid, rtol=1e-9)


def test_a_count_is_reached_from_a_part():
    """As many landmarks as asked for are chosen with the help of a part of the samples, even a single one."""
    X, y = large()
    for count in (1, 80):
        model = SVC(gamma=3.0, landmarks=count).fit(X, y > 0)
        assert model.n_landmarks_ == count


def test_a_time_limit_during_the_part_leaves_a_certified_machine():
    """A limit that ends growth on the part still gives a machine of all samples."""
    X, y = large()
    with pytest.warns(Warning, match="landmark|time"):
        model = SVC(gamma=30.0, C=100.0, landmarks="auto", landmark_tol=1e-4, time_limit=0.05).fit(X, y > 0)
    assert model.certificate_.valid
