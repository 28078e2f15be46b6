"""One fit in a process of its own: whether it ends within the cap, how much memory it takes, and how good it is.

python benchmarks/probe.py NAME PEER [DIR]       prints one line of JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

WARM_UP_ROWS = 200
# reading and scaling the data, importing and warming up come before the fit, its judgement after it
PREPARATION = 240.0
INTERVAL = 0.002


@dataclass(frozen=True)
class Probe:
    """Seconds of the fit and the largest resident memory during it beyond that before it, in MB.

    ``judgement`` and ``remark`` are what the peer says of its model, as `Judgement` takes it.
    """

    seconds: float
    peak_mb: float
    judgement: dict[str, Any]
    remark: str


def probe(name: str, peer: str, folder: Path | None, cap: float) -> Probe | None:
    """Fit the problem in a new process; None if it does not end within cap seconds."""
    command = [sys.executable, __file__, name, peer, *([str(folder)] if folder else [])]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=cap + PREPARATION, check=True)
    except subprocess.TimeoutExpired:
        return None
    result = Probe(**json.loads(run.stdout.splitlines()[-1]))
    return result if result.seconds <= cap else None


class PeakMemory:
    """The largest resident memory seen while the block runs, in MB beyond that at its start."""

    def __enter__(self) -> PeakMemory:
        import psutil

        self._process = psutil.Process()
        self._start = self._peak = self._process.memory_info().rss
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        # every peer releases the interpreter's lock while it fits, so this thread gets to run
        while not self._done.wait(INTERVAL):
            self._peak = max(self._peak, self._process.memory_info().rss)

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()
        self._peak = max(self._peak, self._process.memory_info().rss)

    @property
    def mb(self) -> float:
        return (self._peak - self._start) / 2**20


def main(name: str, peer_name: str, folder: str = "") -> None:
    from datasets import instance
    from peers import ALL

    peer = next(peer for peer in ALL if peer.name == peer_name)
    p = instance(name, Path(folder) if folder else None)
    tiny = p.head(WARM_UP_ROWS)
    peer.fit(tiny, peer.prepare(tiny))
    given = peer.prepare(p)
    with PeakMemory() as memory:
        start = perf_counter()
        model = peer.fit(p, given)
        seconds = perf_counter() - start
    print(json.dumps(asdict(Probe(seconds, memory.mb, asdict(peer.judge(p, model)), peer.remark(model)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
