"""Pegasos over dask collections takes the steps of the local class."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.dask.clusters import cluster, within

import mercer
from mercer.exceptions import InvalidInputError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
mercer_dask = pytest.importorskip("mercer.dask")

LIMIT = 60


@pytest.fixture(scope="module")
def client():
    with cluster() as client:
        yield client


def samples(n=800, d=4, n_classes=2):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    f = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n)
    y = np.array(["a", "b", "c"])[np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))]
    weight = rng.uniform(0.5, 2.0, n)
    weight[::7] = 0.0
    return X, y, weight


def check_same(model, expected):
    """The model, the steps and the certificate to rounding."""
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.n_updates_, expected.n_updates_)
    assert model.t_ == expected.t_ and model.n_iter_ == expected.n_iter_
    for found, wanted in zip(model.certificates_, expected.certificates_, strict=True):
        assert found.primal == pytest.approx(wanted.primal, rel=1e-9)
        assert found.dual == pytest.approx(wanted.dual, rel=1e-9)
        assert found.kkt_violation == pytest.approx(wanted.kkt_violation, rel=1e-9)
    for found, wanted in zip(model.objective_trace_, expected.objective_trace_, strict=True):
        assert found == pytest.approx(wanted, rel=1e-9)


# tol is not always reached
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"batch_size": 7, "average": "tail", "sampling": "shuffled", "fit_intercept": False},
        {"average": "last", "class_weight": "balanced", "n_steps": 900, "tol": 0.3},
    ],
)
def test_the_run_is_that_of_the_local_class(client, parameters, n_classes):
    """The same draws and steps for other parts; lazy predictions are those of the local model."""
    X, y, weight = samples(n_classes=n_classes)
    settings = {"lam": 0.02, "max_iter": 3, "random_state": 5} | parameters
    weights = weight if parameters else None
    chunks = (50, 0, 300, 450)
    arrays = [da.from_array(y, chunks=(chunks,))] + (
        [] if weights is None else [da.from_array(weight, chunks=(chunks,))]
    )
    dX = da.from_array(X, chunks=(chunks, -1))
    expected = mercer.PegasosClassifier(**settings).fit(X, y, weights)
    model = mercer_dask.PegasosClassifier(**settings, client=client)
    within(LIMIT, lambda: model.fit(dX, *arrays))
    check_same(model, expected)
    local = model.to_local()
    assert type(local) is mercer.PegasosClassifier
    np.testing.assert_array_equal(model.predict(dX).compute(), expected.predict(X))
    np.testing.assert_allclose(model.decision_function(dX).compute(), expected.decision_function(X), atol=1e-9)
    if settings.get("average") != "tail":  # partial_fit does not know the number of steps
        local.partial_fit(X[:10], y[:10])
        assert local.t_ == model.t_ + 10


def test_sparse_parts(client):
    """Delayed CSR parts."""
    X, y, _ = samples()
    X[np.abs(X) < 0.5] = 0.0
    expected = mercer.PegasosClassifier(n_steps=2000, random_state=0).fit(sp.csr_array(X), y)
    dX = [dask.delayed(sp.csr_array(X[:300])), dask.delayed(sp.csr_array(X[300:]))]
    model = mercer_dask.PegasosClassifier(n_steps=2000, random_state=0, client=client)
    within(LIMIT, lambda: model.fit(dX, [dask.delayed(y[:300]), dask.delayed(y[300:])]))
    check_same(model, expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "rbf"}, "kernel='rbf' is not available for Pegasos over rows on several computers"),
        ({"project": True}, "project=True is not available"),
        ({"step_size": 0.1}, "step_size=0.1 is not available"),
        ({"trace": True}, "trace=True is not available"),
    ],
)
def test_what_is_not_available(client, parameters, message):
    """It is an error, instead of another run than the requested one."""
    X, y, _ = samples(60)
    with pytest.raises(InvalidInputError, match=message):
        mercer_dask.PegasosClassifier(**parameters, client=client).fit(da.from_array(X), da.from_array(y))
