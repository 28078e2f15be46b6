"""Small sets for examples."""

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from mercer import InvalidInputError, datasets


@pytest.mark.parametrize("name", datasets.NAMES)
def test_sets_are_scaled(name):
    data = datasets.load(name)
    assert data.X.min() == 0 and data.X.max() == 1 and len(data.X) == len(data.y) and data.description
    assert len(data.feature_names) == data.X.shape[1]


def test_unknown_sets_are_refused():
    with pytest.raises(InvalidInputError, match="iris, wine"):
        datasets.load("boston")


def test_promoters_can_be_learnt_and_repeated():
    X, y = datasets.make_promoters(60, seed=3)
    assert X == datasets.make_promoters(60, seed=3)[0] != datasets.make_promoters(60, seed=4)[0]
    hits = np.array([max(sum(a == b for a, b in zip(x[i:], "TTGACA", strict=False)) for i in range(50)) for x in X])
    assert hits[y == 1].mean() > hits[y == 0].mean() + 0.5
    with pytest.raises(InvalidInputError, match="length=10"):
        datasets.make_promoters(4, length=10)


def test_libsvm_files(tmp_path):
    dump_svmlight_file(np.eye(3), [1, 0, 1], str(tmp_path / "a"), zero_based=False)
    X, y = datasets.load_libsvm(tmp_path / "a")
    np.testing.assert_array_equal(X.toarray(), np.eye(3))
    assert y.tolist() == [1, 0, 1]
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n")
    assert datasets.read(tmp_path / "a.csv").target == "y"
