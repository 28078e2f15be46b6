"""Model files of LIBSVM and LIBLINEAR, and data in their format.

    svm_type c_svc              the machine
    kernel_type rbf             the kernel, then its parameters
    …
    SV                          then a line per support vector: coefficients, index:value …

Chang & Lin, "LIBSVM: a library for support vector machines", ACM TIST 2 (2011). A model read from a file predicts the
same as LIBSVM's own programs. The files contain neither C nor the training data: parameters that only matter for a fit
have their defaults, and the certificate is unknown. ``mercer.io.with_training_data`` matches the support vectors with
the training samples, so that ``mercer.certify`` can compute it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file as write_data
from sklearn.datasets import load_svmlight_file as read_data
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.linear.linear_svc import LinearSVC
from mercer.estimators.linear.linear_svr import LinearSVR
from mercer.estimators.one_class import OneClassSVM
from mercer.estimators.prediction import class_layout, pair_coefficients
from mercer.estimators.svc import SVC, NuSVC
from mercer.estimators.svr import SVR, NuSVR
from mercer.exceptions import InvalidInputError
from mercer.io.formats.from_parts import make_fitted, mark_uncertified
from mercer.io.formats.libsvm_lines import CLASSES, Lines, text_of
from mercer.io.formats.libsvm_probabilities import N_MARKS
from mercer.io.model_file.archive import writable
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial, Precomputed, Sigmoid
from mercer.kernels.features import Matrix, Vector
from mercer.svm.batch import class_pairs

__all__ = ["read_data", "read_model", "training_order", "write_data", "write_model"]

MACHINES: dict[str, type] = {
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "one_class": OneClassSVM,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}
KERNELS = ("linear", "polynomial", "rbf", "sigmoid", "precomputed")
UNKNOWN = "LIBSVM files do not tell which samples the support vectors are: mercer.io.with_training_data finds them"
# the largest number of features: LIBSVM's indices are C integers
FEATURES = 2**31 - 2
VECTORS = 10**8
# the header line of one-class models with probabilities
MARKS = "prob_density_marks"


def read_model(path: Any, n_features: int | None = None, *, file_order: bool = False) -> Any:
    """Read a model file of LIBSVM or of LIBLINEAR.

    Parameters
    ----------
    path : str, path or open file
        The text file.
    n_features : int, default=None
        The number of features, or of training samples for a precomputed kernel. None: the largest index in a LIBSVM
        file, which does not store the number; the stored number of a LIBLINEAR file.
    file_order : bool, default=False
        For a LIBSVM model of two classes: whether ``classes_`` has the order of the line ``label`` instead of ascending
        order.

    Returns
    -------
    model : SVC, NuSVC, OneClassSVM, SVR, NuSVR, LinearSVC or LinearSVR
        The fitted estimator. Support vectors are sparse if less than half of their entries are set. Three or more
        classes keep the order of the file, which breaks ties between votes. With two classes ``decision_function`` is
        positive for ``classes_[1]``, as in scikit-learn; LIBSVM's value is positive for the first label of the file.
    """
    lines = Lines(path)
    first = lines.next().split()
    if first[:1] == ["solver_type"]:
        from mercer.io.formats.liblinear import read_linear

        return read_linear(lines, first, n_features)
    header = _read_header(lines, first)
    return _Reader(lines, header, n_features).model(file_order)


def write_model(model: Any, path: Any, *, labels: Any = None) -> None:
    """Write a model file for LIBSVM, or for LIBLINEAR if the model is a LinearSVC or LinearSVR.

    Parameters
    ----------
    model : fitted SVC, NuSVC, OneClassSVM, SVR, NuSVR, LinearSVC or LinearSVR
        With a kernel of LIBSVM, and integers as labels.
    path : str, path or open text file
        Written completely or not at all.
    labels : sequence of int, default=None
        The order of the classes in a LIBSVM file. Decision values are positive for the class that comes first;
        ``mercer.io.libsvm.training_order(y)`` is the order in which LIBSVM's svm-train writes them. None: the order of
        the file from which the model was read, else of ``classes_``.
    """
    check_is_fitted(model)
    if labels is not None and not isinstance(model, SVC | NuSVC):
        raise InvalidInputError(
            f"labels was given for a {type(model).__name__}, but only SVC and NuSVC files have an order of classes: "
            "leave it out."
        )
    if isinstance(model, LinearSVC | LinearSVR):
        from mercer.io.formats.liblinear import linear_text

        text = linear_text(model)
    else:
        text = _text(model, labels)
    if hasattr(path, "write"):
        path.write(text)
        return
    with writable(path) as file:
        file.write(text.encode("ascii"))


# ---- the order of the classes ----------------------------------------------------------------------------------------
#
#     label 1 0                   the class of the first training sample comes first
#     rho, SV                     a decision value is positive for the class that comes first
#
# The order of the labels determines the sign of every decision value, the order of the pairs of classes, and which
# class wins a tie between votes.


def training_order(y: Vector) -> Vector:
    """Return the classes in LIBSVM's order: by first appearance, but +1 always before -1."""
    labels, first = np.unique(y, return_index=True)
    if labels.tolist() == [-1, 1]:
        return labels[::-1]
    return labels[np.argsort(first)]


