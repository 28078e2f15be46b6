"""Parts run functions where their rows are, within a budget of memory."""

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from tests.parts.rows import cut, samples

from mercer.exceptions import InvalidInputError
from mercer.parts.layout import Held, LocalParts


class Counting(Held):
    """Counts how often it is asked, and in which thread."""

    def __init__(self, *args):
        super().__init__(*args)
        self.threads = []

    def __call__(self):
        self.threads.append(threading.current_thread().name)
        return super().__call__()


def rows_of(part):
    return part.block().X.shape[0]


def test_results_are_in_the_order_of_the_parts():
    """Sequentially and with threads; empty parts are left out."""
    X, y, weight = samples(100, 3)
    for n_threads in (1, 2):
        parts = cut(X, y, weight, 5, n_threads=n_threads)
        for _ in range(2):  # the second time the rows are in memory
            assert parts.map(rows_of) == [5, 5, 30, 30, 30]
            (total,) = parts.total(lambda part: (part.block().X.sum(axis=0),))
            np.testing.assert_allclose(total, X.sum(axis=0))
        assert parts.n == 100


def test_rows_beyond_the_budget_are_read_again_and_ahead():
    """With a budget for one of three parts the others are loaded in each pass, by a thread of their own."""
    X, y, weight = samples(30, 4)
    loaders = [Counting(X[k : k + 10], y[k : k + 10], weight[k : k + 10]) for k in (0, 10, 20)]
    parts = LocalParts(loaders, budget=X[:10].nbytes)
    for _ in range(3):
        parts.map(rows_of)
    assert [len(loader.threads) for loader in loaders] == [1, 3, 3]
    assert all(name.startswith("mercer-reader") for name in loaders[2].threads)
    assert [part.in_memory for part in parts.parts] == [True, False, False]


def test_state_stays_with_the_part():
    """A function finds the state that an earlier one has set; a copy by pickle has it, too."""
    X, y, weight = samples(20, 2)
    parts = cut(X, y, weight, 2)

    def begin(part):
        part.state = part.block().X.sum()

    parts.map(begin)
    expected = parts.map(lambda part: part.state, reads=False)
    again = pickle.loads(pickle.dumps(parts))
    assert again.map(lambda part: part.state, reads=False) == expected


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_nan_is_named_by_part_and_row(stored):
    """In X, y and weights, dense and sparse."""
    X, y, weight = samples(30, 4)
    X[17, 2] = np.nan
    loaders = [Held(stored(X[k : k + 10]), y[k : k + 10], weight[k : k + 10]) for k in (0, 10, 20)]
    with pytest.raises(
        InvalidInputError, match=r"X contains nan in part 1, row 7(, column 2)? \(both counted from 0\)"
    ):
        LocalParts(loaders).map(rows_of)
    y[25] = np.inf
    loaders = [Held(stored(X[k : k + 5]), y[k : k + 5], weight[k : k + 5]) for k in (0, 25)]
    with pytest.raises(InvalidInputError, match="y contains inf in part 1, row 0"):
        LocalParts(loaders).map(rows_of)
    weight[3] = -1.0
    with pytest.raises(InvalidInputError, match="sample_weight is -1 in part 0, row 3: weights must be at least 0"):
        LocalParts([Held(X[:10], y[:10], weight[:10])]).map(rows_of)


def test_lengths_that_differ_are_named():
    """A loader that announces other rows than it loads."""
    X, y, weight = samples(30, 4)
    with pytest.raises(InvalidInputError, match="Part 0 has 30 rows of X, 29 targets and 30 weights"):
        LocalParts([Held(X, y[:29], weight)]).map(rows_of)
