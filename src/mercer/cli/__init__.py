"""The command ``mercer``: parse, call, print.

Each subcommand imports what it needs when it is run: ``mercer --help`` loads neither numba nor scikit-learn.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mercer.exceptions import MercerError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` unless given) and return the exit status."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.version:
        import mercer

        print(f"mercer {mercer.__version__}")
        return 0
    if arguments.command is None:
        parser.print_help()
        return 0
    try:
        status: int = arguments.run(arguments)
    except MercerError as error:
        print(f"mercer {arguments.command}: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mercer", description="Support vector machines and kernel methods: fast, exact and certified."
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="fit handwritten digits, compare with scikit-learn, draw a picture",
        description="Fit scikit-learn's handwritten digits with mercer and with scikit-learn, print a summary of both, "
        "and draw a few held-out digits beside the support vectors that decide them.",
    )
    demo.add_argument(
        "--output",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="folder for mercer-demo.png, made if it does not exist (default: this one)",
    )
    demo.set_defaults(run=_demo)
    return parser


def _demo(arguments: argparse.Namespace) -> int:
    from mercer.cli.demo import run

    return run(arguments.output)
