"""Updates of SVC, SVR and OneClassSVM equal fits from nothing."""

import copy
import pickle
import signal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import SVC, SVR, CallableKernel, On, OneClassSVM, Spectrum, certify
from mercer.exceptions import InvalidInputError, NotSeparableError
from mercer.problems.clock import Clock

RNG = np.random.default_rng(0)
X, Y = make_classification(200, 4, n_informative=3, n_redundant=0, flip_y=0.1, random_state=1)
X_BLOBS, Y_BLOBS = make_blobs(200, 3, centers=4, cluster_std=3.0, random_state=2)
X_EQUAL = np.round(X[:, :2])  # many samples are equal
TARGET = np.sin(X[:, 0]) + 0.3 * RNG.normal(size=len(X))
WORDS = ["".join(RNG.choice(list("acgt"), 12)) for _ in range(120)]
WORD_LABELS = np.array([word.count("a") > 2 for word in WORDS]).astype(int)
TOL = 1e-4

MODELS = {
    "hinge": (SVC(gamma=0.3, tol=TOL), X, Y),
    "squared hinge": (SVC(gamma=0.3, loss="squared_hinge", tol=TOL), X, Y),
    "no intercept": (SVC(gamma=0.3, fit_intercept=False, tol=TOL), X, Y),
    "large C": (SVC(C=100.0, gamma=0.1, tol=TOL), X, Y),
    "linear": (SVC(kernel="linear", tol=TOL), X, Y),
    "class weights": (SVC(gamma=0.3, class_weight={0: 2.0}, tol=TOL), X, Y),
    "balanced": (SVC(gamma=0.3, class_weight="balanced", tol=TOL), X, Y),
    "four classes": (SVC(gamma=0.1, tol=TOL), X_BLOBS, Y_BLOBS),
    "sparse": (SVC(gamma=0.3, tol=TOL), sp.csr_array(X), Y),
    "float32": (SVC(gamma=0.3, tol=TOL), X.astype(np.float32), Y),
    "strings": (SVC(kernel=Spectrum(2), tol=TOL), WORDS, WORD_LABELS),
    "tube": (SVR(gamma=0.3, tol=TOL), X, TARGET),
    "tube without intercept": (SVR(gamma=0.3, fit_intercept=False, tol=TOL), X, TARGET),
    "squared tube": (SVR(gamma=0.3, loss="squared_epsilon_insensitive", tol=TOL), X, TARGET),
    "pinball": (SVR(gamma=0.3, loss="pinball", quantile=0.3, tol=TOL), X, TARGET),
    "singular matrix": (SVC(kernel="poly", gamma=0.5, degree=2, tol=TOL), X_EQUAL, Y),
    "one class, singular matrix": (OneClassSVM(gamma=0.1, nu=0.3, tol=TOL), X_EQUAL, None),
    "one class": (OneClassSVM(gamma=0.3, nu=0.3, tol=TOL), X, None),
    "one class, all outside": (OneClassSVM(gamma=0.3, nu=1.0, tol=TOL), X, None),
}


def rows(samples, index):
    """Samples at these positions, of any kind."""
    return [samples[i] for i in index] if isinstance(samples, list) else samples[np.asarray(index)]


