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


def test_trust(tmp_path, capsys):
    """Probabilities agree with labels, and sets of labels cover what they promise."""
    run("trust.py", ["--figure", str(tmp_path / "search.png")])
    shown = capsys.readouterr().out
    assert "the likeliest is always the predicted one: True" in shown
    for promised, covered in re.findall(r"^ +(\d+)% +([\d.]+)% +\d+%", shown, flags=re.M):
        assert abs(float(covered) - float(promised)) < 5
    assert shown.count("%") > 12
    assert (tmp_path / "search.png").stat().st_size > 1000


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


@pytest.mark.slow
def test_supermarket(tmp_path, capsys):
    """The error falls whatever the number of items, the items that matter are found, and a picture is drawn."""
    run("supermarket.py", ["--output", str(tmp_path / "curve.png")])
    shown = capsys.readouterr().out
    errors = [[float(value) for value in re.findall(r"([\d.]+)%", line)] for line in shown.splitlines()[1:7]]
    assert all(max(row) < 1.0 for row in errors[3:]) and min(errors[0]) > 5.0
    weights = re.findall(r"(baby|item) \d+ +([\d.]+)", shown)
    assert [kind for kind, _ in weights] == ["baby"] * 5 + ["item"] * 2
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_supermarket_of_a_folder(tmp_path, capsys):
    """Real baskets from a file, and a sentence where there is none."""
    lines = ["\t".join(f"item {(i * step) % 30}" for step in (1, 7, 11)) for i in range(400)]
    with lzma.open(tmp_path / "groceries_baskets.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    run("supermarket.py", ["--data", str(tmp_path)])
    assert "400 baskets of 30 items" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="There is no groceries_baskets"):
        run("supermarket.py", ["--data", str(EXAMPLES)])
