"""The proof of a removal finds what is left of removed samples."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import (
    SVC,
    SVR,
    CallableKernel,
    Gaussian,
    GaussianProcessRegressor,
    GlobalAlignment,
    Graph,
    Jaccard,
    KernelRidge,
    On,
    OneClassSVM,
    Spectrum,
    WeisfeilerLehman,
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


def test_copies_in_other_forms():
    """Copies of vectors are found in arrays of other types and orders, frames, lists, and functions."""
    some = X[4:6]
    forms = {
        "one row": X[5], "three axes": X[None, 4:6], "lists": some.tolist(), "frame": pd.DataFrame(some),
        "polars": pl.DataFrame(some), "transposed": some.T.copy(), "fortran": np.asfortranarray(some),
        "float32": some.astype(np.float32), "objects": some.astype(object), "csc": sp.csc_array(some),
        "nested": {"a": (some,)},
    }  # fmt: skip
    model = SVC(gamma=0.5, updatable=True).fit(X, Y).remove(5)
    for name, form in forms.items():
        model.copy_ = form
        proof = proof_of_removal(model, X[5:6])
        assert proof.in_model and proof.in_model[0].startswith("copy_"), name
        assert proof.in_pickle and (proof.in_file or proof.in_file is None), name
    model.copy_ = (lambda rows: lambda: rows)(some)
    proof = proof_of_removal(model, X[5:6])
    assert proof.in_model == ("copy_.closure 0",) and proof.in_pickle is None
    assert "Its pickle was not searched: the model cannot be pickled." in str(proof)


SERIES = [np.random.default_rng(i).normal(size=(4 + i % 3, 1)) for i in range(20)]
RECORDS = [{"t": f"{'ab' * (i % 4)}{i:02d}", "p": 0.37 * i} for i in range(20)]
OBJECTS = {
    "dna": (Spectrum(2), ["".join(np.random.default_rng(i).choice(list("acgt"), 12)) for i in range(20)]),
    "words": (Spectrum(2), np.array([f"word {i:03d} {'ab' * (i % 3)}" for i in range(20)])),
    "series of pandas": (Spectrum(2), pd.Series([f"word {i:03d} {'ab' * (i % 3)}" for i in range(20)], dtype=object)),
    "sets": (Jaccard(), [{f"item {i}", f"item {i + 1}", "item 0"} for i in range(20)]),
    "graphs": (WeisfeilerLehman(1), [Graph([(0, 1 + i % 3), (1, 2), (2, 3 + i)], 40) for i in range(20)]),
    "time series": (GlobalAlignment(1.0), SERIES),
    "records": (On("t", Spectrum(2)) + On("p", Gaussian(0.5)), RECORDS),
    "frame": (On("t", Spectrum(2)) + On("p", Gaussian(0.5)), pd.DataFrame(RECORDS)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name):
    """Copies of objects are found in the model, its file and its pickle, however they are stored."""
    kernel, given = OBJECTS[name]
    model = SVC(kernel=kernel, updatable=True).fit(given, np.arange(20) % 2)
    some = given.iloc[[3, 7]] if hasattr(given, "iloc") else [given[3], given[7]]
    assert proof_of_removal(model, some).also_kept == (0, 1)
    assert "Nothing was searched for" in str(proof_of_removal(model, some))
    model.remove([3, 7])
    assert proof_of_removal(model, some).holds_none
    model.copy_ = some
    proof = proof_of_removal(model, some)
    assert proof.in_model[0].startswith("copy_") and proof.in_pickle and (proof.in_file or proof.in_file is None)


def test_samples_that_are_kept_in_another_form():
    """A sample that was never removed is recognised in another precision, order or container."""

    def is_kept(model, sample):
        return proof_of_removal(model, sample).also_kept == (0,)

    zero = X.copy()
    zero[5, 0] = 0.0
    model = SVC(gamma=0.5, updatable=True).fit(zero, Y)
    assert is_kept(model, zero[5:6] * [-1.0, 1.0, 1.0]) and is_kept(model, zero[5:6].astype(np.float32))
    assert is_kept(SVC(gamma=0.5, updatable=True).fit(X.astype(np.float32), Y), X[5:6])
    assert is_kept(SVC(gamma=0.5, updatable=True).fit(sp.csr_array(X), Y), X[5:6])
    kernel, records = OBJECTS["records"]
    model = SVC(kernel=kernel, updatable=True).fit(records, np.arange(20) % 2)
    assert is_kept(model, [dict(reversed(records[5].items()))])
    model = SVC(kernel=GlobalAlignment(1.0), updatable=True).fit([np.arange(3000.0), np.ones(4)], [0, 1])
    other = np.arange(3000.0)
    other[1500] = 0.5
    assert is_kept(model, [np.arange(3000.0)]) and not is_kept(model, [other])


def test_wrong_samples():
    """Samples that predict would refuse are refused."""
    model = SVC(gamma=0.5, updatable=True).fit(X, Y)
    wrongs = ((X[:1, :2], "2 features"), (X[0], "Expected 2D"), (X[:0], "0 sample"), (X[:1] * np.nan, "NaN"))
    for wrong, message in wrongs:
        with pytest.raises(ValueError, match=message):
            proof_of_removal(model, wrong)
    with pytest.raises(InvalidInputError, match="keep its training samples"):
        proof_of_removal(None, X[:1])

    class Thing:
        pass

    things = [Thing() for _ in range(6)]
    own = CallableKernel(lambda a, b: float(a is b), pairwise=True)
    model = SVC(kernel=own, updatable=True).fit(things, [0, 1] * 3).remove(5)
    with pytest.raises(InvalidInputError, match="their class does not say which of them are equal"):
        proof_of_removal(model, things[5:])


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
