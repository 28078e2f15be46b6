"""``mercer convert``: convert a model to another format."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer.cli.reading import TEXT, read_model
from mercer.cli.terminal import check_writable, number, say


def run(arguments: argparse.Namespace) -> int:
    """Write the model in the format given by the suffix of the output; return the exit status."""
    from mercer.display.canvas import machine_of
    from mercer.exceptions import InvalidInputError
    from mercer.io import compress, save
    from mercer.io.formats.libsvm_files import write_model
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
            say(f"note: the inputs for dates ({names}) are numbers: days since 1970-01-01 (UTC).")
    elif suffix in (".py", ".c"):
        write: Callable[[Any], str] = to_python if suffix == ".py" else to_c
        text = write(model if only_scales(model) else _last(model))
        Path(arguments.output).write_text(text, encoding="utf-8")
    elif suffix in TEXT:
        write_model(machine_of(_last(model)), arguments.output)
    else:
        raise InvalidInputError(
            f"The suffix of the output chooses the format, but {Path(arguments.output).name!r} has no known suffix: "
            "use .mercer, .onnx, .py, .c or .model."
        )
    return 0


def _last(model: Any) -> Any:
    """Return the last step of a pipeline, with a note about the other steps."""
    steps = getattr(model, "steps", ())
    if len(steps) > 1:
        names = ", ".join(name for name, _ in steps[:-1])
        say(f"note: only the last step is written; apply the other steps ({names}) to samples first.")
    return model[-1] if steps else model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``mercer convert``."""
    parser.add_argument("model", help="a model file of mercer, LIBSVM, LIBLINEAR or ONNX (support vector machines)")
    parser.add_argument(
        "output", help="the output file; its suffix chooses the format: .onnx, .py, .c, .model, .mercer"
    )
    parser.add_argument("--double", action="store_true", help="ONNX with inputs and outputs in float64")
    parser.add_argument(
        "--compress",
        type=number(above=0),
        metavar="ERROR",
        help="remove support vectors; no decision value changes by more than ERROR",
    )
