"""A fit on a cluster that ends too early is continued from its checkpoint, and ends at the same model."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.dask.clusters import cluster, within

from mercer.estimators.linear.source_fit import weights_of
from mercer.exceptions import ClusterError, InvalidInputError
from mercer.parts.layout import Held, LocalParts

da = pytest.importorskip("dask.array")

md = pytest.importorskip("mercer.dask")
open_checkpoint = pytest.importorskip("mercer.dask.cluster_checkpoint").open_checkpoint

N, D = 3000, 4


def collections(seed=0):
    """Noisy classes and a curve in uneven chunks of rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    labels = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N), [-0.4, 0.4])
    chunks = (700, 300, 1500, 500)
    values = np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)
    return [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in (X, labels, values)]


MACHINES = {
    "linear_svc": lambda **more: md.LinearSVC(loss="hinge", tol=1e-6, **more),
    "linear_svr": lambda **more: md.LinearSVR(loss="squared_epsilon_insensitive", tol=1e-6, **more),
    "svc": lambda **more: md.SVC(gamma=0.5, landmarks=60, random_state=0, tol=1e-5, **more),
    "kernel_ridge": lambda **more: md.KernelRidge(kernel="rbf", alpha=1.0, gamma=0.5, landmarks=60, **more),
    "one_class": lambda **more: md.OneClassSVM(nu=0.2, gamma=0.5, landmarks=60, tol=1e-5, **more),
}


@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_continues_from_its_checkpoint(name, tmp_path):
    """A finished fit is found again in fewer passes; its model is that of a fit without a checkpoint, up to tol."""
    X, labels, values = collections()
    y = {"one_class": None}.get(name, labels if "svc" in name else values)
    with cluster():
        plain = MACHINES[name]().fit(X, y)
        first = MACHINES[name](checkpoint=tmp_path / "state").fit(X, y)
        again = MACHINES[name](checkpoint=tmp_path / "state").fit(X, y)
        assert again._passes < first._passes
        for model in (first, again):
            scale = abs(plain.certificate_.primal)
            assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, abs=0.01 * scale)
            assert model.to_local().checkpoint is None


def test_a_fit_that_was_stopped_goes_on(tmp_path):
    """After one step of each problem the state is kept; the same call with more steps ends at the optimum."""
    X, labels, _ = collections()
    with cluster():
        plain = md.LinearSVC(tol=1e-6).fit(X, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            md.LinearSVC(tol=1e-6, max_iter=1, checkpoint=tmp_path / "state").fit(X, labels)
        model = md.LinearSVC(tol=1e-6, checkpoint=tmp_path / "state").fit(X, labels)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)
        assert model.certificate_.relative_gap < 1e-5


def test_a_cluster_that_fails_leaves_the_state(tmp_path):
    """The state of the last step is written, whenever the last write was, and the error names the file."""
    X, labels, _ = collections()
    path, parts = tmp_path / "state", LocalParts([Held(np.asarray(X), np.asarray(labels))])
    machine = md.LinearSVC(checkpoint=path)

    def fail():
        with open_checkpoint(machine, parts, 1, weights_of) as checkpoint:
            for step in (1.0, 2.0):  # the second one comes too early to be written
                checkpoint.keep(0, {"w": np.full(D, step)})
            raise ClusterError("No worker has been there for a minute.")

    message = f"No worker has been there for a minute. The checkpoint {path} has the state of this fit."
    with pytest.raises(ClusterError, match=f"^{re.escape(message)}$"):
        fail()
    with open_checkpoint(machine, parts, 1, weights_of) as checkpoint:
        np.testing.assert_array_equal(checkpoint.model(0)["w"], np.full(D, 2.0))


def test_a_checkpoint_of_other_data_or_parameters_is_refused(tmp_path):
    """Other targets, other samples, another C, and the exact machine, which keeps no state."""
    X, labels, values = collections()
    with cluster():
        md.LinearSVR(checkpoint=tmp_path / "state").fit(X, values)
        for machine, rows, y in (
            (md.LinearSVR(checkpoint=tmp_path / "state"), X, values + 1.0),
            (md.LinearSVR(checkpoint=tmp_path / "state"), X + 1.0, values),
            (md.LinearSVR(C=2.0, checkpoint=tmp_path / "state"), X, values),
        ):
            with pytest.raises(InvalidInputError, match="belongs to another fit"):
                within(60, lambda machine=machine, rows=rows, y=y: machine.fit(rows, y))
        message = (
            "checkpoint='state' needs landmarks: the exact machine over parts keeps no state. Use landmarks='auto' or "
            "checkpoint=None."
        )
        with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
            md.SVC(landmarks=None, checkpoint="state").fit(X, labels)
