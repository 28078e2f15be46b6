"""Exact kernel machines over rows in parts: the machine and the certificate of one array, whatever the parts."""

import pickle
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from tests.naming import named

from mercer import SVC, SVR, OneClassSVM
from mercer.exceptions import InvalidInputError
from mercer.kernels import Gaussian, Linear, Sigmoid
from mercer.losses import (
    EpsilonInsensitive,
    HardMargin,
    Hinge,
    OneClass,
    Pinball,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from mercer.parts.kernel_solver import solve_kernel_parts
from mercer.parts.layout import Held, LocalParts
from mercer.parts.linear_part import Statement
from mercer.problems.clock import Clock
from mercer.problems.dual import DualProblem
from mercer.problems.solution import Options, Status, certificate

KERNEL = Gaussian(0.5)
TOL = 1e-4
# one part; three even ones; uneven ones, of which the second is empty and the first has one class only
CUTS = {"one": [], "three": [300, 600], "uneven": [20, 20, 500]}
LOSSES = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "epsilon_insensitive": EpsilonInsensitive(0.1),
    "squared_epsilon_insensitive": SquaredEpsilonInsensitive(0.1),
    "pinball": Pinball(0.3),
    "squared": Squared(),
    "one_class": OneClass(0.2),
}


def samples(loss, n=900, d=3, seed=0):
    """A curved border or a smooth target; the first 20 samples have the same sign. Some weights are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    order = np.argsort(np.isin(np.arange(n), np.flatnonzero(f > 0)[:20]), kind="stable")[::-1]
    X, f = X[order], f[order]
    weight = rng.uniform(0.2, 1.8, n)
    weight[::11] = 0.0
    if isinstance(loss, OneClass):
        return X, np.ones(n), weight
    return X, np.where(f > 0, 1.0, -1.0) if isinstance(loss, Hinge | SquaredHinge) else f, weight


def cut(X, y, weight, at, **more):
    loaders = [Held(*arrays) for arrays in zip(*(np.split(a, at) for a in (X, y, weight)), strict=True)]
    return LocalParts(loaders, **more)


def solve(parts, loss=None, options=None, clock=None, kernel=KERNEL, intercept=True, capacity=0, C=1.0):
    statement = Statement(loss or Hinge(), C, intercept)
    options = options or Options(tol=TOL)
    return solve_kernel_parts(parts, kernel, statement, options, clock or Clock(), capacity)


def recomputed(found, loss, X, y, weight, kernel=KERNEL, intercept=True):
    """The certificate of β and b from all rows in one array."""
    beta = np.zeros(len(y))
    beta[found.rows] = found.beta
    K = kernel.block(kernel.prepare(X), kernel.prepare(X))
    qp = DualProblem(None, loss, y, weight, intercept).qp
    b = found.thresholds if intercept else None
    return certificate(qp, loss, y, weight, beta, K @ beta, b)


# the threshold of the one-class machine is a variable of its problem
@pytest.mark.parametrize(
    ("name", "intercept"), [(n, i) for n in LOSSES for i in (True, False) if i or n != "one_class"]
)
def test_the_machine_and_its_certificate_are_those_of_one_array(name, intercept):
    """Within tol of the optimum, with the certificate that all rows in one array give this β, whatever the parts."""
    loss = LOSSES[name]
    X, y, weight = samples(loss)
    duals = []
    for at in CUTS.values():
        for capacity in (0, 150):
            found = solve(cut(X, y, weight, at, n_threads=2), loss, intercept=intercept, capacity=capacity)
            proof, again = found.certificate, recomputed(found, loss, X, y, weight, intercept=intercept)
            assert found.status is Status.CONVERGED and proof.valid and proof.kkt_violation <= TOL
            assert proof.primal == pytest.approx(again.primal, rel=1e-10)
            assert proof.dual == pytest.approx(again.dual, rel=1e-10)
            assert proof.kkt_violation == pytest.approx(again.kkt_violation, abs=1e-9)
            np.testing.assert_array_equal(X[found.rows], found.samples)
            np.testing.assert_array_equal(y[found.rows], found.targets)
            assert (np.diff(found.rows) > 0).all()
            duals.append(proof.dual)
    # the gap of a β within tol is at most tol Σ|β|, and so is the difference of two such dual values
    np.testing.assert_allclose(duals, duals[0], atol=2 * TOL * np.abs(found.beta).sum())


@pytest.mark.parametrize(
    ("loss", "machine"),
    [
        (Hinge(), SVC(C=3.0)),
        (SquaredHinge(), SVC(C=3.0, loss="squared_hinge")),
        (EpsilonInsensitive(0.1), SVR(C=3.0)),
    ],
    ids=named,
)
def test_against_the_machine_of_one_array(loss, machine):
    """The dual value is that of mercer's machine of all rows, and the decision values are near."""
    X, y, weight = samples(loss)
    local = machine.set_params(gamma=0.5, tol=TOL).fit(X, y, weight)
    found = solve(cut(X, y, weight, [250, 300]), loss, C=3.0)
    np.testing.assert_allclose(found.certificate.dual, local.certificate_.dual, rtol=1e-5)
    K = KERNEL.block(KERNEL.prepare(X), KERNEL.prepare(found.samples))
    values = K @ found.beta + found.thresholds[0]
    theirs = local.predict(X) if isinstance(local, SVR) else local.decision_function(X)
    # strong convexity: ½|w − w'|² is at most the sum of the gaps
    far = np.sqrt(2 * (found.certificate.gap + local.certificate_.gap)) + 2 * TOL
    np.testing.assert_allclose(values, theirs, atol=2 * far)


