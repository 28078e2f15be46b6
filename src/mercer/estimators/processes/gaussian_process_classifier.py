"""Gaussian process classification: Laplace's approximation or expectation propagation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import logit
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._compiled.blas import blas_threads
from mercer._sklearn_compat import Interval, StrOptions, fit_context, num_samples, ovr_decision_function
from mercer.estimators.base import KnownParameters, keep_parameters, warn_user
from mercer.estimators.gaussian_process import (
    BLAS_THREADS_FROM,
    EVALUATION,
    check_memory,
    likelihood,
    public,
    resolve_covariance,
    starting_points,
    warn_at_bounds,
    warn_unfinished,
)
from mercer.estimators.inspection.feature_importances import Expansion, ImportancesMixin
from mercer.estimators.inspection.notebook_line import NotebookLineMixin
from mercer.estimators.parameters import KernelParameters
from mercer.estimators.processes.binary_process import BinaryProcess, binary_problems, certificate_of
from mercer.exceptions import InvalidInputError
from mercer.kernels import Kernel, SklearnKernel
from mercer.kernels.features import Matrix, Vector
from mercer.problems.clock import Clock
from mercer.problems.solution import Status, combine
from mercer.process.ascent import Ascent, maximise
from mercer.process.expectation_propagation import ExpectationPropagation
from mercer.process.laplace import Laplace
from mercer.process.latent import Covariance, latent_means, latent_moments
from mercer.svm.interior_qp import factor_seconds
from mercer.validation import (
    check_pairwise_kernel,
    domain_of,
    find_classes,
    is_pairwise,
    set_input_tags,
    square_matrix,
    thread_count,
    validate_samples,
)

# probabilities nearer to 0 or 1 than this all have the same decision value
LEAST_PROBABILITY = 1e-15
# kernel values from which rounding may keep the search for the posterior from its end
LARGE = 1e8
METHODS = {"laplace": Laplace, "ep": ExpectationPropagation}


class GaussianProcessClassifier(
    NotebookLineMixin,
    KernelParameters,
    ImportancesMixin,
    ClassifierMixin,  # type: ignore[misc]
    KnownParameters,
):
    """Gaussian process classification: p(y = 1 | x) = E σ(f(x)) over the posterior of a latent function f.

    The latent function has the Gaussian prior with covariance k(x, z), and its sign is the class. Its posterior is not
    Gaussian and is approximated by a Gaussian: at the mode (Laplace, with the logistic σ), or such that it has the
    moments of each sample's exact likelihood term (expectation propagation, with the probit σ = Φ). The positive
    parameters of the kernel maximise the approximate marginal likelihood of the labels; L-BFGS-B optimises their
    logarithms with exact gradients. Rasmussen & Williams, *Gaussian Processes for Machine Learning* (2006), algorithms
    3.1, 3.2, 5.1 and 3.5, 3.6, 5.2.

    Parameters
    ----------
    kernel : kernel, str or callable, default=None
        A kernel of mercer, such as ``2.0 * Gaussian()``, or the same as text; a kernel of
        ``sklearn.gaussian_process.kernels``; a function of two sets of samples. None is scikit-learn's default,
        ``1.0 * RBF(1.0)`` with fixed parameters.
    optimizer : "fmin_l_bfgs_b", callable or None, default="fmin_l_bfgs_b"
        None keeps the kernel as it is. A function ``optimizer(obj_func, initial_theta, bounds)`` minimises
        ``obj_func(theta, eval_gradient)`` and returns the best theta and its value.
    n_restarts_optimizer : int, default=0
        Number of additional runs from random points within the bounds; the best run is used.
    max_iter_predict : int, default=100
        Maximum number of Newton steps to the mode, or of sweeps of expectation propagation, for each kernel.
    warm_start : bool, default=False
        Whether the first search for the posterior begins at that of the last ``fit``. Later searches of one ``fit``
        begin at the last posterior in any case.
    copy_X_train : bool, default=True
        Whether to keep a copy of the training samples instead of a reference.
    random_state : int, RandomState instance or None, default=None
        Seed of the restarts.
    multi_class : {"one_vs_rest", "one_vs_one"}, default="one_vs_rest"
        With more than two classes: one process for each class against all others, or one for each pair of classes. The
        latter has no probabilities.
    n_jobs : int, default=None
        Number of threads. None uses all cores, or one inside a joblib worker; in scikit-learn None means one job.
    approximation : {"laplace", "ep"}, default="laplace"
        Laplace's approximation, as in scikit-learn, or expectation propagation, which is slower and more accurate.
    max_iter : int, default=-1
        Maximum number of iterations of each optimizer run; -1 for no limit.
    time_limit : float, default=None
        Stop the search for the kernel after this many seconds and use the best kernel so far.

    Attributes
    ----------
    kernel_ : the kernel with its learnt parameters, mercer's or scikit-learn's as it was given. With several processes
        a tuple of them, or scikit-learn's ``CompoundKernel``.
    classes_ : ndarray of shape (n_classes,), the labels.
    n_classes_ : int, their number.
    log_marginal_likelihood_value_ : float, approximate log p(y) of ``kernel_``; the mean over several processes.
    processes_ : list of BinaryProcess, with the posterior (``posterior``) of each process.
    certificate_ : Certificate
        How far the mode is from the optimum, for given kernel parameters: primal and dual value of the convex problem
        of the mode, summed over processes. Not valid for expectation propagation, which minimises nothing.
    X_train_ : the training samples.
    n_iter_ : int, iterations of all optimizer runs, at least 1.
    n_evaluations_ : int, number of evaluations of log p(y).
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Notes
    -----
    ``certify`` does not support this class, because the likelihood of the kernel is not concave: no dual value bounds
    its optimum. For a given kernel, ``certificate_`` has the gap of the mode.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import Gaussian, GaussianProcessClassifier
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = GaussianProcessClassifier(4.0 * Gaussian(1.0)).fit(X, np.sin(X[:, 0]) > 0)
    >>> model.predict([[1.5], [4.5]])
    array([ True, False])
    >>> model.predict_proba([[1.5], [20.0]])[:, 1].round(1)
    array([0.9, 0.5])
    >>> model.certificate_.relative_gap < 1e-9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [None, str, callable, Kernel],
        "optimizer": [StrOptions({"fmin_l_bfgs_b"}), callable, None],
        "n_restarts_optimizer": [Interval(Integral, 0, None, closed="left")],
        "max_iter_predict": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "copy_X_train": ["boolean"],
        "random_state": ["random_state"],
        "multi_class": [StrOptions({"one_vs_rest", "one_vs_one"})],
        "n_jobs": [Integral, None],
        "approximation": [StrOptions({"laplace", "ep"})],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(
        self,
        kernel: Any = None,
        *,
        optimizer: Any = "fmin_l_bfgs_b",
        n_restarts_optimizer: int = 0,
        max_iter_predict: int = 100,
        warm_start: bool = False,
        copy_X_train: bool = True,
        random_state: Any = None,
        multi_class: str = "one_vs_rest",
        n_jobs: int | None = None,
        approximation: str = "laplace",
        max_iter: int = -1,
        time_limit: float | None = None,
    ) -> None:
        keep_parameters(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, domain_of(self.kernel))
        return tags

    # ---- fit -------------------------------------------------------------------------------------------------

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> GaussianProcessClassifier:
        """Learn the kernel's parameters and approximate the posterior of the latent function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Training samples of any type that the kernel supports.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        kernel = resolve_prior(self.kernel)
        X, y = validate_samples(self, X, y, reset=True)
        classes, codes = find_classes(y)
        if len(classes) == 1:
            raise ValueError(
                "GaussianProcessClassifier requires 2 or more distinct classes; got 1 class (only class "
                f"{classes[0]} is present)"
            )
        n = num_samples(X)
        problems = binary_problems(codes, len(classes), self.multi_class)
        check_memory(n, 2 + len(problems) if self.multi_class == "one_vs_rest" else 4, "SVC, which stores no matrix")
        if is_pairwise(kernel):
            square_matrix(X)
            check_pairwise_kernel(kernel)
        earlier = self._starts(problems)
        self.X_train_ = X.copy() if self.copy_X_train and hasattr(X, "copy") else X
        self.classes_, self.n_classes_ = classes, len(classes)
        bound = kernel.bind(self.X_train_)
        whole = Covariance(self.X_train_, n, thread_count(self.n_jobs))
        learns = self.optimizer is not None and len(bound.theta) > 0
        with Clock(self.time_limit) as clock, self._blas_threads(n):
            if not learns and len(problems) > 1:
                whole.matrix(bound)  # all processes share it
            random = check_random_state(self.random_state)
            found = [
                self._fit_one(bound, whole, index, labels, start, learns, random, clock)
                for (index, labels), start in zip(problems, earlier, strict=True)
            ]
        self._publish(found)
        return self

    def _starts(self, problems: list[tuple[Vector | None, Vector]]) -> list[Vector | None]:
        """Where the search for each posterior begins: at the last one if ``warm_start`` and if the sizes are equal."""
        known = getattr(self, "processes_", []) if self.warm_start else []
        if [len(process.y) for process in known] != [len(labels) for _, labels in problems]:
            return [None] * len(problems)
        return [process.posterior.coef for process in known]

    def _fit_one(
        self,
        kernel: Kernel,
        whole: Covariance,
        index: Vector | None,
        labels: Vector,
        start: Vector | None,
        learns: bool,
        random: Any,
        clock: Clock,
    ) -> tuple[BinaryProcess, Ascent | None]:
        """The process of one problem of two classes, and the search for its kernel."""
        covariance = whole if index is None else whole.part(index)
        evidence = self._evidence(covariance, labels, start)
        found: Ascent | None = None
        if learns:
            own = None if self.optimizer == "fmin_l_bfgs_b" else self.optimizer
            starts, seconds = starting_points(self, kernel, random), EVALUATION * factor_seconds(len(labels))
            objective = likelihood(kernel, evidence.value_and_gradient)
            found = maximise(objective, starts, kernel.bounds, clock, int(self.max_iter), own, seconds)
            if found.evaluations:
                kernel = kernel.with_theta(found.theta)
                warn_at_bounds(kernel)
        posterior = evidence.posterior(kernel)
        if posterior is None:
            raise np.linalg.LinAlgError(
                f"The kernel, {public(kernel, self.kernel)}, is not returning a positive semidefinite matrix of finite "
                "values. Scale the samples, bound the kernel's parameters, or see mercer.check_mercer."
            )
        if found is not None and found.status is not Status.CONVERGED:
            warn_unfinished(self, found, kernel.bounds, posterior.value)
        if not posterior.converged:
            largest = float(np.diagonal(covariance.matrix(kernel)).max())
            warn_user(
                f"The search for the posterior ended after max_iter_predict={self.max_iter_predict} "
                f"{'sweeps' if posterior.probit else 'Newton steps'}. "
                + (
                    f"The kernel's values reach {largest:.3g}, and rounding of values above {LARGE:.0g} may hide the "
                    "posterior: scale the samples, or multiply the kernel by a smaller constant."
                    if largest > LARGE
                    else "Increase max_iter_predict."
                ),
                ConvergenceWarning,
            )
        return BinaryProcess(kernel, labels, index, posterior), found

    def _evidence(self, covariance: Covariance, y: Vector, start: Vector | None = None) -> Any:
        return METHODS[self.approximation](covariance, y, int(self.max_iter_predict), start)

    def _publish(self, found: list[tuple[BinaryProcess, Ascent | None]]) -> None:
        """Set the fitted attributes."""
        self.processes_ = [process for process, _ in found]
        self._kernels = [process.kernel for process in self.processes_]
        searches = [search for _, search in found if search is not None and search.evaluations]
        values = [process.posterior.value for process in self.processes_]
        self.log_marginal_likelihood_value_ = float(np.mean(values))
        self.n_iter_ = max(1, sum(search.iterations for search in searches))
        self.n_evaluations_ = sum(search.evaluations for search in searches) or len(found)
        name = f"Laplace's mode ({type(self).__name__})"
        self.certificate_ = combine([certificate_of(process, name) for process in self.processes_], name)

    def _blas_threads(self, n: int) -> Any:
        return blas_threads(thread_count(self.n_jobs) if n >= BLAS_THREADS_FROM else 1)

    @property
    def kernel_(self) -> Any:
        """The kernel with its learnt parameters; one for each process if there are several."""
        shown = [public(kernel, self.kernel) for kernel in self._kernels]
        if len(shown) == 1:
            return shown[0]
        if isinstance(shown[0], Kernel):
            return tuple(shown)
        from sklearn.gaussian_process.kernels import CompoundKernel

        return CompoundKernel(shown)

    # ---- prediction ------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Vector:
        """The most probable class of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Samples.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Class labels.
        """
        check_is_fitted(self)
        if self.n_classes_ > 2:
            return self.classes_[self.decision_function(X).argmax(axis=1)]
        X, _ = validate_samples(self, X, None, reset=False)
        return self.classes_[(self._means(X)[:, 0] > 0).astype(np.intp)]

    def predict_proba(self, X: Any) -> Matrix:
        """The probability of each class, averaged over the posterior of the latent function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Samples.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        check_is_fitted(self)
        if self.n_classes_ > 2 and self.multi_class == "one_vs_one":
            raise ValueError(
                "one_vs_one multi-class mode does not support predicting probability estimates. Use one_vs_rest mode "
                "instead."
            )
        second = self._probabilities(X)
        if self.n_classes_ == 2:
            return np.column_stack([1.0 - second[:, 0], second[:, 0]])
        total = second.sum(axis=1, keepdims=True)
        return np.divide(second, total, out=np.full_like(second, 1.0 / self.n_classes_), where=total > 0)

    def decision_function(self, X: Any) -> Matrix:
        """The logarithm of the odds of the second class, or of each class against the rest.

        With ``multi_class="one_vs_one"`` the number of votes for each class, and a fraction that breaks ties.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Samples.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Decision values.
        """
        check_is_fitted(self)
        if self.n_classes_ > 2 and self.multi_class == "one_vs_one":
            X, _ = validate_samples(self, X, None, reset=False)
            means = self._means(X)
            return np.asarray(ovr_decision_function(means > 0, means, self.n_classes_))
        values = logit(np.clip(self._probabilities(X), LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY))
        return values[:, 0] if self.n_classes_ == 2 else values

    def latent_mean_and_variance(self, X: Any) -> tuple[Vector, Vector]:
        """The mean and variance of the latent function; for two classes only.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or list of object
            Samples.

        Returns
        -------
        latent_mean : ndarray of shape (n_samples,)
            Means.
        latent_var : ndarray of shape (n_samples,)
            Variances.
        """
        check_is_fitted(self)
        if self.n_classes_ > 2:
            raise ValueError(
                "Returning the mean and variance of the latent function f is only supported for binary "
                f"classification, received {self.n_classes_} classes."
            )
        X, _ = validate_samples(self, X, None, reset=False)
        means, variances = self._moments(X)
        return means[:, 0], variances[:, 0]

    def _means(self, X: Any) -> Matrix:
        """The latent means of each process."""
        out = np.empty((num_samples(X), len(self.processes_)))
        for kernel, places in self._by_kernel():
            a, b = kernel.prepare(X), kernel.prepare(self.X_train_)
            coefs = self._coefficients(places).T
            out[:, places] = latent_means(kernel, a, b, coefs, thread_count(self.n_jobs))
        return out

    def _coefficients(self, places: list[int]) -> Matrix:
        """The coefficients of these processes' latent means, a row each over all training samples."""
        coefs = np.zeros((len(places), num_samples(self.X_train_)))
        for row, place in enumerate(places):
            process = self.processes_[place]
            coefs[row, slice(None) if process.index is None else process.index] = process.posterior.coef
        return coefs

    def _expansion(self) -> Expansion:
        return self._expansions()[0]

    def _expansions(self) -> list[Expansion]:
        return [(kernel, self.X_train_, self._coefficients(places)) for kernel, places in self._by_kernel()]

    def _moments(self, X: Any) -> tuple[Matrix, Matrix]:
        """The latent means and variances of each process."""
        if is_pairwise(self.kernel):
            raise InvalidInputError(
                "Probabilities need k(x, x) of the new samples, which a precomputed matrix does not contain. Use "
                "predict for two classes, or pass the kernel instead of its matrix."
            )
        n, threads = num_samples(X), thread_count(self.n_jobs)
        means, variances = np.empty((n, len(self.processes_))), np.empty((n, len(self.processes_)))
        with self._blas_threads(num_samples(self.X_train_)):
            for kernel, places in self._by_kernel():
                a, b = kernel.prepare(X), kernel.prepare(self.X_train_)
                parts = [(self.processes_[k].posterior, self.processes_[k].index) for k in places]
                means[:, places], variances[:, places] = latent_moments(kernel, a, b, parts, threads)
        return means, variances

    def _probabilities(self, X: Any) -> Matrix:
        """The probability of the second class of each process."""
        X, _ = validate_samples(self, X, None, reset=False)
        means, variances = self._moments(X)
        return np.column_stack(
            [p.posterior.probability(means[:, k], variances[:, k]) for k, p in enumerate(self.processes_)]
        )

    def _by_kernel(self) -> list[tuple[Kernel, list[int]]]:
        """The different kernels, and the processes that each of them has."""
        groups: list[tuple[Kernel, list[int]]] = []
        for k, process in enumerate(self.processes_):
            same = next((places for kernel, places in groups if kernel == process.kernel), None)
            if same is None:
                groups.append((process.kernel, [k]))
            else:
                same.append(k)
        return groups

    # ---- evidence --------------------------------------------------------------------------------------------

    def log_marginal_likelihood(self, theta: Any = None, eval_gradient: bool = False, clone_kernel: bool = True) -> Any:
        """The approximate log marginal likelihood log p(y) of the training labels; the mean over several processes.

        Parameters
        ----------
        theta : array-like of shape (n_parameters,) or (n_processes * n_parameters,), default=None
            Logarithms of the kernel's parameters, as in ``kernel_.theta``, for all processes or for each of them; None
            for the learnt ones.
        eval_gradient : bool, default=False
            Whether to return the gradient too; requires theta.
        clone_kernel : bool, default=True
            Whether to leave ``kernel_`` unchanged. If False, ``kernel_`` gets these parameters.

        Returns
        -------
        log_likelihood : float
            log p(y); -inf where the kernel has no finite values.
        log_likelihood_gradient : ndarray of the shape of theta, optional
            Its gradient with respect to theta.
        """
        check_is_fitted(self)
        if theta is None:
            if eval_gradient:
                raise ValueError("Gradient can only be evaluated for theta!=None")
            return self.log_marginal_likelihood_value_
        theta, n, count = np.asarray(theta, dtype=np.float64), num_samples(self.X_train_), len(self.processes_)
        size = len(self.processes_[0].kernel.theta)
        if theta.shape not in ((size,), (size * count,)):
            raise ValueError(
                f"Shape of theta must be either {size} or {size * count}. Obtained theta with shape {theta.shape[0]}."
                if theta.ndim == 1
                else f"theta must be a vector of {size} or {size * count} numbers, but its shape is {theta.shape}."
            )
        each = np.broadcast_to(theta, (count, size)) if len(theta) == size else theta.reshape(count, size)
        kernels = [p.kernel.with_theta(own) for p, own in zip(self.processes_, each, strict=True)]
        if not clone_kernel:
            self._kernels = kernels
        whole, values, gradients = Covariance(self.X_train_, n, thread_count(self.n_jobs)), [], []
        with self._blas_threads(n):
            for process, kernel in zip(self.processes_, kernels, strict=True):
                covariance = whole if process.index is None else whole.part(process.index)
                evidence = self._evidence(covariance, process.y)
                if eval_gradient:
                    value, gradient = evidence.value_and_gradient(kernel)
                    gradients.append(gradient / count)
                else:
                    value = evidence.value(kernel)
                values.append(value)
        mean = np.mean(values)  # a float64 of numpy, as in scikit-learn
        if not eval_gradient:
            return mean
        return mean, np.sum(gradients, axis=0) if len(theta) == size else np.concatenate(gradients)


def resolve_prior(kernel: Any) -> Kernel:
    """The kernel given by the parameter ``kernel``. None is scikit-learn's default, with fixed parameters."""
    if kernel is None:
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        return SklearnKernel(ConstantKernel(1.0, constant_value_bounds="fixed") * RBF(1.0, length_scale_bounds="fixed"))
    if type(kernel).__name__ == "CompoundKernel":
        raise ValueError("kernel cannot be a CompoundKernel")
    return resolve_covariance(kernel)
