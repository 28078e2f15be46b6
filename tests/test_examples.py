"""The examples run, and show what they promise."""

import re
import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_label_noise(capsys):
    """With wrong labels RampSVC stays right on new samples, and SVC does not."""
    runpy.run_path(str(EXAMPLES / "label_noise.py"), run_name="__main__")
    rows = [re.findall(r"[\d.]+", line) for line in capsys.readouterr().out.splitlines()[1:5]]
    wrong, plain, robust, given_up, found = (column(rows, k) for k in range(5))
    assert wrong[0] == 0.0 and min(wrong[1:]) > 4.0
    assert plain[0] > 99.0 and max(plain[2:]) < 95.0
    assert min(robust) > 98.5
    assert found[-1] >= 0.95 * given_up[-1] > 0


def column(rows, k):
    return [float(row[k]) for row in rows]
