"""``mercer inspect``, ``certify``, ``kernel-check`` and ``convert``: what models and kernels are, and become."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.terminal import check_writable, number, say

# suffixes of model files by what is in them
TEXT = (".model", ".libsvm", ".liblinear", ".txt")


def read_model(path: str, n_features: int | None = None, nu: bool = False) -> Any:
    """A model of mercer, a text file of LIBSVM or LIBLINEAR, or the support vector machine of an ONNX graph."""
    from mercer.io import load
    from mercer.io.formats.libsvm import read_model as read_text
    from mercer.io.formats.onnx_import import read_onnx

    suffix = Path(path).suffix.lower()
    if suffix == ".onnx":
        return read_onnx(path, nu=nu)
    return read_text(path, n_features) if suffix in TEXT else load(path)


# ---- inspect -----------------------------------------------------------------------------------------------------


def inspect(arguments: argparse.Namespace) -> int:
    """Say what is in a model file."""
    from mercer.display.canvas import machine_of
    from mercer.workflow.preparation import table_reader
    from mercer.workflow.summary import plain, support_count

    model = read_model(arguments.model)
    machine = machine_of(model)
    last = model[-1] if hasattr(model, "steps") else model
    found: dict[str, Any] = {"machine": type(machine).__name__}
    chosen = getattr(last, "best_params_", None)
    found["parameters"] = {key: plain(value) for key, value in (chosen or _own_parameters(machine)).items()}
    if hasattr(machine, "_kernel"):
        found["kernel"] = str(machine._kernel)
    if hasattr(machine, "classes_"):
        found["classes"] = machine.classes_.tolist()
    if getattr(machine, "n_features_in_", None) is not None:
        found["features"] = int(machine.n_features_in_)
    reader = table_reader(model)
    if reader is not None:
        found["columns"] = {c.name: f"{c.kind} ({c.note})" if c.note else c.kind for c in reader.columns}
        if reader.target is not None:
            found["target"] = reader.target.name
    if support_count(machine) is not None:
        found["support vectors"] = support_count(machine)
    if getattr(last, "best_score_", None) is not None:
        found["score in the search"] = plain(last.best_score_)
    found["certificate"] = str(getattr(machine, "certificate_", "unknown"))
    found["bytes"] = Path(arguments.model).stat().st_size
    _print(found, arguments.json)
    return 0


def _own_parameters(machine: Any) -> dict[str, Any]:
    defaults = type(machine)().get_params(deep=False) if hasattr(machine, "get_params") else {}
    own = machine.get_params(deep=False) if defaults else {}
    return {key: value for key, value in own.items() if repr(value) != repr(defaults[key])}


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}={item}" for key, item in value.items()) or "all default"
        elif isinstance(value, list):
            value = ", ".join(str(item) for item in value)
        print(f"{name:<20} {value}")


# ---- certify -----------------------------------------------------------------------------------------------------


def certify(arguments: argparse.Namespace) -> int:
    """Recompute how far a model is from its optimum; 1 if that is more than the tolerance."""
    import mercer
    from mercer.display.canvas import machine_of
    from mercer.exceptions import InvalidInputError
    from mercer.workflow.summary import plain

    try:
        model, X, y = (_foreign if _is_foreign(arguments) else _own)(arguments)
        proof = mercer.certify(machine_of(model), X, y)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(str(error)) from None
    within = bool(proof.valid and proof.relative_gap <= arguments.tol)
    if arguments.json:
        names = ("primal", "dual", "relative_gap", "kkt_violation", "infeasibility", "valid")
        found = {name: plain(getattr(proof, name)) for name in names}
        json.dump(found | {"tol": arguments.tol, "within": within}, sys.stdout, indent=2)
        print()
    else:
        print(f"{type(machine_of(model)).__name__}: {proof}")
        print(f"{'within' if within else 'NOT within'} the tolerance of {arguments.tol:g}")
    return 0 if within else 1


def _samples(arguments: argparse.Namespace, model: Any) -> Any:
    """The samples of a model, with targets unless it has learnt from none."""
    from mercer.display.canvas import machine_of
    from mercer.workflow.preparation import table_reader

    return reading.read_new(
        arguments, reader=table_reader(model), need_target=not hasattr(machine_of(model), "offset_")
    )


def _own(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """A model that knows what it was fitted with, and its samples as it sees them."""
    from mercer.exceptions import InvalidInputError
    from mercer.io.model_file.save_load import is_pickle
    from mercer.workflow.preparation import prepared

    if not arguments.trust_pickle and is_pickle(arguments.model):
        raise InvalidInputError(
            f"{arguments.model} is a pickle: loading it runs the code in it. If you trust it, add --trust-pickle."
        )
    model = _trusted(arguments.model) if arguments.trust_pickle else read_model(arguments.model)
    if "with_training_data" in getattr(getattr(model, "certificate_", None), "reason", ""):
        return _foreign(arguments)  # it was converted from a file of another program
    samples = _samples(arguments, model)
    X = prepared(model, samples.X)
    if hasattr(X, "to_numpy") and not hasattr(model, "feature_names_in_"):
        X = X.to_numpy()  # it knows no names
    return model, X, samples.y


def _is_foreign(arguments: argparse.Namespace) -> bool:
    """Whether the model is of a format that leaves out what it was fitted with."""
    said = any(value is not None for value in (arguments.C, arguments.epsilon, arguments.nu))
    return not arguments.trust_pickle and (said or Path(arguments.model).suffix.lower() in (*TEXT, ".onnx"))


def _foreign(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The same for models of other programs, whose parameters the command line says."""
    import numpy as np

    from mercer.exceptions import InvalidInputError
    from mercer.io.formats.onnx_import import prepared_for
    from mercer.io.formats.training_data import with_training_data

    samples = _samples(arguments, read_model(arguments.model))
    X = samples.X
    if samples.kind == "table":
        names = [column.name for column in samples.columns if X[column.name].dtype.kind not in "fiub"]
        if names:
            raise InvalidInputError(
                f"The column {names[0]!r} does not hold numbers, but the model was fitted to numbers."
            )
        X = X.to_numpy(dtype=float)
    elif samples.kind == "strings":
        raise InvalidInputError(f"{arguments.model} was fitted to vectors, but {arguments.data} holds sequences.")
    model = read_model(arguments.model, _width(arguments, X), arguments.nu is not None)
    if getattr(model, "kernel", "") == "precomputed":
        X = (X.toarray() if hasattr(X, "toarray") else X)[:, -X.shape[0] :]  # LIBSVM's first column is a number
    if hasattr(model, "before_"):
        if X.shape[1] != len(model.before_[0]):
            raise InvalidInputError(f"The samples have {X.shape[1]} features, the model {len(model.before_[0])}.")
        X = prepared_for(model, X.toarray() if hasattr(X, "toarray") else X)
    y = None if samples.y is None else np.asarray(samples.y)
    weights = {label: float(weight) for label, weight in arguments.class_weight or ()}
    given = {"C": arguments.C, "epsilon": arguments.epsilon, "nu": arguments.nu}
    return with_training_data(model, X, y, class_weight=weights or None, **given), X, y


