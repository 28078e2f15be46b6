"""Settings of the documentation site: ``make docs`` writes it to build/docs. Nothing is downloaded."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "mercer"
author = "the mercer authors"
copyright = "the mercer authors"
release = version = version_of("mercer")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # our own, in _ext
    "docstrings",
    "mathml",
    "repository_links",
]
exclude_patterns = ["_ext", "_templates", "auto_*/*.ipynb", "auto_*/**/*.ipynb", "**/README.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

# pages in Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# the reference
default_role = "code"
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False

# the examples: each folder that has a header becomes a gallery, every script of it is run
GALLERIES = [(f"../examples/{name}", f"auto_{name}") for name in ("systems", "gallery")]
HEADERS = ("GALLERY_HEADER.rst", "README.rst")
GALLERIES = [(source, page) for source, page in GALLERIES if any((HERE / source / name).exists() for name in HEADERS)]
GALLERY_PARTS = (
    "first_steps",
    "regression",
    "order",
    "choosing",
    "trust",
    "objects",
    "unlabelled",
    "large_data",
    "inside",
)
sphinx_gallery_conf = {
    "examples_dirs": [source for source, _ in GALLERIES],
    "gallery_dirs": [target for _, target in GALLERIES],
    "filename_pattern": r"\.py$",
    "subsection_order": ExplicitOrder([f"../examples/gallery/{part}" for part in GALLERY_PARTS]),
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("mercer",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1_000_000,
    "show_signature": False,
    # its page of times would load scripts from elsewhere
    "write_computation_times": False,
    "parallel": 2,
    "matplotlib_animations": False,
}

# the look
html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "mercer", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "show_prev_next": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": [], "studio": [], "getting_started": [], "faq": [], "changelog": [], "glossary": []}
