"""OutputCodeSVC: each word is the exact binary machine, decoded by loss or Hamming distance."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mercer import SVC, Gaussian, OutputCodeSVC, Spectrum, certify

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X)[:, :5]
NAMES = np.array(["barbera", "barolo", "grignolino"])[y]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", ["ovr", "sparse"])
def test_sklearn_checks(code):
    """scikit-learn's own checks pass."""
    check_estimator(OutputCodeSVC(code, kernel=Gaussian(0.1), random_state=0, tol=1e-9))


@pytest.mark.parametrize("code", ["ovr", "ovo", "dense", "sparse", [[1, 1], [-1, 1], [0, -1]]], ids=str)
def test_words_are_binary_machines(code):
    """The function of each word is that of SVC on its two sides; the certificates are theirs."""
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    model = OutputCodeSVC(code, C=2.0, gamma=0.2, tol=1e-8, random_state=1).fit(X, NAMES, weight)
    values = model.word_values(X)
    for m, word in enumerate(model.code_.T):
        labels = word[y]
        rows = labels != 0
        alone = SVC(C=2.0, gamma=0.2, tol=1e-8).fit(X[rows], labels[rows], weight[rows])
        np.testing.assert_allclose(values[:, m], alone.decision_function(X), atol=1e-5)
        np.testing.assert_allclose(model.certificates_[m].primal, alone.certificate_.primal, rtol=1e-7)
    assert model.certificate_.relative_gap < 1e-6


def test_one_against_the_rest_is_sklearns():
    """ "ovr" predicts what OneVsRestClassifier does, from the same decision values."""
    A, t = load_digits(return_X_y=True)
    A, t = A[:500], t[:500]
    ours = OutputCodeSVC(C=5.0, gamma=1e-3).fit(A, t)
    theirs = OneVsRestClassifier(SVC(C=5.0, gamma=1e-3)).fit(A, t)
    np.testing.assert_allclose(ours.decision_function(A), theirs.decision_function(A), atol=5e-3)
    assert (ours.predict(A) == theirs.predict(A)).mean() > 0.998


def test_decoding_by_brute_force():
    """Losses and Hamming distances are those of the definition, row by row."""
    for decoding in ("loss", "hamming"):
        model = OutputCodeSVC("sparse", decoding=decoding, random_state=0).fit(X, y)
        values, found = model.word_values(X), model.decision_function(X)
        for i in (0, 70, 170):
            for c, word in enumerate(model.code_):
                if decoding == "loss":
                    expected = -sum(max(0.0, 1.0 - m * v) for m, v in zip(word, values[i], strict=True))
                else:
                    expected = -sum((1.0 - m * np.sign(v)) / 2.0 for m, v in zip(word, values[i], strict=True))
                assert found[i, c] == pytest.approx(expected)
        assert model.score(X, y) > 0.9


def test_random_codes():
    """Random codes have different rows and columns that are problems; a seed repeats them."""
    A, t = load_digits(return_X_y=True)
    for code, columns in (("dense", 34), ("sparse", 50)):
        model = OutputCodeSVC(code, gamma=1e-3, random_state=3).fit(A[:300], t[:300])
        M = model.code_
        assert M.shape == (10, columns)
        assert (M > 0).any(axis=0).all() and (M < 0).any(axis=0).all()
        assert len(np.unique(M, axis=0)) == 10
        again = OutputCodeSVC(code, gamma=1e-3, random_state=3).fit(A[:300], t[:300])
        np.testing.assert_array_equal(M, again.code_)


def test_two_classes_are_svc():
    """Two classes are one problem, whatever the code; a matrix may have both signs."""
    two = NAMES[y > 0]
    alone = SVC(tol=1e-8).fit(X[y > 0], two).decision_function(X)
    for code in ("ovr", "dense", [[1], [-1]]):
        model = OutputCodeSVC(code, tol=1e-8).fit(X[y > 0], two)
        np.testing.assert_allclose(model.decision_function(X), alone, atol=1e-5)


@pytest.mark.parametrize("code", ["ovr", "sparse"])
def test_certify(code):
    """certify finds the published certificate; coefficients beyond C are moved back for the bound."""
    model = OutputCodeSVC(code, class_weight="balanced", random_state=0, tol=1e-6).fit(X, y)
    proof = certify(model, X, y)
    np.testing.assert_allclose(proof.primal, model.certificate_.primal, rtol=1e-6)
    assert proof.valid and proof.relative_gap < 1e-4
    model.dual_coef_ = 1.3 * model.dual_coef_
    assert certify(model, X, y).gap > 0.1


def test_memory_and_kernels_on_objects():
    """Without room for the matrix each machine computes its own rows; strings work."""
    small = OutputCodeSVC("dense", random_state=0, cache_size=0.1, tol=1e-6).fit(X, y)
    whole = OutputCodeSVC("dense", random_state=0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(small.decision_function(X), whole.decision_function(X), atol=1e-3)
    words = ["abab", "ccdd", "efef"] * 4
    assert OutputCodeSVC(kernel=Spectrum(2)).fit(words, [0, 1, 2] * 4).score(words, [0, 1, 2] * 4) == 1.0
    K = Gaussian(0.1)(X)
    given = OutputCodeSVC("sparse", kernel="precomputed", random_state=0, tol=1e-6).fit(K, y)
    direct = OutputCodeSVC("sparse", kernel=Gaussian(0.1), random_state=0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(given.decision_function(K), direct.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("all", "code='all' is not known"),
        ([[1, -1]], "code has the shape"),
        ([[1], [2], [-1]], "entries other than -1, 0 and 1"),
        ([[1], [1], [0]], "Column 0 of code has no class on one of its two sides"),
        ([[1, 1], [1, 1], [-1, -1]], "Two rows of code are equal"),
        ([["a"], ["b"], ["c"]], "code has the shape"),
        (np.full((3, 2), np.nan), "entries other than -1, 0 and 1"),
    ],
)
def test_bad_codes(code, message):
    """Invalid codes have a message."""
    with pytest.raises(ValueError, match=message):
        OutputCodeSVC(code).fit(X, y)


def test_weights_that_empty_a_word():
    """A class without weight may leave a word without a side."""
    with pytest.raises(ValueError, match="Word 0 of the code has no samples with positive weight"):
        OutputCodeSVC([[1, 1], [-1, 1], [-1, -1]]).fit(X, y, (y != 0).astype(float))


def test_a_time_limit_of_zero():
    """Without time the model is 0, and the warning says so."""
    with pytest.warns(UserWarning, match="time_limit=0"):
        assert OutputCodeSVC(time_limit=0).fit(X, y).certificate_.valid