@dataclass(frozen=True, eq=False)
class ClassOrder:
    """The parts of a one-vs-one model that depend on the order of its classes.

    Attributes
    ----------
    labels : the classes in order.
    counts : the number of support vectors of each class.
    coef : LIBSVM's coefficients, (n_classes - 1) × n_vectors.
    intercept : of each pair of classes.
    probA, probB : the sigmoid of each pair; empty without probabilities.
    """

    labels: Vector
    counts: Vector
    coef: Matrix
    intercept: Vector
    probA: Vector
    probB: Vector

    def arranged(self, labels: Any) -> tuple[Self, Vector]:
        """Return the same model with the classes in another order, and the permutation of the support vectors.

        If the two classes of a pair change places, its decision value f becomes -f and P = 1 / (1 + exp(A f + B))
        becomes 1 - P, so A stays the same and B changes its sign.
        """
        wanted, known = np.asarray(labels).tolist(), self.labels.tolist()
        if sorted(wanted) != sorted(known):
            raise InvalidInputError(
                f"labels={wanted!r:.80} must be the classes of the model, {known!r:.80}, reordered."
            )
        order = [known.index(label) for label in wanted]
        k, ends = len(order), np.concatenate([[0], np.cumsum(self.counts)])
        place = {pair: p for p, pair in enumerate(class_pairs(k))}
        asked = [(order[i], order[j]) for i, j in class_pairs(k)]
        pairs = np.array([place[min(pair), max(pair)] for pair in asked])
        sign = np.array([1.0 if i < j else -1.0 for i, j in asked])
        vectors = np.concatenate([np.arange(ends[c], ends[c + 1]) for c in order])
        counts = np.asarray(self.counts)[order]
        rows = sign[:, None] * pair_coefficients(self.coef, ends)[pairs][:, vectors]
        found = replace(
            self,
            labels=self.labels[order],
            counts=counts,
            coef=class_layout(rows, np.concatenate([[0], np.cumsum(counts)])),
            intercept=sign * self.intercept[pairs] + 0.0,
            probA=self.probA[pairs] if len(self.probA) else self.probA,
            probB=sign * self.probB[pairs] if len(self.probB) else self.probB,
        )
        return found, vectors


# ---- reading ---------------------------------------------------------------------------------------------------------


def _read_header(lines: Lines, words: list[str]) -> dict[str, tuple[int, list[str]]]:
    """Read all lines up to "SV": first word -> (line number for errors, other words)."""
    known = {
        "svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv", "rho", "label", "probA", "probB",
        "prob_density_marks", "nr_sv",
    }  # fmt: skip
    header: dict[str, tuple[int, list[str]]] = {}
    while words != ["SV"]:
        if not words or words[0] not in known:
            lines.fail(f"{' '.join(words)!r:.60} is not a line of a LIBSVM or LIBLINEAR model")
        if words[0] in header:
            lines.fail(f"{words[0]} is given twice")
        header[words[0]] = (lines.number, words[1:])
        words = lines.next().split()
    return header