def test_one_class_against_the_machine_of_one_array():
    """Its dual value, in scikit-learn's scale, and its share of outliers are those of mercer.OneClassSVM."""
    X, y, _ = samples(OneClass(0.2))
    local = OneClassSVM(nu=0.2, gamma=0.5, tol=TOL).fit(X)
    found = solve(cut(X, y, np.ones(len(y)), [100, 700]), OneClass(0.2))
    np.testing.assert_allclose(found.certificate.dual, local.certificate_.dual, rtol=1e-5)
    assert found.beta.sum() == pytest.approx(0.2 * len(y), rel=1e-12)


def test_sparse_rows_and_other_kernels():
    """CSR parts give the machine of dense ones; an indefinite kernel has a stationary point without a bound."""
    X, y, weight = samples(Hinge())
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense = solve(cut(X, y, weight, [400]))
    parts = [Held(sp.csr_array(X[:400]), y[:400], weight[:400]), Held(sp.csr_array(X[400:]), y[400:], weight[400:])]
    sparse = solve(LocalParts(parts))
    assert sp.issparse(sparse.samples)
    np.testing.assert_allclose(sparse.certificate.dual, dense.certificate.dual, rtol=1e-4)
    linear = solve(cut(X, y, weight, [400]), kernel=Linear())
    assert linear.status is Status.CONVERGED and linear.certificate.kkt_violation <= TOL
    bent = solve(cut(X, y, weight, [400]), kernel=Sigmoid(0.01, 0.1))
    assert not bent.certificate.valid and bent.certificate.kkt_violation <= TOL


def test_blocks_that_do_not_fit_into_the_memory():
    """Parts that are read again in each pass give the same machine as parts in memory."""
    X, y, weight = samples(Hinge())
    kept = solve(cut(X, y, weight, [300, 600]))
    read = solve(cut(X, y, weight, [300, 600], budget=0), capacity=512)
    np.testing.assert_allclose(kept.certificate.dual, read.certificate.dual, rtol=1e-5)


@pytest.mark.parametrize("loss", [Hinge(), SquaredEpsilonInsensitive(0.1), OneClass(0.2)], ids=lambda loss: loss.name)
def test_limits_leave_a_certified_machine(loss):
    """max_iter, a time limit and an interrupt end a run; β is feasible and the certificate that of all rows."""
    X, y, weight = samples(loss)
    parts = cut(X, y, weight, [300])
    interrupted = Clock()
    interrupted.interrupted = True
    runs = {
        Status.MAX_ITER: solve(parts, loss, options=Options(tol=1e-6, max_iter=20), capacity=100),
        Status.TIME_LIMIT: solve(parts, loss, clock=Clock(0.0)),
        Status.INTERRUPTED: solve(parts, loss, clock=interrupted),
    }
    optimum = solve(parts, loss).certificate
    for status, found in runs.items():
        proof, again = found.certificate, recomputed(found, loss, X, y, weight)
        assert found.status is status and proof.valid
        assert proof.primal == pytest.approx(again.primal, rel=1e-10) and proof.primal >= optimum.dual - 1e-6
        assert proof.dual == pytest.approx(again.dual, rel=1e-10, abs=1e-12) and proof.dual <= optimum.primal


