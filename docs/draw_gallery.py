"""Draw the figures of the notes: writes docs/gallery.md and docs/gallery/*.png (``make gallery``)."""

from __future__ import annotations

import inspect
import io
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# pixels per inch, and colours of a picture: enough for these figures, in small files
DPI, COLOURS = 100, 96

# characters of a line of text
WIDTH = 120

TOP = """\
# Gallery: the figures of the lecture notes

Each figure is drawn by one call, here with its default arguments:

```text
from mercer.display import figures
figures.losses().savefig("losses.png")
```

The letters of the notes are explained in [notes.md](notes.md). `make gallery` draws the figures and writes this page.
"""


def page() -> str:
    """The text of docs/gallery.md."""
    from mercer.display import figures

    parts = [TOP]
    for name, place in figures.PLACES.items():
        function = getattr(figures, name)
        text = "\n\n".join(textwrap.fill(part, WIDTH) for part in inspect.getdoc(function).split("\n\n"))
        parts.append(f"## {name}\n\n{place}\n\n![{name}](gallery/{name}.png)\n\n{text}\n")
    return "\n".join(parts)


def picture(figure: Any) -> bytes:
    """The figure as a PNG file with few colours."""
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, dpi=DPI, format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS).save(small, "png", optimize=True)
    return small.getvalue()


def main() -> None:
    """Draw all figures and write the page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from mercer.display import figures

    folder = HERE / "gallery"
    folder.mkdir(exist_ok=True)
    for name in figures.PLACES:
        content = picture(getattr(figures, name)())
        (folder / f"{name}.png").write_bytes(content)
        plt.close("all")
        print(f"gallery/{name}.png  {len(content) / 1000:.0f} kB")
    (HERE / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
