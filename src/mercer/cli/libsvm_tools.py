"""``mercer svm-train``, ``svm-predict`` and ``svm-scale``: LIBSVM's options, file formats and output.

Existing scripts work with ``mercer `` in front of the program's name; the solver and its certificate are mercer's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mercer.exceptions import InvalidInputError

USAGE = {
    "svm-train": "svm-train [options] training_set_file [model_file]",
    "svm-predict": "svm-predict [options] test_file model_file output_file",
    "svm-scale": "svm-scale [options] data_filename",
}
OPTIONS = {
    "svm-train": """
  -s 0..4   machine: 0 C-SVC, 1 nu-SVC, 2 one-class, 3 epsilon-SVR, 4 nu-SVR (0)
  -t 0..4   kernel: 0 linear, 1 polynomial, 2 Gaussian, 3 tanh, 4 precomputed (2)
  -d, -g, -r  degree (3), gamma (1 / number of features) and coef0 (0) of the kernel
  -c C      the regularisation parameter C (1)
  -wI W     factor of C for class I (1)
  -n NU     nu of nu-SVC, nu-SVR and one-class (0.5)
  -p WIDTH  epsilon of epsilon-SVR (0.1)
  -e TOL    training stops if the KKT violation is below TOL (0.001)
  -m MB     memory for rows of the kernel matrix
  -h 0|1    shrinking (1)
  -b 0|1    probabilities (0)
  -v K      cross-validation in K folds; no model is written
  -q        print nothing""",
    "svm-predict": """
  -b 0|1    probabilities (0)
  -q        print nothing""",
    "svm-scale": """
  -l, -u    lower and upper limit of the scaled features (-1, 1)
  -y L U    lower and upper limit of the scaled targets (default: not scaled)
  -s FILE   write the ranges of the features to a file
  -r FILE   use the ranges of a file written with -s""",
}
KERNELS = ("linear", "poly", "rbf", "sigmoid", "precomputed")
LAPLACE = (
    "Prob. model for test data: target value = predicted value + z,\n"
    "z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma="
)


class UsageError(Exception):
    """The command line is not valid for LIBSVM's program."""


def train(words: Sequence[str]) -> int:
    """Fit, write LIBSVM's model file, and print what svm-train prints."""
    import numpy as np

    from mercer.io.formats.libsvm_files import training_order, write_model

    options, files = _options(words, "s t d g r c n p m e h b v w* q")
    if len(files) not in (1, 2):
        raise UsageError(f"expected a training file and optionally a model file, found {len(files)} files")
    X, y = _read(files[0], precomputed=options.get("t") == "4")
    kind = _whole(options, "s", 0, 4)
    labels = None
    if kind in (0, 1):
        # fit to indices in LIBSVM's class order, which determines signs, columns and ties
        labels = training_order(y)
        order = np.argsort(labels)
        y = order[np.searchsorted(labels, y, sorter=order)]
    elif kind in (3, 4):
        y = y.astype(np.float64)
    model = _machine(kind, options, X, [] if labels is None else labels.tolist())
    if "v" in options:
        return _cross_validate(model, X, y, kind, _whole(options, "v", 2, len(y)))
    with _without_deprecation():
        model.fit(X, None if kind == 2 else y)
    if labels is not None:
        model.classes_ = labels
    if "q" not in options:
        print(f"optimization finished, #iter = {int(np.sum(model.n_iter_))}")
        print(f"obj = {-model.certificate_.dual:.6f}, relative gap = {model.certificate_.relative_gap:.1e}")
        print(f"Total nSV = {len(model.support_)}")
    if _whole(options, "b", 0, 1) and kind >= 2:
        _add_probabilities(model, X, y, kind, "q" in options)
    write_model(model, files[1] if len(files) == 2 else Path(files[0]).name + ".model")
    return 0


@contextmanager
def _without_deprecation() -> Iterator[None]:
    """Hide scikit-learn's deprecation of the parameter ``probability``, which LIBSVM's option needs."""
    import warnings

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The `probability` parameter", FutureWarning)
        yield


