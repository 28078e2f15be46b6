"""The searches score as scikit-learn's GridSearchCV does, and choose the same."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import SVR as SklearnSVR
from sklearn.svm import NuSVC as SklearnNuSVC
from tests.naming import named

from mercer import SVC, SVCCV, SVRCV, Gaussian, Laplacian, LinearSVCCV, LinearSVRCV, NuSVCCV, OneClassSVM, OneClassSVMCV
from mercer.estimators.linear.linear_svc import LinearSVC

CS, GAMMAS = [0.1, 1.0, 30.0], [0.05, 0.5, 3.0]
# with a small C all coefficients may be at their bounds: then an interval of intercepts is optimal
LARGER_CS = [1.0, 30.0]


def two_classes(n=160, seed=0):
    """Two classes that overlap around a circle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where((X**2).sum(axis=1) + 0.7 * rng.normal(size=n) > 2.5, "out", "in")


def wave(n=120, seed=0):
    """A noisy function of two variables."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def by_params(results, column="mean_test_score"):
    """Scores of a table by the parameters of its rows."""
    return {
        tuple(sorted((k, repr(v)) for k, v in params.items())): score
        for params, score in zip(results["params"], results[column], strict=True)
    }


def assert_same_scores(ours, theirs, atol):
    """Both tables have the same candidates and, up to atol, the same scores."""
    a, b = by_params(ours.cv_results_), by_params(theirs.cv_results_)
    assert a.keys() == b.keys()
    np.testing.assert_allclose([a[k] for k in a], [b[k] for k in a], rtol=0, atol=atol)


@pytest.mark.parametrize("cv", [5, StratifiedKFold(3, shuffle=True, random_state=0), ShuffleSplit(4, random_state=1)])
def test_two_classes_are_scored_as_by_grid_search(cv):
    """Every split has the score of GridSearchCV up to one sample, and the table its columns and order."""
    X, y = two_classes()
    ours = SVCCV(Cs=CS, gammas=GAMMAS, cv=cv).fit(X, y)
    theirs = GridSearchCV(SklearnSVC(), {"C": CS, "gamma": GAMMAS}, cv=cv).fit(X, y)
    assert_same_scores(ours, theirs, 1.0 / len(y))
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert set(ours.cv_results_) == set(theirs.cv_results_)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)


def test_several_classes_are_scored_as_by_grid_search():
    """Pairs of classes are solved on parts of one matrix."""
    X, y = load_iris(return_X_y=True)
    ours = SVCCV(Cs=CS, gammas=GAMMAS).fit(X, y)
    theirs = GridSearchCV(SklearnSVC(), {"C": CS, "gamma": GAMMAS}).fit(X, y)
    assert_same_scores(ours, theirs, 1.0 / len(y))


def test_held_out_values_are_those_of_machines_fitted_to_the_folds():
    """cv_decision_function_ is what an SVC of the same fold says, within a few tol."""
    for X, y in (two_classes(), load_iris(return_X_y=True)):
        model = SVCCV(Cs=CS, gammas=GAMMAS, cv=4).fit(X, y)
        for f, (train, test) in enumerate(StratifiedKFold(4).split(X, y)):
            machine = SVC(decision_function_shape="ovo", **model.best_params_).fit(X[train], y[train])
            expected = machine.decision_function(X[test]).reshape(len(test), -1)
            np.testing.assert_allclose(model.cv_decision_function_[test], expected, rtol=5e-3, atol=5e-3)
            assert (model.cv_fold_[test] == f).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "poly", Laplacian(0.3)], ids=named)
def test_every_form_of_the_machine_is_the_one_that_is_refitted(kernel, fit_intercept, loss):
    """Held-out values agree with an SVC of the chosen parameters, for each kernel, loss and intercept."""
    X, y = two_classes(90)
    model = SVCCV(kernel=kernel, Cs=CS, gammas=2, loss=loss, fit_intercept=fit_intercept, cv=3).fit(X, y)
    train, test = next(StratifiedKFold(3).split(X, y))
    machine = clone(model.best_estimator_).set_params(tol=1e-6).fit(X[train], y[train])
    np.testing.assert_allclose(model.cv_decision_function_[test, 0], machine.decision_function(X[test]), atol=1e-2)


@pytest.mark.parametrize("shape", ["many", "few"])
@pytest.mark.slow
def test_large_problems_are_solved_in_several_working_sets(shape):
    """More samples than one working set holds give the same values, for easy and for hard margins."""
    X, y = two_classes(1500, seed=1)
    C, gamma = (0.05, 3.0) if shape == "many" else (100.0, 0.1)
    model = SVCCV(Cs=[C / 10, C], gammas=[gamma], cv=[(np.arange(1300), np.arange(1300, 1500))], refit=False).fit(X, y)
    for row, c in enumerate((C / 10, C)):
        machine = SVC(C=c, gamma=gamma).fit(X[:1300], y[:1300])
        assert model.cv_results_["mean_test_score"][row] == pytest.approx(machine.score(X[1300:], y[1300:]), abs=0.006)


def test_nu_is_scored_as_by_grid_search():
    """NuSVC's candidates, too; an infeasible nu has no score."""
    X, y = two_classes()
    # tol is in units of the margin, which is small here
    ours = NuSVCCV(nus=[0.2, 0.5], gammas=GAMMAS, tol=1e-5).fit(X, y)
    theirs = GridSearchCV(SklearnNuSVC(tol=1e-5), {"nu": [0.2, 0.5], "gamma": GAMMAS}).fit(X, y)
    assert_same_scores(ours, theirs, 2.0 / len(y))
    unbalanced = np.where(np.arange(len(y)) % 8 == 0, 1, 0)
    with pytest.warns(FitFailedWarning, match="have no score in some fold"):
        found = NuSVCCV(nus=[0.1, 0.9], gammas=[0.1]).fit(X, unbalanced)
    assert found.nu_ == 0.1
    assert np.isnan(found.cv_results_["mean_test_score"][1])


