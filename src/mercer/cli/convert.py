"""``mercer convert``: a model in another format."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mercer.cli.reading import TEXT, read_model
from mercer.cli.terminal import check_writable, number, say


def run(arguments: argparse.Namespace) -> int:
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What ``mercer convert`` understands."""
    parser.add_argument("model")
    parser.add_argument("output", help="its suffix says what is written: .onnx, .py, .c, .model or .mercer")
    parser.add_argument("--double", action="store_true", help="ONNX with inputs and outputs in float64")
    parser.add_argument(
        "--compress", type=number(above=0), metavar="ERROR", help="drop support vectors, to within ERROR"
    )