def assert_equal_fit(model, index, weight, samples, y):
    """The model is that of a fit to these rows: same problem, same attributes, both within tol."""
    kept, targets = rows(samples, index), None if y is None else y[index]
    other = clone(model).set_params(updatable=False).fit(kept, targets, sample_weight=weight)
    found, expected = model.certificate_, other.certificate_
    assert found.valid and found.kkt_violation <= model.tol
    # both optima lie between dual and primal
    assert max(found.dual, expected.dual) <= min(found.primal, expected.primal) + 1e-9 * abs(found.primal)
    again = certify(model, kept, targets, sample_weight=weight)
    assert again.primal == pytest.approx(found.primal, rel=1e-9)
    assert again.dual == pytest.approx(found.dual, rel=1e-9)
    assert again.kkt_violation == pytest.approx(found.kkt_violation, abs=1e-9)
    # strong convexity: the functions differ by at most the root of the gaps
    near = np.sqrt(2 * (found.gap + expected.gap)) + 1e-6
    size = 2.0 if y is None else 1.0
    values, others = (
        m.decision_function(kept) if hasattr(m, "decision_function") else m.predict(kept) for m in (model, other)
    )
    constant = np.median(values - others)
    assert abs(constant) <= 20 * model.tol + 2 * near
    if getattr(model, "decision_function_shape", "ovo") == "ovo" or values.ndim == 1:
        assert np.abs(values - others - constant).max() <= size * (near + 2 * model.tol)
    assert model.shape_fit_ == other.shape_fit_
    assert model.dual_coef_.shape[0] == other.dual_coef_.shape[0]
    assert model.support_.dtype == other.support_.dtype
    assert set(vars(other)) <= set(vars(model))
    assert np.array_equal(getattr(model, "classes_", 0), getattr(other, "classes_", 0))
    assert np.allclose(getattr(model, "class_weight_", 0), getattr(other, "class_weight_", 0))
    if not isinstance(samples, list):
        vectors = model.support_vectors_
        dense = vectors.toarray() if sp.issparse(vectors) else vectors
        expected_rows = rows(kept, model.support_)
        assert np.array_equal(dense, expected_rows.toarray() if sp.issparse(expected_rows) else expected_rows)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_random_updates_equal_a_fit(name, weighted):
    """After any sequence of updates, of one or several samples, the model is that of a fit from nothing."""
    model, samples, y = MODELS[name]
    model = clone(model).set_params(updatable=True)
    n = len(samples) if isinstance(samples, list) else samples.shape[0]
    rng = np.random.default_rng(len(name))
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else np.ones(n)
    index, spare = list(range(n // 2)), list(range(n // 2, n))
    model.fit(rows(samples, index), None if y is None else y[index], sample_weight=weights[index])
    for step in range(12):
        kind, m = rng.choice(["add", "remove", "replace"]), int(rng.choice([1, 1, 3]))
        if kind == "remove":
            places = rng.choice(len(index), m, replace=False)
            model.remove(places if m > 1 else int(places[0]) - len(index))
            spare += [index[p] for p in places]
            index = [i for p, i in enumerate(index) if p not in places]
        else:
            new = [spare.pop(int(rng.integers(len(spare)))) for _ in range(m)]
            given = (rows(samples, new), None if y is None else y[new], weights[new] if weighted else None)
            if kind == "add":
                model.add(*given)
                index += new
            else:
                places = rng.choice(len(index), m, replace=False)
                model.replace(places, *given)
                for place, i in zip(places, new, strict=True):
                    spare.append(index[place])
                    index[place] = i
        if step % 4 == 3:
            assert_equal_fit(model, index, weights[index] if weighted else None, samples, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_rows", [1, 3, 5])
def test_replaces_with_balanced_weights(n_rows, weighted):
    """The certificate holds after every replace, although balanced weights move the box of all samples."""
    n, rng = 60, np.random.default_rng(0)
    samples = rng.normal(size=(n + 30 * n_rows, 3))
    y = (np.sin(2 * samples[:, 0]) + samples[:, 1] * samples[:, 2] > 0).astype(int)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else np.ones(len(y))
    for seed in range(3):
        rng, index, spare = np.random.default_rng(seed), np.arange(n), n
        model = SVC(gamma=0.5, class_weight="balanced", updatable=True)
        model.fit(samples[:n], y[:n], sample_weight=weight[:n])
        while spare < len(y):
            places = rng.choice(n, n_rows, replace=False)
            index[places] = new = np.arange(spare, spare + n_rows)
            model.replace(places, samples[new], y[new], sample_weight=weight[new] if weighted else None)
            spare += n_rows
            assert certify(model, samples[index], y[index], sample_weight=weight[index]).kkt_violation <= 1.1e-3


def test_sums_that_change_without_a_step():
    """The coefficients of a one-class machine sum to ν n, also where an update changes nothing but n."""
    model = OneClassSVM(kernel="poly", gamma=1.0, nu=0.5, updatable=True).fit(np.zeros((10, 2)))
    model.remove(np.setdiff1d(np.arange(10), model.support_)[:2])
    assert model.dual_coef_.sum() == pytest.approx(4.0)
    model.add(np.zeros((6, 2)))
    assert model.dual_coef_.sum() == pytest.approx(7.0)
    assert certify(model, np.zeros((14, 2))).infeasibility == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("cache_size", [0.1, 0.3])
def test_small_cache_with_several_classes(cache_size):
    """The certificate holds if the pairs of classes take turns in storing their columns."""
    n = 200
    for seed in range(3):
        samples = np.random.default_rng(seed).normal(size=(n + 30, 3))
        y = np.digitize(np.sin(2 * samples[:, 0]) + samples[:, 1] * samples[:, 2], [-0.7, 0.0, 0.7])
        model = SVC(gamma=0.5, cache_size=cache_size, updatable=True).fit(samples[:n], y[:n])
        for i in range(30):
            model.remove(0).add(samples[n + i : n + i + 1], y[n + i : n + i + 1])
            kept = slice(i + 1, n + i + 1)
            assert certify(model, samples[kept], y[kept]).kkt_violation <= 1.1e-3


@pytest.mark.parametrize("name", ["hinge", "tube", "one class"])
def test_rounding_does_not_grow(name):
    """After many updates F is Kβ, and the inverse is that of the free variables' bordered matrix."""
    model, samples, y = MODELS[name]
    model = clone(model).set_params(updatable=True).fit(samples[:100], None if y is None else y[:100])
    rng, index, spare = np.random.default_rng(0), list(range(100)), list(range(100, len(samples)))
    for _ in range(200):
        place = int(rng.integers(100))
        model.remove(place)
        spare.append(index.pop(place))
        index.append(spare.pop(int(rng.integers(100))))
        model.add(samples[index[-1:]], None if y is None else y[index[-1:]])
    state = model._updates
    K = model._kernel(state.samples)
    assert K @ state.beta[0] == pytest.approx(state.F[0], abs=1e-11)
    members, R, beta = state.free[0].samples, state.free[0].R, np.abs(state.beta[0])
    assert set(np.flatnonzero((beta > 0) & (beta < 1.0))) == set(members)
    m = len(members)
    M = np.ones((m + 1, m + 1))
    M[0, 0], M[1:, 1:] = 0.0, K[np.ix_(members, members)]
    assert R[: m + 1, : m + 1] @ M == pytest.approx(np.eye(m + 1), abs=1e-6)


@pytest.mark.parametrize("name", ["hinge", "four classes", "tube", "one class"])
def test_many_samples_at_once(name):
    """A large batch comes and leaves in one warm solve."""
    model, samples, y = MODELS[name]
    model = clone(model).set_params(updatable=True).fit(samples[:40], None if y is None else y[:40])
    more = np.tile(samples, (3, 1)) + 0.1 * np.random.default_rng(0).normal(size=(600, samples.shape[1]))
    both = np.concatenate([samples[:40], more])
    targets = None if y is None else np.concatenate([y[:40], y, y, y])
    model.add(more, None if y is None else targets[40:])
    assert_equal_fit(model, list(range(640)), None, both, targets)
    model.remove(np.arange(30, 640, 2))
    index = [*range(30), *range(31, 640, 2)]
    assert_equal_fit(model, index, None, both, targets)


def test_hard_margins():
    """With C=inf updates are exact too, and one that makes the classes inseparable leaves the model as it was."""
    Z = np.array([[-2.0, 0], [-1, 1], [1, 0], [2, 1.0]])
    model = SVC(C=np.inf, kernel="linear", updatable=True).fit(Z, [0, 0, 1, 1])
    model.add([[0.5, 0.0]], [1])
    assert model.coef_ == pytest.approx(
        SVC(C=np.inf, kernel="linear").fit([*Z, [0.5, 0]], [0, 0, 1, 1, 1]).coef_, abs=1e-3
    )
    before = model.decision_function(Z)
    with pytest.raises(NotSeparableError):
        model.add([[-1.5, 0.5]], [1])
    assert np.array_equal(model.decision_function(Z), before)
    assert model.shape_fit_ == (5, 2)
    model.remove(4)
    assert model.coef_[0] == pytest.approx([1.0, 0.0], abs=0.5)


def test_new_classes():
    """A label that was never seen adds pairs of classes; the last sample of a class cannot be removed."""
    model = SVC(gamma=0.1, updatable=True).fit(X_BLOBS[Y_BLOBS < 2], Y_BLOBS[Y_BLOBS < 2] * 10)
    index = [*np.flatnonzero(Y_BLOBS < 2)]
    labels = Y_BLOBS * 10
    labels[Y_BLOBS == 3] = 5  # between the others
    for c in (2, 3):
        new = np.flatnonzero(c == Y_BLOBS)
        model.add(X_BLOBS[new], labels[new])
        index += [*new]
        assert_equal_fit(model, index, None, X_BLOBS, labels)
    assert model.classes_.tolist() == [0, 5, 10, 20]
    last = np.flatnonzero(labels[index] == 5)
    with pytest.raises(InvalidInputError, match=r"no sample of the class 5\. Keep one of them, or fit a model"):
        model.remove(last)
    model.remove(last[:-1])
    kept = [i for p, i in enumerate(index) if p not in last[:-1]]
    assert_equal_fit(model, kept, None, X_BLOBS, labels)


def test_gamma_stays_bound():
    """The kernel keeps the gamma that fit has computed."""
    model = SVC(updatable=True).fit(X[:100], Y[:100])
    gamma = model._gamma
    model.add(100 * X[100:], Y[100:])
    assert model._gamma == gamma
    fixed = SVC(gamma=gamma).fit(np.concatenate([X[:100], 100 * X[100:]]), Y)
    assert model.certificate_.dual == pytest.approx(fixed.certificate_.dual, rel=1e-3)


def test_parameters_may_change():
    """C and tol of the model apply to the next update."""
    model = SVC(gamma=0.3, updatable=True).fit(X[:150], Y[:150])
    for C in (0.1, 3.0):
        model.set_params(C=C, tol=TOL).remove(0)
        assert np.abs(model.dual_coef_).max() <= C
        assert model.certificate_.kkt_violation <= TOL
    model.set_params(class_weight={1: 5.0}).remove(0)
    assert_equal_fit(model, list(range(3, 150)), None, X, Y)
    model = SVC(gamma=0.1, tol=TOL, updatable=True).fit(X_BLOBS, Y_BLOBS).remove(0).remove(0)
    for changed in ({"C": 0.2}, {"class_weight": "balanced"}, {"class_weight": None}, {"loss": "squared_hinge"}):
        model.set_params(**changed).add(X_BLOBS[:1], Y_BLOBS[:1]).remove(-1)
        assert_equal_fit(model, list(range(2, 200)), None, X_BLOBS, Y_BLOBS)


def test_copies():
    """A pickle, a deep copy and a model file can be updated; a shallow copy says that it is out of date."""
    model = SVC(gamma=0.3, updatable=True).fit(X[:150], Y[:150]).remove(3).add(X[150:151], Y[150:151])
    others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    shallow = copy.copy(model)
    model.remove(0)
    for other in others:
        other.remove(0)
        assert other.decision_function(X) == pytest.approx(model.decision_function(X), abs=2e-3)
        assert other.certificate_.kkt_violation <= other.tol
    with pytest.raises(InvalidInputError, match="have changed since"):
        shallow.remove(0)
    assert not hasattr(clone(model), "_updates")
    assert "_updates" not in vars(model.set_params(updatable=False).fit(X, Y))


def test_model_files(tmp_path):
    """A model file holds what updates need."""
    for model, samples, y in (MODELS["hinge"], MODELS["strings"], MODELS["sparse"]):
        model = clone(model).set_params(updatable=True).fit(rows(samples, range(100)), y[:100])
        mercer.save(model, tmp_path / "model.mercer")
        loaded = mercer.load(tmp_path / "model.mercer").remove(5)
        model.remove(5)
        assert loaded.certificate_.primal == pytest.approx(model.certificate_.primal, rel=1e-4)


def test_limits_leave_a_usable_model():
    """An update without time or steps ends with a certified model and a warning; the next one completes it."""
    for limit in ({"time_limit": 0.0}, {"max_iter": 0}):
        model = SVC(C=10.0, gamma=0.3, tol=TOL, updatable=True).fit(X[:150], Y[:150])
        carries = int(model.support_[np.argmax(np.abs(model.dual_coef_[0]))])
        with pytest.warns(ConvergenceWarning, match="terminated early"):
            model.set_params(**limit).remove(carries)
        kept = np.delete(np.arange(150), carries)
        proof = certify(model, X[kept], Y[kept])
        assert proof.valid and proof.primal == pytest.approx(model.certificate_.primal)
        assert model.fit_status_ == 1
        model.set_params(time_limit=None, max_iter=-1).add(X[150:151], Y[150:151])
        assert_equal_fit(model, [*kept, 150], None, X, Y)


def test_published_numbers_are_those_of_the_certificate():
    """After updates that move no coefficient the intercept is the one that the certificate has, too."""
    for limit in ({"max_iter": 0}, {"time_limit": 0.0}):
        model = OneClassSVM(gamma=0.5, nu=0.3, updatable=True).fit(X[:50])
        with pytest.warns(ConvergenceWarning):
            model.set_params(**limit).add(X[50:52])
        assert certify(model, X[:52]).primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    for seed in range(6):
        samples = np.random.default_rng(seed).normal(size=(60, 2))
        y = (samples[:, 0] > 0).astype(int)
        model = SVC(gamma=0.5, tol=0.1, updatable=True).fit(samples, y)
        plain = int(np.setdiff1d(np.arange(60), model.support_)[0])
        model.set_params(fit_intercept=False).remove(plain)
        assert model.intercept_[0] == 0
        kept = np.delete(np.arange(60), plain)
        assert certify(model, samples[kept], y[kept]).primal == pytest.approx(model.certificate_.primal, rel=1e-9)


def test_unfinished_pairs_are_completed():
    """The next update completes pairs of classes that an update without steps has left, even if it touches others."""
    samples = np.random.default_rng(0).normal(size=(90, 3))
    y = np.digitize(samples[:, 0] * samples[:, 1], [-0.3, 0.3])
    model = SVC(C=10.0, gamma=0.5, updatable=True).fit(samples[:80], y[:80])
    with pytest.warns(ConvergenceWarning):
        model.set_params(max_iter=0).remove(range(10))
    new = 80 + int(np.flatnonzero(y[80:] == 0)[0])
    model.set_params(max_iter=-1).add(samples[[new]], y[[new]])
    assert model.fit_status_ == 0 and max(proof.kkt_violation for proof in model.certificates_) <= model.tol


def test_dust_is_settled():
    """A coefficient within rounding of 0 is 0: as a free one it would determine the threshold."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        samples, index, spare = rng.normal(size=(80, 3)) + 2, np.arange(40), 40
        model = OneClassSVM(kernel="linear", nu=0.2, tol=1e-6, updatable=True).fit(samples[:40])
        while spare < 80:
            places = rng.choice(len(index), 5, replace=False)
            index = np.concatenate([np.delete(index, places), np.arange(spare, spare + 5)])
            spare += 5
            model.add(samples[index[-5:]]).remove(places)
            other = OneClassSVM(kernel="linear", nu=0.2, tol=1e-8).fit(samples[index])
            assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-4)
            assert np.abs(model.dual_coef_).min() > 1e-12


def test_bad_input_leaves_the_model_as_it_was():
    """Errors name what was given and what is allowed."""
    model = SVC(gamma=0.3, updatable=True).fit(X[:50], Y[:50])
    before = copy.deepcopy(vars(model._updates)), model.decision_function(X)
    with pytest.raises(InvalidInputError, match="index contains 50, but the model has 50 training samples: 0 to 49"):
        model.remove(50)
    with pytest.raises(InvalidInputError, match="index contains 3 more than once"):
        model.remove([3, -47])
    with pytest.raises(InvalidInputError, match="contains all 50 training samples"):
        model.remove(range(50))
    for index in (1.5, [], "0", True, [[1]]):
        with pytest.raises(InvalidInputError, match="must be a whole number or a list of at least one"):
            model.remove(index)
    with pytest.raises(ValueError, match="3 features, but SVC is expecting 4"):
        model.add(X[:1, :3], [0])
    with pytest.raises(ValueError, match="NaN"):
        model.add([[np.nan] * 4], [0])
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        model.add(X[:1])
    with pytest.raises(InvalidInputError, match="X has 2 samples, but y has 1"):
        model.add(X[:2], [0])
    with pytest.raises(InvalidInputError, match="labels of type"):
        model.add(X[:1], ["a"])
    with pytest.raises(InvalidInputError, match="index has 2 positions, but X has 1 samples"):
        model.replace([0, 1], X[:1], [0])
    with pytest.raises(ValueError, match="sample_weight"):
        model.add(X[:1], [0], sample_weight=[np.nan])
    with pytest.raises(ValueError, match="cannot use sparse input in 'SVC' trained on dense data"):
        model.add(sp.csr_array(X[:1]), [0])
    with pytest.raises(ValueError, match="NaN"):
        SVR(updatable=True).fit(X, TARGET).add(X[:1], [np.nan])
    histograms = SVC(kernel="chi2()", updatable=True).fit(np.abs(X[:50]), Y[:50]).remove(0)
    with pytest.raises(InvalidInputError, match="needs non-negative features"):
        histograms.add(-np.abs(X[:1]), [0])
    assert histograms.remove(0).shape_fit_ == (48, 4)
    assert model.decision_function(X) == pytest.approx(before[1], abs=0)
    assert np.array_equal(model._updates.samples, before[0]["samples"])


def test_models_that_cannot_be_updated():
    """The error says what to do instead."""
    with pytest.raises(InvalidInputError, match=r"Fit it with SVC\(updatable=True\)"):
        SVC().fit(X, Y).remove(0)
    with pytest.raises(InvalidInputError, match="landmarks: use landmarks=None"):
        SVC(landmarks="auto", updatable=True).fit(X, Y)
    with pytest.raises(InvalidInputError, match="a kernel matrix or a function of two sets"):
        SVC(kernel="precomputed", updatable=True).fit(X @ X.T, Y)
    with pytest.raises(InvalidInputError, match="trace=True"):
        SVC(trace=True, updatable=True).fit(X, Y)
    assert not hasattr(mercer.NuSVC(), "add")


class PressingKernel(CallableKernel):
    """A Gaussian kernel that presses Ctrl-C when it computes many values, if it is armed."""

    armed = False

    def block(self, a, b, out=None):
        if PressingKernel.armed and len(a) * len(b) > 40:
            PressingKernel.armed = False
            signal.raise_signal(signal.SIGINT)
        return super().block(a, b, out)


def gaussian(x, z):
    return np.exp(-0.3 * ((np.asarray(x) - np.asarray(z)) ** 2).sum())


def test_interrupts_leave_a_usable_model():
    """Ctrl-C ends an update with the model of the old or of the new samples, and the next update completes it."""
    model = SVC(kernel=PressingKernel(gaussian, pairwise=True), C=10.0, updatable=True).fit(X[:50], Y[:50])
    size = 50
    for _ in range(4):
        carries = int(model.support_[np.argmax(np.abs(model.dual_coef_[0]))])
        PressingKernel.armed = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.remove(carries)
                size -= 1
            except KeyboardInterrupt:
                pass
        Clock._last_press = float("-inf")
        kept = model._updates.samples
        assert model.shape_fit_ == (size, 4) and len(kept) == size
        labels = model.classes_[model._updates.targets.astype(int)]
        assert certify(model, kept, labels).primal == pytest.approx(model.certificate_.primal, rel=1e-6)
    PressingKernel.armed = False
    assert model.remove(0).certificate_.kkt_violation <= model.tol


def test_frames_and_columns(tmp_path):
    """Samples may be rows of a polars frame or a column of pandas, and such models can be saved."""
    frame = pl.DataFrame({"t": WORDS, "p": np.arange(120.0) / 120})
    kernel = On("t", Spectrum(2)) + On("p", mercer.Gaussian(0.5))
    for samples, k in ((frame, kernel), (pd.Series(WORDS, dtype=object), Spectrum(2))):
        model = SVC(kernel=k, tol=TOL, updatable=True).fit(samples[:60], WORD_LABELS[:60])
        model.remove([0, 1]).add(samples[60:63], WORD_LABELS[60:63]).replace(0, samples[63:64], WORD_LABELS[63:64])
        index = [63, *range(3, 63)]
        kept = samples.iloc[index] if hasattr(samples, "iloc") else samples[index]
        fitted = SVC(kernel=k, tol=TOL).fit(kept, WORD_LABELS[index])
        assert model.certificate_.dual == pytest.approx(fitted.certificate_.dual, rel=1e-3)
        if k is not kernel:
            assert isinstance(model.support_vectors_, list)
            mercer.save(model, tmp_path / "model.mercer")
            assert mercer.load(tmp_path / "model.mercer").remove(0).shape_fit_[0] == 60


def test_changed_parameters_are_validated():
    """An update refuses parameters that fit would refuse, and leaves the model as it was."""
    models = (
        (SVC(updatable=True), {"loss": "xx"}),
        (SVC(updatable=True), {"tol": "a"}),
        (mercer.KernelRidge(kernel="rbf", updatable=True), {"solver": "xx"}),
        (mercer.GaussianProcessRegressor(optimizer=None, updatable=True), {"alpha": "a"}),
    )
    for model, wrong in models:
        model.fit(X[:50], Y[:50]).remove(0)
        before = {name: getattr(model, name) for name in wrong}
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter of"):
            model.set_params(**wrong).remove(0)
        model.set_params(**before).remove(0)
    with pytest.raises(InvalidInputError, match="must be a whole number or a list"):
        model.remove([[1], [2, 3]])
    with pytest.raises(InvalidInputError, match="one number for each new sample"):
        SVC(updatable=True).fit(X, Y).add(X[:1], Y[:1], sample_weight=["a"])