@pytest.mark.parametrize(
    "scoring", [None, "neg_mean_squared_error", make_scorer(mean_absolute_error, greater_is_better=False)]
)
def test_regression_is_scored_as_by_grid_search(scoring):
    """SVR's candidates, by R² and other scorers."""
    X, y = wave()
    grid = {"C": LARGER_CS, "gamma": GAMMAS, "epsilon": [0.01, 0.2]}
    ours = SVRCV(Cs=LARGER_CS, gammas=GAMMAS, epsilons=grid["epsilon"], scoring=scoring).fit(X, y)
    theirs = GridSearchCV(SklearnSVR(tol=1e-5), grid, scoring=scoring).fit(X, y)
    assert_same_scores(ours, theirs, 2e-3)
    assert ours.best_params_ == theirs.best_params_
    assert (ours.predict_interval(X[:4])[:, 0] < ours.predict(X[:4])).all()


def test_linear_machines_are_scored_as_by_grid_search():
    """Warm starts along C change nothing but the time."""
    X, y = load_iris(return_X_y=True)
    ours = LinearSVCCV(Cs=CS).fit(X, y)
    theirs = GridSearchCV(LinearSVC(), {"C": CS}).fit(X, y)
    assert_same_scores(ours, theirs, 1e-12)
    assert ours.predict_proba(X).argmax(axis=1).tolist() == ours.predict(X).tolist()
    X, y = wave()
    model = LinearSVRCV(Cs=CS, epsilon=0.1).fit(X, y)
    assert model.C_ in CS and model.predict_interval(X[:2]).shape == (2, 2)


def test_linear_searches_have_the_best_coefficients():
    """Features can be selected by them, as by those of the machine; weights of classes are the machine's, too."""
    X, y = load_iris(return_X_y=True)
    weight = np.arange(1.0, 151.0)
    search = LinearSVCCV(Cs=[0.01, 0.1], penalty="l1", class_weight="balanced", cv=3)
    assert not hasattr(search, "coef_") and not hasattr(clone(search).set_params(refit=False).fit(X, y), "coef_")
    search.fit(X, y, sample_weight=weight)
    machine = LinearSVC(C=search.C_, penalty="l1", class_weight="balanced").fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(search.coef_, machine.coef_)
    np.testing.assert_array_equal(search.intercept_, machine.intercept_)
    np.testing.assert_array_equal(search.class_weight_, machine.class_weight_)
    chosen = SelectFromModel(search).fit(X, y, sample_weight=weight).get_support()
    np.testing.assert_array_equal(chosen, SelectFromModel(machine).fit(X, y, sample_weight=weight).get_support())
    assert LinearSVRCV(Cs=[1.0]).fit(X, y).coef_.shape == (4,)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc", "f1_macro"])
