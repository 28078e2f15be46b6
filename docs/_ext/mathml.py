"""Formulas as MathML, which browsers draw themselves: no script, no font and no image is needed."""

import re

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx

# \tfrac12 without braces, which docutils reads as the fraction of 12 and what follows
SHORT = re.compile(r"(\\[dt]?frac)\s*(\d)\s*(\d)")
# a bar is a delimiter here; browsers would put the space of an operator around it
BAR = re.compile(r"<mo[^>]*>(\||∥)</mo>")


def _mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    text = SHORT.sub(r"\1{\2}{\3}", node.astext())
    return BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', latex2mathml.tex2mathml(text, as_block=block))


def visit_inline(translator, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    translator.body.append(f'<span class="math">{_mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    """Write a formula of its own."""
    translator.body.append(f'<div class="math">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add this extension to Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
