"""The command ``mercer``: parse the arguments, call the library, print the result.

Each subcommand imports what it needs when it runs, so that ``mercer --help`` loads neither numba nor scikit-learn.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from mercer.cli import bench, certify, convert, fit, inspect, kernel_check, libsvm_tools, predict, studio, warm
from mercer.exceptions import MercerError

__all__ = ["command", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` unless given) and return the exit status.

    0: success. 1: an error, or a check has failed. 2: the command line is not valid. 130: interrupted.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    command = next(iter(words), None)
    return exit_status(lambda: _run(command, words), command)


def _run(command: str | None, words: Sequence[str]) -> int:
    if command in libsvm_tools.TOOLS:  # argparse cannot parse LIBSVM's options
        return libsvm_tools.run(command, words[1:])
    parser = _parser()
    arguments = parser.parse_args(words)
    if arguments.version:
        import mercer

        print(f"mercer {mercer.__version__}")
        return 0
    if arguments.command is None:
        parser.print_help()
        return 0
    status: int = arguments.run(arguments)
    return status


def exit_status(work: Callable[[], int], command: str | None) -> int:
    """The exit status of the work. Errors that the user can act on are printed in one sentence."""
    try:
        return work()
    except MercerError as error:
        print(f"mercer {command}: {error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        advice = "Use fewer rows, columns or classes, or a linear kernel."
        print(f"mercer {command}: there is not enough memory{why}. {advice}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # for example `mercer predict … | head`
        sys.stderr.close()
        return 0
    except OSError as error:  # no such file, a folder, no permission, a full disk
        reason = f"{error.filename}: {error.strerror}" if error.filename is not None else str(error)
        print(f"mercer {command}: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nmercer {command}: interrupted{', no model was written' if command == 'fit' else ''}", file=sys.stderr)
        return 130


def command() -> NoReturn:
    """Entry point of the process. After an interrupt it exits without waiting for running threads."""
    status = main()
    if status == 130:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mercer",
        description="Support vector machines and kernel methods: fast, exact and certified.",
        epilog="svm-train, svm-predict and svm-scale accept LIBSVM's options and files.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, module, text in (
        ("fit", fit, "fit a model to a data file, evaluate it and write a model file"),
        ("predict", predict, "predict new samples with a model file"),
        ("inspect", inspect, "show what a model file contains"),
        ("certify", certify, "recompute how far a model is from the optimum of its problem"),
        ("kernel-check", kernel_check, "test whether a kernel or a matrix satisfies Mercer's condition"),
        ("convert", convert, "convert a model to ONNX, Python, C, LIBSVM's format or a model file"),
        ("bench", bench, "compare the fitting times of mercer and scikit-learn"),
        ("studio", studio, "open a local page where you move points and see the exact machine"),
        ("warm", warm, "compile all loops now, so that no later fit waits for it"),
    ):
        one = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        module.add_arguments(one)
        one.set_defaults(run=module.run)

    demo = commands.add_parser(
        "demo",
        help="fit handwritten digits, compare with scikit-learn, draw a picture",
        description="Fit scikit-learn's handwritten digits with mercer and with scikit-learn, print a summary of both, "
        "and draw a few held-out digits next to their most influential support vectors.",
    )
    demo.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="folder for mercer-demo.png, created if it does not exist (default: the current folder)",
    )
    demo.set_defaults(run=_demo)
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    from mercer.cli.demo import run

    return run(arguments.output)
