"""Time limits are kept, certificate included: on a clock that counts kernel values, a microsecond each."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from tests.clocks import SteppedClock

import mercer
from mercer.gram import operator as data
from mercer.kernels import CallableKernel
from mercer.problems import clock as base

SECONDS_PER_VALUE = 1e-6
N, LIMIT = 1500, 0.5  # all kernel values take 2.25 s


class CountingClock:
    """Time that passes only while a kernel is computed."""

    def __init__(self):
        self.now = 0.0

    def read(self):
        return self.now

    def gaussian(self, X, Z):
        X, Z = np.asarray(X), np.asarray(Z)
        self.now += SECONDS_PER_VALUE * len(X) * len(Z)
        squares = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2.0 * X @ Z.T
        return np.exp(-0.2 * np.maximum(squares, 0.0))

    def linear(self, X, Z):
        self.now += SECONDS_PER_VALUE * len(X) * len(Z)
        return np.asarray(X) @ np.asarray(Z).T


@pytest.fixture
def clock(monkeypatch):
    counting = CountingClock()
    monkeypatch.setattr(base, "time", SimpleNamespace(perf_counter=counting.read, monotonic=time.monotonic))
    monkeypatch.setattr(data, "perf_counter", counting.read)
    return counting


def samples(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    y = rng.normal(size=N) + X[:, 0] if n_classes == 0 else rng.integers(0, n_classes, N)
    return X, y


JOBS = {
    "SVC": (2, lambda k: mercer.SVC(C=10.0, kernel=k)),
    "SVC, float64": (2, lambda k: mercer.SVC(C=10.0, kernel=k, precision="float64")),
    "SVC, interior point": (2, lambda k: mercer.SVC(C=10.0, kernel=k, solver="qp")),
    "SVC, 4 classes": (4, lambda k: mercer.SVC(C=10.0, kernel=k)),
    "SVC, 30 classes": (30, lambda k: mercer.SVC(C=10.0, kernel=k)),
    "NuSVC": (2, lambda k: mercer.NuSVC(nu=0.05, kernel=k)),
    "SVR": (0, lambda k: mercer.SVR(C=10.0, kernel=k)),
    "NuSVR": (0, lambda k: mercer.NuSVR(C=10.0, nu=0.1, kernel=k)),
    "OneClassSVM": (2, lambda k: mercer.OneClassSVM(nu=0.05, kernel=k)),
    "RampSVC": (2, lambda k: mercer.RampSVC(C=10.0, kernel=k)),
    "KernelRidge": (0, lambda k: mercer.KernelRidge(kernel=k, alpha=0.1)),
    "KernelRidge, cholesky": (0, lambda k: mercer.KernelRidge(kernel=k, alpha=0.1, solver="cholesky")),
    "PegasosClassifier": (2, lambda k: mercer.PegasosClassifier(kernel=k, max_iter=20, tol=None)),
    "Perceptron": (2, lambda k: mercer.Perceptron(kernel=k, max_iter=20, tol=None)),
    "KernelLogisticRegression": (3, lambda k: mercer.KernelLogisticRegression(C=10.0, kernel=k)),
    "KernelERM, logistic": (2, lambda k: mercer.KernelERM("logistic", C=10.0, kernel=k)),
    "KernelERM, norm": (2, lambda k: mercer.KernelERM("hinge", "norm", C=10.0, kernel=k)),
    "KernelERM, squared": (0, lambda k: mercer.KernelERM(C=10.0, kernel=k)),
    "KernelLMS": (0, lambda k: mercer.KernelLMS(kernel=k, max_iter=100)),
}


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", JOBS)
def test_limit_is_kept(name, clock):
    """A fit that would take longer ends in time with a model that predicts, and with its certificate."""
    n_classes, make = JOBS[name]
    X, y = samples(n_classes)
    model = make(CallableKernel(clock.gaussian)).set_params(n_jobs=1, time_limit=LIMIT)
    model.fit(X, y)
    assert 0.02 < clock.now <= 1.1 * LIMIT + 0.2
    assert np.isfinite(model.predict(X[:20])).all()
    if hasattr(model, "certificate_"):
        assert model.certificate_.valid and 0 <= model.certificate_.gap < np.inf


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_learnt_kernels(clock):
    """The same where several kernels are learnt together."""
    X, y = samples(2)
    kernels = [CallableKernel(clock.gaussian), CallableKernel(clock.linear)]
    model = mercer.MKLClassifier(kernels, C=10.0, n_jobs=1, time_limit=2 * LIMIT).fit(X, y)
    assert clock.now <= 1.1 * 2 * LIMIT + 0.2
    assert model.certificate_.valid and model.predict(X[:20]).shape == (20,)


@pytest.mark.parametrize("name", ["SVC", "SVC, 4 classes", "SVR", "PegasosClassifier", "KernelRidge"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_limit_that_is_not_reached(name, clock):
    """A limit that leaves time enough changes nothing."""
    n_classes, make = JOBS[name]
    X, y = samples(n_classes)
    X, y = X[:300], y[:300]
    free = make(CallableKernel(clock.gaussian)).set_params(n_jobs=1)
    if hasattr(free, "random_state"):
        free.set_params(random_state=0)
    limited = clone(free).set_params(time_limit=1000.0)
    np.testing.assert_allclose(limited.fit(X, y).dual_coef_, free.fit(X, y).dual_coef_, rtol=1e-12, atol=1e-12)


def test_part_decides():
    """Where there is no time to decompose the matrix of all samples, a part decides on alpha, and all are fitted."""

    class Hurried(mercer.KernelRidgeCV):
        def _subset(self, candidates, n_kernels, clock):
            return super()._subset(candidates, n_kernels, SteppedClock(0.015))

    X, y = samples(0)
    with pytest.warns(UserWarning, match=r"chosen on \d+ of 1500 samples, drawn at random"):
        model = Hurried(kernel="rbf", time_limit=60.0, store_cv_results=True).fit(X, y)
    judged = np.isfinite(model.cv_results_).all(axis=1)
    assert 200 <= judged.sum() < 1500 and model.dual_coef_.shape == (1500,)
    assert model.certificate_.relative_gap < 1e-6


def test_share_of_the_time():
    """A block may be given a part of the time that is left."""
    limit = base.Clock(100.0)
    with limit.share_of_time(0.25):
        assert 24.0 < limit.left < 25.0
        with limit.share_of_time(0.5):
            assert limit.left < 12.5
    assert limit.left > 99.0 and limit.over_in(200.0) is base.Status.TIME_LIMIT and limit.over_in(50.0) is None
    endless = base.Clock()
    with endless.share_of_time(0.1):
        assert endless.left == np.inf and endless.over_in(1e9) is None
