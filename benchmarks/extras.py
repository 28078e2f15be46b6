"""Measurements beside single fits on real data: growth with n, memory, small problems, start-up, the inner step."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from statistics import median
from time import perf_counter

import numpy as np
from datasets import instance
from measure import Options, in_turns, say, warm_up
from peers import MERCER, SKLEARN
from probe import probe
from table import NONE, digits, table

BLOCK = 512
BLOCK_STEPS = 20_000
SIZES = (10_000, 20_000, 40_000, 80_000)
SMALL = (50, 150, 500, 1000)
LARGE = "generated_100000x50"

IMPORT = "{}; import time; start = time.perf_counter(); {}; print(time.perf_counter() - start)"
FIRST_FIT = (
    "import numpy as np; from {} import SVC; X = np.random.default_rng(0).normal(size=(150, 4)); "
    "SVC().fit(X, X[:, 0] > 0.1)"
)


def scaling(options: Options, bases: Sequence[str] = ()) -> str:
    """Fit times at growing n, and the exponent of n in the time between two sizes; two sets unless some are named."""
    sizes = tuple(size // 80 for size in SIZES) if options.quick else SIZES
    rows = []
    for base in bases or ("skin_nonskin", f"generated_{sizes[-1]}x10"):
        times: list[dict[str, float]] = []
        for n in sizes:
            try:
                p = instance(f"{base}@{n}", options.folder)
            except FileNotFoundError as missing:
                say(f"scaling: {base} left out: {missing}")
                break
            say(f"scaling: {p.name}")
            both = [MERCER, SKLEARN]
            warm_up(p, both)
            given = {peer.name: peer.prepare(p) for peer in both}
            calls = {peer.name: lambda peer=peer, p=p, g=given: peer.fit(p, g[peer.name]) for peer in both}
            fits = in_turns(calls, options.repeats)
            times.append({name: timing.median for name, timing in fits.items()})
            ours, theirs = times[-1]["mercer"], times[-1]["scikit-learn"]
            exponents = [NONE, NONE]
            if len(times) > 1:
                growth = np.log(n / sizes[len(times) - 2])
                exponents = [digits(np.log(times[-1][name] / times[-2][name]) / growth) for name in times[-1]]
            n_support = len(fits["mercer"].result.support_)
            rows.append([base, f"{n:,}", digits(ours), digits(theirs), digits(theirs / ours), *exponents])
            rows[-1].append(f"{n_support:,}")
        if len(times) > 1:
            slopes = [np.polyfit(np.log(sizes), np.log([t[name] for t in times]), 1)[0] for name in times[0]]
            rows.append([base, "all", NONE, NONE, NONE, *map(digits, slopes), NONE])
    header = ["set", "n", "mercer", "scikit-learn", "scikit-learn / mercer", "exponent, mercer"]
    return table([*header, "exponent, scikit-learn", "support vectors"], rows)


def memory(options: Options) -> str:
    """One large fit by mercer, alone in its process."""
    name = "generated_1000x50" if options.quick else LARGE
    say(f"memory: {name}")
    result = probe(name, "mercer", options.folder, options.cap)
    n, _, d = name.partition("_")[2].partition("x")
    data = int(n) * int(d) * 8 / 2**20
    seconds = digits(result.seconds) if result else f"> {options.cap:g}"
    row = [name, seconds, digits(result.peak_mb if result else None), digits(data), digits(int(n) ** 2 * 8 / 2**20)]
    return table(["set", "seconds", "peak MB during the fit", "MB of X", "MB of K in float64"], [row])


def small_problems(options: Options) -> str:
    """Warm fits of small problems, where fixed costs decide."""
    rows, ahead = [], []
    for n in SMALL[:2] if options.quick else SMALL:
        p = instance(f"generated_{n}x10", None)
        both = [MERCER, SKLEARN]
        warm_up(p, both)
        given = {peer.name: peer.prepare(p) for peer in both}
        calls = {peer.name: lambda peer=peer, p=p, g=given: peer.fit(p, g[peer.name]) for peer in both}
        fits = in_turns(calls, 1 if options.quick else 2 * options.repeats)
        ours, theirs = fits["mercer"].median, fits["scikit-learn"].median
        rows.append([str(n), digits(1e3 * ours), digits(1e3 * theirs), digits(theirs / ours)])
        ahead += [str(n)] if theirs < ours else []
    text = table(["n (10 columns)", "mercer, ms", "scikit-learn, ms", "scikit-learn / mercer"], rows)
    return f"{text}\n\nscikit-learn is faster at n = {', '.join(ahead)}." if ahead else text


def start_up(options: Options) -> str:
    """Import, and a whole process from its start to the end of its first fit, with compiled code on disk."""
    say("start-up")
    runs = 1 if options.quick else 3
    theirs = _printed_seconds(IMPORT.format("pass", "from sklearn.svm import SVC"), runs)
    ours = _printed_seconds(IMPORT.format("from sklearn.svm import SVC", "from mercer import SVC"), runs)
    processes = {}
    for module in ("mercer", "sklearn.svm"):
        code = FIRST_FIT.format(module)
        _run(code)
        processes[module] = median(_wall_seconds(code) for _ in range(runs))
    rows = [
        ["import scikit-learn's SVC", digits(theirs)],
        ["import mercer's SVC after it", digits(ours)],
        ["process with a first fit, scikit-learn", digits(processes["sklearn.svm"])],
        ["process with a first fit, mercer", digits(processes["mercer"])],
    ]
    return table(["from a new process", "seconds"], rows)


def inner_step(options: Options) -> str:
    """Seconds per step of sequential minimal optimisation on a block with random labels: many steps to the optimum."""
    from mercer.svm._block_newton_loops import newton_address
    from mercer.svm._smo_loops import solve_block

    rng = np.random.default_rng(0)
    X = rng.normal(size=(BLOCK, 10))
    squares = (X**2).sum(axis=1)
    K = np.exp(-0.05 * np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0.0))
    y = np.where(rng.random(BLOCK) < 0.5, 1.0, -1.0)
    lower, upper, zero = np.minimum(0.0, 1e3 * y), np.maximum(0.0, 1e3 * y), np.zeros(BLOCK)
    rows = []
    for kind in (np.float32, np.float64):
        block, times, steps = K.astype(kind), [], 0
        newton = newton_address(block.dtype, block.dtype)
        for _ in range(1 + (2 if options.quick else 5 * options.repeats)):
            beta, score = np.zeros(BLOCK), y.astype(kind)
            start = perf_counter()
            steps, _, _ = solve_block(block, beta, score, lower, upper, zero, zero, BLOCK, 1e-5, BLOCK_STEPS, newton)
            times.append((perf_counter() - start) / max(1, steps))
        # the first run loads the compiled code
        rows.append([np.dtype(kind).name, str(BLOCK), f"{steps:,}", digits(1e6 * median(times[1:]))])
    return table(["precision of the block", "size", "steps in a run", "µs / step"], rows)


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout


def _printed_seconds(code: str, runs: int) -> float:
    _run(code)
    return median(float(_run(code)) for _ in range(runs))


def _wall_seconds(code: str) -> float:
    start = perf_counter()
    _run(code)
    return perf_counter() - start
