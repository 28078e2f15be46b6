"""``mercer inspect``: show what a model file contains."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

from mercer.cli import reading
from mercer.cli.reading import read_model

SHAPLEY = "mean |Shapley value|"
# features that are printed, and characters of the longest name and bar
SHOWN, NAME, BAR = 20, 40, 30


def run(arguments: argparse.Namespace) -> int:
    """Print the contents of a model file; return the exit status."""
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
    if arguments.data is not None:
        found[SHAPLEY] = _importance(model, arguments)
    _print(found, arguments.json)
    return 0


def _importance(model: Any, arguments: argparse.Namespace) -> dict[str, float]:
    """Return the mean size of exact Shapley values of each feature over some rows of a data file, largest first."""
    from mercer.display.canvas import machine_of
    from mercer.exceptions import InvalidInputError
    from mercer.kernels.domains import noun_of
    from mercer.report.importance import shapley_values
    from mercer.report.names import names_of
    from mercer.workflow.preparation import prepared, table_reader

    reader = table_reader(model)
    samples = reading.read_new(arguments, reader=reader, need_target=False, na_target="keep")
    machine = machine_of(model)
    kernel = getattr(machine, "_kernel", None)
    if kernel is not None and kernel.domain not in ("vectors", "matrix", "records", "any"):
        raise InvalidInputError(
            f"{arguments.model} compares {noun_of(kernel.domain)}, which have no columns to explain. Leave out --data, "
            "or use mercer.contributions in Python, which has the share of each part of an object."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X .*valid feature names|X has feature names")
        try:
            found = shapley_values(machine, _as_trained(machine, prepared(model, samples.X)))
        except (ValueError, KeyError) as error:  # for example, the columns differ from the training data
            raise InvalidInputError(" ".join(str(error).split())) from None
    if found is None:
        raise InvalidInputError(
            f"{arguments.model} has no exact Shapley values that can be computed in seconds: they need a kernel on at "
            "most 200 features that is a product or sum over them. Leave out --data, or use mercer.explain in Python."
        )
    names = names_of(model, samples.kind)
    names = names if len(names) == len(found.feature_names) else list(found.feature_names)
    size = found.importance.reshape(len(names), -1).mean(axis=1)
    return {names[j]: float(size[j]) for j in (-size).argsort(kind="stable")}


def _as_trained(machine: Any, X: Any) -> Any:
    """Rows of a file as an array for a machine that was fitted to arrays, which know no names of columns."""
    if hasattr(X, "to_numpy") and not hasattr(machine, "feature_names_in_"):
        X = X.to_numpy()
    return X.toarray() if hasattr(X, "toarray") and not getattr(machine, "_sparse", True) else X


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
        if name == SHAPLEY:
            _print_bars(value)
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{key}={item}" for key, item in value.items()) or "all default"
        elif isinstance(value, list):
            value = ", ".join(str(item) for item in value)
        print(f"{name:<20} {value}")


def _print_bars(sizes: dict[str, float]) -> None:
    """Print a line with a bar for each feature, the largest first."""
    print(f"{SHAPLEY} of each feature:")
    shown, largest = list(sizes.items())[:SHOWN], max(sizes.values()) or 1.0
    width = min(max(len(name) for name, _ in shown), NAME)
    for name, size in shown:
        name = name if len(name) <= NAME else name[: NAME - 1] + "…"
        print(f"  {name:<{width}} {size:9.3g}  {'█' * round(BAR * size / largest)}".rstrip())
    if len(sizes) > SHOWN:
        print(f"  … and {len(sizes) - SHOWN:,} more")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer inspect``."""
    parser.add_argument("model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (support vector machines)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data", metavar="FILE", help="rows at which to explain the model: Shapley values by feature")
    reading.add_arguments(parser)