class _Reader:
    def __init__(self, lines: Lines, header: dict[str, tuple[int, list[str]]], n_features: int | None) -> None:
        self.lines, self.header, self.n_features = lines, header, n_features
        self.last = lines.number

    def words(self, name: str) -> list[str]:
        """Return the words of a header line; later errors name that line."""
        if name not in self.header:
            self.lines.number = self.last
            self.lines.fail(f"the header has no line {name}")
        self.lines.number, found = self.header[name]
        return found

    def one(self, name: str) -> str:
        words = self.words(name)
        if len(words) != 1:
            self.lines.fail(f"{name} needs one value, but has {len(words)}")
        return words[0]

    def kernel(self) -> Kernel:
        kind = self.one("kernel_type")
        if kind not in KERNELS:
            self.lines.fail(f"kernel_type is {kind!r:.40}, but must be one of {', '.join(KERNELS)}")
        if kind in ("linear", "precomputed"):
            return Linear() if kind == "linear" else Precomputed()
        gamma = self.lines.real(self.one("gamma"), "gamma")
        if gamma < 0:
            self.lines.fail(f"gamma is {gamma:g}, but must not be negative")
        if kind == "rbf":
            return Gaussian(gamma)
        coef0 = self.lines.real(self.one("coef0"), "coef0")
        if kind == "sigmoid":
            return Sigmoid(gamma, coef0)
        return Polynomial(self.lines.whole(self.one("degree"), "degree", 0, 10**6), gamma, coef0)

    def model(self, file_order: bool) -> Any:
        lines, kind = self.lines, self.one("svm_type")
        if kind not in MACHINES:
            lines.fail(f"svm_type is {kind!r:.40}, but must be one of {', '.join(MACHINES)}")
        classifier, kernel = kind.endswith("svc"), self.kernel()
        k = lines.whole(self.one("nr_class"), "nr_class", 1 if classifier else 2, CLASSES if classifier else 2)
        if k == 1:
            lines.fail("the model has only one class: LIBSVM's training data had a single label")
        total, n_pairs = lines.whole(self.one("total_sv"), "total_sv", 0, VECTORS), k * (k - 1) // 2
        rho = lines.reals(self.words("rho"), "rho", n_pairs if classifier else 1)
        labels, counts = self.classes(k, total) if classifier else (None, np.array([total]))
        probabilities = {name: self.probability(name, n_pairs if classifier else 1) for name in ("probA", "probB")}
        probabilities[MARKS] = self.probability(MARKS, N_MARKS)
        if classifier and len(probabilities["probA"]) != len(probabilities["probB"]):
            lines.fail("probA and probB belong together, but one of them is missing")
        lines.number = self.last
        coef, X, support = self.vectors(total, k - 1 if classifier else 1, kernel)
        params = _parameters(kernel)
        if classifier and len(probabilities["probA"]):
            params["probability"] = True
        model = MACHINES[kind](**params)
        intercept, in_file = -rho, labels
        if labels is not None and k == 2 and labels[0] > labels[1] and not file_order:
            found = ClassOrder(labels, counts, coef, intercept, probabilities["probA"], probabilities["probB"])
            found, order = found.arranged(np.sort(labels))
            labels, counts, coef, intercept = found.labels, found.counts, found.coef, found.intercept
            X, support = X[order], support[order]
            probabilities["probB"] = found.probB
        n = X.shape[1] if kernel.domain == "matrix" else int(support.max(initial=-1)) + 1
        make_fitted(
            model, kernel, X, coef, intercept,
            support=support, n_support=counts.tolist(), n_train=n, n_features=X.shape[1], classes=labels,
        )  # fmt: skip
        mark_uncertified(model, len(intercept), UNKNOWN)
        for name, values in probabilities.items():
            if len(values):
                setattr(model, f"_{name}", values)
        if labels is not in_file:
            model._labels_in_file = in_file
        return model

    def classes(self, k: int, total: int) -> tuple[Vector, Vector]:
        words = self.words("label")
        if len(words) != k:
            self.lines.fail(f"label has {len(words)} numbers, but there are {k} classes")
        labels = np.array([self.lines.whole(w, "a label", -(2**31), 2**31 - 1) for w in words], dtype=np.int64)
        if len(np.unique(labels)) < k:
            self.lines.fail("a label is given twice")
        words = self.words("nr_sv")
        counts = [self.lines.whole(w, "nr_sv", 0, VECTORS) for w in words]
        if len(counts) != k or sum(counts) != total:
            self.lines.fail(f"nr_sv must be {k} numbers with the sum {total}, but is {' '.join(words)!r:.60}")
        return labels, np.array(counts)

    def probability(self, name: str, count: int) -> Vector:
        return self.lines.reals(self.words(name), name, count) if name in self.header else np.empty(0)

    def vectors(self, total: int, rows: int, kernel: Kernel) -> tuple[Matrix, Any, Vector]:
        """Read the coefficients, the vectors as an array or CSR matrix, and their indices in the training data."""
        lines, precomputed = self.lines, kernel.domain == "matrix"
        coef: list[Vector] = []
        data: list[float] = []
        indices: list[int] = []
        indptr = [0]
        for line in lines.rest():
            if len(coef) == total:
                lines.fail(f"total_sv is {total}, but there are more support vectors")
            words = line.split()
            coef.append(lines.reals(words[:rows], "the coefficients", rows))
            previous = -1 if precomputed else 0
            for word in words[rows:]:
                index, colon, value = word.partition(":")
                if not colon:
                    lines.fail(f"{word!r:.40} is not of the form index:value")
                number = lines.whole(index, "an index", 0 if precomputed else 1, FEATURES)
                if number <= previous:
                    lines.fail(f"the index {number} follows {previous}: indices must ascend")
                previous = number
                indices.append(number - (not precomputed))
                data.append(lines.real(value, "a value"))
            indptr.append(len(data))
        if len(coef) != total:
            lines.number += 1
            lines.fail(f"total_sv is {total}, but there are {len(coef)} support vectors")
        C = np.array(coef).reshape(total, rows).T
        if precomputed:
            return C, *self._numbers(data, indices, indptr, total)
        d = self._width(max(indices, default=0) + 1)
        X = sp.csr_array((np.array(data), np.array(indices, np.int32), np.array(indptr, np.int32)), shape=(total, d))
        return C, X if len(data) < 0.5 * total * d else X.toarray(), np.arange(total)

    def _numbers(self, data: list[float], indices: list[int], indptr: list[int], total: int) -> tuple[Any, Vector]:
        """Read the support vectors of a precomputed kernel: 0:number, where numbers start at 1."""
        first = [(data[a], indices[a]) if a < b else (0.0, -1) for a, b in pairwise(indptr)]
        if any(index != 0 or value != int(value) or not 1 <= value <= VECTORS for value, index in first):
            self.lines.fail("support vectors of a precomputed kernel must be 0:number, with numbers from 1 on")
        support = np.array([int(value) - 1 for value, _ in first], dtype=np.int64)
        n = self._width(int(support.max(initial=0)) + 1)
        return sp.csr_array((total, n)), support  # only the shape is used

    def _width(self, found: int) -> int:
        if self.n_features is None:
            return found
        if self.n_features < found:
            raise InvalidInputError(
                f"n_features={self.n_features} was given, but {self.lines.name} has support vectors with {found} "
                "features."
            )
        return int(self.n_features)


