"""Dask arrays that exceed the memory of the workers: computed in each pass, with the model of all rows."""

from collections import Counter

import numpy as np
import pytest
from tests.dask.clusters import cluster, uneven_cluster, within

import mercer

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
mercer_dask = pytest.importorskip("mercer.dask")

from mercer.dask.collections import _recipes, _workers_if_exceeded  # noqa: E402 (needs dask)

LIMIT = 60
COMPUTED = Counter()


def counted(block, block_info=None):
    """The block itself; counts how often each one is computed, since the workers are in this process."""
    COMPUTED[block_info[0]["chunk-location"][0]] += 1
    return block


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kilobytes", [200, 100_000])
def test_rows_that_exceed_the_memory_are_computed_again(loss, kilobytes):
    """The model is that of all rows in memory; with enough memory each block is computed once."""
    X = np.random.default_rng(0).normal(size=(3000, 8))
    y = np.where(X[:, 0] + 0.4 * np.sin(9 * X[:, 1]) > 0, "a", "b")
    weight = np.linspace(0.5, 1.5, len(X))
    expected = mercer.LinearSVC(loss=loss, tol=1e-6).fit(X, y, weight)
    with cluster(memory_limit=kilobytes * 1000) as client:
        dX = da.from_array(X, chunks=(300, 8)).map_blocks(counted, dtype=X.dtype, meta=X[:0])
        COMPUTED.clear()
        model = mercer_dask.LinearSVC(loss=loss, tol=1e-6, client=client)
        arrays = da.from_array(y, chunks=300), da.from_array(weight, chunks=300)
        within(LIMIT, lambda: model.fit(dX, *arrays))
    assert sorted(COMPUTED) == list(range(10))
    assert all(count > 3 if kilobytes == 200 else count == 1 for count in COMPUTED.values())
    assert model.certificate_.relative_gap <= 1e-6
    assert np.abs(model.coef_ - expected.coef_).max() <= np.sqrt(8e-6 * expected.certificate_.primal)


def test_nan_in_rows_that_exceed_the_memory_is_named():
    """By part and row, as in memory."""
    X = np.random.default_rng(0).normal(size=(3000, 8))
    X[1234, 5] = np.nan
    with cluster(memory_limit=200_000) as client:
        dX = da.from_array(X, chunks=(300, 8))
        model = mercer_dask.LinearSVC(client=client)
        with pytest.raises(mercer.exceptions.InvalidInputError, match="X contains nan in part 4, row 34, column 5"):
            within(LIMIT, lambda: model.fit(dX, dX[:, 0] > 0))


@pytest.mark.parametrize("kilobytes", [(60, 240), (20_000, 80_000)])
def test_workers_of_different_memory(kilobytes):
    """Rows that exceed the memory are shared in proportion to it; the model is that of all rows in either case."""
    X = np.random.default_rng(0).normal(size=(3000, 8))
    y = (X[:, 0] + 0.4 * np.sin(9 * X[:, 1]) > 0).astype(int)
    expected = mercer.LinearSVC(tol=1e-6).fit(X, y)
    with uneven_cluster([1000 * limit for limit in kilobytes]) as client:
        dX, dy = da.from_array(X, chunks=(300, 8)), da.from_array(y, chunks=300)
        if kilobytes == (60, 240):
            limits = _workers_if_exceeded(client, dX, dy, None)
            recipes = _recipes(client, dX.to_delayed().ravel().tolist(), limits)
            holders = client.who_has(distributed.wait(recipes).done)
            parts = Counter(limits[address] for (address,) in holders.values())
            assert parts == {60_000: 2, 240_000: 8}
        model = mercer_dask.LinearSVC(tol=1e-6, client=client)
        within(LIMIT, lambda: model.fit(dX, dy))
        labels = model.predict(dX).compute()
    assert model.certificate_.relative_gap <= 1e-6
    assert np.abs(model.coef_ - expected.coef_).max() <= np.sqrt(8e-6 * expected.certificate_.primal)
    assert np.mean(labels == expected.predict(X)) > 0.999
