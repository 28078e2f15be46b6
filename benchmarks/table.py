"""Numbers as Markdown: tables, the machine, and remarks that follow from the numbers."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from measure import EQUAL, LONG, Chosen, Comparison, agreement

PEERS = ("scikit-learn", "intelex", "libsvm")
NONE = "–"
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "scikit-learn-intelex", "libsvm-official", "threadpoolctl")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An aligned Markdown table: the first column to the left, the others to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(header))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines.insert(1, rule)
    return "\n".join(
        "| " + " | ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
        + " |"
        for line in lines
    )  # fmt: skip


def digits(value: float | None) -> str:
    """Three significant digits."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}"


def small(value: float | None) -> str:
    return NONE if value is None or not math.isfinite(value) else f"{value:.1e}"


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


# ---- fit -----------------------------------------------------------------------------------------------------------


def fit_table(comparisons: Sequence[Comparison]) -> str:
    header = ["set", "n × d", "classes", "C", "mercer", *PEERS, *(f"{peer} / mercer" for peer in PEERS)]
    header += ["support vectors", "evaluations / (n·nSV)", "peak MB", "equal objective"]
    return table(header, [_fit_row(c) for c in comparisons])


def _fit_row(c: Comparison) -> list[str]:
    n, d = c.p.X.shape
    row = [c.p.name, f"{n:,} × {d}", str(c.p.n_classes) if c.p.n_classes else "SVR", f"{c.p.problem.C:g}"]
    row += [_seconds(c, column) for column in ("mercer", *PEERS)]
    row += [_ratio(c, column) for column in PEERS]
    ours = c.chosen.get("mercer")
    if ours is None or ours.outcome.fit is None:
        return row + [NONE] * 4
    model, n_support = ours.outcome.fit.result, ours.outcome.judgement.n_support
    evaluations = getattr(model, "kernel_evaluations_", None)
    share = evaluations / (n * n_support) if evaluations is not None and n_support else None
    return [*row, f"{n_support:,}", digits(share), digits(c.peak_mb), "no" if ours.short else "yes"]


def _seconds(c: Comparison, column: str) -> str:
    chosen = c.chosen.get(column)
    if chosen is not None and chosen.outcome.capped:
        return f"> {c.cap:g}"
    if chosen is None or chosen.outcome.fit is None:
        return NONE
    return digits(chosen.outcome.fit.median) + ("†" if chosen.short else "")


def _ratio(c: Comparison, column: str) -> str:
    chosen, ours = c.chosen.get(column), c.chosen.get("mercer")
    if chosen is not None and chosen.outcome.capped and ours is not None and ours.outcome.fit is not None:
        return f"> {digits(c.cap / ours.outcome.fit.median)}"
    ratio = c.ratio(column)
    return digits(ratio) + ("†" if ratio is not None and chosen.short else "")


def quality_table(comparisons: Sequence[Comparison]) -> str:
    """Relative duality gaps, and mercer's dual against the best of the others."""
    columns = ("mercer", *PEERS)
    header = ["set", *(f"gap, {column}" for column in columns), "mercer's dual − best peer's, relative"]
    rows = []
    for c in comparisons:
        judged = [c.chosen[name].outcome.judgement if name in c.chosen else None for name in columns]
        lead = c.lead()
        rows.append([c.p.name, *(small(j.relative_gap if j else None) for j in judged)])
        rows[-1].append(NONE if lead is None else f"{lead:+.1e}")
    return table(header, rows)


def summary(comparisons: Sequence[Comparison], part: str = "fit") -> str:
    """Geometric mean and smallest of the ratios. Peers that miss the objective or the cap are left out."""
    rows = []
    for column in PEERS:
        counted = [
            (c.ratio(column, part), c.p.name)
            for c in comparisons
            if c.ratio(column, part) is not None and not c.chosen[column].short
        ]
        smallest = min(counted, default=(None, NONE))
        mean = geometric_mean([ratio for ratio, _ in counted])
        rows.append([f"{column} / mercer", digits(mean), digits(smallest[0]), smallest[1], str(len(counted))])
    return table(["ratio of times", "geometric mean", "smallest", "on", "sets counted"], rows)


# ---- predict -------------------------------------------------------------------------------------------------------


def predict_table(comparisons: Sequence[Comparison]) -> str:
    header = ["set", "rows", "mercer", *PEERS, *(f"{peer} / mercer" for peer in PEERS)]
    header += [f"equal to {peer}" for peer in PEERS]
    rows = []
    for c in comparisons:
        row = [c.p.name, f"{c.p.X_test.shape[0]:,}"]
        row += [digits(_predict_seconds(c.chosen.get(column))) for column in ("mercer", *PEERS)]
        row += [digits(c.ratio(column, "predict")) for column in PEERS]
        rows.append(row + [agreement(c, column) for column in PEERS])
    return table(header, rows)


def _predict_seconds(chosen: Chosen | None) -> float | None:
    return chosen.outcome.predict.median if chosen and chosen.outcome.predict else None


# ---- remarks -------------------------------------------------------------------------------------------------------


def remarks(comparisons: Sequence[Comparison], sections: Collection[str]) -> list[str]:
    """What a reader should know before quoting the tables; each line is computed."""
    lines = []
    for part, verb in (("fit", "fits"), ("predict", "predicts")):
        if part not in sections:
            continue
        for column in PEERS:
            ratios = {c.p.name: c.ratio(column, part) for c in comparisons}
            ahead = [f"{name} ({digits(ratio)})" for name, ratio in ratios.items() if ratio is not None and ratio < 1]
            if ahead:
                lines.append(f"{column} {verb} faster than mercer on {', '.join(ahead)}: its time over mercer's.")
    behind = [c.p.name for c in comparisons if "mercer" in c.chosen and c.chosen["mercer"].short]
    if behind:
        lines.append(f"mercer's dual is more than {EQUAL:g} (relative) below the best on {', '.join(behind)}.")
    for column in PEERS:
        short = [c.p.name for c in comparisons if column in c.chosen and c.chosen[column].short]
        if short:
            lines.append(f"{column} does not reach the best dual value on {', '.join(short)} (†; not in the means).")
    for c in comparisons:
        slow = [o.peer for o in c.outcomes if o.capped]
        if slow:
            lines.append(f"{', '.join(slow)} did not end within {c.cap:g} s on {c.p.name} (not in the means).")
        once = [o.peer for o in c.outcomes if o.fit and o.fit.seconds[0] > LONG]
        if once:
            lines.append(f"{', '.join(once)} timed once on {c.p.name}.")
        lines += [f"{o.peer} on {c.p.name}: {o.remark}." for o in c.outcomes if o.remark]
    return lines


# ---- the machine ---------------------------------------------------------------------------------------------------


def machine() -> str:
    import psutil

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"{os.getloadavg()[0]:.2f} at the start" if hasattr(os, "getloadavg") else NONE
    rows = [
        ["processor", _processor()],
        ["cores used", str(cores)],
        ["memory", f"{psutil.virtual_memory().total / 2**30:.1f} GB"],
        ["load average", load],
        ["system", platform.platform()],
        ["Python", platform.python_version()],
        ["mercer", f"{_version('mercer')}, {_commit()}"],
        *([name, _version(name)] for name in PACKAGES),
    ]
    return table(["", "this run"], rows)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or NONE


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return "commit " + subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "no commit known"
