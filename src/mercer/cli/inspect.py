"""``mercer inspect``: show what a model file contains."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mercer.cli.reading import read_model


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer inspect``."""
    parser.add_argument("model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (support vector machines)")
    parser.add_argument("--json", action="store_true", help="print JSON")
