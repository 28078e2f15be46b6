"""What may be wrong with a fitted machine or its data, each symptom with its number and what to try; [M5] "Getting SVMs
to work in practice", "Overfitting symptoms".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.estimators import certify
from mercer.kernels import Kernel, check_mercer
from mercer.kernels.features import Matrix, Vector, as_matrix, count_samples, take_samples
from mercer.problems.certificate import Certificate, combine
from mercer.theory.machines import kernel_of
from mercer.theory.margins import MarginReport, margins
from mercer.theory.optimality import KKTReport, kkt_report
from mercer.validation import call_kernel

# shares and ratios from which a number is a symptom
MANY_SUPPORT_VECTORS = 0.5
UNEQUAL_COLUMNS = 100.0
UNEQUAL_CLASSES = 0.1
LOOSE_GAP = 0.01
NARROW_TUBE = 1e-3
# samples whose kernel matrix is looked at
EXAMINED = 500
# columns that are named
NAMED = 5


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes
    ----------
    name : what it is.
    value : its number.
    text : the number in words.
    suggestion : what to try; empty if it is no symptom.
    where : the columns, classes or samples that it is about, where that is of use.
    """

    name: str
    value: float
    text: str
    suggestion: str = ""
    where: tuple[Any, ...] = ()

    @property
    def symptom(self) -> bool:
        """Whether something should be done."""
        return bool(self.suggestion)

    def __str__(self) -> str:
        line = f"{'!' if self.symptom else ' '} {self.name:<22} {self.text}"
        return f"{line}\n    → {self.suggestion}" if self.symptom else line


@dataclass(frozen=True)
class Diagnosis:
    """What ``diagnose`` found.

    Attributes
    ----------
    of : the model.
    n : its samples.
    findings : everything that was looked at.
    """

    of: str
    n: int
    findings: tuple[Finding, ...]

    @property
    def symptoms(self) -> tuple[Finding, ...]:
        """The findings that ask for something to be done."""
        return tuple(finding for finding in self.findings if finding.symptom)

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"{name!r}; there are {', '.join(finding.name for finding in self.findings)}")

    def __contains__(self, name: str) -> bool:
        return any(finding.name == name for finding in self.findings)

    def __str__(self) -> str:
        count = len(self.symptoms)
        verdict = {0: "no symptoms", 1: "1 symptom"}.get(count, f"{count} symptoms")
        return "\n".join([f"{self.of} on {self.n} samples: {verdict}", *map(str, self.findings)])


