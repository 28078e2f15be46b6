"""Formulas as MathML, which browsers draw themselves: no script, no font and no image is needed."""

from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx


def _mathml(node: nodes.math | nodes.math_block, block: bool) -> str:
    return latex2mathml.tex2mathml(node.astext(), as_block=block)


def visit_inline(translator, node: nodes.math) -> None:
    translator.body.append(f'<span class="math">{_mathml(node, block=False)}</span>')
    raise nodes.SkipNode


def visit_block(translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math">{_mathml(node, block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
