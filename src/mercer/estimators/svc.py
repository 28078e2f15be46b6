"""Support vector classification: SVC with a penalty C, NuSVC with a bound nu on the share of errors."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from mercer._sklearn_compat import Interval, StrOptions
from mercer.estimators.one_vs_one import BaseSVC
from mercer.losses import Loss, NuHinge
from mercer.losses.classification import classification_loss


class SVC(BaseSVC):
    """C-support vector classification: ½|w|² + Σ Cᵢ max(0, 1 - yᵢ(f(xᵢ) + b)).

    scikit-learn's parameters and attributes keep their meaning; the others are described below. ``C=inf`` asks for
    the hard margin: the model is the certified maximum-margin separator, or ``NotSeparableError`` is raised with a
    proof.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss. May be inf.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", an expression such as "0.5*gaussian(gamma=0.1) + linear()",
        a kernel object, or a function f(X, Z) of two sets of samples that returns the matrix of all k(x, z);
        ``predict`` calls it with the support vectors alone. A function k(x, z) of two samples is given as
        ``CallableKernel(k, pairwise=True)``. The kernel decides what samples are: rows of numbers, or any objects, such
        as strings for ``Spectrum(3)``, sets for ``Jaccard()``, graphs for ``WeisfeilerLehman()``, and records for
        ``On("title", Spectrum(4)) + On("price", Gaussian())``.
        "poly" is (γ⟨x, z⟩ + coef0)^degree with scikit-learn's defaults, that is without a constant term;
        "inhomogeneous" is the (1 + ⟨x, z⟩)^degree of the textbooks.
    degree, gamma, coef0 : parameters of "poly", "rbf" and "sigmoid"; "inhomogeneous" has degree only.
    shrinking : bool, default=True
        Leave out samples that seem settled while solving; they are checked at the end.
    probability : bool, default="deprecated"
        Fit sigmoids on cross-validated decision values for ``predict_proba``.
    tol : float, default=1e-3
        Largest violation of the optimality conditions, in units of the decision function.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows in MB, a hard limit; "auto" is a 64th of what is available, at least 64, and an eighth
        where values are costly: 128 features and more, or kernels on anything but vectors.
    class_weight : dict or "balanced", default=None
        Factors of C for each class.
    verbose : bool, default=False
        Log every round through Python's logging, under the name "mercer".
    max_iter : int, default=-1
        Steps at most for each pair of classes, -1 for no limit. A pair step of SMO, as in LIBSVM, is one step; so is a
        Newton step on all free variables, which replaces many of them, and a step of the interior-point method.
    decision_function_shape : {"ovo", "ovr"}, default="ovr"
        Shape of the decision function for more than two classes.
    break_ties : bool, default=False
        Predict by the decision function instead of by votes.
    random_state : int, RandomState instance or None, default=None
        For the folds of ``probability=True``; nothing else is random.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        What a violated margin costs.
    fit_intercept : bool, default=True
        Whether there is a b; without it the separator passes through the origin of the feature space.
    n_jobs : int or None, default=None
        Threads. None is all cores, and one within a joblib worker; in scikit-learn None is one job. The result does not
        depend on it.
    time_limit : float or None, default=None
        Seconds after which the model is taken as it is, with its certificate and a warning.
    warm_start : bool, default=False
        Start from the last solution if the problem has the same size.
    precision : {"auto", "float32", "float64"}, default="auto"
        Of the stored kernel rows; the certificate is always in float64.
    solver : {"auto", "decomposition", "qp"}, default="auto"
        "qp" is the interior-point method on the dense matrix, for small problems.

    Attributes
    ----------
    certificate_ : Certificate
        Primal, dual, gap, relative gap and violations, in float64; of the sum of all pairwise problems.
    certificates_ : list of Certificate
        One for each pair of classes.
    margin_ : ndarray
        1/|w| for each pair: the distance from the separator to the margin in feature space.
    rkhs_norm_ : ndarray
        |w| for each pair.
    function_ : RKHSFunction, or a list of them
        w as a function Σ βᵢ k(xᵢ, ·), whose norm is |w|: the decision function without the intercept. For more than two
        classes a list with one for each pair, as in ``intercept_``. Not available for a precomputed kernel.
    plan_ : Plan
        How the problem was solved: presolve, storage, precision, working set, threads. Prints as one line.
    trace_ : list of TracePoint
        Seconds, steps, violation, dual value and active samples of every round.
    kernel_evaluations_ : int
        Kernel values computed by the fit.
    n_iter_ : ndarray of shape (n_classes * (n_classes - 1) // 2,)
        Steps taken for each pair of classes, as ``max_iter`` counts them.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, classes_, class_weight_, fit_status_,
    shape_fit_, n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> from mercer import SVC
    >>> X = [[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]]
    >>> model = SVC(kernel="linear").fit(X, [1, 1, 1, 2, 2, 2])
    >>> model.predict([[-0.8, -1], [3, 2]])
    array([1, 2])
    >>> model.certificate_.gap
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSVC._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loss: str = "hinge",
        fit_intercept: bool = True,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _loss(self) -> tuple[Loss, float]:
        return classification_loss(self), float(self.C)


class NuSVC(BaseSVC):
    """ν-support vector classification: nu bounds the share of margin errors from above, of support vectors from below.

    Parameters are those of ``SVC`` with ``nu`` in place of ``C`` and ``loss``, and without ``fit_intercept``. Unlike
    scikit-learn's, it respects ``class_weight``: with "balanced" every nu is feasible.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]. Too large a value for unbalanced classes raises ``InfeasibleNuError`` with the largest feasible one.
    kernel, degree, gamma, coef0, shrinking, probability, tol, cache_size, class_weight, verbose, max_iter,
    decision_function_shape, break_ties, random_state, n_jobs, time_limit, warm_start, precision, solver :
        As in ``SVC``.

    Examples
    --------
    >>> from mercer import NuSVC
    >>> model = NuSVC(nu=0.5).fit([[-1, -1], [-2, -1], [1, 1], [2, 1]], [1, 1, 2, 2])
    >>> model.predict([[-0.8, -1]])
    array([1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{key: value for key, value in BaseSVC._parameter_constraints.items() if key != "fit_intercept"},
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    fit_intercept = True

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = "deprecated",
        tol: float = 1e-3,
        cache_size: Any = "auto",
        class_weight: Any = None,
        verbose: Any = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_limit: float | None = None,
        warm_start: bool = False,
        precision: str = "auto",
        solver: str = "auto",
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.precision = precision
        self.solver = solver

    def _loss(self) -> tuple[Loss, float]:
        return NuHinge(float(self.nu)), 1.0