def _add_probabilities(model: Any, X: Any, y: Any, kind: int, quiet: bool) -> None:
    """Add LIBSVM's probability parameters to a regressor or one-class machine. Edits the model."""
    import numpy as np

    from mercer.io.formats.libsvm_probabilities import density_marks, residual_scale

    if kind == 2:
        marks = density_marks(model.decision_function(X))
        if marks is None:
            print(
                "note: fewer than 5 decision values on one side of 0: the model is written without probabilities.",
                file=sys.stderr,
            )
        else:
            model._prob_density_marks = marks
        return
    model._probA = np.array([residual_scale(model, X, y)])
    if not quiet:
        print(LAPLACE + f" {model._probA[0]:g}")


def predict(words: Sequence[str]) -> int:
    """Predict with LIBSVM's model file, write a line per sample, and print accuracy or errors as svm-predict does."""
    import numpy as np

    from mercer.io.formats.libsvm_files import read_model
    from mercer.io.formats.libsvm_probabilities import has_probabilities

    options, files = _options(words, "b q")
    if len(files) != 3:
        raise UsageError(f"expected a test file, a model file and an output file, found {len(files)} files")
    probabilities, quiet = _whole(options, "b", 0, 1) == 1, "q" in options
    model = read_model(files[1], file_order=True)
    if probabilities and not has_probabilities(model):
        raise InvalidInputError(f"{files[1]} has no probabilities: train it with -b 1.")
    if not probabilities and has_probabilities(model) and not quiet:
        print("Model supports probability estimates, but disabled in prediction.")
    X, y = _read(files[0], n_features=model.n_features_in_, precomputed=getattr(model, "kernel", "") == "precomputed")
    if hasattr(X, "toarray") and not hasattr(getattr(model, "support_vectors_", X), "toarray"):
        X = X.toarray()  # the support vectors are dense
    classes = hasattr(model, "classes_") or hasattr(model, "offset_")
    head, values = "", None
    if probabilities and classes:
        head, predicted, values = _probabilities(model, X)
    else:
        predicted = model.predict(X)
        if probabilities and not quiet:
            print(LAPLACE + f"{model._probA[0]:g}")
    with open(files[2], "w", encoding="ascii") as out:
        out.write(head)
        for i, label in enumerate(predicted):
            more = "" if values is None else " " + " ".join(f"{v:g}" for v in values[i])
            out.write(f"{label:.17g}{more}\n")
    if not quiet:
        if classes:
            right = int(np.sum(predicted == y))
            print(f"Accuracy = {100 * right / len(y):g}% ({right}/{len(y)}) (classification)")
        else:
            for line in _regression_lines(y, predicted):
                print(line + " (regression)")
    return 0


def _probabilities(model: Any, X: Any) -> tuple[str, Any, Any]:
    """Return the first line, the labels and the probabilities, in the order of the labels in the model file."""
    import numpy as np

    from mercer.io.formats.libsvm_probabilities import class_probabilities, normal_probability

    if hasattr(model, "offset_"):
        inside = normal_probability(model.decision_function(X), model._prob_density_marks)
        return "labels normal outlier\n", model.predict(X), np.column_stack([inside, 1.0 - inside])
    values = class_probabilities(model, X)
    head = " ".join(["labels", *(str(label) for label in model.classes_)])
    return f"{head}\n", model.classes_[values.argmax(axis=1)], values


