"""Newton's steps with the inverse of the free variables' matrix, against the optimality conditions and NumPy."""

import numpy as np
import pytest

from mercer import Gaussian, Linear
from mercer._compiled.program import Program
from mercer.losses.base import BoxQP
from mercer.problems.dual import survey
from mercer.updates import _free_set_loops as loops

TOL, N = 1e-6, 80


def random_program(rng, l1, ridge, bordered):
    """A program with bounds on both sides."""
    lower, upper = -rng.uniform(0, 1, N), rng.uniform(0, 1, N)
    lower[:20], upper[20:40] = 0.0, 0.0
    return BoxQP(
        linear=rng.normal(size=N), l1=np.full(N, l1), ridge=np.full(N, ridge), lower=lower, upper=upper,
        group=np.zeros(N, np.int8), sums=np.array([0.3]) if bordered else np.empty(0),
    )  # fmt: skip


class State:
    """The arrays that `follow` edits; samples stand at places in another order."""

    def __init__(self, K, beta):
        self.place = np.random.default_rng(1).permutation(N)
        self.values = np.zeros((N, N + 5))
        self.values[np.ix_(self.place, self.place)] = K
        self.R, self.members, self.count = np.zeros((N + 1, N + 1)), np.full(N + 1, -1), 0
        self.beta, self.F = beta, K @ beta
        self.found = loops.Found(np.empty(N, np.intp), np.empty((1, 5)), np.empty(7))

    def follow(self, qp, stored=N, limit=1000):
        total = float(qp.sums.sum())
        program = Program(self.place, qp.group, qp.linear, qp.l1, qp.ridge, qp.lower, qp.upper)
        columns, inverse = loops.StoredColumns(self.values, N, stored), loops.Inverse(self.R, self.members)
        bounds = loops.Bounds(TOL, 0.25 * TOL, 16, N, limit, 50)
        code, self.count, steps, chosen = loops.follow(
            columns, program, inverse, self.count, self.beta, self.F, qp.n_groups > 0, total, bounds, True, self.found
        )
        return code, steps, chosen

    def inverse(self, K, qp):
        """R of the present members, by NumPy."""
        m, members = self.count, self.members[: self.count]
        M = np.ones((m + 1, m + 1))
        M[0, 0], M[1:, 1:] = 0.0, K[np.ix_(members, members)] + np.diag(qp.ridge[members])
        if qp.n_groups:
            return np.linalg.inv(M)
        return np.block([[np.zeros((1, 1)), np.zeros((1, m))], [np.zeros((m, 1)), np.linalg.inv(M[1:, 1:])]])


@pytest.mark.parametrize("bordered", [True, False])
@pytest.mark.parametrize(("l1", "ridge"), [(0.0, 0.0), (0.2, 0.0), (0.0, 0.5), (0.3, 0.1)])
def test_follow_ends_at_the_optimum(l1, ridge, bordered):
    """From any point, also after the program has changed, the end is optimal, F is Kβ, and R is the inverse."""
    rng = np.random.default_rng(int(10 * l1 + 100 * ridge + bordered))
    K = Gaussian(0.3)(rng.normal(size=(N, 3)))
    state = State(K, np.zeros(N))
    for _ in range(4):
        qp = random_program(rng, l1, ridge, bordered)
        state.beta[:] = np.clip(state.beta, qp.lower, qp.upper)
        state.F[:] = K @ state.beta
        code, steps, _ = state.follow(qp)
        assert code == loops.DONE and steps > 0
        assert K @ state.beta == pytest.approx(state.F, abs=1e-11)
        found = survey(qp, state.beta, K @ state.beta)
        assert found.violation <= TOL + 1e-11 and found.outside == 0
        assert np.abs(found.missing).max(initial=0.0) <= 1e-12 * N
        assert state.found.groups[0, 1] == pytest.approx(found.M[0])
        assert state.R[: state.count + 1, : state.count + 1] == pytest.approx(state.inverse(K, qp), rel=1e-5, abs=1e-5)
        inside = (state.beta > qp.lower) & (state.beta < qp.upper) & ((state.beta != 0) | (l1 == 0))
        assert set(np.flatnonzero(inside)) <= set(state.members[: state.count])


def test_follow_says_what_it_needs():
    """Variables whose columns are not stored are named; a limit of steps ends it; a singular matrix spoils nothing."""
    rng = np.random.default_rng(0)
    K, qp = Gaussian(0.3)(rng.normal(size=(N, 3))), random_program(rng, 0.0, 0.0, False)
    state = State(K, np.zeros(N))
    code, _, chosen = state.follow(qp, stored=10)
    assert code == loops.NEEDS and chosen > 0 and np.any(state.place[state.found.joins[:chosen]] >= 10)
    assert state.follow(qp, limit=0)[:2] == (loops.LIMIT, 0)
    x = rng.normal(size=(N, 2))
    state = State(Linear()(x), np.zeros(N))
    code, _, _ = state.follow(qp)
    assert code in (loops.DONE, loops.STUCK, loops.SPOILT)
    assert Linear()(x) @ state.beta == pytest.approx(state.F, abs=1e-9)
    assert np.all(state.beta >= qp.lower) and np.all(state.beta <= qp.upper)
