"""The demo prints its summary with and without matplotlib."""

import sys

import numpy as np
import pytest

from mercer.cli import demo, main


def test_the_demo_prints_a_summary_and_draws(tmp_path, capsys):
    """The summary has all its lines, and the picture is a PNG file in the given folder."""
    pytest.importorskip("matplotlib")
    assert main(["demo", "--output", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    for line in ("accuracy on held-out rows", "support vectors", "smallest margin", "Certificate:", "first fit"):
        assert line in printed
    assert (tmp_path / "new" / demo.PICTURE).read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_summary_remains(tmp_path, capsys, monkeypatch):
    """Without matplotlib there is no picture but a message, and the exit status is 0."""
    for module in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, module, None)
    assert main(["demo", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "accuracy on held-out rows" in printed.out
    assert printed.err.endswith(
        "\nThe picture needs matplotlib, which is not installed: please run  pip install 'mercer[report]'\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_digits_drawn_begin_with_the_wrong_ones():
    """Wrong predictions take at most half of the rows; right ones of other classes follow."""
    truth = np.array([0, 1, 2, 3, 4, 5, 6, 0, 1])
    guess = np.array([0, 1, 2, 3, 4, 5, 6, 8, 9])
    assert demo.choose(truth, guess).tolist() == [7, 8, 2, 3, 4, 5]