def scale(words: Sequence[str]) -> int:
    """Scale features linearly to a range and print the samples in LIBSVM's format."""
    import numpy as np

    options, files = _options(words, "l u s r y:2")
    if len(files) != 1:
        raise UsageError(f"expected one data file, found {len(files)} files")
    if "s" in options and "r" in options:
        raise UsageError("-s and -r cannot be used together")
    X, y = _read(files[0])
    X = X.toarray()
    if "r" in options:
        low, high, ranges = _read_ranges(options["r"])
    else:
        low, high = _number(options, "l", -1.0), _number(options, "u", 1.0)
        ranges = {j + 1: (float(X[:, j].min()), float(X[:, j].max())) for j in range(X.shape[1])}
    if not low < high:
        raise UsageError(f"the lower limit {low:g} is not below the upper limit {high:g}")
    if "s" in options:
        lines = ["x", f"{low:.16g} {high:.16g}"]
        lines += [f"{j} {a:.16g} {b:.16g}" for j, (a, b) in ranges.items() if a != b]
        Path(options["s"]).write_text("\n".join(lines) + "\n", encoding="ascii")
    if "y" in options:
        bottom, top = (_number({"y": word}, "y", 0.0) for word in options["y"].split())
        y = bottom + (top - bottom) * (y - y.min()) / max(float(np.ptp(y)), 1e-300)
    scaled = np.zeros_like(X)
    for j in range(X.shape[1]):
        a, b = ranges.get(j + 1, (0.0, 0.0))
        if a != b:
            scaled[:, j] = low + (high - low) * (X[:, j] - a) / (b - a)
            # exact limits, without rounding errors
            scaled[X[:, j] == a, j], scaled[X[:, j] == b, j] = low, high
    for label, row in zip(y, scaled, strict=True):
        print(f"{label:g} " + "".join(f"{j + 1}:{value:g} " for j, value in enumerate(row) if value != 0))
    return 0


# ---- helpers -----------------------------------------------------------------------------------------------------


def _options(words: Sequence[str], known: str) -> tuple[dict[str, str], list[str]]:
    """Split the command line into LIBSVM's options (-c 10, -w1 2, -q) and files."""
    flags, allowed = ("q",), {name.rstrip("*").partition(":")[0]: name for name in known.split()}
    options: dict[str, str] = {}
    position = 0
    while position < len(words) and words[position].startswith("-") and len(words[position]) > 1:
        name = words[position][1:]
        letter = name if name in allowed else name[:1]
        if letter not in allowed or (name != letter and not allowed[letter].endswith("*")):
            raise UsageError(f"unknown option -{name}")
        count = 0 if letter in flags else int(allowed[letter].partition(":")[2] or 1)
        values = words[position + 1 : position + 1 + count]
        if len(values) < count:
            raise UsageError(f"the option -{name} has no value")
        options[name] = " ".join(values)
        position += 1 + count
    return options, list(words[position:])


def _number(
    options: dict[str, str], letter: str, default: float, *, least: float | None = None, above: float | None = None
) -> float:
    try:
        value = float(options.get(letter, default))
    except ValueError:
        raise UsageError(f"-{letter} {options[letter]} is not a number") from None
    if least is not None and not value >= least:
        raise UsageError(f"-{letter} {options[letter]} is not at least {least:g}")
    if above is not None and not value > above:
        raise UsageError(f"-{letter} {options[letter]} is not more than {above:g}")
    return value


def _label(name: str) -> int:
    """The class label of a weight option such as -w1 or -w-1."""
    try:
        return int(name[1:])
    except ValueError:
        raise UsageError(f"-{name} is not -w with an integer class label, as in -w1 2.5") from None


def _whole(options: dict[str, str], letter: str, least: int, most: int) -> int:
    defaults = {"s": 0, "t": 2, "d": 3, "h": 1, "b": 0}
    text = options.get(letter, str(defaults.get(letter, least)))
    if not text.lstrip("-").isdigit() or not least <= int(text) <= most:
        raise UsageError(f"-{letter} {text} is not an integer from {least} to {most}")
    return int(text)


def _read(path: str, n_features: int | None = None, precomputed: bool = False) -> tuple[Any, Any]:
    import numpy as np

    from mercer.io.tables import read_samples

    samples = read_samples(path, format="libsvm")
    X = samples.X
    if precomputed:
        X = X.toarray()[:, 1:]  # the first column is the number of the sample
    elif n_features is not None and X.shape[1] != n_features:
        X = X.tocsr()
        X = X[:, :n_features] if X.shape[1] > n_features else _wider(X, n_features)
    y = np.asarray(samples.y)
    return X, y.astype(np.int64) if np.all(y == np.round(y)) else y