def diagnose(model: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Diagnosis:
    """Look for the symptoms of a bad fit and of data that cannot be fitted well.

    Support vectors and whether they are at the bound, the margin, training errors, a near-diagonal Gram matrix, columns
    of unequal scale, constant columns, classes of unequal size, the width of the tube, and the certificate.

    Parameters
    ----------
    model : fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR
        Of mercer or of scikit-learn.
    X, y, sample_weight : the data that it was fitted to, in the same order.

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
    ['support vectors', 'nearest similarity', 'scales of columns']
    >>> print(found["scales of columns"])
    ! scales of columns      the widest varies 5.67e+03 times as much as the narrowest (columns 2 and 1)
        → Scale the features, for example with StandardScaler: distances see column 2 alone.
    """
    check_is_fitted(model)
    optimality = kkt_report(model, X, y, sample_weight) if hasattr(model, "_n_support") else None
    certificate = (
        certify(model, X, y, sample_weight)
        if optimality is None
        else combine([problem.certificate for problem in optimality.problems])
    )
    margin: list[Finding] = []
    if hasattr(model, "classes_") and kernel_of(model).positive_semidefinite:
        margin += _margin(margins(model, X, y))
    findings: list[Finding] = []
    if optimality is not None:
        tight = any(finding.name == "margin" and finding.value < np.inf and finding.symptom for finding in margin)
        findings += _support(model, optimality, count_samples(X), tight)
    findings += margin
    if hasattr(model, "classes_"):
        findings += _classes(model, column_or_1d(y))
    elif y is not None and hasattr(model, "epsilon"):
        findings += _tube(float(model.epsilon), np.asarray(y, dtype=np.float64))
    findings += _similarity(model, X)
    findings += _columns(model, X)
    findings += _certificate(model, certificate)
    return Diagnosis(repr(model), count_samples(X), tuple(findings))


def _support(model: Any, optimality: KKTReport, n: int, tight: bool) -> Iterator[Finding]:
    """The share of support vectors, and of those at the bound and free over all problems.

    ``tight`` says that the margin is too small already: a larger C would make it smaller.
    """
    share = len(model.support_) / n
    entries = sum(len(problem.rows) for problem in optimality.problems)
    bound, free = optimality.count("bound") / entries, optimality.count("free") / entries
    suggestion = ""
    if share == 0:
        suggestion = "No sample carries weight, so that the model is constant: lower epsilon, or raise C."
    elif share > MANY_SUPPORT_VECTORS and not hasattr(model, "nu"):
        suggestion = "Most samples are inside the margin or beyond it: the classes overlap, or the model is too stiff. "
        suggestion += "Raise C, or choose a richer kernel, and compare by cross-validation."
        if free >= bound:
            suggestion = (
                "Most samples hold the margin, as in a model that memorises: widen the kernel (lower gamma) or lower C."
            )
        elif tight:
            suggestion = (
                "Most samples are inside the margin or beyond it, small as it is: the classes overlap. Choose another "
                "kernel or other features, and compare by cross-validation."
            )
        if not hasattr(model, "classes_"):
            suggestion = (
                "Most samples are outside the tube or on its edge: raise epsilon to the size of the noise, or choose a "
                "richer kernel."
            )
    yield Finding("support vectors", share, f"{len(model.support_)} of {n} samples ({share:.0%})", suggestion)
    yield Finding("at the bound", bound, f"{bound:.0%} of the coefficients")
    yield Finding("free", free, f"{free:.0%} of the coefficients")


def _margin(report: MarginReport) -> Iterator[Finding]:
    """1/|w| against the radius: a margin below ρ/√n promises nothing, as (ρ/γ)² ≥ n in [SSBD] Theorem 15.4."""
    worst = max(report.problems, key=lambda problem: problem.norm * problem.rho / np.sqrt(len(problem.rows)))
    n, norm = len(worst.rows), worst.norm
    margin = 1.0 / norm if norm > 0 else np.inf
    relative = margin / worst.rho if worst.rho > 0 else np.inf
    suggestion = ""
    if relative < 1.0 / np.sqrt(n):
        suggestion = (
            f"The margin is below 1/√n = {1 / np.sqrt(n):.2g} of the radius, where bounds say nothing: lower C, or "
            "choose a kernel in which the classes are farther apart."
        )
    elif norm == 0:
        suggestion = "w = 0: the model is constant. Raise C, and look whether the classes differ at all."
    text = f"{margin:.3g}, {relative:.2g} of the radius {worst.rho:.3g} ({worst.name})"
    yield Finding("margin", relative, text, suggestion)
    wrong = float(np.mean(report.functional <= 0))
    yield Finding("training errors", wrong, f"{wrong:.1%} of the samples are on a wrong side")


def _classes(model: Any, labels: Vector) -> Iterator[Finding]:
    classes, counts = np.unique(labels, return_counts=True)
    order = np.argsort(counts, kind="stable")
    few, many = int(order[0]), int(order[-1])
    ratio = counts[few] / counts[many]
    names = tuple(classes[[few, many]].tolist())
    suggestion = ""
    if ratio < UNEQUAL_CLASSES and getattr(model, "class_weight", None) is None:
        suggestion = (
            f"Class {names[0]!r} is {counts[many] / counts[few]:.0f} times as rare as class {names[1]!r}: try "
            "class_weight='balanced', and judge by a score that does not hide rare classes."
        )
    text = f"{counts[few]} of class {names[0]!r}, {counts[many]} of class {names[1]!r}"
    yield Finding("class balance", float(ratio), text, suggestion, names)


def _tube(epsilon: float, y: Vector) -> Iterator[Finding]:
    spread = float(np.std(y))
    relative = epsilon / spread if spread > 0 else np.inf
    suggestion = ""
    if relative >= 1:
        suggestion = "The tube is wider than the targets vary: lower epsilon, or scale the targets."
    elif relative < NARROW_TUBE:
        suggestion = (
            "The tube is far narrower than the targets vary, so that nearly every sample is a support vector: raise "
            "epsilon to the size of the noise."
        )
    yield Finding("tube", relative, f"epsilon is {relative:.3g} standard deviations of the targets", suggestion)


def _similarity(model: Any, X: Any) -> Iterator[Finding]:
    """How similar the typical sample is to its most similar fellow: small where the Gram matrix is near-diagonal."""
    n, kernel = count_samples(X), kernel_of(model)
    part = np.arange(n) if n <= EXAMINED else np.sort(np.random.default_rng(0).permutation(n)[:EXAMINED])
    if kernel.domain == "matrix":
        is_function = callable(model.kernel) and not isinstance(model.kernel, Kernel)
        K = call_kernel(model.kernel, *2 * [take_samples(X, part)]) if is_function else _submatrix(X, part)
        report = check_mercer(K)
    else:
        report = check_mercer(kernel, take_samples(as_matrix(X) if kernel.domain == "vectors" else X, part))
    ratio = report.offdiagonal_ratio
    suggestion = report.advice[-1] if report.near_diagonal else ""
    text = f"{ratio:.3g} of the typical sample to its most similar other one (1 is equal, 0 a diagonal matrix)"
    yield Finding("nearest similarity", ratio, text, suggestion)


def _submatrix(X: Any, part: Vector) -> Matrix:
    K: Matrix = np.asarray(X)[np.ix_(part, part)]
    return K


def _columns(model: Any, X: Any) -> Iterator[Finding]:
    """Columns that hardly vary, and those that vary much more than others: for kernels of vectors."""
    if kernel_of(model).domain != "vectors":
        return
    X = as_matrix(X)
    spread, size = _spread(X)
    constant = np.flatnonzero(spread <= 1e-12 * size)
    suggestion = ""
    if len(constant):
        suggestion = f"Remove {_names(constant)}, for example with VarianceThreshold: it says nothing about any sample."
        if len(constant) > 1:
            suggestion = suggestion.replace("it says", "they say")
    text = f"{len(constant)} of {len(spread)}"
    yield Finding("constant columns", float(len(constant)), text, suggestion, tuple(constant.tolist()))
    varying = np.setdiff1d(np.arange(len(spread)), constant)
    if len(varying) < 2:
        return
    wide, narrow = int(varying[np.argmax(spread[varying])]), int(varying[np.argmin(spread[varying])])
    ratio = float(spread[wide] / spread[narrow])
    suggestion = ""
    if ratio > UNEQUAL_COLUMNS and not sp.issparse(X):
        suggestion = (
            f"Scale the features, for example with StandardScaler: distances see column {wide} alone."
            if np.sum(spread[varying] > spread[wide] / 10) == 1
            else "Scale the features, for example with StandardScaler: distances hardly see the narrow ones."
        )
    text = f"the widest varies {ratio:.3g} times as much as the narrowest (columns {wide} and {narrow})"
    yield Finding("scales of columns", ratio, text, suggestion, (wide, narrow))


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


def _certificate(model: Any, certificate: Certificate) -> Iterator[Finding]:
    suggestion = ""
    if not certificate.valid:
        suggestion = (
            f"The gap bounds nothing, because {certificate.reason}: choose a positive semidefinite kernel "
            "(check_mercer), or fit again."
        )
    elif not certificate.relative_gap <= LOOSE_GAP:
        suggestion = (
            f"The model may be {certificate.relative_gap:.1%} above its optimum: lower tol (it is "
            f"{getattr(model, 'tol', float('nan')):g}), raise max_iter and time_limit, or scale the features."
        )
    yield Finding("certificate", certificate.relative_gap, str(certificate), suggestion)
