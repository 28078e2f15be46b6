"""Time two calls in turns, so that a change of the machine's speed affects both."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

# seconds: shorter calls are repeated within a turn, and their mean counts
TURN = 0.05


def seconds(call: Callable[[], Any]) -> float:
    """The mean time of the calls of one turn."""
    count, start = 0, perf_counter()
    while count == 0 or perf_counter() - start < TURN:
        call()
        count += 1
    return (perf_counter() - start) / count


def share_of_time(mercer: Callable[[], Any], peer: Callable[[], Any], turns: int = 5) -> float:
    """mercer's median time over the peer's: less is better, as in asv. The first call of each is not counted."""
    mercer(), peer()
    pairs = [(seconds(mercer), seconds(peer)) for _ in range(turns)]
    return median(ours for ours, _ in pairs) / median(theirs for _, theirs in pairs)