def test_ctrl_c_between_rounds():
    """A signal during the rounds ends them; the machine so far is certified."""
    X, y, weight = samples(Hinge(), n=4000)
    seen = []

    def press(point):
        seen.append(point)
        if len(seen) == 2:
            signal.raise_signal(signal.SIGINT)
        return False

    assert threading.current_thread() is threading.main_thread()
    with Clock(progress=press, second_within=0.0) as clock:
        found = solve(cut(X, y, weight, [1500]), clock=clock, capacity=512)
    assert found.status is Status.INTERRUPTED and found.certificate.valid
    assert 0 < found.certificate.relative_gap < np.inf


def test_messages_carry_each_sample_once():
    """A sample that has moved in an earlier round does not travel again while the parts keep it."""
    X, y, weight = samples(Hinge(), n=3000)
    sent = []

    class Counting(LocalParts):
        def _count(self, args):
            for message in args:
                if type(message).__name__ == "Message" and message.samples is not None:
                    sent.append(message.samples)

        def map(self, function, *args, reads=True):
            self._count(args)
            return super().map(function, *args, reads=reads)

        def total(self, function, *args, reads=True):
            self._count(args)
            return super().total(function, *args, reads=reads)

    found = solve(Counting([Held(X[:1000], y[:1000], weight[:1000]), Held(X[1000:], y[1000:], weight[1000:])]))
    rows = np.concatenate(sent)
    assert len(np.unique(rows, axis=0)) == len(rows) < len(X) and found.rounds > 3


def test_the_functions_of_parts_can_be_sent():
    """All that is sent to other computers is picklable, and so is a part with its state."""
    X, y, weight = samples(Hinge(), n=60)
    parts = cut(X, y, weight, [30])
    solve(parts)
    again = pickle.loads(pickle.dumps(parts))
    np.testing.assert_allclose(solve(again).certificate.dual, solve(parts).certificate.dual)


def test_errors():
    """Losses without a program of one sum, and parts without rows or with other columns, are named."""
    X, y, weight = samples(Hinge(), n=60)
    with pytest.raises(InvalidInputError, match="is not available for rows in parts"):
        solve(cut(X, y, weight, [30]), HardMargin())
    with pytest.raises(InvalidInputError, match="No sample has a positive weight"):
        solve(cut(X, y, np.zeros(60), [30]))
    with pytest.raises(InvalidInputError, match="The first part has 3 columns, but another one has 2"):
        solve(LocalParts([Held(X, y), Held(X[:, :2], y)]))


def test_the_pool_grows_with_the_support_vectors():
    """In as much memory as these take at the end; fewer rounds than with the first pool, and the same machine."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y = np.where(rng.random(6000) < 0.5 + 0.2 * np.sign(X[:, 0]), 1.0, -1.0)
    options = Options(tol=1e-3)
    grown, fixed = (
        solve(cut(X, y, np.ones(6000), [2000, 4000], budget=0), options=options, capacity=capacity)
        for capacity in (0, 512)
    )
    assert len(grown.beta) > 4 * 512
    assert grown.rounds < fixed.rounds
    assert grown.certificate.kkt_violation <= 1e-3
    np.testing.assert_allclose(grown.certificate.dual, fixed.certificate.dual, rtol=1e-4)


def test_the_plan_says_where_the_rows_are():
    """All in memory, or some of them; and the sizes of the pools."""
    X, y, weight = samples(Hinge())
    used = np.count_nonzero(weight)
    kept, read = (solve(cut(X, y, weight, [300, 600], budget=budget)).plan for budget in (1 << 62, 300 * X[0].nbytes))
    assert (kept.n_samples, kept.n_parts, kept.n_kept, kept.memory) == (used, 3, 3, 0)
    assert f"{used} samples in 3 parts, all in memory, pools of" in str(kept)
    assert (read.n_kept, read.memory) == (1, 300 * X[0].nbytes)
    assert "1 of them within" in str(read) and "the others read in each pass" in str(read)