def test_any_scorer_of_labels_and_decisions(scoring):
    """The scores of GridSearchCV with the same scorer."""
    X, y = two_classes()
    y = (y == "in").astype(int)
    ours = SVCCV(Cs=CS, gammas=GAMMAS, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(SklearnSVC(), {"C": CS, "gamma": GAMMAS}, scoring=scoring).fit(X, y)
    assert_same_scores(ours, theirs, 0.01)


def test_groups_and_class_weights():
    """Groups stay together; balanced weights are those of the training samples of a fold."""
    X, y = two_classes()
    groups = np.arange(len(y)) % 7
    grid = {"C": CS, "gamma": GAMMAS}
    ours = SVCCV(Cs=CS, gammas=GAMMAS, cv=GroupKFold(4), class_weight="balanced").fit(X, y, groups=groups)
    theirs = GridSearchCV(SklearnSVC(class_weight="balanced"), grid, cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert_same_scores(ours, theirs, 1.0 / len(y))


def test_weights_are_repetitions():
    """A weight of 2 is a sample that is there twice, a weight of 0 one that is not there, in fits and in scores."""
    X, y = two_classes(90)
    weight, groups = np.arange(90) % 3, np.arange(90) % 4
    repeated = np.repeat(np.arange(90), weight)
    a = SVCCV(Cs=CS, gammas=GAMMAS, cv=LeaveOneGroupOut(), tol=1e-6).fit(X, y, sample_weight=weight, groups=groups)
    b = SVCCV(Cs=CS, gammas=GAMMAS, cv=LeaveOneGroupOut(), tol=1e-6)
    b.fit(X[repeated], y[repeated], groups=groups[repeated])
    np.testing.assert_allclose(a.cv_results_["mean_test_score"], b.cv_results_["mean_test_score"], atol=1e-12)


def test_several_kernels():
    """Kernels by name and as objects, with a grid of their parameters; the best is refitted."""
    X, y = two_classes()
    model = SVCCV(kernel=["linear", "rbf", Laplacian(0.5)], Cs=[1.0], gammas=[0.1, 1.0]).fit(X, y)
    assert len(model.cv_results_["params"]) == 4
    assert model.best_score_ == np.max(model.cv_results_["mean_test_score"])
    assert model.best_params_["kernel"] != "linear"
    assert model.best_estimator_.kernel == model.best_params_["kernel"]
    grid = SVCCV(kernel=Gaussian(1.0), Cs=[1.0], kernel_grid={"gamma": [0.1, 1.0]}).fit(X, y)
    named_ = SVCCV(Cs=[1.0], gammas=[0.1, 1.0]).fit(X, y)
    np.testing.assert_array_equal(grid.cv_results_["mean_test_score"], named_.cv_results_["mean_test_score"])


def test_a_matrix_and_a_function_are_kernels():
    """precomputed and callable kernels give the scores of the kernel that they compute."""
    X, y = two_classes()
    K = Gaussian(0.5)(X)
    expected = SVCCV(kernel=Gaussian(0.5), Cs=CS).fit(X, y).cv_results_["mean_test_score"]
    matrix = SVCCV(kernel="precomputed", Cs=CS).fit(K, y)
    np.testing.assert_array_equal(matrix.cv_results_["mean_test_score"], expected)
    assert matrix.predict(K[:5]).shape == (5,)
    function = SVCCV(kernel=lambda A, B: Gaussian(0.5)(A, B), Cs=CS).fit(X, y)
    np.testing.assert_array_equal(function.cv_results_["mean_test_score"], expected)


@pytest.mark.parametrize("budget", [1e-6, 0.15, 0.25])
def test_the_memory_budget_changes_nothing_but_the_time(budget):
    """Without room for a matrix rows are computed; with room for one, kernels come one after the other."""
    X, y = two_classes()
    wanted = SVCCV(Cs=LARGER_CS, gammas=GAMMAS).fit(X, y)
    found = SVCCV(Cs=LARGER_CS, gammas=GAMMAS, cache_size=budget, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], wanted.cv_results_["mean_test_score"], atol=1.0 / len(y)
    )


def test_threads_and_precision_change_nothing():
    """The same scores for any number of threads; those of float64 up to one sample."""
    X, y = two_classes()
    one = SVCCV(Cs=CS, gammas=GAMMAS, n_jobs=1).fit(X, y)
    two = SVCCV(Cs=CS, gammas=GAMMAS, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.cv_decision_function_, two.cv_decision_function_)
    assert one.best_params_ == two.best_params_
    double = SVCCV(Cs=CS, gammas=GAMMAS, precision="float64").fit(X, y)
    np.testing.assert_allclose(
        double.cv_results_["mean_test_score"], one.cv_results_["mean_test_score"], atol=1.0 / len(y)
    )


def test_local_search_is_as_good_with_fewer_fits():
    """A coarse grid that is refined tries fewer candidates than the full one and scores as well."""
    X, y = two_classes(200)
    full, local = SVCCV(refit=False).fit(X, y), SVCCV(search="local", refit=False).fit(X, y)
    assert len(local.cv_results_["params"]) < len(full.cv_results_["params"])
    error = np.sqrt(full.best_score_ * (1 - full.best_score_) / len(y))
    assert local.best_score_ >= full.best_score_ - error


def test_a_novelty_detector_rejects_the_share_that_it_promises():
    """The threshold from held-out samples rejects nu of new samples; the chosen gamma is consistent."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(300, 2)), rng.normal(size=(3000, 2))
    model = OneClassSVMCV(nus=0.2, gammas=6).fit(X)
    assert np.mean(model.predict(new) == -1) == pytest.approx(0.2, abs=0.06)
    assert abs(model.rejected_ - 0.2) <= 2 * np.sqrt(0.2 * 0.8 / 300) + 1e-12
    np.testing.assert_allclose(model.decision_function(new[:5]), model.score_samples(new[:5]) - model.offset_)
    own = OneClassSVMCV(nus=0.2, gammas=6, threshold="training").fit(X)
    alone = OneClassSVM(nu=0.2, gamma=own.gamma_).fit(X)
    np.testing.assert_allclose(own.decision_function(new), alone.decision_function(new), atol=1e-9)


def test_a_novelty_detector_can_be_chosen_by_labels():
    """With labels and a scorer several nu are compared."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(180, 2)), rng.uniform(-8, 8, size=(20, 2))])
    y = np.repeat([1, -1], [180, 20])
    cv = StratifiedKFold(4, shuffle=True, random_state=0)
    model = OneClassSVMCV(nus=[0.05, 0.1, 0.5], gammas=[0.01, 0.1], scoring="balanced_accuracy", cv=cv).fit(X, y)
    assert model.nu_ in (0.05, 0.1)
    assert model.best_score_ > 0.7


def test_default_grids_suit_any_scale():
    """Multiplying the samples by 1000 divides gamma by a million and changes no score."""
    X, y = two_classes(100)
    a, b = SVCCV(Cs=3, gammas=4).fit(X, y), SVCCV(Cs=3, gammas=4).fit(1000 * X, y)
    np.testing.assert_allclose(a.cv_results_["mean_test_score"], b.cv_results_["mean_test_score"], atol=0.011)
    assert a.gamma_ == pytest.approx(1e6 * b.gamma_, rel=1e-6)
    X, y = wave(100)
    a, b = SVRCV(Cs=3, gammas=3).fit(X, y), SVRCV(Cs=3, gammas=3).fit(X, 100 * y)
    assert a.best_score_ == pytest.approx(b.best_score_, abs=2e-3)
    assert pytest.approx(b.C_) == 100 * a.C_


def test_folds_need_not_cover_all_samples():
    """Samples that are never held out have fold -1 and no value."""
    X, y = two_classes(60)
    model = SVCCV(Cs=[1.0], gammas=[0.5], cv=[(np.arange(40), np.arange(40, 50))]).fit(X, y)
    assert (model.cv_fold_[40:50] == 0).all() and (np.delete(model.cv_fold_, range(40, 50)) == -1).all()
    assert np.isnan(np.delete(model.cv_decision_function_, range(40, 50), axis=0)).all()


def test_a_class_that_a_fold_lacks_never_wins():
    """As in SVC: the pairs of such a class are decided for the other one."""
    X, y = load_iris(return_X_y=True)
    folds = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
    model = SVCCV(Cs=[1.0], gammas=[0.5], cv=folds, refit=False).fit(X, y)
    assert model.best_score_ == 0.0
    linear = LinearSVCCV(Cs=[1.0], cv=folds, refit=False).fit(X, y)
    assert linear.best_score_ == 0.0


def test_regression_folds_in_order():
    """An unshuffled KFold of sorted targets is scored as by GridSearchCV, however badly."""
    X, y = wave()
    order = np.argsort(y)
    ours = SVRCV(Cs=CS, gammas=[0.5], epsilons=[0.1], cv=KFold(3)).fit(X[order], y[order])
    theirs = GridSearchCV(SklearnSVR(tol=1e-5), {"C": CS, "gamma": [0.5], "epsilon": [0.1]}, cv=KFold(3))
    assert_same_scores(ours, theirs.fit(X[order], y[order]), 0.05)
