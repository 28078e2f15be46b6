"""Exact kernel machines over dask collections: the machines of one array, and ordinary models afterwards."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from tests.dask.clusters import cluster, within
from tests.dask.test_faults import kill_later, slow_rows
from tests.dask.test_landmarks import parts, samples

import mercer
from mercer.exceptions import InvalidInputError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
mercer_dask = pytest.importorskip("mercer.dask")

LIMIT, TOL = 120, 1e-4


@pytest.fixture(scope="module")
def client():
    with cluster() as client:
        yield client


def check(model, exact, X):
    """The dual value and the decision values are those of the machine of one array; the local model is ordinary."""
    found, proof = model.certificate_, exact.certificate_
    assert found.valid and found.kkt_violation <= TOL
    np.testing.assert_allclose(found.dual, proof.dual, rtol=1e-4)
    np.testing.assert_allclose(found.primal, proof.primal, rtol=1e-4)
    local = model.to_local()
    assert type(local) is type(exact) and "client" not in local.get_params() and local.landmarks is None
    assert local.certificate_ == found and not hasattr(local, "landmarks_")
    np.testing.assert_array_equal(X[local.support_], local.support_vectors_)
    np.testing.assert_array_equal(local.n_support_.sum(), len(local.support_))
    return local


@pytest.mark.parametrize(("loss", "n_classes"), [("hinge", 2), ("squared_hinge", 3)])
def test_classification(client, loss, n_classes, tmp_path):
    """Two classes, and three one against one, of uneven and empty parts with labels and weights."""
    X, y, weight = samples(n_classes=n_classes)
    labels = np.array(["a", "b", "c"])[y]
    parameters = {"loss": loss, "class_weight": "balanced", "C": 0.7, "tol": TOL, "landmarks": None}
    exact = mercer.SVC(**parameters).fit(X, labels, weight)
    model = mercer_dask.SVC(**parameters, client=client)
    dX, dy, dw = parts(X, labels, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    local = check(model, exact, X)
    np.testing.assert_allclose(local.intercept_, exact.intercept_, atol=0.01)
    np.testing.assert_allclose(local.decision_function(X), exact.decision_function(X), atol=0.02)
    np.testing.assert_array_equal(model.decision_function(dX).compute(), local.decision_function(X))
    np.testing.assert_array_equal(model.predict(dX).compute(), local.predict(X))
    assert len(local.certificates_) == n_classes * (n_classes - 1) // 2
    mercer.save(local, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), local.predict(X))


def test_a_class_that_is_missing_in_a_part(client):
    """Parts that are sorted by class, so that each has one class only, give the same machine."""
    X, y, _ = samples()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    exact = mercer.SVC(tol=TOL).fit(X, y)
    n = int((y == 0).sum())
    model = mercer_dask.SVC(tol=TOL, landmarks=None, client=client)
    within(LIMIT, lambda: model.fit(*parts(X, y, chunks=(n, len(y) - n))))
    check(model, exact, X)


def test_regression_and_sparse_parts(client):
    """ε-insensitive and squared ε-insensitive losses; delayed CSR parts give the machine of dense ones."""
    X, y, weight = samples(n_classes=0)
    for loss in ("epsilon_insensitive", "squared_epsilon_insensitive"):
        exact = mercer.SVR(tol=TOL, loss=loss).fit(X, y, weight)
        model = mercer_dask.SVR(tol=TOL, loss=loss, landmarks=None, client=client)
        within(LIMIT, lambda model=model: model.fit(*parts(X, y, weight)))
        local = check(model, exact, X)
        np.testing.assert_allclose(local.predict(X), exact.predict(X), atol=0.01)
    pieces = [dask.delayed(sp.csr_array)(block) for block in np.array_split(X, 3)]
    targets = [dask.delayed(block) for block in np.array_split(y, 3)]
    sparse = mercer_dask.SVR(tol=TOL, landmarks=None, client=client)
    within(LIMIT, lambda: sparse.fit(pieces, targets))
    dense = mercer.SVR(tol=TOL).fit(X, y)
    assert sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.certificate_.dual, dense.certificate_.dual, rtol=1e-4)


def test_one_class(client):
    """Σβ = νn; predictions are lazy, and the local model is that of all rows."""
    X, _, weight = samples()
    exact = mercer.OneClassSVM(nu=0.2, tol=TOL).fit(X, sample_weight=weight)
    model = mercer_dask.OneClassSVM(nu=0.2, tol=TOL, landmarks=None, client=client)
    dX, dw = parts(X, weight)
    within(LIMIT, lambda: model.fit(dX, sample_weight=dw))
    local = check(model, exact, X)
    np.testing.assert_allclose(local.offset_, exact.offset_, rtol=1e-3)
    np.testing.assert_array_equal(model.predict(dX).compute(), local.predict(X))
    np.testing.assert_array_equal(model.decision_function(dX).compute(), local.decision_function(X))
    np.testing.assert_array_equal(model.score_samples(dX).compute(), local.score_samples(X))


def test_limits_and_errors(client):
    """A limit leaves a certified model with a warning; kernels that do not compare vectors are refused."""
    X, y, weight = samples()
    data = parts(X, y, weight)
    model = mercer_dask.SVC(landmarks=None, max_iter=5, client=client)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(max_iter=5\)"):
        model.fit(*data)
    assert model.certificate_.valid and model.certificate_.relative_gap > 1e-3
    with pytest.raises(InvalidInputError, match="Rows in parts need a kernel object"):
        mercer_dask.SVC(landmarks=None, kernel="precomputed", client=client).fit(*data)


@pytest.mark.slow
@pytest.mark.parametrize("after", [0.5, 2.0])
def test_a_killed_worker_is_replaced(after):
    """Its rows and rounds are computed again; the model is that of all rows."""
    X, y, _ = samples(n=12_000, d=6)
    exact = mercer.SVC(tol=TOL).fit(X, y)
    with cluster(processes=True) as client:
        dX = da.from_array(X, chunks=(3000, 6)).map_blocks(slow_rows, seconds=0.05, dtype=X.dtype)
        model = mercer_dask.SVC(tol=TOL, landmarks=None, client=client)
        killer = kill_later(client, after)
        within(LIMIT, lambda: model.fit(dX, da.from_array(y, chunks=3000)))
        killer.join()
        check(model, exact, X)
