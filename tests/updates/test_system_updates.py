"""Updates of KernelRidge and GaussianProcessRegressor equal fits from nothing."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import mercer
from mercer import Gaussian, GaussianProcessRegressor, KernelRidge, Spectrum, White, certify
from mercer.exceptions import InvalidInputError
from mercer.updates.inverse_system import InverseSystem

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=120)
TWO = np.column_stack([Y, np.cos(X[:, 1])])
WORDS = ["".join(RNG.choice(list("acgt"), 10)) for _ in range(120)]

RIDGES = {
    "gaussian": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3), X, Y),
    "intercept": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3, fit_intercept=True), X, Y + 5),
    "linear": (KernelRidge(alpha=0.5), X, Y),
    "two targets": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3), X, TWO),
    "two alphas": (KernelRidge(alpha=[0.1, 1.0], kernel="rbf", gamma=0.3), X, TWO),
    "small alpha": (KernelRidge(alpha=1e-9, kernel="rbf", gamma=0.3), X, Y),
    "cg": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3, solver="cg", tol=1e-12), X, Y),
    "sparse": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3), sp.csr_array(X), Y),
    "float32": (KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3), X.astype(np.float32), Y),
    "strings": (KernelRidge(alpha=1.0, kernel=Spectrum(2)), WORDS, Y),
}


def rows(samples, index):
    """Samples at these positions, of any kind."""
    return [samples[i] for i in index] if isinstance(samples, list) else samples[np.asarray(index)]


def sequence(model, samples, y, weights, n=50, steps=40):
    """Yield the positions of the model's samples after each of some random updates."""
    rng = np.random.default_rng(n)
    index, spare = list(range(n)), list(range(n, 120))
    for _ in range(steps):
        kind, m = rng.choice(["add", "remove", "replace"]), int(rng.choice([1, 1, 2, 5]))
        m = min(m, len(spare), len(index) - 1)
        places = rng.choice(len(index), m, replace=False)
        if kind == "remove":
            model.remove(places)
            spare += [index[p] for p in places]
            index = [i for p, i in enumerate(index) if p not in places]
        elif m > 0:
            new = [spare.pop() for _ in range(m)]
            given = [rows(samples, new), y[new], *([] if weights is None else [weights[new]])]
            if kind == "add":
                model.add(*given)
                index += new
            else:
                model.replace(places, *given)
                for place, i in zip(places, new, strict=True):
                    spare.insert(0, index[place])
                    index[place] = i
        yield index


@pytest.mark.parametrize("name", RIDGES)
@pytest.mark.parametrize("weighted", [False, True])
def test_random_updates_of_ridge_regression_equal_a_fit(name, weighted):
    """After any sequence of updates coefficients, intercept and certificate are those of a fit from nothing."""
    model, samples, y = RIDGES[name]
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 2.0], 120) if weighted else None
    start = {} if weights is None else {"sample_weight": weights[:50]}
    model = clone(model).set_params(updatable=True).fit(rows(samples, range(50)), y[:50], **start)
    for step, index in enumerate(sequence(model, samples, y, weights)):
        if step % 8 != 7:
            continue
        kept, weight = rows(samples, index), None if weights is None else weights[index]
        other = clone(model).set_params(updatable=False).fit(kept, y[index], sample_weight=weight)
        scale = np.abs(other.dual_coef_).max()
        near = 1e-4 if name == "small alpha" else 1e-9
        assert model.dual_coef_ == pytest.approx(other.dual_coef_, abs=near * scale)
        assert model.intercept_ == pytest.approx(other.intercept_, abs=1e-8)
        assert model.predict(kept) == pytest.approx(other.predict(kept), abs=1e-6)
        assert model.certificate_.valid
        assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-6)
        again = certify(model, kept, y[index], sample_weight=weight)
        assert again.primal == pytest.approx(model.certificate_.primal, rel=1e-6)
        assert model.shape_fit_ == other.shape_fit_
        assert set(vars(other)) <= set(vars(model))


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("y", [Y, TWO], ids=["one target", "two targets"])
def test_random_updates_of_a_process_equal_a_fit(normalize_y, y):
    """The process after updates is that of its kernel, with the same likelihood and deviations."""
    kernel = 1.0 * Gaussian(0.3) + White(0.05)
    model = GaussianProcessRegressor(kernel, normalize_y=normalize_y, updatable=True).fit(X[:50], y[:50])
    for step, index in enumerate(sequence(model, X, y, None)):
        if step % 8 != 7:
            continue
        other = GaussianProcessRegressor(model.kernel_, optimizer=None, normalize_y=normalize_y).fit(X[index], y[index])
        assert model.alpha_ == pytest.approx(other.alpha_, rel=1e-6, abs=1e-9)
        assert model.log_marginal_likelihood_value_ == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-9)
        assert model.residual_ <= 1e-9
        assert np.array_equal(model.X_train_, other.X_train_)
        assert model.y_train_ == pytest.approx(other.y_train_)
        for found, expected in zip(model.predict(X, return_std=True), other.predict(X, return_std=True), strict=True):
            assert found == pytest.approx(expected, abs=1e-7)
        assert pytest.approx(other.L_, abs=1e-9) == model.L_
        assert set(vars(other)) <= set(vars(model))


