"""``mercer certify``: recompute from the training data how far a model is from the optimum of its problem."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.reading import TEXT, read_model
from mercer.cli.terminal import number, say


def run(arguments: argparse.Namespace) -> int:
    """Recompute the certificate of a model; return 1 if its relative gap is larger than the tolerance."""
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
    """Read the training samples of a model, with targets unless it is a novelty detector."""
    from mercer.display.canvas import machine_of
    from mercer.workflow.preparation import table_reader

    return reading.read_new(
        arguments, reader=table_reader(model), need_target=not hasattr(machine_of(model), "offset_")
    )


def _own(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Return a model whose file contains its parameters, and its preprocessed samples and targets."""
    from mercer.exceptions import InvalidInputError
    from mercer.io.model_file.save_load import is_pickle
    from mercer.workflow.preparation import prepared

    if not arguments.trust_pickle and is_pickle(arguments.model):
        raise InvalidInputError(
            f"{arguments.model} is a pickle, and loading it can run any code. If you trust it, add --trust-pickle."
        )
    model = _trusted(arguments.model) if arguments.trust_pickle else read_model(arguments.model)
    if "with_training_data" in getattr(getattr(model, "certificate_", None), "reason", ""):
        return _foreign(arguments)  # the model was converted from another program's file
    samples = _samples(arguments, model)
    X = prepared(model, samples.X)
    if hasattr(X, "to_numpy") and not hasattr(model, "feature_names_in_"):
        X = X.to_numpy()  # the model has no feature names
    return model, X, samples.y


def _is_foreign(arguments: argparse.Namespace) -> bool:
    """Whether the model file is in a format that does not contain the parameters of the fit."""
    said = any(value is not None for value in (arguments.C, arguments.epsilon, arguments.nu))
    return not arguments.trust_pickle and (said or Path(arguments.model).suffix.lower() in (*TEXT, ".onnx"))


def _foreign(arguments: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Do the same as `_own` for a file of another program; the parameters of the fit come from the command line."""
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
                f"The column {names[0]!r} does not hold numbers, but the model was fitted to numbers: give the samples "
                "as numbers."
            )
        X = X.to_numpy(dtype=float)
    elif samples.kind == "strings":
        raise InvalidInputError(
            f"{arguments.model} was fitted to vectors, but {arguments.data} holds sequences: give the training data."
        )
    model = read_model(arguments.model, _width(arguments, X), arguments.nu is not None)
    if getattr(model, "kernel", "") == "precomputed":
        X = (X.toarray() if hasattr(X, "toarray") else X)[:, -X.shape[0] :]  # without LIBSVM's column of sample numbers
    if hasattr(model, "before_"):
        if X.shape[1] != len(model.before_[0]):
            raise InvalidInputError(
                f"The samples have {X.shape[1]} features, but the model has {len(model.before_[0])}: give the training "
                "data."
            )
        X = prepared_for(model, X.toarray() if hasattr(X, "toarray") else X)
    y = None if samples.y is None else np.asarray(samples.y)
    weights = {label: float(weight) for label, weight in arguments.class_weight or ()}
    given = {"C": arguments.C, "epsilon": arguments.epsilon, "nu": arguments.nu}
    return with_training_data(model, X, y, class_weight=weights or None, **given), X, y


def _width(arguments: argparse.Namespace, X: Any) -> int | None:
    """The number of features; None if the file contains it (LIBLINEAR) or the kernel is precomputed."""
    with open(arguments.model, encoding="utf-8", errors="replace") as file:
        head = file.read(300)
    return None if "solver_type" in head or "precomputed" in head else int(X.shape[1])


def _trusted(path: str) -> Any:
    import pickle

    import joblib

    from mercer.exceptions import InvalidInputError

    say(f"{path} is a pickle: loading it runs the code that it contains.")
    try:
        return joblib.load(path)
    except (OSError, pickle.UnpicklingError, EOFError, ValueError, KeyError, AttributeError, ImportError) as error:
        raise InvalidInputError(f"{path} cannot be loaded: {error}.") from None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer certify``."""
    parser.add_argument(
        "model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (or, with --trust-pickle, of scikit-learn)"
    )
    parser.add_argument("data", help="the training data")
    parser.add_argument(
        "--target", metavar="COLUMN", help="the target column (default: the target of the fit, or the last column)"
    )
    reading.add_arguments(parser, training=True)
    parser.add_argument("--labels", metavar="FILE", help="for FASTA: a label, or a name and a label, per line")
    parser.add_argument("--C", type=number(above=0), help="C of the fit, if the file does not contain it")
    parser.add_argument("--epsilon", type=number(least=0), help="epsilon of the fit, if the file does not contain it")
    parser.add_argument("--nu", type=number(above=0), help="nu of the fit, if the file does not contain it")
    parser.add_argument(
        "--class-weight",
        nargs=2,
        action="append",
        metavar=("LABEL", "WEIGHT"),
        help="the weight of a class in the fit; may be repeated",
    )
    parser.add_argument(
        "--tol", type=number(least=0), default=1e-2, help="largest allowed relative gap (default: 0.01)"
    )
    parser.add_argument("--trust-pickle", action="store_true", help="load a pickle, which can run any code")
    parser.add_argument("--json", action="store_true", help="print JSON")
