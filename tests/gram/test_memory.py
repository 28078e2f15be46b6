"""The byte budget is what was asked for, or a share of what is free."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from mercer.gram import memory
from mercer.gram.memory import AT_LEAST, budget_bytes


@pytest.mark.parametrize(("asked", "expected"), [(200, 200 << 20), (0.5, 1 << 19), (1e-6, 1), ("8", 8 << 20)])
def test_numbers_are_megabytes(asked, expected):
    """A number is a budget in megabytes of 2^20 bytes; fractions are allowed."""
    assert budget_bytes(asked) == expected


def test_auto_is_a_share_of_the_smallest_account():
    """A 64th of what is available by every account, an eighth where values are costly, at least 64 MB; also where
    nothing is known."""
    for limits, expected, costly in (
        ([1 << 40, 1 << 36], 1 << 30, 1 << 33),
        ([1 << 30], AT_LEAST, 1 << 27),
        ([-5], AT_LEAST, AT_LEAST),
        ([], memory.FALLBACK, 8 * memory.FALLBACK),
    ):
        available = memory.smallest(limits)
        assert memory.automatic_bytes(available, costly=False) == expected
        assert memory.automatic_bytes(available, costly=True) == costly
    assert budget_bytes(200, costly=True) == 200 << 20


def test_this_machine_has_an_account():
    """The available memory is positive, and auto is at least the smallest budget."""
    memory._available.cache_clear()
    limits = memory._limits()
    assert limits and min(limits) > 0
    assert AT_LEAST <= budget_bytes("auto") <= budget_bytes("auto", costly=True)


def test_garbage_within_the_lock_gives_its_buffer_back():
    """Python may collect a Loan at any time, also while another one is being lent."""
    import gc

    class Cycle:
        """Garbage that only the collector frees."""

    cycle = Cycle()
    cycle.itself, cycle.loan = cycle, memory.Loan(1 << 20, np.dtype(np.float64))
    kept = len(memory._kept)
    del cycle
    with memory._lock:
        gc.collect()
    assert len(memory._kept) >= min(kept + 1, memory.MOST_KEPT) or not memory._CAN_LEND


FAULTS = """
import resource
import numpy as np
import mercer
mercer.SVC().fit([[0.0], [1.0]], [0, 1])
found = []
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 17) for _ in range(16)]
    del arrays
    found.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(found[-1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other rules")
def test_malloc_keeps_what_fits_free():
    """After the first fit of a process, arrays of 16 MB together are freed and allocated again without page faults."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, timeout=300)
    # 4,096 if the pages were given back to the system
    assert int(done.stdout) < 100
