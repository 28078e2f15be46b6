"""Check a fitted machine and its data for common problems; [M5] "Getting SVMs to work in practice", "Overfitting
symptoms".

Each finding has a number. It becomes a symptom with a suggestion only if something can be done about it:

* Many support vectors or a small margin are symptoms only if the score is poor, on held-out samples if their score is
  known, else on training samples. Good models may have both.
* Columns of unequal scale are a symptom only if there are many of them; in images, for example, some pixels hardly
  vary.
* No suggestion concerns a parameter that a search has chosen.
* A model that overfits, or whose kernel matrix is near-diagonal, gets no suggestion to increase its complexity.
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

from mercer.estimators.certification.certify_model import certify
from mercer.estimators.fitted_models import KERNEL, MANIFOLD, kind_of, unwrap, why_not_certified
from mercer.estimators.kernel_centroid import KernelCentroid
from mercer.estimators.ranking.rank_svc import RankSVC
from mercer.estimators.ranking.survival_svm import SurvivalSVM
from mercer.kernels import check_mercer
from mercer.kernels.features import Vector, as_matrix, count_samples, take_samples
from mercer.kernels.mercer_check import MercerReport
from mercer.problems.solution import Certificate, combine
from mercer.theory.findings import Diagnosis, Finding, HeldOutScores, optimism
from mercer.theory.kkt import KKTReport, kkt_report
from mercer.theory.margins import MarginReport, margins
from mercer.theory.model_geometry import kernel_of, own_matrix

__all__ = ["Diagnosis", "Finding", "HeldOutScores", "diagnose", "optimism"]

# thresholds from which a number is a symptom
MANY_SUPPORT_VECTORS = 0.5
UNEQUAL_COLUMNS = 100.0
NARROW_COLUMNS = 0.1
UNEQUAL_CLASSES = 0.1
MISSED_CLASS = 0.8
LOOSE_GAP = 0.01
NARROW_TUBE = 1e-3
# number of samples whose kernel matrix is checked
EXAMINED = 500
# at most this many columns are named
NAMED = 5


def diagnose(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, held_out: HeldOutScores | None = None
) -> Diagnosis:
    """Check a fitted model and its data for common problems, and suggest what to do.

    The checks cover support vectors and those at the bound, the margin, training errors, a near-diagonal kernel matrix,
    columns of unequal scale, constant columns, class balance, the width of the tube, and the certificate.

    Training samples alone do not show whether a model overfits; ``mercer.evaluate`` compares training and held-out
    scores.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC, LinearSVR, KernelRidge, KernelRidgeCV,
        PegasosClassifier or SGDClassifier (with a hinge loss), or a pipeline or search that ends in one
        From mercer or scikit-learn, or another predictor of mercer: where ``certify`` has no certificate, the finding
        "certificate" says why and has no number. There are no suggestions about parameters that a search has chosen.
    X, y, sample_weight : the data that the model was fitted to, in the same order.
        For a pipeline, the data that the pipeline was given.
    held_out : HeldOutScores, default=None
        Scores on held-out samples if known; ``evaluate`` passes them.

    Returns
    -------
    diagnosis : Diagnosis
        Prints as text. ``diagnosis["margin"].value`` is a number; ``diagnosis.symptoms`` are the findings that need
        attention.

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
        → Scale the features, for example with StandardScaler: column 2 alone dominates distances.
    """
    check_is_fitted(model)
    machine, X, searched = unwrap(model, X)
    if hasattr(machine, "estimator_") and why_not_certified(machine):  # of RejectOption
        machine, X, _ = unwrap(machine.estimator_, X)
    missing = why_not_certified(machine)
    optimality, certificate = None, None
    if not missing:
        name = kind_of(machine).name
        optimality = kkt_report(machine, X, y, sample_weight) if name in KERNEL else None
        certificate = (
            certify(machine, X, y, sample_weight)
            if optimality is None
            else combine([problem.certificate for problem in optimality.problems])
        )
        if name in MANIFOLD:  # all other findings are about the labelled samples
            X, y = take_samples(X, machine.labelled_), np.asarray(y)[machine.labelled_]
    case = _Case(machine, X, y, searched, held_out)
    findings: list[Finding] = [] if held_out is None else [optimism(held_out, machine, searched)]
    if optimality is not None:
        findings += _support(case, optimality)
    if case.classes is not None:
        findings += _classification(case)
    elif hasattr(machine, "epsilon") and "insensitive" in str(getattr(machine, "loss", "insensitive")):
        findings += _tube(case)
    findings += _similarity(case)
    findings += _columns(case)
    if certificate is None:
        findings.append(Finding("certificate", np.nan, f"none. {missing}"))
    else:
        findings += _certificate(machine, certificate)
    return Diagnosis(repr(model), count_samples(X), tuple(findings))


@dataclass(eq=False)
class _Case:
    """The machine, its data and its quality, as several findings need them."""

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
        elif isinstance(self.machine, RankSVC | SurvivalSVM):
            poor = self.order < 0.75
        elif self.y is not None and self.n > 1 and not self.is_quantile:
            poor = r2_score(self.y, self.machine.predict(self.X)) < 0.5
        known = self.held_out is not None and np.isfinite(self.held_out.chance)
        self.poor = self.too_simple = bool(poor)
        if self.held_out is not None and known:
            self.poor, self.too_simple = self.held_out.poor, self.held_out.too_simple
        self.mercer = _examined(self)
        self.margins: MarginReport | None = None
        if self.classes is not None and self.kernel.positive_semidefinite and _has_hyperplanes(self.machine):
            self.margins = margins(self.machine, self.X, self.labels)

    @property
    def is_quantile(self) -> bool:
        """Whether the model estimates a quantile: it has no tube, and R² does not measure its quality."""
        return getattr(self.machine, "loss", None) == "pinball" or hasattr(self.machine, "quantiles")

    @property
    def order(self) -> float:
        """The share of comparable training pairs in the right order, for machines that learn an order."""
        groups = {"groups": self.machine._groups} if isinstance(self.machine, RankSVC) else {}
        return float(self.machine.score(self.X, self.y, **groups))

    @property
    def good(self) -> bool:
        """Whether the score on held-out samples is known and not poor."""
        return self.held_out is not None and not self.poor

    @property
    def errors(self) -> float:
        """The fraction of training errors."""
        return float(np.mean(self.predicted != self.labels))

    @property
    def memorises(self) -> bool:
        """Whether the model memorises its training samples and should become simpler."""
        near_diagonal = self.mercer.near_diagonal and not self.good
        return near_diagonal or (self.held_out is not None and self.held_out.overfits)

    @property
    def tight(self) -> bool:
        """Whether some margin is below ρ/√n: then (ρ/γ)² > n, and the bound of [SSBD] Theorem 15.4 is vacuous."""
        return self.margins is not None and _worst(self.margins)[0] < 1.0 / np.sqrt(_worst(self.margins)[1])


def _has_hyperplanes(machine: Any) -> bool:
    """Whether decision values are ⟨w, φ(x)⟩ + b with a known |w|; those of processes and of distances are not."""
    if isinstance(machine, KernelCentroid) and len(machine.classes_) > 2:
        return False
    return not why_not_certified(machine) or hasattr(machine, "rkhs_norm_") or hasattr(machine, "coef_")


def _worst(report: MarginReport) -> tuple[float, int, Any]:
    """The problem with the smallest margin relative to ρ/√n: its 1/(|w| ρ), its number of samples, and the problem."""
    worst = max(report.problems, key=lambda problem: problem.norm * problem.rho / np.sqrt(len(problem.rows)))
    relative = 1.0 / (worst.norm * worst.rho) if worst.norm > 0 and worst.rho > 0 else np.inf
    return relative, len(worst.rows), worst


def _support(case: _Case, optimality: KKTReport) -> Iterator[Finding]:
    """The fractions of support vectors, of coefficients at the bound, and of free coefficients."""
    machine, count = case.machine, len(case.machine.support_)
    share = count / case.n
    entries = sum(len(problem.rows) for problem in optimality.problems)
    bound, free = optimality.count("bound") / entries, optimality.count("free") / entries
    suggestion = command = ""
    if share == 0:
        suggestion = "There are no support vectors, so the model is constant: lower epsilon, or raise C."
        command = "There are no support vectors, so the model is constant: lower --epsilon."
    elif share > MANY_SUPPORT_VECTORS and not hasattr(machine, "nu"):
        suggestion, command = _many_support_vectors(case, free >= bound)
    yield Finding("support vectors", share, f"{count} of {case.n} samples ({share:.0%})", suggestion, (), command)
    yield Finding("at the bound", bound, f"{bound:.0%} of the coefficients")
    yield Finding("free", free, f"{free:.0%} of the coefficients")


def _many_support_vectors(case: _Case, mostly_free: bool) -> tuple[str, str]:
    """The suggestions for Python and for the command line."""
    is_classifier = case.classes is not None
    if case.memorises or (is_classifier and case.poor and case.tight):
        return "", ""  # another finding reports it
    if is_classifier and mostly_free and case.held_out is None and not case.searched:
        has_gamma = any(name.rpartition("__")[2] == "gamma" for name in case.kernel.get_params())
        return (
            "Most samples are free support vectors, as in a model that memorises. Compare its training and held-out "
            f"scores with mercer.evaluate; if they differ much, lower {'gamma or C' if has_gamma else 'C'}.",
            "",
        )
    if not case.too_simple:
        return "", ""
    where = "inside the margin or on the wrong side" if is_classifier else "outside the tube or on its edge"
    cause = "the model is too simple, or the features carry little information"
    start = f"The score is poor, and most samples are {where}: {cause}."
    richer = "Choose a richer kernel, or other features"
    if "C" not in case.searched:
        richer = f"Raise C, {richer[0].lower()}{richer[1:]}"
    return f"{start} {richer}, and compare by cross-validation.", f"{start} Try another --kernel, or other columns."


def _classification(case: _Case) -> Iterator[Finding]:
    """The margin, training errors and class balance."""
    if case.margins is not None:
        relative, n, worst = _worst(case.margins)
        suggestion = command = ""
        if worst.norm == 0:
            suggestion = "w = 0: the model is constant. Raise C, and check whether the features separate the classes."
            command = "w = 0: the model is constant. Check whether the columns separate the classes."
        elif case.tight and case.poor and not case.memorises:
            size = f"the margin is below 1/√n = {1 / np.sqrt(n):.2g} of the radius"
            start = f"The score is poor, and {size}: the classes overlap."
            suggestion = f"{start} Choose another kernel, or other features, that separate them better."
            command = f"{start} Try another --kernel, or other columns."
        margin = 1.0 / worst.norm if worst.norm > 0 else np.inf
        text = f"{margin:.3g}, {relative:.2g} of the radius {worst.rho:.3g} ({worst.name})"
        yield Finding("margin", relative, text, suggestion, (), command)
    yield Finding("training errors", case.errors, f"{case.errors:.1%} of the samples are on a wrong side")
    yield _class_balance(case)


def _class_balance(case: _Case) -> Finding:
    """The ratio of class sizes; a symptom if classes are unbalanced and the rarest one is often missed."""
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
        start = "The tube is wider than the standard deviation of the targets, so hardly anything is learnt"
        suggestion = f"{start}: lower epsilon, or scale the targets."
        command = f"{start}: choose an --epsilon below {spread:.2g}, the standard deviation of the targets."
    elif relative < NARROW_TUBE and many and not case.good and "epsilon" not in case.searched:
        start = "The tube is far narrower than the spread of the targets, so most samples are support vectors"
        suggestion = f"{start}: raise epsilon to the size of the noise."
        command = f"{start}: raise --epsilon to the size of the noise."
    text = f"epsilon is {relative:.3g} standard deviations of the targets"
    yield Finding("tube", relative, text, suggestion, (), command)


def _examined(case: _Case) -> MercerReport:
    """Check the kernel matrix of all samples, or of a random subset."""
    n, kernel, X = case.n, case.kernel, case.X
    part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED])
    if kernel.domain != "matrix":
        return check_mercer(kernel, take_samples(as_matrix(X) if kernel.domain == "vectors" else X, part))
    of_samples = callable(case.machine.kernel)
    return check_mercer(own_matrix(case.machine, take_samples(X, part) if of_samples else _submatrix(X, part)))


def _submatrix(K: Any, part: Vector) -> Any:
    return np.asarray(K)[np.ix_(part, part)]


def _similarity(case: _Case) -> Iterator[Finding]:
    """The similarity of the typical sample to its most similar other sample; small for a near-diagonal matrix."""
    report = case.mercer
    ratio, suggestion = report.offdiagonal_ratio, ""
    if report.near_diagonal and not case.good and "gamma" not in case.searched:
        suggestion = report.advice[-1]
    text = f"{ratio:.3g} between the typical sample and its most similar one (1: identical, 0: diagonal matrix)"
    yield Finding("nearest similarity", ratio, text, suggestion)


def _columns(case: _Case) -> Iterator[Finding]:
    """Constant columns, and columns of unequal scale; for kernels on vectors only."""
    if case.kernel.domain != "vectors":
        return
    X = as_matrix(case.X)
    spread, size = _spread(X)
    constant = np.flatnonzero(spread <= 1e-12 * size)
    suggestion = ""
    if len(constant):
        suggestion = f"Remove {_names(constant)}, for example with VarianceThreshold: it carries no information."
        if len(constant) > 1:
            suggestion = suggestion.replace("it carries", "they carry")
    text = f"{len(constant)} of {len(spread)}"
    yield Finding("constant columns", float(len(constant)), text, suggestion, tuple(constant.tolist()))
    # binary columns, for example from categories, are not compared
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
        seen = f"column {wide} alone dominates distances." if alone else "narrow columns hardly affect distances."
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
            f"The gap is not a valid bound, because {certificate.reason}: choose a positive semidefinite kernel "
            "(check_mercer), or fit again."
        )
    elif not certificate.relative_gap <= LOOSE_GAP:
        steps = ", ".join([*_more_effort(machine), "or scale the features"])
        suggestion = f"The model may be {certificate.relative_gap:.1%} above its optimum: {steps}."
    yield Finding("certificate", certificate.relative_gap, str(certificate), suggestion)


def _more_effort(machine: Any) -> Iterator[str]:
    """Changes of the machine's parameters that bring the fit closer to the optimum."""
    params = machine.get_params()
    if isinstance(params.get("tol"), Real):
        yield f"lower tol (it is {params['tol']:g})"
    limit = next((name for name in ("n_steps", "max_iter") if isinstance(params.get(name), Real)), None)
    if limit is not None and params[limit] > 0:
        yield f"raise {limit} (it is {params[limit]})"
    if params.get("time_limit") is not None:
        yield f"raise time_limit (it is {params['time_limit']:g} s)"
