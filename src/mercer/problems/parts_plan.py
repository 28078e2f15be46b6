"""How a kernel machine of rows in parts is solved (see `mercer.parts` and `mercer.landmarks.over_parts`).

`PartsPlan` is what a fitted model keeps and prints. `PoolSizes` are the sizes that the exact machine works with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# samples of the first pool: one row in this many, and at most this many
FIRST_SHARE, FIRST_UP_TO = 16, 4096
# fewest and most samples of a pool; the most bytes of their rows; one part in this many of the caller's memory for
# them. 20,000 × 10 rows with 10,000 support vectors took 18, 13 and 11 rounds with pools of 2,048, 4,096 and 8,192, and
# more time
SMALLEST_POOL, LARGEST_POOL, POOL_BYTES, POOL_SHARE = 512, 8192, 1 << 25, 8
# the pool grows to one in this many support vectors: at the end these are in memory twice, and a pool with its copies
# takes less than that
SUPPORT_PER_MEMBER = 4
# bytes of samples in one message
SENT_BYTES = 1 << 23


@dataclass(frozen=True)
class PoolSizes:
    """Sizes for an exact machine of ``n_samples`` rows of ``row_bytes`` each, within ``budget`` bytes.

    ``asked`` is the number of samples that a caller wants in a pool; 0 to choose.

    Examples
    --------
    >>> from mercer.problems.parts_plan import PoolSizes
    >>> sizes = PoolSizes(n_samples=100_000, row_bytes=800, budget=1 << 30)
    >>> sizes.first, sizes.at_first, sizes.largest
    (4096, 8192, 8192)
    """

    n_samples: int
    row_bytes: float
    budget: int
    asked: int = 0

    @property
    def at_first(self) -> int:
        """Samples that a pool may have at first."""
        room = int(min(POOL_BYTES, self.budget // POOL_SHARE) / self.row_bytes)
        return self.asked or max(SMALLEST_POOL, min(LARGEST_POOL, room))

    @property
    def first(self) -> int:
        """Samples of the first pool."""
        return min(self.n_samples, self.at_first, FIRST_UP_TO, max(SMALLEST_POOL, self.n_samples // FIRST_SHARE))

    @property
    def largest(self) -> int:
        """Samples that a pool may have at most, however many support vectors there are."""
        return self.asked or max(self.at_first, min(int(POOL_BYTES / self.row_bytes), LARGEST_POOL))

    def most(self, support: int) -> int:
        """Samples that a pool may have when there are this many support vectors."""
        return max(self.at_first, min(self.largest, support // SUPPORT_PER_MEMBER))

    def most_new(self, members: int, most: int) -> int:
        """Samples that may join a pool of ``members``: it doubles, up to half of ``most``."""
        return min(max(SMALLEST_POOL, members), max(1, most // 2))

    def per_message(self, most: int) -> int:
        """Samples of a message: prepared for the kernel they take as much memory as a pool of ``most``."""
        return max(1, min(int(SENT_BYTES / self.row_bytes), max(SMALLEST_POOL, most)))


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