def _wider(X: Any, n_features: int) -> Any:
    import scipy.sparse as sp

    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _machine(kind: int, options: dict[str, str], X: Any, labels: list[Any]) -> Any:
    """Build the estimator that the options describe. Its class weights are keyed by the index of the label."""
    import mercer

    kernel = KERNELS[_whole(options, "t", 0, 4)]
    gamma = _number(options, "g", 0.0, least=0.0) or 1.0 / max(1, X.shape[1])
    common: dict[str, Any] = {
        "kernel": kernel,
        "degree": _whole(options, "d", 0, 1000),
        "gamma": gamma,
        "coef0": _number(options, "r", 0.0),
        "tol": _number(options, "e", 1e-3, above=0.0),
        "shrinking": _whole(options, "h", 0, 1) == 1,
        "cache_size": _number(options, "m", 0.0, least=0.0) or "auto",
    }
    if kind < 2 and _whole(options, "b", 0, 1):
        common |= {"probability": True, "random_state": 0}
    C, nu = _number(options, "c", 1.0, above=0.0), _number(options, "n", 0.5, above=0.0)
    if nu > 1:
        raise UsageError(f"-n {options['n']} is more than 1")
    weights = {_label(name): _number(options, name, 1.0, least=0.0) for name in options if name.startswith("w")}
    if kind == 0:
        for label in weights:
            if label not in labels:
                print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
        weights = {labels.index(label): weight for label, weight in weights.items() if label in labels}
        return mercer.SVC(C=C, class_weight=weights or None, **common)
    if kind == 1:
        return mercer.NuSVC(nu=nu, **common)
    if kind == 2:
        return mercer.OneClassSVM(nu=nu, **common)
    if kind == 3:
        return mercer.SVR(C=C, epsilon=_number(options, "p", 0.1, least=0.0), **common)
    return mercer.NuSVR(C=C, nu=nu, **common)


def _cross_validate(model: Any, X: Any, y: Any, kind: int, folds: int) -> int:
    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold, cross_val_predict

    if kind == 2:
        raise UsageError("-v cannot be used with one-class machines, which do not predict labels")
    splitter = (StratifiedKFold if kind in (0, 1) else KFold)(folds, shuffle=True, random_state=0)
    if getattr(model, "probability", False) is True:
        with _without_deprecation():
            values = cross_val_predict(model, X, y, cv=splitter, method="predict_proba")
        predicted = np.unique(y)[values.argmax(axis=1)]
    else:
        predicted = cross_val_predict(model, X, y, cv=splitter)
    if kind in (0, 1):
        print(f"Cross Validation Accuracy = {100 * float(np.mean(predicted == y)):g}%")
    else:
        for line in _regression_lines(y, predicted):
            print(f"Cross Validation {line}")
    return 0


def _regression_lines(y: Any, predicted: Any) -> list[str]:
    import numpy as np

    error = float(np.mean((predicted - y) ** 2))
    spread = float(np.std(predicted)) * float(np.std(y))
    correlation = float(np.mean((predicted - predicted.mean()) * (y - y.mean()))) / spread if spread else float("nan")
    return [f"Mean squared error = {error:g}", f"Squared correlation coefficient = {correlation**2:g}"]


def _read_ranges(path: str) -> tuple[float, float, dict[int, tuple[float, float]]]:
    """Read a file written by svm-scale -s; ranges of the target are ignored."""
    lines = Path(path).read_text(encoding="ascii").split("\n")
    try:
        start = lines.index("x") + 1
        low, high = (float(word) for word in lines[start].split())
        found = [line.split() for line in lines[start + 1 :] if line.strip()]
        return low, high, {int(j): (float(a), float(b)) for j, a, b in found}
    except ValueError:
        raise UsageError(f"{path} was not written by svm-scale -s") from None


TOOLS = {"svm-train": train, "svm-predict": predict, "svm-scale": scale}


def run(name: str, words: Sequence[str]) -> int:
    """Run one of LIBSVM's programs; return its exit status."""
    if "--help" in words:
        print(f"usage: mercer {USAGE[name]}\n{OPTIONS[name]}")
        return 0
    try:
        return TOOLS[name](words)
    except UsageError as error:
        print(f"mercer {name}: {error}.\nusage: mercer {USAGE[name]}\n{OPTIONS[name]}", file=sys.stderr)
        return 2
