"""Fit and predict one problem with every peer, in turns within one process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from datasets import Instance
from peers import COLUMNS, Judgement, Peer
from probe import WARM_UP_ROWS, probe

# mercer's dual equals the best if it is at most this much below it, relatively
EQUAL = 1e-6
# a peer misses the objective only if it is this much below: a peer that stops at tol is not blamed if mercer goes
# further
MISSED = 1e-4
# seconds: a call that takes longer is timed once; if all calls take less, there are MORE times as many rounds
LONG, SHORT, MORE = 60.0, 0.2, 5
# seconds: a first run that takes less is not counted
WARM = 10.0
# seconds of a turn: a shorter call is repeated and its mean counts, so that caches are not filled anew for each fit
TURN = 0.1


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    folder: Path | None = None
    repeats: int = 3
    cap: float = 600.0
    quick: bool = False


@dataclass(frozen=True)
class Timing:
    """The last result of a call and the seconds of all its runs."""

    result: Any
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.seconds)


@dataclass(frozen=True)
class Outcome:
    """The result of one peer on one problem. ``capped``: its fit did not end within the cap."""

    peer: str
    fit: Timing | None = None
    judgement: Judgement | None = None
    predict: Timing | None = None
    capped: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Chosen:
    """The outcome shown in a peer's column. ``short``: no variant of the peer reached the best dual value."""

    outcome: Outcome
    short: bool = False


@dataclass(frozen=True)
class Comparison:
    """All outcomes of one problem."""

    p: Instance
    outcomes: tuple[Outcome, ...]
    cap: float
    peak_mb: float | None = None
    chosen: dict[str, Chosen] = field(default_factory=dict)

    @property
    def best_dual(self) -> float:
        return max((o.judgement.dual for o in self.outcomes if o.judgement), default=-np.inf)

    def reaches(self, outcome: Outcome) -> bool:
        best, slack = self.best_dual, EQUAL if outcome.peer == "mercer" else MISSED
        return outcome.judgement is not None and outcome.judgement.dual >= best - slack * abs(best)

    def lead(self) -> float | None:
        """(mercer's dual - the best of the others) / |the best of the others|."""
        ours = self.chosen.get("mercer")
        others = [o.judgement.dual for o in self.outcomes if o.judgement and o.peer != "mercer"]
        if ours is None or ours.outcome.judgement is None or not others:
            return None
        return (ours.outcome.judgement.dual - max(others)) / max(abs(max(others)), 1e-300)

    def ratio(self, column: str, part: str = "fit") -> float | None:
        """The column's median time over mercer's; None if one of them has none."""
        ours, theirs = (self.chosen.get(c) for c in ("mercer", column))
        times = [getattr(c.outcome, part) if c else None for c in (ours, theirs)]
        if times[0] is None or times[1] is None:
            return None
        return times[1].median / times[0].median


def compare(p: Instance, peers: list[Peer], options: Options, sections: Collection[str]) -> Comparison:
    """Probe fits that may be slow, warm up, then fit and predict in turns and judge every model.

    Without the section "fit" one fit gives the model to predict with; without "predict" nothing is predicted.
    """
    say(f"{p.name}: {p.X.shape[0]:,} x {p.X.shape[1]}")
    peak_mb, outcomes, running = None, [], []
    for peer in peers:
        ours = peer.name == "mercer"
        if (ours or p.problem.slow) and not options.quick:
            tried = probe(p.name, peer.name, options.folder, options.cap)
            say(f"  {peer.name}: " + (f"probe {tried.seconds:.2f} s" if tried else f"over {options.cap:g} s"))
            if tried is None:
                outcomes.append(Outcome(peer.name, capped=True))
                continue
            peak_mb = tried.peak_mb if ours else peak_mb
            if tried.seconds > LONG and not ours and "predict" not in sections:
                # a fit that takes so long is timed once, by the probe
                timing, judgement = Timing(None, (tried.seconds,)), Judgement(**tried.judgement)
                outcomes.append(Outcome(peer.name, timing, judgement, remark=tried.remark))
                continue
        running.append(peer)
    given = {peer.name: peer.prepare(p) for peer in running}
    fit_repeats = options.repeats if "fit" in sections else 1
    warm_up(p, running)
    fits = in_turns({peer.name: lambda peer=peer: peer.fit(p, given[peer.name]) for peer in running}, fit_repeats)
    predicts: dict[str, Timing] = {}
    if "predict" in sections:
        calls = {
            peer.name: lambda peer=peer: peer.predict(fits[peer.name].result, given[peer.name]) for peer in running
        }
        predicts = in_turns(calls, options.repeats)
    for peer in running:
        model = fits[peer.name].result
        judgement, remark = peer.judge(p, model), peer.remark(model)
        outcomes.append(Outcome(peer.name, fits[peer.name], judgement, predicts.get(peer.name), remark=remark))
        say(f"  {peer.name}: fit {fits[peer.name].median:.4g} s, dual {judgement.dual:.10g} {remark}")
    return choose(Comparison(p, tuple(outcomes), options.cap, peak_mb))


