"""``mercer warm``: compile all loops, or load them, before they are needed."""

from __future__ import annotations

import argparse
import sys
from functools import partial

from mercer.cli.terminal import JobDisplay


def run(arguments: argparse.Namespace) -> int:
    """Run the jobs and print how many functions each has compiled; return the exit status."""
    from mercer._compiled import machine_code
    from mercer.workflow.warm_jobs import warm

    quiet = arguments.quiet or not sys.stderr.isatty()
    with JobDisplay(quiet) as display:
        done = warm(*arguments.names, progress=None if quiet else partial(_show, display))
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


def _show(display: JobDisplay, done: int, total: int, text: str) -> None:
    """Draw a progress bar on standard error."""
    from mercer.selection.search.candidates import bar

    display.draw(f"[{bar(done / total)}] {done} of {total}  {text}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs="*",
        help="compile for these, such as SVC or GaussianProcessRegressor (default: everything, which takes minutes)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