def _width(arguments: argparse.Namespace, X: Any) -> int | None:
    """The number of features for a file that does not say it; LIBLINEAR's do, and precomputed kernels have none."""
    with open(arguments.model, encoding="utf-8", errors="replace") as file:
        head = file.read(300)
    return None if "solver_type" in head or "precomputed" in head else int(X.shape[1])


def _trusted(path: str) -> Any:
    import pickle

    import joblib

    from mercer.exceptions import InvalidInputError

    say(f"{path} is a pickle: loading it runs the code in it.")
    try:
        return joblib.load(path)
    except (OSError, pickle.UnpicklingError, EOFError, ValueError, KeyError, AttributeError, ImportError) as error:
        raise InvalidInputError(f"{path} cannot be loaded: {error}.") from None


# ---- kernel-check ------------------------------------------------------------------------------------------------


def kernel_check(arguments: argparse.Namespace) -> int:
    """Whether a kernel, on these samples, or a matrix satisfies Mercer's condition; 1 if not."""
    import mercer

    if arguments.kernel is None:
        report = mercer.check_mercer(_matrix(arguments.data))
    else:
        samples = reading.read_new(arguments, need_target=False)
        X = samples.X
        if samples.kind == "table":
            X = X[[c.name for c in samples.columns if c.kind in ("number", "boolean", "date")]].to_numpy(dtype=float)
        report = mercer.check_mercer(mercer.parse_kernel(arguments.kernel), X)
    print(report)
    return 0 if report.positive_semidefinite else 1


def _matrix(path: str) -> Any:
    import numpy as np

    from mercer.exceptions import InvalidInputError

    try:
        if path.endswith(".npy"):
            return np.load(path, allow_pickle=False)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "loadtxt: input contained no data", UserWarning)
            text = sys.stdin if path == "-" else path
            return np.loadtxt(text, delimiter="," if path.endswith(".csv") else None, ndmin=2)
    except UserWarning:
        raise InvalidInputError(f"{path} is empty: a matrix file has one line of numbers for each row.") from None
    except ValueError as error:
        raise InvalidInputError(
            f"{path} is not a matrix of numbers: {str(error).rstrip('.')}. For a table of samples name a --kernel."
        ) from None


