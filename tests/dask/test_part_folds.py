"""Searches and evaluations over dask collections: parts are the folds, scores those of the local machines."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from tests.dask.clusters import cluster, within

import mercer
from mercer.exceptions import InvalidInputError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
mercer_dask = pytest.importorskip("mercer.dask")

LIMIT = 120
# the second part is empty: folds 0 and 1 have two parts each, and fold 2 one
CHUNKS = (200, 0, 150, 250, 120, 180)
FOLD_OF_PART = (0, -1, 1, 2, 0, 1)


@pytest.fixture(scope="module")
def client():
    with cluster() as client:
        yield client


def samples(curved):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(sum(CHUNKS), 3))
    f = (X[:, 0] * X[:, 1] if curved else X[:, 0] + 0.5 * X[:, 1]) + 0.4 * rng.normal(size=len(X))
    return X, np.where(f > 0.1, "yes", "no"), rng.uniform(0.5, 1.5, len(X))


def arrays(X, *others):
    return (da.from_array(X, chunks=(CHUNKS, -1)), *(da.from_array(other, chunks=(CHUNKS,)) for other in others))


def splits():
    """The folds as (train, test) pairs of rows."""
    fold = np.repeat(FOLD_OF_PART, CHUNKS)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)]


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_linear_search(client, scoring):
    """The scores are those of the local search with these folds, and so are the choice and the model."""
    X, y, weight = samples(curved=False)
    settings = {"Cs": [0.001, 0.1, 10.0], "tol": 1e-6, "scoring": scoring}
    expected = mercer.LinearSVCCV(cv=splits(), **settings).fit(X, y, weight)
    model = mercer_dask.LinearSVCCV(cv=3, client=client, **settings)
    dX, dy, dw = arrays(X, y, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    for f in range(3):
        name = f"split{f}_test_score"
        np.testing.assert_allclose(model.cv_results_[name], expected.cv_results_[name], atol=0.01)
    assert model.best_params_ == expected.best_params_ and model.C_ == expected.C_
    assert model.best_score_ == pytest.approx(expected.best_score_, abs=0.01)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-2)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.mean(model.predict(dX).compute() == expected.predict(X)) > 0.995
    assert model.certificate_.relative_gap <= 1e-6
    with pytest.raises(AttributeError, match=r"predict_set is not available lazily\. Use to_local\(\)\.predict_set"):
        model.predict_set(dX)
    lazy = model.predict_proba(dX)
    assert lazy.chunks == (CHUNKS, (2,))
    np.testing.assert_allclose(lazy.compute(), expected.predict_proba(X), atol=0.01)
    np.testing.assert_allclose(model.predict_log_proba(dX).compute(), np.log(model.predict_proba(X)))
    assert clone(model).client is client and pickle.loads(pickle.dumps(model)).client is None


@pytest.mark.parametrize("name", ["SVCCV", "LinearSVCCV"])
def test_probabilities_of_three_classes(client, name, tmp_path):
    """They are those of the local search with these folds, also of frames, of lists of parts, and of a saved model."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, _, weight = samples(curved=False)
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.6])]
    settings = {"Cs": [0.1, 1.0], "tol": 1e-5} | ({"gammas": [0.1]} if name == "SVCCV" else {})
    expected = getattr(mercer, name)(cv=splits(), **settings).fit(X, y, weight)
    more = {"landmark_tol": 1e-4} if name == "SVCCV" else {}
    model = getattr(mercer_dask, name)(cv=3, client=client, **settings, **more)
    dX, dy, dw = arrays(X, y, weight)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    found = model.predict_proba(dX).compute()
    assert found.shape == (len(X), 3) and model.best_params_ == expected.best_params_
    np.testing.assert_allclose(found, expected.predict_proba(X), atol=0.03)
    parts = [part.compute() for part in model.predict_proba([dask.delayed(X[:50]), dask.delayed(X[50:60])])]
    np.testing.assert_allclose(np.concatenate(parts), found[:60])
    frame = dd.from_pandas(pd.DataFrame(X[:80]), npartitions=2)
    np.testing.assert_allclose(model.predict_proba(frame.to_dask_array(lengths=True)).compute(), found[:80])
    mercer.save(model.to_local(), tmp_path / "model.mercer")
    local = mercer.load(tmp_path / "model.mercer")
    np.testing.assert_allclose(local.predict_proba(X), found)
    assert local.predict_set(X[:3]).shape == (3,)


