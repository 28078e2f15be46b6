"""Landmark machines over dask collections: certified for the exact machine, and ordinary models afterwards."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.dask.clusters import cluster, within
from tests.dask.test_faults import kill_later

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


def samples(n=900, d=3, seed=0, n_classes=2):
    """Classes with curved borders, or a smooth target for 0 classes; and weights, some of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n)
    weight = rng.uniform(0.2, 1.8, n)
    weight[::11] = 0.0
    if n_classes:
        f = np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes))
    return X, f, weight


def parts(X, *others, chunks=(20, 0, 380, 500)):
    """The same uneven chunks, one of them empty."""
    return (da.from_array(X, chunks=(chunks, -1)), *(da.from_array(other, chunks=(chunks,)) for other in others))


def check(model, exact):
    """The certificate holds for the exact optimum and meets landmark_tol; the local model has all attributes."""
    found, slack = model.certificate_, 1e-5 * abs(exact.certificate_.primal)
    assert found.valid and found.relative_gap <= model.landmark_tol
    assert found.dual <= exact.certificate_.primal + slack
    assert exact.certificate_.dual - slack <= found.primal
    assert found.primal <= exact.certificate_.primal + found.gap + slack
    local = model.to_local()
    assert type(local) is type(exact) and "client" not in local.get_params()
    assert local.certificate_ == found and local.landmark_certificate_.gap <= found.gap
    assert local.n_landmarks_ == len(local.landmarks_)
    return local