# ---- convert -----------------------------------------------------------------------------------------------------


def convert(arguments: argparse.Namespace) -> int:
    """A model in another format, which the name of the output says."""
    from mercer.display.canvas import machine_of
    from mercer.exceptions import InvalidInputError
    from mercer.io import compress, save
    from mercer.io.formats.libsvm import write_model
    from mercer.io.formats.onnx_export import to_onnx
    from mercer.io.formats.plain_model import only_scales
    from mercer.io.formats.source_code import to_c, to_python
    from mercer.workflow.preparation import table_reader

    check_writable(Path(arguments.output))
    model = read_model(arguments.model)
    suffix = Path(arguments.output).suffix.lower()
    if arguments.compress is not None:
        model = compress(machine_of(model) if suffix != ".mercer" else model, max_error=arguments.compress)
        say(f"{model.compression_}")
    if suffix == ".mercer":
        save(model, arguments.output)
        return 0
    if suffix == ".onnx":
        data = to_onnx(model, dtype="float64" if arguments.double else "float32").SerializeToString()
        Path(arguments.output).write_bytes(data)
        reader = table_reader(model)
        if reader is not None and any(column.kind == "date" for column in reader.columns):
            names = ", ".join(column.name for column in reader.columns if column.kind == "date")
            say(f"note: the inputs of dates ({names}) are numbers: days since 1970-01-01 (UTC).")
    elif suffix in (".py", ".c"):
        write: Callable[[Any], str] = to_python if suffix == ".py" else to_c
        text = write(model if only_scales(model) else _last(model))
        Path(arguments.output).write_text(text, encoding="utf-8")
    elif suffix in TEXT:
        write_model(machine_of(_last(model)), arguments.output)
    else:
        raise InvalidInputError(
            f"The output format is chosen by the file's suffix, and {Path(arguments.output).name!r} has none that is "
            "known: use .mercer, .onnx, .py, .c or .model."
        )
    return 0


def _last(model: Any) -> Any:
    """The model without its steps before, with a word about them."""
    steps = getattr(model, "steps", ())
    if len(steps) > 1:
        names = ", ".join(name for name, _ in steps[:-1])
        say(f"note: only the machine is written; apply the model's other steps to the samples first ({names}).")
    return model[-1] if steps else model


def add_arguments(commands: Any) -> None:
    """The four commands."""
    parser = commands.add_parser("inspect", help="say what is in a model file")
    parser.add_argument("model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (support vector machines)")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=inspect)

    parser = commands.add_parser("certify", help="recompute how far a model is from its optimum")
    parser.add_argument(
        "model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (or, with --trust-pickle, of scikit-learn)"
    )
    parser.add_argument("data", help="the samples that it was fitted to")
    parser.add_argument("--target", metavar="COLUMN", help="default: that of the fit, or the last column")
    reading.add_arguments(parser, training=True)
    parser.add_argument("--labels", metavar="FILE", help="for FASTA")
    parser.add_argument(
        "--C",
        type=number(above=0),
        help="the C that the model was fitted with, if the file does not say",
    )
    parser.add_argument("--epsilon", type=number(least=0), help="the epsilon that the model was fitted with")
    parser.add_argument("--nu", type=number(above=0), help="the nu that the model was fitted with")
    parser.add_argument(
        "--class-weight",
        nargs=2,
        action="append",
        metavar=("LABEL", "WEIGHT"),
        help="the weight of a class that the model was fitted with",
    )
    parser.add_argument("--tol", type=number(least=0), default=1e-2, help="largest relative gap (default: 0.01)")
    parser.add_argument("--trust-pickle", action="store_true", help="load a pickle, which may run any code")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=certify)

    parser = commands.add_parser("kernel-check", help="test Mercer's condition")
    parser.add_argument("data", help="samples; or, without --kernel, a matrix (.npy, .csv, text)")
    parser.add_argument("--kernel", help='an expression such as "gaussian(gamma=0.1) * linear()"')
    parser.add_argument("--target", metavar="COLUMN", help="a column to leave out")
    reading.add_arguments(parser)
    parser.set_defaults(run=kernel_check)

    parser = commands.add_parser("convert", help="write a model as ONNX, Python, C, LIBSVM text or a model file")
    parser.add_argument("model")
    parser.add_argument("output", help="its suffix says what is written: .onnx, .py, .c, .model or .mercer")
    parser.add_argument("--double", action="store_true", help="ONNX with inputs and outputs in float64")
    parser.add_argument(
        "--compress", type=number(above=0), metavar="ERROR", help="drop support vectors, to within ERROR"
    )
    parser.set_defaults(run=convert)
