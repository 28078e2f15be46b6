"""Docstrings are written to be read in a terminal; this makes them reStructuredText.

|w| is a norm, not a substitution. A formula that is indented becomes a literal block. Members that scikit-learn
documents are left to scikit-learn. The text of examples is treated alike. "as in ``SVC``" is a link.
"""

import re

from sphinx.application import Sphinx

# what must not be touched: literals and roles
LITERAL = re.compile(r"(``.+?``|`[^`]+`)")
# "as in ``SVC``", which describes a parameter elsewhere
ELSEWHERE = re.compile(r"(?<=as in )``([A-Z]\w+)``")
# directives and fields that numpydoc has written
MARKUP = re.compile(r"\s*(\.\. |:\w)")


def escape(line: str, text: bool) -> str:
    """Escape the bars of formulas outside of literals, and in text the underscores at the end of names."""
    pieces = LITERAL.split(line)
    for k in range(0, len(pieces), 2):
        pieces[k] = re.sub(r"(?<!\\)\|", r"\\|", pieces[k])
        if text:
            pieces[k] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", pieces[k])
    return "".join(pieces)


def quote_formulas(lines: list[str]) -> list[str]:
    """Indented paragraphs before the first section, which are formulas, as literal blocks."""
    found: list[str] = []
    for number, line in enumerate(lines):
        before = lines[number - 1] if number else ""
        first = line.startswith("    ") and not before.strip() and not MARKUP.match(line)
        if first and not any(text.startswith("    ") for text in found[-2:-1]):
            found += ["::", ""]
        found.append(line)
    return found


def process(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Edits the lines of a docstring in place, before numpydoc reads them."""
    sections = [k for k, line in enumerate(lines) if re.fullmatch(r"-{3,}", line.strip())]
    head = max(sections[0] - 1, 0) if sections else len(lines)
    example = False
    done: list[str] = []
    prose = quote_formulas(lines[:head])
    for number, line in enumerate(prose + lines[head:]):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        literal = bool(done) and _in_literal(done, line)
        # a name at the left edge of a section is what the section describes: numpydoc reads it
        text = number < len(prose) or line.startswith(" ")
        done.append(line if example or literal else ELSEWHERE.sub(r":class:`~mercer.\1`", escape(line, text)))
    lines[:] = done


def process_again(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Escape the bars that numpydoc has added from docstrings of properties. Edits the lines in place."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example and not _in_literal(lines[:number], line):
            lines[number] = escape(line, text=False)


def _in_literal(done: list[str], line: str) -> bool:
    """Whether a line belongs to the literal block that the lines before it have begun."""
    if not line.strip():
        return False
    indent = len(line) - len(line.lstrip())
    for before in reversed(done):
        if not before.strip():
            continue
        inner = len(before) - len(before.lstrip())
        if inner < indent:
            return before.rstrip().endswith("::")
    return False


def read_example(app: Sphinx, docname: str, source: list[str]) -> None:
    """Escape the bars in the text of examples; code and formulas of their own are indented by three spaces or more."""
    if docname.startswith("auto_"):
        lines = source[0].split("\n")
        text = [not line.startswith(("   ", "..")) for line in lines]
        source[0] = "\n".join(
            escape(line, text=False) if prose else line for line, prose in zip(lines, text, strict=True)
        )


def skip(app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: object) -> bool | None:
    """Leave out what scikit-learn, numpy or Python define."""
    function = getattr(obj, "fget", obj)
    module = getattr(function, "__module__", None)
    if what == "class" and isinstance(module, str) and not module.startswith("mercer"):
        return True
    return None


def setup(app: Sphinx) -> dict[str, bool]:
    """Add this extension to Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-process-docstring", process_again, priority=600)
    app.connect("source-read", read_example)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
