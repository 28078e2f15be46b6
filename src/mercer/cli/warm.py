"""``mercer warm``: compile all loops, or load them, before they are needed."""

from __future__ import annotations

import argparse
import shutil
import sys


def run(arguments: argparse.Namespace) -> int:
    """Run the jobs and print what each has compiled; return the exit status."""
    from mercer._compiled import machine_code
    from mercer.workflow.warm import warm

    done = warm(*arguments.names, progress=_show if sys.stderr.isatty() and not arguments.quiet else None)
    if sys.stderr.isatty() and not arguments.quiet:
        _erase()
    for job in done:
        if job.compiled:
            print(f"{job.name:<50} {job.compiled:4d} functions {job.seconds:7.1f} s")
    compiled, seconds = sum(job.compiled for job in done), sum(job.seconds for job in done)
    print(f"{len(done)} jobs, {compiled} functions compiled, {seconds:.1f} s.")
    package, directory = machine_code.shipped(), machine_code.cache_directory()
    if package is not None:
        print(f"Machine code of the package: {package.level}.")
    if directory is not None:
        print(f"Machine code of this machine: {directory}.")
    return 0


def _show(done: int, total: int, text: str) -> None:
    """Draw a progress bar on standard error."""
    from mercer.selection.search.candidates import bar

    width = shutil.get_terminal_size((100, 24)).columns - 1
    line = f"[{bar(done / total)}] {done} of {total}  {text}"
    print("\r" + line[:width].ljust(width), end="", file=sys.stderr, flush=True)


def _erase() -> None:
    print("\r" + " " * (shutil.get_terminal_size((100, 24)).columns - 1) + "\r", end="", file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="what will be used, such as SVC or GaussianProcessRegressor (default: everything, which takes minutes)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