def test_a_search_without_probabilities(client):
    """Where every fold holds out a class, or refit=False, an error says what to do."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    dX, dy = da.from_array(X, chunks=(30, 2)), da.from_array(np.repeat([0, 1, 2], 30), chunks=30)
    model = mercer_dask.SVCCV(Cs=[1.0], gammas=[1.0], cv=3, client=client)
    within(LIMIT, lambda: model.fit(dX, dy))
    with pytest.raises(InvalidInputError, match="There are no probabilities, because no held-out row has decision"):
        model.predict_proba(dX)
    model.set_params(refit=False)
    within(LIMIT, lambda: model.fit(dX, dy))
    with pytest.raises(AttributeError, match="no attribute 'predict_proba'"):
        model.predict_proba(dX)


def test_kernel_search_and_evaluation(client):
    """SVCCV chooses as the local search does; the scores differ by what landmark_tol allows."""
    X, y, _ = samples(curved=True)
    settings = {"Cs": [0.01, 1.0], "gammas": [0.3]}
    expected = mercer.SVCCV(cv=splits(), **settings).fit(X, y)
    model = mercer_dask.SVCCV(cv=3, client=client, **settings)
    dX, dy = arrays(X, y)
    within(LIMIT, lambda: model.fit(dX, dy))
    assert model.best_params_ == expected.best_params_ == {"C": 1.0, "gamma": 0.3}
    assert model.best_score_ == pytest.approx(expected.best_score_, abs=0.02)
    assert type(model.best_estimator_.to_local()) is mercer.SVC


def test_evaluation(client):
    """Scores, training scores and Wilson's interval are those of mercer.evaluate with these folds."""
    X, y, weight = samples(curved=False)
    expected = mercer.evaluate(mercer.LinearSVC(tol=1e-6), X, y, cv=splits(), sample_weight=weight)
    dX, dy, dw = arrays(X, y, weight)
    machine = mercer_dask.LinearSVC(tol=1e-6, client=client)
    found = within(LIMIT, lambda: mercer_dask.evaluate(machine, dX, dy, cv=3, sample_weight=dw))
    np.testing.assert_allclose(found.scores, expected.scores, atol=0.01)
    np.testing.assert_allclose(found.training_scores, expected.training_scores, atol=0.01)
    np.testing.assert_allclose(found.interval, expected.interval, atol=0.01)
    assert found.held_out == expected.held_out == len(X) and found.scoring == "accuracy"
    target = X[:, 0] + 0.1 * X[:, 1]
    expected = mercer.evaluate(mercer.LinearSVR(tol=1e-6), X, target, cv=splits())
    machine, dt = mercer_dask.LinearSVR(tol=1e-6, client=client), da.from_array(target, chunks=(CHUNKS,))
    found = within(LIMIT, lambda: mercer_dask.evaluate(machine, dX, dt, cv=3))
    np.testing.assert_allclose(found.scores, expected.scores, atol=0.01)
    assert found.scoring == "r2" and np.isnan(found.interval).all()


@pytest.mark.parametrize("wrong", ["X", "y", "sample_weight"])
def test_nan_is_named_by_its_part(client, wrong):
    """Searches and evaluations name the part of the given collection, not of a fold."""
    X, _, weight = samples(curved=False)
    y = X[:, 0].copy()
    {"X": X[:, 1], "y": y, "sample_weight": weight}[wrong][400] = np.nan  # row 50 of the part after 200 + 0 + 150 rows
    dX, dy, dw = arrays(X, y, weight)
    with pytest.raises(InvalidInputError, match=rf"{wrong} (contains|is) nan in part 3, row 50"):
        mercer_dask.evaluate(mercer_dask.LinearSVR(client=client), dX, dy, cv=3, sample_weight=dw)
    if wrong != "y":
        with pytest.raises(InvalidInputError, match=rf"{wrong} (contains|is) nan in part 3, row 50"):
            mercer_dask.LinearSVCCV(cv=3, client=client).fit(*arrays(X, X[:, 0] > 0, weight))


def test_bad_folds_are_refused(client):
    """More folds than parts, splitters, and estimators of rows in memory."""
    X, y, _ = samples(curved=False)
    dX, dy = arrays(X, y)
    with pytest.raises(InvalidInputError, match="X has 5 parts with rows, but cv=6 folds of whole parts are asked for"):
        mercer_dask.LinearSVCCV(cv=6, client=client).fit(dX, dy)
    with pytest.raises(InvalidInputError, match="parts are the folds of rows on several computers"):
        mercer_dask.LinearSVCCV(cv=splits(), client=client).fit(dX, dy)
    with pytest.raises(InvalidInputError, match=r"give one of mercer\.dask, or use mercer.evaluate"):
        mercer_dask.evaluate(mercer.LinearSVC(), dX, dy)
    with pytest.raises(InvalidInputError, match="search='local' is not available"):
        mercer_dask.SVCCV(search="local", client=client).fit(dX, dy)