def _parameters(kernel: Kernel) -> dict[str, Any]:
    """scikit-learn's parameters for a kernel of LIBSVM."""
    if isinstance(kernel, Gaussian):
        return {"kernel": "rbf", "gamma": kernel.gamma}
    if isinstance(kernel, Polynomial):
        return {"kernel": "poly", "degree": kernel.degree, "gamma": kernel.gamma, "coef0": kernel.coef0}
    if isinstance(kernel, Sigmoid):
        return {"kernel": "sigmoid", "gamma": kernel.gamma, "coef0": kernel.coef0}
    return {"kernel": "linear" if isinstance(kernel, Linear) else "precomputed"}


# ---- writing ---------------------------------------------------------------------------------------------------------


def _text(model: Any, labels: Any) -> str:
    kind = next((name for name, cls in MACHINES.items() if type(model) is cls), None)
    if kind is None:
        raise InvalidInputError(
            f"LIBSVM has no {type(model).__name__}. SVC, NuSVC, OneClassSVM, SVR, NuSVR, LinearSVC and LinearSVR can "
            "be written; use mercer.save for other models."
        )
    kernel, classifier = model._kernel, kind.endswith("svc")
    lines = [f"svm_type {kind}", *kernel_lines(kernel)]
    coef = model._dual_coef_.toarray() if sp.issparse(model._dual_coef_) else model._dual_coef_
    intercept, vectors = model._intercept_, np.arange(len(model.support_))
    probabilities = {name: getattr(model, f"_{name}", np.empty(0)) for name in ("probA", "probB", MARKS)}
    if classifier:
        written = ClassOrder(
            model.classes_, model._n_support, coef, intercept, probabilities["probA"], probabilities["probB"]
        )
        written, vectors = written.arranged(_file_labels(model) if labels is None else labels)
        coef, intercept = written.coef, written.intercept
        probabilities |= {"probA": written.probA, "probB": written.probB}
    k = len(model.classes_) if classifier else 2
    lines += [f"nr_class {k}", f"total_sv {len(vectors)}", numbers("rho", -intercept)]
    if classifier:
        lines.append(" ".join(["label", *(str(label) for label in whole_labels(written.labels))]))
    lines += [numbers(name, values) for name, values in probabilities.items() if np.size(values)]
    if classifier:
        lines.append(" ".join(["nr_sv", *(str(n) for n in written.counts)]))
    lines.append("SV")
    if kernel.domain == "matrix":
        entries = [f"0:{number + 1}" for number in model.support_[vectors]]
    else:
        X = sp.csr_array(model.support_vectors_)[vectors]
        X.eliminate_zeros()
        entries = [
            " ".join(
                f"{j + 1}:{text_of(v)}" for j, v in zip(X.indices[a:b].tolist(), X.data[a:b].tolist(), strict=True)
            )
            for a, b in pairwise(X.indptr.tolist())
        ]
    for column, entry in zip(coef.T.tolist(), entries, strict=True):
        lines.append(" ".join([*(text_of(c) for c in column), entry]))
    return "\n".join(lines) + "\n"