def test_many_samples_at_once():
    """A large batch is solved anew, and small updates follow."""
    for model in (
        KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3),
        GaussianProcessRegressor(Gaussian(0.3) + White(0.1), optimizer=None),
    ):
        model.set_params(updatable=True).fit(X[:20], Y[:20]).add(X[20:], Y[20:]).remove(range(60, 120)).remove(0)
        other = clone(model).fit(X[1:60], Y[1:60])
        assert model.predict(X) == pytest.approx(other.predict(X), abs=1e-9)


def test_a_singular_system_is_solved_anew():
    """Equal samples and alpha=0 leave no inverse: the update is a fit, with its warning."""
    model = KernelRidge(alpha=0.0, updatable=True)
    with pytest.warns(UserWarning, match="Singular matrix"):
        model.fit(X[:20], Y[:20])
    with pytest.warns(UserWarning, match="Singular matrix"):
        model.add(X[:1], Y[:1])
    with pytest.warns(UserWarning, match="Singular matrix"):
        other = KernelRidge(alpha=0.0).fit(np.concatenate([X[:20], X[:1]]), np.append(Y[:20], Y[:1]))
    assert model.predict(X) == pytest.approx(other.predict(X), abs=1e-8)


def test_copies_and_files(tmp_path):
    """Pickles, deep copies and model files can be updated and have no matrix of all samples but L_."""
    for model in (
        KernelRidge(alpha=0.1, kernel="rbf"),
        GaussianProcessRegressor(Gaussian(0.3) + White(0.1), optimizer=None),
    ):
        model.set_params(updatable=True).fit(X[:60], Y[:60]).remove(0)
        mercer.save(model, tmp_path / "model.mercer")
        others = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), mercer.load(tmp_path / "model.mercer")]
        model.add(X[60:61], Y[60:61])
        for other in others:
            assert other._updates.system is None
            assert other.add(X[60:61], Y[60:61]).predict(X) == pytest.approx(model.predict(X), abs=1e-9)


def test_bad_input():
    """Errors say what to do, and leave the model as it was."""
    model = KernelRidge(updatable=True).fit(X[:20], Y[:20])
    before = model.dual_coef_
    with pytest.raises(InvalidInputError, match="y has 2 targets, but the model was fitted to 1"):
        model.add(X[:1], TWO[:1])
    with pytest.raises(InvalidInputError, match="requires y"):
        model.add(X[:1])
    with pytest.raises(ValueError, match="NaN"):
        model.add(X[:1], [np.nan])
    with pytest.raises(InvalidInputError, match="X has 1 samples, but y has 2"):
        model.add(X[:1], Y[:2])
    assert model.dual_coef_ is before
    with pytest.raises(InvalidInputError, match=r"Fit it with KernelRidge\(updatable=True\)"):
        KernelRidge().fit(X, Y).remove(0)
    with pytest.raises(InvalidInputError, match="landmarks=None and a kernel object"):
        KernelRidge(kernel="precomputed", updatable=True).fit(X @ X.T, Y)
    with pytest.raises(InvalidInputError, match="one alpha"):
        GaussianProcessRegressor(alpha=np.ones(120), updatable=True).fit(X, Y)


def test_time_limit():
    """An update without time leaves a usable model and a warning."""
    model = KernelRidge(alpha=0.1, kernel="rbf", updatable=True).fit(X, Y)
    with pytest.warns(match="time_limit"):
        model.set_params(time_limit=0.0).remove(0)
    assert model.certificate_.valid and len(model.X_fit_) == 119
    model.set_params(time_limit=None).remove(0)
    assert model.certificate_.relative_gap < 1e-9


def test_inverse_against_numpy():
    """K, its inverse, the solutions and the determinant are those of the present samples; freed memory is 0."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(140, 160))
    K = A @ A.T
    B = rng.normal(size=(140, 2))
    noise = rng.uniform(0.5, 2.0, 140)
    system, index = InverseSystem(K[:60, :60], noise[:60], B[:60]), list(range(60))
    for step in range(100):
        if rng.random() < 0.5 and step < 80:
            i = 60 + step
            assert system.append(K[index, i], K[i, i], noise[i], B[i])
            index.append(i)
        else:
            gone = int(rng.integers(len(index)))
            system.remove(gone)
            index.pop(gone)
    S, product, residual = system.refine(B[index])
    full = K[np.ix_(index, index)] + np.diag(noise[index])
    assert pytest.approx(np.linalg.solve(full, B[index]), abs=1e-10) == S
    assert product == pytest.approx(K[np.ix_(index, index)] @ S, abs=1e-9)
    assert residual < 1e-9
    assert system.log_determinant == pytest.approx(np.linalg.slogdet(full)[1])
    eye = np.zeros((len(system.values), len(index)))
    eye[system.place, np.arange(len(index))] = 1.0
    assert system.times_inverse(eye)[system.place] == pytest.approx(np.linalg.inv(full), abs=1e-10)
    n = system.n
    for rest in (system.values[n:], system.values[:, n:], system.changes[n:], system.solutions[n:]):
        assert not rest.any()