def warm_up(p: Instance, peers: list[Peer]) -> None:
    """A tiny problem of the same kind: compiled code is loaded, threads are started."""
    tiny = p.head(WARM_UP_ROWS)
    for peer in peers:
        given = peer.prepare(tiny)
        peer.predict(peer.fit(tiny, given), given)


def in_turns(
    calls: dict[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = perf_counter
) -> dict[str, Timing]:
    """Time each call once a round; each round begins with another call, so that a slow moment affects all alike.

    A call that takes less than a turn is repeated until the turn is over; its mean counts. The first turn of a call
    only warms up, unless it takes so long that this makes no difference.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    results: dict[str, Any] = {}
    names, turn, rounds = list(calls), 0, repeats + 1
    while turn < rounds:
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            if len(seconds[name]) == repeats or (seconds[name] and seconds[name][0] > LONG):
                continue
            start, elapsed, runs = clock(), 0.0, 0
            while elapsed < TURN:
                results.pop(name, None)
                results[name] = calls[name]()
                elapsed, runs = clock() - start, runs + 1
            elapsed /= runs
            if turn > 0 or elapsed > WARM:
                seconds[name].append(elapsed)
        if turn == 1 and repeats == rounds - 1 and max((s[0] for s in seconds.values()), default=1.0) < SHORT:
            repeats, rounds = MORE * repeats, MORE * repeats + 1
        turn += 1
    return {name: Timing(results[name], tuple(seconds[name])) for name in calls}


def choose(c: Comparison) -> Comparison:
    """One outcome for each column: the fastest fit among those that reach the best dual, else the fastest at all."""
    chosen: dict[str, Chosen] = {}
    for column, variants in COLUMNS.items():
        present = [o for o in c.outcomes if o.peer in variants]
        ended = [o for o in present if o.fit is not None]
        reaching = [o for o in ended if c.reaches(o)]
        pool = reaching or ended
        if not pool:
            if present:
                chosen[column] = Chosen(present[0])
            continue
        fastest = min(pool, key=lambda o: o.fit.median)
        predicts = [o.predict for o in pool if o.predict is not None]
        quickest = min(predicts, key=lambda t: t.median) if predicts else None
        chosen[column] = Chosen(replace(fastest, predict=quickest), short=not reaching)
    return replace(c, chosen=chosen)


def agreement(c: Comparison, column: str) -> str:
    """Predictions equal to mercer's: the share of labels, or the largest difference of values."""
    pair = [c.chosen[name].outcome.predict if name in c.chosen else None for name in ("mercer", column)]
    if pair[0] is None or pair[1] is None:
        return "–"
    ours, theirs = np.asarray(pair[0].result), np.asarray(pair[1].result)
    if c.p.task == "classify":
        return f"{100 * np.mean(ours == theirs):.2f} %"
    return f"±{np.abs(ours - theirs).max():.1e}"


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
