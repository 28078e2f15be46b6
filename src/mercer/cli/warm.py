"""``mercer warm``: compile all loops, or load them, before they are needed."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import Any

from mercer.cli.terminal import JobDisplay


def run(arguments: argparse.Namespace) -> int:
    """Run the jobs and print how many functions each has compiled; return the exit status."""
    from mercer._compiled import machine_code
    from mercer.workflow.warm_jobs import Warmed, run_jobs

    terminal, done = sys.stderr.isatty(), list[Warmed]()
    with JobDisplay(arguments.quiet or not terminal) as display:
        for job in run_jobs(arguments.names, partial(_show, display)):
            done.append(job)
            if not terminal and not arguments.quiet:  # a log of a build shows that it goes on
                _print(job)
    for job in done:
        if job.compiled and (terminal or arguments.quiet):
            _print(job)
    compiled, seconds = sum(job.compiled for job in done), sum(job.seconds for job in done)
    print(f"{len(done)} jobs, {compiled} functions compiled, {seconds:.1f} s.")
    package, directory = machine_code.shipped(), machine_code.cache_directory()
    if package is not None:
        print(f"Machine code of the package: {package.level}.")
    if directory is not None:
        print(f"Machine code of this machine: {directory}.")
    return 0


def _print(job: Any) -> None:
    print(f"{job.name:<50} {job.compiled:4d} functions {job.seconds:7.1f} s", flush=True)


def _show(display: JobDisplay, done: int, total: int, text: str) -> None:
    """Draw a progress bar on standard error."""
    from mercer.selection.search.candidates import bar

    if not display.quiet:
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
