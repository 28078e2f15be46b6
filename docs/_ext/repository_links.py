"""Pages of the repository as pages of the site.

The files at the top of the repository (CHANGELOG.md, CONTRIBUTING.md, …) are pages of the site, too: a page
that says ``<!-- file: ../GLOSSARY.md -->`` is replaced by that file. Links between the two places are rewritten, so
that they work both in the repository and on the site.
"""

import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

FILE = re.compile(r"^<!-- file: (\S+) -->\s*$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\(([\w./-]+)(#[\w-]*)?\)")
# files outside docs/, and where the site has them; others, such as examples, become downloads
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "GLOSSARY.md": "glossary.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASING.md": "releasing.md",
}
# entries of toctrees that may be missing, as the part of the project that they describe is, and their files
OPTIONAL = {"studio": "studio.md", "../tutorials/index": "tutorials"}
# scripts of the galleries, and their headers, are pages that sphinx-gallery writes
EXAMPLE = re.compile(r"examples/(systems|gallery)/(.+)\.(?:py|rst)")
HEADERS = ("README", "GALLERY_HEADER")
# the README of a folder leads to the pages of that folder
FOLDER = "\n```{{toctree}}\n:hidden:\n:glob:\n\n*\n{}```\n"


def page_text(docs: Path, docname: str, text: str) -> tuple[str, Path | None]:
    """The text of a page with its links rewritten, and the file that it stands for, if there is one."""
    place = PurePosixPath("docs", f"{docname}.md").parent
    match = FILE.search(text)
    file = docs / match[1] if match else None
    if file is not None:
        text, place = file.read_text(encoding="utf-8"), PurePosixPath()
    root = docs.parent

    def rewritten(link: re.Match[str]) -> str:
        target = _normal(place / link[2])
        anchor = link[3] or ""
        if target in PAGES:
            return f"[{link[1]}](/{PAGES[target]}{anchor})"
        example = EXAMPLE.fullmatch(target)
        if example:
            name = "index" if example[2] in HEADERS else example[2]
            return f"[{link[1]}](/auto_{example[1]}/{name}.rst)"
        if target.startswith("docs/") and target.endswith(".md"):
            # a part of the project that is not here: its name without a link
            here = (root / target).exists()
            return f"[{link[1]}](/{target.removeprefix('docs/')}{anchor})" if here else link[1]
        if file is not None and (root / target).is_file():
            return f"[{link[1]}](/../{target})"
        return link[0]

    return LINK.sub(rewritten, text), file


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the text of a page in Markdown by that of the site."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    source[0], file = page_text(Path(app.srcdir), docname, source[0])
    for entry, file in OPTIONAL.items():
        if not (Path(app.srcdir) / file).exists():
            source[0] = re.sub(rf"^{re.escape(entry)}\n", "", source[0], flags=re.MULTILINE)
    if docname.endswith("/README"):
        folder = Path(app.srcdir, docname).parent
        source[0] += FOLDER.format("*/README\n" if any(folder.glob("*/README.md")) else "")
    if file is not None:
        app.env.note_dependency(str(file))


def setup(app: Sphinx) -> dict[str, bool]:
    """Add this extension to Sphinx."""
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
