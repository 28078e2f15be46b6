"""What may be wrong with a fitted machine or its data, each symptom with its number and what to try; [M5] "Getting SVMs
to work in practice", "Overfitting symptoms".

A number becomes a symptom only where something can be done about it:

* Remarks on support vectors and on the margin need a poor score: on held-out samples where they are known, else on the
  training samples. A model may have many support vectors or a small margin, and predict well.
* Columns of unequal scale count where they are many: some pixels are hardly ever set.
* No advice changes a parameter that a search has chosen.
* A model that overfits, or whose kernel matrix is near-diagonal, is not told to become richer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.estimators import certify
from mercer.estimators.fitted_models import KERNEL, kind_of, unwrap
from mercer.kernels import check_mercer
from mercer.kernels.features import Vector, as_matrix, count_samples, take_samples
from mercer.kernels.mercer_check import MercerReport
from mercer.problems.certificate import Certificate, combine
from mercer.theory.findings import Diagnosis, Finding, HeldOutScores, optimism
from mercer.theory.kkt import KKTReport, kkt_report
from mercer.theory.margins import MarginReport, margins
from mercer.theory.model_geometry import kernel_of, own_matrix

__all__ = ["Diagnosis", "Finding", "HeldOutScores", "diagnose", "optimism"]

# shares and ratios from which a number is a symptom
MANY_SUPPORT_VECTORS = 0.5
UNEQUAL_COLUMNS = 100.0
NARROW_COLUMNS = 0.1
UNEQUAL_CLASSES = 0.1
MISSED_CLASS = 0.8
LOOSE_GAP = 0.01
NARROW_TUBE = 1e-3
# samples whose kernel matrix is looked at
EXAMINED = 500
# columns that are named
NAMED = 5


def diagnose(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, held_out: HeldOutScores | None = None
) -> Diagnosis:
    """Look for the symptoms of a bad fit and of data that cannot be fitted well.

    Support vectors and whether they are at the bound, the margin, training errors, a near-diagonal Gram matrix, columns
    of unequal scale, constant columns, classes of unequal size, the width of the tube, and the certificate.

    Training samples alone do not tell whether a model overfits: ``mercer.evaluate`` compares them with held-out ones.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, KernelRidge, KernelRidgeCV,
        PegasosClassifier or SGDClassifier (with a hinge loss), or a pipeline or search that ends in one
        Of mercer or of scikit-learn. No advice is given about parameters that a search has chosen.
    X, y, sample_weight : the data that it was fitted to, in the same order; for a pipeline, what it was given.
    held_out : HeldOutScores, default=None
        Scores on held-out samples, where they are known: ``evaluate`` passes them.

    Returns
    -------
    diagnosis : Diagnosis
        Prints as text; ``diagnosis["margin"].value`` is a number, ``diagnosis.symptoms`` what should be looked into.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import SVC
    >>> from mercer.theory import diagnose
    >>> X = np.random.default_rng(0).normal(size=(60, 3)) * [1.0, 1.0, 5000.0]
    >>> y = X[:, 0] > 0
    >>> found = diagnose(SVC(gamma=1.0).fit(X, y), X, y)
    >>> [finding.name for finding in found.symptoms]
    ['nearest similarity', 'scales of columns']
    >>> print(found["scales of columns"])
    ! scales of columns      the widest varies 5.67e+03 times as much as the narrowest (columns 2 and 1)
        → Scale the features, for example with StandardScaler: distances see column 2 alone.
    """
    check_is_fitted(model)
    machine, X, searched = unwrap(model, X)
    optimality = kkt_report(machine, X, y, sample_weight) if kind_of(machine).name in KERNEL else None
    certificate = (
        certify(machine, X, y, sample_weight)
        if optimality is None
        else combine([problem.certificate for problem in optimality.problems])
    )
    case = _Case(machine, X, y, searched, held_out)
    findings: list[Finding] = [] if held_out is None else [optimism(held_out, machine, searched)]
    if optimality is not None:
        findings += _support(case, optimality)
    if case.classes is not None:
        findings += _classification(case)
    elif hasattr(machine, "epsilon") and not case.is_quantile:
        findings += _tube(case)
    findings += _similarity(case)
    findings += _columns(case)
    findings += _certificate(machine, certificate)
    return Diagnosis(repr(model), count_samples(X), tuple(findings))


@dataclass(eq=False)
class _Case:
    """What several findings need: the machine, its data, and how good it is."""

    machine: Any
    X: Any
    y: Any
    searched: frozenset[str]
    held_out: HeldOutScores | None

    def __post_init__(self) -> None:
        self.n = count_samples(self.X)
        self.kernel = kernel_of(self.machine)
        self.labels: Vector | None = None
        self.classes: tuple[Vector, Vector] | None = None
        self.predicted: Vector | None = None
        poor = False
        if hasattr(self.machine, "classes_"):
            self.labels = column_or_1d(self.y)
            self.classes = np.unique(self.labels, return_counts=True)
            self.predicted = self.machine.predict(self.X)
            poor = self.errors > 0.5 * (1.0 - self.classes[1].max() / self.n)
        elif self.y is not None and self.n > 1 and not self.is_quantile:
            poor = r2_score(self.y, self.machine.predict(self.X)) < 0.5
        known = self.held_out is not None and np.isfinite(self.held_out.chance)
        self.poor = self.too_simple = bool(poor)
        if self.held_out is not None and known:
            self.poor, self.too_simple = self.held_out.poor, self.held_out.too_simple
        self.mercer = _examined(self)
        self.margins: MarginReport | None = None
        if self.classes is not None and self.kernel.positive_semidefinite:
            self.margins = margins(self.machine, self.X, self.labels)

    @property
    def is_quantile(self) -> bool:
        """Whether it models a quantile: it has no tube, and R² does not measure it."""
        return getattr(self.machine, "loss", None) == "pinball"

    @property
    def good(self) -> bool:
        """Whether held-out samples say that the model is good."""
        return self.held_out is not None and not self.poor

    @property
    def errors(self) -> float:
        """The share of training samples with another label than the predicted one."""
        return float(np.mean(self.predicted != self.labels))

    @property
    def memorises(self) -> bool:
        """Whether it should become simpler, not richer."""
        near_diagonal = self.mercer.near_diagonal and not self.good
        return near_diagonal or (self.held_out is not None and self.held_out.overfits)

    @property
    def tight(self) -> bool:
        """Whether some margin is below ρ/√n, where (ρ/γ)² ≥ n in [SSBD] Theorem 15.4 and no bound promises anything."""
        return self.margins is not None and _worst(self.margins)[0] < 1.0 / np.sqrt(_worst(self.margins)[1])


def _worst(report: MarginReport) -> tuple[float, int, Any]:
    """The smallest ratio of 1/|w| to the radius ρ/√n: the ratio of 1/|w| to ρ, the samples, and the problem."""
    worst = max(report.problems, key=lambda problem: problem.norm * problem.rho / np.sqrt(len(problem.rows)))
    relative = 1.0 / (worst.norm * worst.rho) if worst.norm > 0 and worst.rho > 0 else np.inf
    return relative, len(worst.rows), worst


def _support(case: _Case, optimality: KKTReport) -> Iterator[Finding]:
    """The share of support vectors, and of those at the bound and free over all problems."""
    machine, count = case.machine, len(case.machine.support_)
    share = count / case.n
    entries = sum(len(problem.rows) for problem in optimality.problems)
    bound, free = optimality.count("bound") / entries, optimality.count("free") / entries
    suggestion = command = ""
    if share == 0:
        suggestion = "No sample carries weight, so that the model is constant: lower epsilon, or raise C."
        command = "No row carries weight, so that the model is constant: lower --epsilon."
    elif share > MANY_SUPPORT_VECTORS and not hasattr(machine, "nu"):
        suggestion, command = _many_support_vectors(case, free >= bound)
    yield Finding("support vectors", share, f"{count} of {case.n} samples ({share:.0%})", suggestion, (), command)
    yield Finding("at the bound", bound, f"{bound:.0%} of the coefficients")
    yield Finding("free", free, f"{free:.0%} of the coefficients")


def _many_support_vectors(case: _Case, mostly_free: bool) -> tuple[str, str]:
    """What to try, in Python and from the command."""
    is_classifier = case.classes is not None
    if case.memorises or (is_classifier and case.poor and case.tight):
        return "", ""  # told elsewhere
    if is_classifier and mostly_free and case.held_out is None and not case.searched:
        has_gamma = any(name.rpartition("__")[2] == "gamma" for name in case.kernel.get_params())
        return (
            "Most samples hold the margin, as in a model that memorises. Compare its scores on training and on "
            f"held-out samples with mercer.evaluate; if they differ much, lower {'gamma or C' if has_gamma else 'C'}.",
            "",
        )
    if not case.too_simple:
        return "", ""
    where = "inside the margin or on the wrong side" if is_classifier else "outside the tube or on its edge"
    start = f"The score is poor, and most samples are {where}: the model is too simple, or the features say too little."
    richer = "Choose a richer kernel, or other features"
    if "C" not in case.searched:
        richer = f"Raise C, {richer[0].lower()}{richer[1:]}"
    return f"{start} {richer}, and compare by cross-validation.", f"{start} Try another --kernel, or other columns."


def _classification(case: _Case) -> Iterator[Finding]:
    """The margin, training errors and the sizes of classes."""
    if case.margins is not None:
        relative, n, worst = _worst(case.margins)
        suggestion = command = ""
        if worst.norm == 0:
            suggestion = "w = 0: the model is constant. Raise C, and look whether the classes differ at all."
            command = "w = 0: the model is constant. Look whether the columns tell the classes apart at all."
        elif case.tight and case.poor and not case.memorises:
            size = f"the margin is below 1/√n = {1 / np.sqrt(n):.2g} of the radius"
            start = f"The score is poor, and {size}: the classes overlap."
            suggestion = f"{start} Choose a kernel in which they are farther apart, or other features."
            command = f"{start} Try another --kernel, or other columns."
        margin = 1.0 / worst.norm if worst.norm > 0 else np.inf
        text = f"{margin:.3g}, {relative:.2g} of the radius {worst.rho:.3g} ({worst.name})"
        yield Finding("margin", relative, text, suggestion, (), command)
    yield Finding("training errors", case.errors, f"{case.errors:.1%} of the samples are on a wrong side")
    yield _class_balance(case)


def _class_balance(case: _Case) -> Finding:
    """Classes of unequal size are a symptom where the rarest class is missed."""
    assert case.classes is not None
    classes, counts = case.classes
    order = np.argsort(counts, kind="stable")
    few, many = int(order[0]), int(order[-1])
    ratio = counts[few] / counts[many]
    names = tuple(classes[[few, many]].tolist())
    rare = case.labels == classes[few]
    recall = float(np.mean(np.asarray(case.predicted)[rare] == classes[few]))
    suggestion = command = ""
    if ratio < UNEQUAL_CLASSES and recall < MISSED_CLASS and getattr(case.machine, "class_weight", None) is None:
        start = (
            f"Class {names[0]!r} is {counts[many] / counts[few]:.0f} times as rare as class {names[1]!r}, and "
            f"{1 - recall:.0%} of its training samples are predicted as another class: try"
        )
        suggestion = (
            f"{start} class_weight='balanced', and scoring='balanced_accuracy', which does not hide rare classes."
        )
        command = f"{start} --class-weight balanced, and --scoring balanced_accuracy, which does not hide rare classes."
    text = f"{counts[few]} of class {names[0]!r}, {counts[many]} of class {names[1]!r}"
    return Finding("class balance", float(ratio), text, suggestion, names, command)


def _tube(case: _Case) -> Iterator[Finding]:
    epsilon, y = float(case.machine.epsilon), np.asarray(case.y, dtype=np.float64)
    spread = float(np.std(y))
    relative = epsilon / spread if spread > 0 else np.inf
    many = len(getattr(case.machine, "support_", ())) > MANY_SUPPORT_VECTORS * case.n
    suggestion = command = ""
    if relative >= 1:
        start = "The tube is wider than the targets vary, so that nothing is learnt"
        suggestion = f"{start}: lower epsilon, or scale the targets."
        command = f"{start}: choose an --epsilon below {spread:.2g}, the standard deviation of the targets."
    elif relative < NARROW_TUBE and many and not case.good and "epsilon" not in case.searched:
        start = "The tube is far narrower than the targets vary, so that most samples are support vectors"
        suggestion = f"{start}: raise epsilon to the size of the noise."
        command = f"{start}: raise --epsilon to the size of the noise."
    text = f"epsilon is {relative:.3g} standard deviations of the targets"
    yield Finding("tube", relative, text, suggestion, (), command)


def _examined(case: _Case) -> MercerReport:
    """The kernel matrix of all samples, or of some that are drawn."""
    n, kernel, X = case.n, case.kernel, case.X
    part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED])
    if kernel.domain != "matrix":
        return check_mercer(kernel, take_samples(as_matrix(X) if kernel.domain == "vectors" else X, part))
    of_samples = callable(case.machine.kernel)
    return check_mercer(own_matrix(case.machine, take_samples(X, part) if of_samples else _submatrix(X, part)))


def _submatrix(K: Any, part: Vector) -> Any:
    return np.asarray(K)[np.ix_(part, part)]


def _similarity(case: _Case) -> Iterator[Finding]:
    """How similar the typical sample is to its most similar fellow: small where the Gram matrix is near-diagonal."""
    report = case.mercer
    ratio, suggestion = report.offdiagonal_ratio, ""
    if report.near_diagonal and not case.good and "gamma" not in case.searched:
        suggestion = report.advice[-1]
    text = f"{ratio:.3g} of the typical sample to its most similar other one (1 is equal, 0 a diagonal matrix)"
    yield Finding("nearest similarity", ratio, text, suggestion)


def _columns(case: _Case) -> Iterator[Finding]:
    """Columns that hardly vary, and those that vary much more than others: for kernels of vectors."""
    if case.kernel.domain != "vectors":
        return
    X = as_matrix(case.X)
    spread, size = _spread(X)
    constant = np.flatnonzero(spread <= 1e-12 * size)
    suggestion = ""
    if len(constant):
        suggestion = f"Remove {_names(constant)}, for example with VarianceThreshold: it says nothing about any sample."
        if len(constant) > 1:
            suggestion = suggestion.replace("it says", "they say")
    text = f"{len(constant)} of {len(spread)}"
    yield Finding("constant columns", float(len(constant)), text, suggestion, tuple(constant.tolist()))
    # columns of two values, such as those of categories, differ by nature
    varying = np.array(
        [j for j in range(len(spread)) if j not in set(constant) and not _is_binary(X, j)], dtype=np.intp
    )
    if len(varying) < 2:
        return
    wide, narrow = int(varying[np.argmax(spread[varying])]), int(varying[np.argmin(spread[varying])])
    ratio = float(spread[wide] / spread[narrow])
    suggestion = command = ""
    narrow_share = float(np.mean(spread[varying] < spread[wide] / UNEQUAL_COLUMNS))
    if narrow_share >= NARROW_COLUMNS and not sp.issparse(X):
        alone = np.sum(spread[varying] > spread[wide] / 10) == 1
        seen = f"distances see column {wide} alone." if alone else "distances hardly see the narrow ones."
        suggestion = f"Scale the features, for example with StandardScaler: {seen}"
        command = f"Bring the columns of the file to one scale: {seen}"
    text = f"the widest varies {ratio:.3g} times as much as the narrowest (columns {wide} and {narrow})"
    yield Finding("scales of columns", ratio, text, suggestion, (wide, narrow), command)


def _spread(X: Any) -> tuple[Vector, Vector]:
    """The standard deviation and the largest absolute value of each column."""
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        return X.std(axis=0), np.abs(X).max(axis=0)
    X = X.astype(np.float64)
    mean = np.ravel(X.mean(axis=0))
    square = np.ravel(X.multiply(X).mean(axis=0))
    size = np.ravel(abs(X).max(axis=0).toarray())
    return np.sqrt(np.maximum(square - mean**2, 0.0)), size


def _names(columns: Vector) -> str:
    named = ", ".join(map(str, columns[:NAMED].tolist()))
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return f"column {named}" if len(columns) == 1 else f"columns {named}{more}"


def _is_binary(X: Any, column: int) -> bool:
    if sp.issparse(X):
        return False
    values = np.asarray(X[:, column])
    return bool(np.all((values == values.min()) | (values == values.max())))


def _certificate(machine: Any, certificate: Certificate) -> Iterator[Finding]:
    suggestion = ""
    if not certificate.valid:
        suggestion = (
            f"The gap bounds nothing, because {certificate.reason}: choose a positive semidefinite kernel "
            "(check_mercer), or fit again."
        )
    elif not certificate.relative_gap <= LOOSE_GAP:
        steps = ", ".join([*_more_effort(machine), "or scale the features"])
        suggestion = f"The model may be {certificate.relative_gap:.1%} above its optimum: {steps}."
    yield Finding("certificate", certificate.relative_gap, str(certificate), suggestion)


def _more_effort(machine: Any) -> Iterator[str]:
    """What the machine's parameters allow to come nearer to the optimum."""
    params = machine.get_params()
    if isinstance(params.get("tol"), Real):
        yield f"lower tol (it is {params['tol']:g})"
    limit = next((name for name in ("n_steps", "max_iter") if isinstance(params.get(name), Real)), None)
    if limit is not None and params[limit] > 0:
        yield f"raise {limit} (it is {params[limit]})"
    if params.get("time_limit") is not None:
        yield f"raise time_limit (it is {params['time_limit']:g} s)"
