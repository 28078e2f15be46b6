"""Linear machines: mercer against LIBLINEAR, skglm, SGDClassifier and Snap ML, to the same value of the primal.

    python benchmarks/linear.py --data DIR [--sets a9a,made] [--targets 1e-4,1e-6] [--cap 20] [--write FILE]

The optimum is known from mercer's certificate at tol = 1e-9. Each peer is run with one tolerance after the other, the
loosest first, until its model is within the target of the optimum; the time of that run counts. The same holds for
mercer, although its tol promises more: its default of 1e-4 bounds the distance to an optimum that nobody knows. Each
tolerance is first tried in a forked process, which is ended at the cap; short runs are then timed in this one, where
memory and threads are warm. A peer that was stopped before it reached the target needs more time than its longest run:
this time enters tables and means as a bound, marked with ">". A peer that misses the target with its tightest tolerance
has no time ("–") and does not enter the means. Progress goes to stderr, tables to stdout.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
from linear_peers import TOLERANCES, Mercer, Model, Peer, peers, quiet
from linear_problems import CS, LOSSES, SETS, Problem, Set
from probe import PeakMemory
from table import NONE, digits, geometric_mean, machine, table

# a run of at least this many seconds is not repeated; a shorter one is run at most this many times
ENOUGH, MORE = 2.0, 15
WARM_UP_ROWS = 200
# seconds for which a peer is run before it is timed: after a fork memory is slow for about 0.1 s
WARM_UP = 0.3
# a process that has computed for less than this share of the cap counts as hanging
HANGS = 0.05


@dataclass(frozen=True)
class Options:
    folder: Path | None
    targets: tuple[float, ...]
    repeats: int
    cap: float
    n_threads: int
    cpu: bool


@dataclass(frozen=True)
class Attempt:
    """One tolerance of one peer: seconds and the model, None if the run was stopped after these seconds."""

    seconds: float
    model: Model | None


@dataclass(frozen=True)
class Reached:
    """Seconds to a target; more than these if ``bound``."""

    seconds: float
    bound: bool = False

    def __str__(self) -> str:
        return ("> " if self.bound else "") + digits(self.seconds)


Times = dict[str, dict[float, Reached]]


def attempt(peer: Peer, p: Problem, given: Any, tol: float, options: Options) -> Attempt | None:
    """Fit in a forked process, which is stopped at the cap; None if it crashes or hangs."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, peer, p, given, tol, options))
    before = _seconds_of_children()
    child.start()
    sender.close()
    ended, result = False, None
    try:
        ended = receiver.poll(options.cap)
        result = receiver.recv() if ended else None
    except EOFError:  # the peer has brought the process down
        pass
    finally:
        child.kill()
        child.join()
    used = _seconds_of_children() - before
    if ended or used < HANGS * options.cap:
        return result
    return Attempt(used if options.cpu else options.cap, None)


