"""The example in the README prints exactly what the README says."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
# words and comments may stand between the two blocks, other blocks may not
EXAMPLE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n[^`]*^```text\n(?P<output>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def examples() -> list[re.Match[str]]:
    return list(EXAMPLE.finditer(README.read_text(encoding="utf-8")))


def test_the_readme_has_an_example():
    """A README without a python block followed by its text block would leave the next test empty."""
    assert len(examples()) >= 1


@pytest.mark.parametrize("example", examples(), ids=lambda example: example["code"].splitlines()[0])
def test_the_example_prints_what_the_readme_says(example, capsys):
    """stdout of each python block equals the text block that follows it."""
    exec(compile(example["code"], "<README.md>", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == example["output"]