def _file_labels(model: Any) -> Vector:
    """The class order of the file from which the model was read, if the classes are the same; else ``classes_``."""
    found: Vector = getattr(model, "_labels_in_file", model.classes_)
    return found if sorted(found.tolist()) == sorted(model.classes_.tolist()) else model.classes_


def kernel_lines(kernel: Kernel) -> list[str]:
    """Return the header lines that describe a kernel."""
    gamma = getattr(kernel, "gamma", None)
    if type(kernel) in (Gaussian, Polynomial, Sigmoid) and isinstance(gamma, float):
        shift = f"coef0 {text_of(kernel.coef0)}" if hasattr(kernel, "coef0") else ""
        if isinstance(kernel, Polynomial):
            return ["kernel_type polynomial", f"degree {kernel.degree}", f"gamma {text_of(gamma)}", shift]
        if isinstance(kernel, Sigmoid):
            return ["kernel_type sigmoid", f"gamma {text_of(gamma)}", shift]
        return ["kernel_type rbf", f"gamma {text_of(gamma)}"]
    if type(kernel) in (Linear, Precomputed):
        return [f"kernel_type {'linear' if isinstance(kernel, Linear) else 'precomputed'}"]
    raise InvalidInputError(
        f"LIBSVM does not support the kernel {kernel!r}: it supports linear, polynomial, Gaussian and sigmoid kernels "
        "with one gamma, and precomputed kernels. Fit the model with one of these, or use mercer.save."
    )


def numbers(name: str, values: Vector) -> str:
    """Return a header line of numbers."""
    return " ".join([name, *(text_of(v) for v in values.tolist())])


def whole_labels(classes: Vector) -> list[int]:
    """Return the labels as integers; raise if they are not integers."""
    if classes.dtype.kind in "biu" or (classes.dtype.kind == "f" and np.all(classes == np.round(classes))):
        labels = [int(label) for label in classes.tolist()]
        if all(abs(label) < 2**31 for label in labels):
            return labels
    raise InvalidInputError(
        f"Labels in files of LIBSVM and LIBLINEAR must be integers, but the classes are {classes.tolist()!r:.80}. Fit "
        "the model to integer labels, for example with sklearn.preprocessing.LabelEncoder."
    )
