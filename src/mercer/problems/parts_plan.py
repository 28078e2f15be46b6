"""How a kernel machine of rows in parts is solved (see `mercer.parts` and `mercer.landmarks.over_parts`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class PartsPlan:
    """Where the rows are, and how their machine is solved. Prints as one line, which ``verbose=1`` logs.

    Attributes
    ----------
    n_samples : samples with a positive weight.
    n_parts, n_kept : parts of the rows, and parts that stay in memory.
    n_workers : workers of a cluster that hold the parts; 0 if this process does.
    memory : bytes for parts that stay in memory; 0 for no limit.
    method : "pools" solves the exact machine by pools of samples, "landmarks" a machine in the span of landmarks.
    first_pool, largest_pool : samples of a pool at first and at most; 0 for landmarks.
    precision : of kernel values during the rounds. The certificate is computed in float64.
    n_threads : threads for kernel values in this process.

    Examples
    --------
    >>> from mercer.problems.parts_plan import PartsPlan
    >>> print(PartsPlan(20000, 7, 2, 0, 3_000_000, "pools", 512, 4783, "float32", 1))
    20,000 samples in 7 parts, 2 of them within 3 MB of memory, the others read in each pass, pools of 512 to 4,783 \
samples, values in float32, 1 thread
    """

    n_samples: int
    n_parts: int
    n_kept: int
    n_workers: int
    memory: int
    method: Literal["pools", "landmarks"]
    first_pool: int = 0
    largest_pool: int = 0
    precision: str = "float32"
    n_threads: int = 1

    def __str__(self) -> str:
        words = [f"{self.n_samples:,} samples in {self.n_parts:,} part" + "s" * (self.n_parts != 1)]
        if self.n_workers:
            words[0] += f" on {self.n_workers:,} worker" + "s" * (self.n_workers != 1)
            if self.n_kept < self.n_parts:
                words.append("computed in each pass")
        elif self.n_kept == self.n_parts:
            words.append("all in memory")
        else:
            words.append(f"{self.n_kept:,} of them within {self.memory / 1e6:.3g} MB of memory")
            words.append("the others read in each pass")
        if self.method == "landmarks":
            words.append(f"landmarks, values in {self.precision}")
        else:
            words.append(f"pools of {self.first_pool:,} to {self.largest_pool:,} samples, values in {self.precision}")
        if not self.n_workers:
            words.append(f"{self.n_threads} thread" + "s" * (self.n_threads != 1))
        return ", ".join(words)
