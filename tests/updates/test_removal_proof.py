"""The proof of a removal finds what is left of removed samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    Gaussian,
    GaussianProcessRegressor,
    KernelRidge,
    OneClassSVM,
    Spectrum,
    White,
    certify,
    proof_of_removal,
)
from mercer.exceptions import InvalidInputError

X = np.random.default_rng(0).normal(size=(80, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, 0)
MODELS = [
    SVC(gamma=0.5, updatable=True),
    SVR(gamma=0.5, updatable=True),
    OneClassSVM(gamma=0.5, updatable=True),
    KernelRidge(kernel="rbf", updatable=True),
    GaussianProcessRegressor(Gaussian(0.5) + White(0.1), optimizer=None, updatable=True),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, "sparse"])
def test_removed_samples_are_nowhere(model, dtype):
    """Before a removal every sample is found, afterwards only the others; predictions and caches leave no trace."""
    samples = sp.csr_array(X) if dtype == "sparse" else X.astype(dtype)
    model.fit(samples, Y)
    gone = [int(getattr(model, "support_", [3])[0]), 50]
    before = proof_of_removal(model, samples[gone])
    assert before.also_kept == (0, 1)  # nothing was removed yet
    removed = samples[gone]
    model.predict(samples)
    model.remove(gone)
    model.predict(samples)
    proof = proof_of_removal(model, removed)
    assert proof.holds_none and proof.also_kept == () and (proof.n_samples, proof.n_removed) == (78, 2)
    assert proof.in_file == () and proof.in_pickle is False
    assert "None of them was found in its attributes or its model file or its pickle" in str(proof)
    if proof.certificate is not None:
        kept = np.delete(np.arange(80), gone)
        assert proof.certificate.gap == pytest.approx(certify(model, samples[kept], Y[kept]).gap, abs=1e-9)
    else:
        assert proof.residual < 1e-9 and "residual" in repr(proof)


@pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
def test_importances_keep_no_samples(model):
    """Importances that were computed before a removal hold none of the removed samples."""
    model.fit(X, Y)
    before = model.feature_importances_
    gone = [int(getattr(model, "support_", [3])[0]), 50]
    model.remove(gone)
    assert proof_of_removal(model, X[gone]).holds_none
    assert not np.array_equal(model.feature_importances_, before)


def test_what_is_left_is_found():
    """A forgotten copy is named, in the model, its file and its pickle."""
    for samples in (X, X.astype(np.float32), sp.csr_array(X)):
        model = SVC(gamma=0.5, updatable=True).fit(samples, Y).remove(5)
        model.audit_ = {"rows": samples[4:7]}
        proof = proof_of_removal(model, samples[5:6])
        assert not proof.holds_none
        assert proof.in_model == ("audit_.rows",) and proof.in_pickle and len(proof.in_file) == 1
        assert "REMOVED SAMPLES WERE FOUND in audit_.rows" in str(proof)


def test_strings():
    """Strings are searched for as text."""
    words = [f"acgtac{i:03d}gg" for i in range(40)]
    model = SVC(kernel=Spectrum(2), updatable=True).fit(words, np.arange(40) % 2).remove(7)
    assert proof_of_removal(model, [words[7]]).holds_none
    model.note_ = [words[7], "other"]
    proof = proof_of_removal(model, [words[7]])
    assert proof.in_model == ("note_",) and proof.in_pickle and proof.in_file


def test_equal_samples():
    """A removed sample that equals a remaining one is reported, not searched for."""
    twice = np.concatenate([X, X[:1]])
    model = SVC(gamma=0.5, updatable=True).fit(twice, np.append(Y, Y[0])).remove([80, 3])
    proof = proof_of_removal(model, twice[[80, 3]])
    assert proof.also_kept == (0,) and proof.holds_none
    assert "1 of them equal remaining samples" in str(proof)


def test_pipelines():
    """In a pipeline the samples are searched for as they were given, and as the machine saw them."""
    model = make_pipeline(StandardScaler(), SVC(gamma=0.5, updatable=True)).fit(X, Y)
    model[-1].remove(5)
    assert proof_of_removal(model, X[5:6]).holds_none
    model.scaled_ = model[0].transform(X[5:6])
    assert proof_of_removal(model, X[5:6]).in_model == ("scaled_",)


def test_models_without_samples():
    """The error says how to fit a model whose removals can be proved."""
    with pytest.raises(InvalidInputError, match="updatable=True, and remove samples with remove"):
        proof_of_removal(SVC().fit(X, Y), X[:1])
