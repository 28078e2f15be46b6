"""The benchmark of the toolbox runs with today's names."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "toolbox.py"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["explanations", "influence", "probability", "ranking", "unsupervised", "updates"])
def test_quick(part):
    """Each part that needs no data sets ends without an error."""
    found = subprocess.run(
        [sys.executable, SCRIPT, "--quick", "--parts", part], capture_output=True, text=True, encoding="utf-8"
    )
    assert found.returncode == 0, found.stderr
    assert f"\n({part}: " in found.stdout
