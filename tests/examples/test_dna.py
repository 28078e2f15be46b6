"""Promoters: asking for the place of words helps, and the words are found."""

import lzma
import re
import runpy
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "dna.py"


@pytest.mark.slow
def test_generated(capsys):
    """Words at places beat words anywhere; what speaks for a promoter stands where its two words were put."""
    example = runpy.run_path(str(EXAMPLE))
    example["main"]([])
    shown = capsys.readouterr().out
    anywhere, _, placed = (float(value) for value in re.findall(r"([\d.]+)%", shown))
    assert placed > anywhere
    found = re.findall(r"^ +(-?\d+)  ([ACGT]+) ", shown, flags=re.MULTILINE)
    assert len(found) == 8
    # where the words begin, give or take one, counted from the start of transcription
    stands = {place + shift: c for place, word in ((-36, "TTGACA"), (-13, "TATAAT")) for shift, c in enumerate(word)}
    near = [any(stands.get(int(place) + shift) == word[0] for shift in (-2, -1, 0, 1, 2)) for place, word in found]
    assert sum(near) >= 7


def test_data(tmp_path, capsys):
    """A file in a folder; a sentence where there is none."""
    strings, labels = runpy.run_path(str(EXAMPLE))["generated"](40)
    lines = [f"{'+' if label else '-'}\t{x.lower()}" for x, label in zip(strings, labels, strict=True)]
    with lzma.open(tmp_path / "promoters.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    main = runpy.run_path(str(EXAMPLE))["main"]
    main(["--data", str(tmp_path)])
    assert "40 strings of 57 letters, 20 of them promoters" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="There is no promoters"):
        main(["--data", str(EXAMPLE.parent)])
