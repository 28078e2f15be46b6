"""Kernel machines: mercer against scikit-learn, scikit-learn-intelex and LIBSVM.

    python benchmarks/kernel_svm.py --data DIR [--sets a,b] [--only fit] [--quick] [--write docs/benchmarks.md]

Without --data it runs on scikit-learn's bundled sets and generated ones. Progress goes to stderr, tables to stdout.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import extras
from datasets import BUNDLED, STORED, find, instance
from measure import EQUAL, LONG, MISSED, MORE, SHORT, TURN, WARM, Comparison, Options, compare, say
from peers import CACHE_MB, TOL, available
from table import fit_table, machine, predict_table, quality_table, remarks, summary

SECTIONS = ("fit", "predict", "small", "inner", "scaling", "memory")
QUICK_ROWS = 1000


class Report:
    """Sections in the order of their first appearance. Written after every change, so that a stopped run leaves one."""

    def __init__(self, path: Path | None, preamble: str) -> None:
        self.path = path
        self.parts = {"": preamble}

    def put(self, title: str, text: str) -> None:
        self.parts[title] = text
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(str(self), encoding="utf-8")

    def __str__(self) -> str:
        return "\n\n".join(f"## {title}\n\n{text}" if title else text for title, text in self.parts.items()) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets (NAME.npz, NAME.csr.npz)")
    parser.add_argument("--sets", default="", help="names of problems, separated by commas; NAME@ROWS takes a part")
    parser.add_argument("--peers", default="", help="those compared, separated by commas: mercer, scikit-learn, …")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each peer, of which the median counts")
    parser.add_argument("--only", choices=SECTIONS, help="one section instead of all")
    parser.add_argument("--cap", type=float, default=600.0, help="seconds after which a slow peer's fit is given up")
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_ROWS} rows: a test of this program")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report as Markdown")
    given = parser.parse_args(arguments)
    if given.repeats < 1:
        parser.error(f"--repeats is {given.repeats}: give at least 1.")
    if given.data is not None and not given.data.is_dir():
        parser.error(f"--data {given.data} is not a folder.")
    names = [name for name in given.sets.split(",") if name] or [p.name for p in (STORED if given.data else BUNDLED)]
    try:
        [find(name) for name in names]
    except ValueError as unknown:
        parser.error(str(unknown))

    options = Options(given.data, given.repeats, given.cap, given.quick)
    report = Report(given.write, preamble(options))
    sections = (given.only,) if given.only else SECTIONS
    if {"fit", "predict"} & set(sections):
        compare_all(names, options, sections, report, given.peers)
    if "small" in sections:
        text = "Warm fits, then what a new process pays; compiled code is on disk.\n\n"
        report.put("Small problems", text + extras.small_problems(options) + "\n\n" + extras.start_up(options))
    if "inner" in sections:
        text = "Sequential minimal optimisation on one block, Gaussian kernel, random labels, C = 1000.\n\n"
        report.put("Inner step", text + extras.inner_step(options))
    if "scaling" in sections:
        text = "Seconds, medians. Time grows like n to the exponent: from the size before, or over all sizes.\n\n"
        report.put("Growth with n", text + extras.scaling(options, names if given.sets else ()))
    if "memory" in sections:
        report.put("Memory", extras.memory(options))
    print(report)
    return 0


def compare_all(
    names: Sequence[str], options: Options, sections: Sequence[str], report: Report, wanted: str = ""
) -> None:
    """Fit and predict every problem; the report grows with each."""
    peers = [peer for peer in available() if not wanted or peer.name.split()[0] in wanted.split(",")]
    done: list[Comparison] = []
    notes: list[str] = []
    for name in names:
        try:
            p = instance(f"{name}@{QUICK_ROWS}" if options.quick and "@" not in name else name, options.folder)
            done.append(compare(p, peers, options, sections))
        except FileNotFoundError as missing:
            notes.append(f"{name} left out: {missing}.")
            say(notes[-1])
        except (ValueError, RuntimeError, MemoryError, subprocess.CalledProcessError) as error:
            # hours of other results must not be lost
            notes.append(f"{name} failed: {error}")
            say(notes[-1])
        if done and "fit" in sections:
            report.put("Fit", fit_text(done))
        if done and "predict" in sections:
            report.put("Predict", predict_text(done))
        report.put("Remarks", "\n".join(f"- {line}" for line in [*notes, *remarks(done, sections)]) or "None.")


def fit_text(done: Sequence[Comparison]) -> str:
    return "\n\n".join([
        "Seconds, medians. Ratios above 1: mercer is faster. †: misses the objective.",
        fit_table(done),
        summary(done),
        "Relative duality gaps of the same models, recomputed in float64:",
        quality_table(done),
    ])  # fmt: skip


def predict_text(done: Sequence[Comparison]) -> str:
    return "\n\n".join([
        "Seconds, medians, for the test part, or for training rows where a set has none. "
        "Equal: the share of equal labels (LIBSVM breaks ties of votes by the order in which classes appear), or the "
        "largest difference of values.",
        predict_table(done),
        summary(done, "predict"),
    ])  # fmt: skip


def preamble(options: Options) -> str:
    command = shlex.join(["python", *sys.argv])
    quick = f" **--quick: at most {QUICK_ROWS} rows, not a measurement.**" if options.quick else ""
    return f"""# Benchmarks

Written by `{command}` on {date.today().isoformat()}.{quick}

{machine()}

How it is measured:

- All peers solve the same problem, Gaussian kernel, tol = {TOL:g}. mercer has its defaults; scikit-learn,
  scikit-learn-intelex and LIBSVM have a cache of {CACHE_MB} MB. scikit-learn-intelex ("intelex") runs in float32 and in
  float64: the faster one that reaches the objective is shown. LIBSVM uses all cores through OpenMP, with
  OMP_WAIT_POLICY={os.environ["OMP_WAIT_POLICY"]}: threads that spin while they wait slow it down on a busy machine.
- Every peer first fits a tiny problem of the same kind, and its first run is not counted unless it takes more than
  {WARM:g} s: neither imports, nor compilation, nor the conversion of the data to the peer's favourite form are timed.
- The peers take turns within one process, medians of {options.repeats} turns. A turn lasts {TURN:g} s or one fit,
  whichever is longer: shorter fits are repeated, as timeit does, and their mean is the turn's time. Fits of more than
  {LONG:g} s are timed once; where all take less than {SHORT:g} s there are {MORE} times as many turns.
- Where a set is marked as slow, each peer's first fit runs in a process of its own and is given up after
  {options.cap:g} s; if it takes more than {LONG:g} s, it is the one that counts.
- Dual objectives and gaps are recomputed in float64 from data and coefficients by `mercer.certify`. Coefficients of the
  peers are first moved into the box and to sum zero, which float32 misses by its rounding; mercer's are taken as they
  are. "Equal objective": mercer's dual value is at most {EQUAL:g} (relative) below the best of all peers. A peer more
  than {MISSED:g} below the best is marked † and left out of the means.
- Peak MB: the largest growth of the resident memory during mercer's fit, alone in a new process."""


if __name__ == "__main__":
    raise SystemExit(main())
