"""Linear machines over dask collections are those of one array, with their certificates."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from tests.dask.clusters import cluster, within

import mercer
from mercer.exceptions import ClusterError, InvalidInputError

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
mercer_dask = pytest.importorskip("mercer.dask")

from mercer.dask.collections import Chunk, coded, labels_of  # noqa: E402 (needs dask)

TOL = 1e-6
LIMIT = 60


@pytest.fixture(scope="module")
def client():
    with cluster() as client:
        yield client


def samples(n=2000, d=5, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) + 0.5 * rng.normal(size=n)
    if n_classes == 0:
        return X, f, rng.uniform(0.0, 2.0, n)
    return X, np.digitize(f, np.quantile(f, np.arange(1, n_classes) / n_classes)), rng.uniform(0.0, 2.0, n)


def check_same(model, expected):
    """Both are within tol, so the weights of each problem differ by at most 2 √(2 tol primal)."""
    proof = model.certificate_
    assert proof.valid and proof.relative_gap <= TOL and proof.of == expected.certificate_.of
    assert proof.primal == pytest.approx(expected.certificate_.primal, rel=2 * TOL)
    limit = 2 * np.sqrt(2 * TOL * expected.certificate_.primal)
    assert np.linalg.norm(model.coef_ - expected.coef_) <= limit


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_arrays(client, loss, n_classes):
    """Chunks of X by rows and columns, others of y, weights and class weights: the model of one array."""
    X, y, weight = samples(n_classes=n_classes)
    labels = np.array(["a", "b", "c"])[y]
    parameters = {"loss": loss, "tol": TOL, "class_weight": "balanced", "C": 0.5}
    expected = mercer.LinearSVC(**parameters).fit(X, labels, weight)
    model = mercer_dask.LinearSVC(**parameters, client=client)
    dX, dy, dw = da.from_array(X, chunks=(600, 2)), da.from_array(labels, chunks=500), da.from_array(weight, chunks=900)
    within(LIMIT, lambda: model.fit(dX, dy, dw))
    check_same(model, expected)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    np.testing.assert_allclose(model.class_weight_, expected.class_weight_)
    lazy = model.decision_function(dX)
    assert isinstance(lazy, da.Array) and lazy.chunks[0] == dX.chunks[0]
    np.testing.assert_array_equal(lazy.compute(), model.to_local().decision_function(X))
    labels_lazy = model.predict(dX)
    assert labels_lazy.chunks == (dX.chunks[0],) and labels_lazy.dtype == labels.dtype
    np.testing.assert_array_equal(labels_lazy.compute(), model.to_local().predict(X))
    np.testing.assert_array_equal(model.predict(X), labels_lazy.compute())


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive", "pinball"])
def test_regression(client, loss):
    """With a free intercept."""
    X, y, weight = samples(n_classes=0)
    parameters = {"loss": loss, "tol": TOL, "epsilon": 0.1, "penalize_intercept": False}
    expected = mercer.LinearSVR(**parameters).fit(X, y, weight)
    dX = da.from_array(X, chunks=(700, 5))
    model = mercer_dask.LinearSVR(**parameters, client=client)
    within(LIMIT, lambda: model.fit(dX, da.from_array(y, chunks=700), da.from_array(weight, chunks=700)))
    check_same(model, expected)
    np.testing.assert_allclose(model.predict(dX).compute(), model.to_local().predict(X))


def test_frames_of_unknown_lengths(client):
    """Columns keep their names, predictions the index; an empty part and a missing class in a part do not matter."""
    X, y, _ = samples(600, 3)
    order = np.argsort(y)
    frame = pd.DataFrame(X[order], columns=["u", "v", "w"])
    frame["y"] = y[order]
    table = dd.from_pandas(frame, npartitions=3)
    # the second part becomes empty
    table = table.map_partitions(lambda part: part[(part.index < 200) | (part.index >= 400)])
    kept = frame.loc[(frame.index < 200) | (frame.index >= 400)]
    features = ["u", "v", "w"]
    expected = mercer.LinearSVC(tol=TOL).fit(kept[features], kept["y"])
    model = mercer_dask.LinearSVC(tol=TOL, client=client)
    within(LIMIT, lambda: model.fit(table[features], table["y"]))
    check_same(model, expected)
    assert model.feature_names_in_.tolist() == features
    predicted = model.predict(table[features]).compute()
    pd.testing.assert_series_equal(
        predicted, pd.Series(expected.predict(kept[features]), index=kept.index), check_names=False
    )
    assert model.decision_function(table[features]).compute().index.equals(kept.index)


def test_delayed_sparse_parts(client):
    """Lists of delayed parts; X as CSR."""
    X, y, _ = samples(900, 6)
    X = X * (np.random.default_rng(1).random(X.shape) < 0.4)
    expected = mercer.LinearSVC(loss="hinge", tol=TOL).fit(sp.csr_array(X), y)
    edges = [(0, 500), (500, 520), (520, 900)]
    parts = [dask.delayed(sp.csr_array)(X[a:b]) for a, b in edges]
    model = mercer_dask.LinearSVC(loss="hinge", tol=TOL, client=client)
    within(LIMIT, lambda: model.fit(parts, [dask.delayed(y[a:b]) for a, b in edges]))
    check_same(model, expected)
    predicted = dask.compute(*model.predict(parts))
    np.testing.assert_array_equal(np.concatenate(predicted), model.to_local().predict(X))


def test_the_local_model_is_ordinary(client, tmp_path):
    """It has the parameters and the certificate, is saved and loaded, and knows no client."""
    X, y, _ = samples(500, 3)
    model = mercer_dask.LinearSVC(C=0.3, client=client)
    within(LIMIT, lambda: model.fit(da.from_array(X, chunks=(200, 3)), da.from_array(y, chunks=200)))
    local = model.to_local()
    assert type(local) is mercer.LinearSVC and local.C == 0.3 and "client" not in local.get_params()
    assert local.certificate_ == model.certificate_ and local.n_features_in_ == 3
    mercer.save(local, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").predict(X), local.predict(X))
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    np.testing.assert_array_equal(again.coef_, model.coef_)
    copy = clone(model)
    assert copy.client is client and not hasattr(copy, "coef_")
    # the default client is the one that was made last
    within(LIMIT, lambda: mercer_dask.LinearSVC().fit(da.from_array(X), da.from_array(y)))


def test_limits_leave_a_certified_model(client):
    """max_iter and a time limit warn with the gap."""
    X, y, _ = samples(3000, 8)
    dX, dy = da.from_array(X, chunks=(1000, 8)), da.from_array(y, chunks=1000)
    for limit in ({"max_iter": 2}, {"time_limit": 0.0}):
        model = mercer_dask.LinearSVC(loss="hinge", tol=1e-12, client=client, **limit)
        with pytest.warns(ConvergenceWarning, match="relative gap"):
            within(LIMIT, lambda model=model: model.fit(dX, dy))
        assert model.certificate_.valid and np.isfinite(model.certificate_.gap)


def bad(X, y):
    """Wrong input, and what the message says of it."""
    with_nan = X.copy()
    with_nan[250, 1] = np.nan
    chunks = {"chunks": (100, 3)}
    dX, dy = da.from_array(X, **chunks), da.from_array(y, chunks=100)
    yield da.from_array(with_nan, **chunks), dy, None, r"X contains nan in part 2, row 50, column 1"
    yield dX, da.zeros(300, chunks=100, dtype=int), None, "contains only one class: .*0"
    yield dX, da.from_array(y[:200], chunks=100), None, "X has 300 rows, but y has 200: give equal numbers"
    yield dX, dd.from_pandas(pd.Series(y), npartitions=2), None, "X has 3 parts, but y has 2"
    yield X, y, None, "X is of the type ndarray: give a dask array of rows"
    yield dX, y, None, "y is of the type ndarray"
    yield dX[:0], dy[:0], None, "all parts of X are empty"
    yield dX, dy, -da.ones(300, chunks=100), r"sample_weight is -1 in part \d, row 0: weights must be finite"
    with_nan = np.where(np.arange(300) == 250, np.nan, y)
    words = r"^y contains nan in part 2: labels must be finite\. Remove these rows or fill in their labels\.$"
    yield dX, da.from_array(with_nan, chunks=100), None, words
    yield dX, dy + 0.5, None, "Unknown label type: continuous"
    yield dX[:, 0], dy, None, "X has 1 dimensions: X must have 2"
    text = dd.from_pandas(pd.DataFrame({"a": ["u", "v", "u"]}), npartitions=1)
    yield text, dd.from_pandas(pd.Series([0, 1, 0]), npartitions=1), None, "Part 0 of X cannot be converted to numbers"
    delayed = [dask.delayed(X[:100]), dask.delayed(X[100:150])]
    yield delayed, [dask.delayed(y[:100]), dask.delayed(y[100:170])], None, "Part 1 has 50 rows of X, targets of the"


@pytest.mark.parametrize("case", range(13))
def test_bad_input_is_named(client, case):
    """The error says what was found, where, and what is allowed."""
    X, y, _ = samples(300, 3)
    dX, dy, weight, message = list(bad(X, y))[case]
    with pytest.raises(InvalidInputError, match=message):
        within(LIMIT, lambda: mercer_dask.LinearSVC(client=client).fit(dX, dy, weight))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l1"}, "penalty='l1' is not available for rows on several computers: use penalty='l2'"),
        ({"multi_class": "crammer_singer"}, "multi_class='crammer_singer' is not available"),
        ({"C": np.inf}, "C=inf is not available"),
        ({"client": 3}, "client is of the type int"),
    ],
)
def test_parameters_that_are_not_available(client, parameters, message):
    """They are an error, instead of another problem than the requested one."""
    X, y, _ = samples(60, 3)
    with pytest.raises(InvalidInputError, match=message):
        mercer_dask.LinearSVC(**({"client": client} | parameters)).fit(da.from_array(X), da.from_array(y))


def test_unfitted_and_without_a_client():
    """Errors that say so; nothing is imported with mercer."""
    with pytest.raises(NotFittedError):
        mercer_dask.LinearSVC().predict(da.zeros((3, 2)))
    code = (
        "import sys, mercer\n"
        "mercer.LinearSVC\n"
        "assert not {'dask', 'distributed'} & set(sys.modules)\n"
        "import dask.array as da\n"
        "from mercer.dask import LinearSVC\n"
        "try:\n    LinearSVC().fit(da.zeros((4, 2)), da.arange(4) > 1)\n"
        "except mercer.ClusterError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert found.stdout.startswith("No client was found: make one first, such as client = distributed.Client()")


def test_an_empty_delayed_part_is_predicted(client):
    """A part without rows has no predictions: arrays, CSR matrices and frames."""
    X, y, _ = samples(300)
    local = mercer.LinearSVC().fit(X, y)
    model = mercer_dask.LinearSVC(client=client).fit([dask.delayed(X)], [dask.delayed(y)])
    for kind in (np.asarray, sp.csr_array, pd.DataFrame):
        parts = [dask.delayed(kind(rows)) for rows in (X[:0], X[:200], X[200:])]
        found = dask.compute(*model.predict(parts))
        assert [len(values) for values in found] == [0, 200, 100]
        assert np.mean(np.concatenate(found) == local.predict(X)) > 0.99


def test_missing_labels_and_saving_are_said(tmp_path):
    """A text that is missing is named by part and row; a model of a cluster is saved as its ordinary model."""
    y = np.array(["a", None, "b"], dtype=object)
    with pytest.raises(InvalidInputError, match="y is missing in part 4, row 1"):
        labels_of(4, Chunk(np.zeros((3, 1)), y, np.ones(3), None))
    with pytest.raises(InvalidInputError, match=r"save its ordinary model, model\.to_local\(\)"):
        mercer.save(mercer_dask.LinearSVC(), tmp_path / "m.mercer")


def test_a_closed_client_is_said():
    """The error says that the client is closed, before anything is sent."""
    X, y, _ = samples(50)
    with cluster() as client:
        dX, dy = da.from_array(X, chunks=(25, -1)), da.from_array(y, chunks=25)
    with pytest.raises(ClusterError, match="The client is closed: make another one, and give it as client="):
        mercer_dask.LinearSVC(client=client).fit(dX, dy)


def test_without_workers_a_fit_ends():
    """An error after some seconds instead of waiting for ever."""
    from mercer.dask.cluster_parts import wait_for

    with cluster(n_workers=0) as client, pytest.raises(ClusterError, match="has had no worker for 1 seconds"):
        within(LIMIT, lambda: wait_for(client, [client.submit(len, [])], without_workers=1.0))


def test_the_plan_is_logged(client, caplog):
    """verbose=1 logs what plan_ keeps; the plan of a kernel machine names workers and parts."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    dX, dy = da.from_array(X, chunks=(100, 3)), da.from_array((X[:, 0] > 0).astype(int), chunks=100)
    with caplog.at_level("INFO", logger="mercer"):
        linear = mercer_dask.LinearSVC(verbose=1, client=client).fit(dX, dy)
        exact = mercer_dask.SVC(landmarks=None, verbose=1, client=client).fit(dX, dy)
        restricted = mercer_dask.SVC(landmarks=20, client=client).fit(dX, dy)
    messages = [record.getMessage() for record in caplog.records]
    assert str(linear.plan_) in messages and f"plan: {exact.plan_}" in messages
    assert str(exact.plan_).startswith("400 samples in 4 parts on ")
    assert "landmarks, values in float32" in str(restricted.plan_)
    assert restricted.to_local().plan_ == restricted.plan_


@pytest.mark.parametrize("kind", [int, float, bool, str])
def test_labels_of_two_classes_need_no_sorting(kind):
    """Integers, numbers, booleans and strings: the classes and the weights of numpy.unique."""
    y = (np.arange(60) % 3 == 0).astype(kind)
    weight = np.linspace(1.0, 2.0, 60)
    chunk = Chunk(np.zeros((60, 1)), y, weight, None)
    found = labels_of(0, chunk)
    classes, codes = np.unique(y, return_inverse=True)
    np.testing.assert_array_equal(found.classes, classes)
    np.testing.assert_array_equal(found.weights, np.bincount(codes, weight))
    np.testing.assert_array_equal(found.counts, np.bincount(codes))
    np.testing.assert_array_equal(coded(0, chunk, classes).y, codes)