@pytest.mark.parametrize(("loss", "n_classes"), [("hinge", 2), ("squared_hinge", 2), ("squared_hinge", 3)])
def test_classification(client, loss, n_classes, tmp_path):
    """Within landmark_tol of the exact machine; lazy predictions are those of the local model, which is saved."""
    X, y, weight = samples(n_classes=n_classes)
    labels = np.array(["a", "b", "c"])[y]
    parameters = {"loss": loss, "class_weight": "balanced", "C": 0.7}
    exact = mercer.SVC(**parameters, tol=1e-5).fit(X, labels, weight)
    model = mercer_dask.SVC(**parameters, client=client)
    dX, dy, dw = parts(X, labels, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    local = check(model, exact)
    np.testing.assert_allclose(model.class_weight_, exact.class_weight_)
    assert local._gamma == pytest.approx(exact._gamma)
    assert np.mean(local.predict(X) == exact.predict(X)) > 0.97
    np.testing.assert_array_equal(X[local.support_], local.support_vectors_)
    lazy = model.decision_function(dX)
    assert lazy.chunks[0] == dX.chunks[0]
    np.testing.assert_array_equal(lazy.compute(), local.decision_function(X))
    np.testing.assert_array_equal(model.predict(dX).compute(), local.predict(X))
    mercer.save(local, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), local.predict(X))
    growth = local.growth_ if n_classes == 2 else local.growth_[0]
    assert 90 <= growth[0].n_landmarks <= 100  # without those that depend on others


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "pinball"])
def test_regression(client, loss):
    """SVR within landmark_tol of the exact machine."""
    X, y, weight = samples(n_classes=0)
    exact = mercer.SVR(loss=loss, gamma=0.15, tol=1e-5).fit(X, y, weight)
    model = mercer_dask.SVR(loss=loss, gamma=0.15, client=client)
    dX, dy, dw = parts(X, y, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    local = check(model, exact)
    np.testing.assert_allclose(model.predict(dX).compute(), local.predict(X))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_kernel_ridge(client, fit_intercept):
    """KernelRidge within landmark_tol of the exact machine, in the units of its objective."""
    X, y, weight = samples(n_classes=0)
    parameters = {"alpha": 0.3, "kernel": "rbf", "gamma": 0.4, "fit_intercept": fit_intercept}
    exact = mercer.KernelRidge(**parameters).fit(X, y, weight)
    model = mercer_dask.KernelRidge(**parameters, client=client)
    dX, dy, dw = parts(X, y, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    local = check(model, exact)
    np.testing.assert_allclose(local.predict(X), exact.predict(X), atol=0.1)
    np.testing.assert_allclose(model.predict(dX).compute(), local.predict(X))


def test_one_class(client):
    """OneClassSVM within landmark_tol of the exact machine; labels and scores are lazy."""
    X, _, weight = samples()
    exact = mercer.OneClassSVM(nu=0.3, gamma=0.4, tol=1e-5).fit(X, None, weight)
    model = mercer_dask.OneClassSVM(nu=0.3, gamma=0.4, client=client)
    dX, dw = parts(X, weight)
    within(LIMIT, lambda: model.fit(dX, sample_weight=dw))
    local = check(model, exact)
    assert np.mean(local.predict(X) == exact.predict(X)) > 0.97
    for name in ("predict", "decision_function", "score_samples"):
        lazy = getattr(model, name)(dX)
        assert lazy.chunks[0] == dX.chunks[0]
        np.testing.assert_array_equal(lazy.compute(), getattr(local, name)(X))


def test_sparse_parts_and_given_landmarks(client):
    """Delayed CSR parts; landmarks that are given are the support vectors, for several classes too."""
    X, y, _ = samples(n_classes=3)
    X[np.abs(X) < 0.4] = 0.0
    rows = [sp.csr_array(X[:300]), sp.csr_array(X[300:])]
    dX, dy = [dask.delayed(part) for part in rows], [dask.delayed(part) for part in (y[:300], y[300:])]
    given = sp.csr_array(X[:60])
    model = mercer_dask.SVC(landmarks=given, client=client)
    within(LIMIT, lambda: model.fit(dX, dy))
    expected = mercer.SVC(landmarks=given).fit(sp.csr_array(X), y)
    assert model.certificate_.primal == pytest.approx(expected.certificate_.primal, rel=0.002)
    assert model.certificate_.gap == pytest.approx(expected.certificate_.gap, rel=0.2)
    assert np.mean(model.to_local().predict(sp.csr_array(X)) == expected.predict(sp.csr_array(X))) > 0.98


def test_a_class_without_weight(client):
    """A class whose samples have the weight 0 is never predicted, as in the local machine."""
    X, y, weight = samples(n_classes=3)
    weight = np.where(y == 2, 0.0, 1.0)
    model = mercer_dask.SVC(client=client)
    dX, dy, dw = parts(X, y, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    assert set(model.predict(X)) == set(mercer.SVC().fit(X, y, weight).predict(X)) == {0, 1}


def test_the_time_limit(client):
    """time_limit=0 leaves a certified model and warns; the model can be pickled and cloned without its client."""
    X, y, weight = samples()
    model = mercer_dask.SVC(time_limit=0, client=client)
    with pytest.warns(ConvergenceWarning, match=r"Solver terminated early \(time_limit=0 s\)"):
        model.fit(*parts(X, y, weight))
    assert model.certificate_.valid and np.isfinite(model.certificate_.gap)
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).client is client


def test_what_is_refused(client):
    """Exact kernel ridge regression, methods that need all rows in one place, and NaN, named by part and row."""
    X, y, weight = samples()
    dX, dy = parts(X, y)
    exact = "landmarks=None asks for the exact machine, which is not available for rows on several computers. Use"
    with pytest.raises(InvalidInputError, match=exact):
        mercer_dask.KernelRidge(landmarks=None, client=client).fit(dX, dy)
    for wrong in ({"polish": True}, {"solver": "qp"}, {"C": np.inf}, {"probability": True}, {"warm_start": True}):
        with pytest.raises(InvalidInputError, match="is not available for rows on several computers"):
            mercer_dask.SVC(**wrong, client=client).fit(dX, dy)
    with pytest.raises(InvalidInputError, match="Rows in parts need a kernel object"):
        mercer_dask.SVC(kernel="precomputed", client=client).fit(dX, dy)
    with pytest.raises(InvalidInputError, match="Landmarks need alpha > 0"):
        mercer_dask.KernelRidge(alpha=0, client=client).fit(dX, dy)
    X[450, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"X contains nan in part 3, row 50, column 1"):
        mercer_dask.SVC(client=client).fit(*parts(X, y, weight))


@pytest.mark.slow
def test_a_killed_worker_is_replaced():
    """A worker that dies during the growth of the landmarks costs time, not the certificate."""
    X, y, _ = samples(4000, 5)
    exact = mercer.SVC(gamma=0.3, tol=1e-4).fit(X, y)
    dX, dy = parts(X, y, chunks=(1000, 1000, 1000, 1000))
    with cluster(processes=True) as own:
        thread = kill_later(own, 1.5)
        model = mercer_dask.SVC(gamma=0.3, landmark_tol=0.03, client=own)
        within(120, lambda: model.fit(dX, dy))
        assert not thread.is_alive()
    found = model.certificate_
    assert found.valid and found.relative_gap <= 0.03
    assert found.dual <= exact.certificate_.primal <= found.primal * (1 + 1e-3)
