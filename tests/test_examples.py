"""The examples run, and show what they promise."""

import lzma
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name, arguments):
    runpy.run_path(str(EXAMPLES / name))["main"](arguments)


def test_text_topics(capsys):
    """Topics of documentation: words that fit, and one line for each C."""
    run("text_topics.py", [])
    shown = capsys.readouterr().out
    assert "held-out accuracy 9" in shown
    assert "regularization" in shown.partition("linear_model")[2].partition("\n")[0]
    assert shown.count("%") == 1 + 2 * 6


def test_text_topics_of_a_folder(tmp_path, capsys):
    """Messages from a file, and a sentence where there is none."""
    lines = [
        f"{'spam' if i % 3 else 'ham'}\t{'win money now' if i % 3 else 'see you soon'} number {i}" for i in range(60)
    ]
    with lzma.open(tmp_path / "sms_spam.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    run("text_topics.py", ["--data", str(tmp_path), "--documents", "50"])
    assert "money" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="There is no sms_spam"):
        run("text_topics.py", ["--data", str(EXAMPLES)])


def test_label_noise(capsys):
    """With wrong labels RampSVC stays right on new samples, and SVC does not."""
    runpy.run_path(str(EXAMPLES / "label_noise.py"), run_name="__main__")
    rows = [re.findall(r"[\d.]+", line) for line in capsys.readouterr().out.splitlines()[1:5]]
    wrong, plain, robust, given_up, found = (column(rows, k) for k in range(5))
    assert wrong[0] == 0.0 and min(wrong[1:]) > 4.0
    assert plain[0] > 99.0 and max(plain[2:]) < 95.0
    assert min(robust) > 98.5
    assert found[-1] >= 0.95 * given_up[-1] > 0


def test_kernel_learning(tmp_path, capsys):
    """Learnt weights leave most of the noise out, which one kernel for all columns cannot; the picture is drawn."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "weights.png"
    run("kernel_learning.py", ["--picture", str(picture)])
    lines = capsys.readouterr().out.splitlines()
    found = {line[:24].strip(): re.findall(r"([\d.]+)%", line) for line in lines[1:7]}
    assert float(found["one for all columns"][0]) < 95.5 < float(found["learnt, p = 1"][0])
    assert float(found["plain sum"][1]) == 75.0
    assert float(found["learnt, p = 1"][1]) < 25.0
    assert picture.stat().st_size > 10_000


def column(rows, k):
    return [float(row[k]) for row in rows]