def _seconds_of_children() -> float:
    """Processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _child(sender: Connection, peer: Peer, p: Problem, given: Any, tol: float, options: Options) -> None:
    clock = process_time if options.cpu else perf_counter
    start = clock()
    model = quiet(peer, p, given, tol, options.n_threads)
    sender.send(Attempt(clock() - start, model))


def timed(peer: Peer, p: Problem, given: Any, tol: float, options: Options) -> float:
    """The median of the repeats after warm-up runs; short runs are repeated for a second, at most MORE times."""
    clock, seconds = process_time if options.cpu else perf_counter, []
    begin = perf_counter()
    quiet(peer, p, given, tol, options.n_threads)
    while perf_counter() - begin < WARM_UP:
        quiet(peer, p, given, tol, options.n_threads)
    begin = perf_counter()
    while len(seconds) < options.repeats or (len(seconds) < MORE and perf_counter() - begin < 1.0):
        start = clock()
        quiet(peer, p, given, tol, options.n_threads)
        seconds.append(clock() - start)
    return median(seconds)


def reach(peer: Peer, p: Problem, optimum: float, options: Options) -> dict[float, Reached]:
    """Seconds to each target: that of the loosest tolerance whose model is within it; missing where none is."""
    given = peer.prepare(p, options.n_threads)
    found: dict[float, Reached] = {}
    spent = longest = 0.0
    for tol in TOLERANCES:
        missing = [target for target in options.targets if target not in found]
        if not missing:
            break
        stopped = spent > options.cap
        if not stopped:
            result = attempt(peer, p, given, tol, options)
            if result is None:
                break
            spent, longest = spent + result.seconds, max(longest, result.seconds)
            stopped = result.model is None
        if stopped:
            # a tighter tolerance takes at least as long as a looser one
            found.update(dict.fromkeys(missing, Reached(longest, bound=True)))
            break
        excess = p.value(*result.model) / optimum - 1.0
        near = [target for target in missing if excess <= target]
        if near:
            seconds = timed(peer, p, given, tol, options) if result.seconds < ENOUGH else result.seconds
            found.update(dict.fromkeys(near, Reached(seconds)))
    return found


def compare(p: Problem, chosen: Sequence[Peer], options: Options) -> Times:
    """Seconds of every peer to every target."""
    w, b = quiet(Mercer(), p, p.X, 1e-9, options.n_threads)
    optimum = p.value(w, b)
    say(f"{p.name}: {p.X.shape[0]:,} x {p.X.shape[1]}, optimum {optimum:.10g}")
    times = {}
    for peer in chosen:
        if peer.takes(p):
            tiny = Problem(p.X[:WARM_UP_ROWS], _two(p), p.set, p.loss, p.C)
            quiet(peer, tiny, peer.prepare(tiny, options.n_threads), 1e-2, options.n_threads)
            times[peer.name] = reach(peer, p, optimum, options)
            say("  " + peer.name + ": " + ", ".join(f"{t:g} in {s} s" for t, s in times[peer.name].items()))
    return times


def _two(p: Problem) -> np.ndarray:
    """Targets of the tiny problem, with both classes among them."""
    y = p.y[:WARM_UP_ROWS].copy()
    if p.set.task == "classify":
        y[0], y[1] = 1.0, -1.0
    return y


def report(results: dict[str, Times], names: Sequence[str], target: float) -> str:
    """The table of one target, and the geometric means of the ratios: bounds where some ratio is a bound."""
    others = [name for name in names if name != "mercer"]
    rows: list[list[str]] = []
    ratios: dict[str, list[tuple[float, str, bool]]] = {name: [] for name in [*others, "best"]}
    for problem, times in results.items():
        ours = times["mercer"].get(target)
        theirs = {name: times.get(name, {}).get(target) for name in others}
        peers_only = [s for name, s in theirs.items() if s is not None and not name.startswith("mercer")]
        best = min(peers_only, key=lambda s: (s.seconds, s.bound), default=None)
        ratio = NONE
        for name, reached in [*theirs.items(), ("best", best)]:
            if ours is not None and not ours.bound and reached is not None:
                ratios[name].append((reached.seconds / ours.seconds, problem, reached.bound))
                ratio = str(Reached(reached.seconds / ours.seconds, reached.bound))
        shown = [NONE if s is None else str(s) for s in (ours, *theirs.values())]
        rows.append([problem, *shown, ratio if best is not None else NONE])
    head = ["problem", "mercer", *others, "best peer / mercer"]
    means = []
    for name, found in ratios.items():
        if found:
            mean = Reached(geometric_mean([ratio for ratio, _, _ in found]), any(bound for _, _, bound in found))
            least, on, bound = min(found)
            bounds = sum(bound for _, _, bound in found)
            means.append([name, str(mean), str(Reached(least, bound)), on, str(len(found)), str(bounds)])
    heads = ["ratio to mercer", "geometric mean", "smallest", "on", "problems", "of which bounds"]
    return table(head, rows) + "\n\n" + table(heads, means)


def memory_map(rows: int, columns: int, n_threads: int) -> str:
    """The growth of the resident memory, the map not counted, while a machine is fitted to rows on disk."""
    import tempfile

    from mercer import LinearSVC

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        X = np.lib.format.open_memmap(Path(folder) / "X.npy", "w+", np.float32, (rows, columns))
        w = rng.normal(size=columns)
        y = np.empty(rows)
        for start in range(0, rows, 50_000):
            block = rng.normal(size=(min(50_000, rows - start), columns))
            X[start : start + len(block)] = block
            y[start : start + len(block)] = np.sign(block @ w + 3 * rng.normal(size=len(block)))
        del X
        X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        LinearSVC(loss="hinge").fit(np.asarray(X[:1000]), y[:1000])
        with PeakMemory() as memory:
            start = perf_counter()
            model = LinearSVC(loss="hinge", n_jobs=n_threads).fit(X, y)
            seconds = perf_counter() - start
        size = X.nbytes / 2**20
    return (
        f"{rows:,} x {columns} float32 ({size:.0f} MB on disk), hinge loss, C = 1: {seconds:.2f} s, relative gap "
        f"{model.certificate_.relative_gap:.1e}, resident memory grew by {memory.mb:.0f} MB, at most {size:.0f} MB of "
        "which are pages of the map."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--sets", default="", help="parts of names of problems, separated by commas: a9a,made-hinge")
    parser.add_argument("--peers", default="", help="parts of names of peers, separated by commas")
    parser.add_argument("--solvers", action="store_true", help="mercer's solvers by name as well")
    parser.add_argument("--Cs", default=",".join(f"{C:g}" for C in CS))
    parser.add_argument("--targets", default="1e-4,1e-6", help="relative distances to the optimum")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cap", type=float, default=20.0, help="seconds for a peer on a problem")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall-clock time")
    parser.add_argument("--rows", type=int, help="the first rows only: a test of this program")
    parser.add_argument("--memory", type=int, metavar="ROWS", help="instead: fit this many rows of a memory map")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report as Markdown")
    given = parser.parse_args(arguments)
    if given.memory:
        print(memory_map(given.memory, 50, given.threads))
        return 0
    targets = tuple(float(t) for t in given.targets.split(","))
    options = Options(given.data, targets, given.repeats, given.cap, given.threads, given.cpu)
    words, wanted = given.sets.split(","), given.peers.split(",")
    chosen = [p for p in peers(given.solvers) if p.name == "mercer" or any(word in p.name for word in wanted)]
    results: dict[str, Times] = {}
    text = ""
    for entry in SETS:
        names = [
            (loss, float(C))
            for loss in LOSSES[entry.task]
            for C in given.Cs.split(",")
            if any(word in f"{entry.name}-{loss}-{float(C):g}" for word in words)
        ]
        data = _load(entry, options.folder, given.rows) if names else None
        for loss, C in names if data else []:
            p = Problem(*data, entry, loss, C)
            results[p.name] = compare(p, chosen, options)
            text = "\n\n".join([machine(), *(_section(results, t) for t in targets)]) + "\n"
            if given.write:
                given.write.write_text(f"# Linear machines\n\n{text}", encoding="utf-8")
    print(text)
    return 0


def _section(results: dict[str, Times], target: float) -> str:
    names = list(dict.fromkeys(name for times in results.values() for name in times))
    return f"## Seconds to within {target:g} of the optimum\n\n{report(results, names, target)}"


def _load(entry: Set, folder: Path | None, rows: int | None) -> tuple[Any, np.ndarray] | None:
    try:
        X, y = entry.load(folder)
    except FileNotFoundError as missing:
        say(f"{entry.name} left out: {missing}.")
        return None
    return (X, y) if rows is None else (X[:rows], y[:rows])


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
