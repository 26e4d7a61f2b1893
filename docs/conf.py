"""The site's settings. `make docs` builds it; CONTRIBUTING.md says how."""

import importlib.util
import itertools
import os
import re
from collections.abc import Iterator
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

# Read by the pages' imports of TensorFlow: its start-up lines are no output of a tutorial.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

project = "lerh_tf"
author = "The lerh-tf maintainers"
copyright = author
release = version = version_of("lerh-tf")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinx_proof",
]
exclude_patterns = ["_build", "tutorials"]

# Single backticks in docstrings: a link where the name is a public one, code where not.
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
add_module_names = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
math_number_all = False
numfig = False

html_theme = "furo"
html_title = f"lerh_tf {release}"
html_copy_source = False
html_show_sphinx = False


def mathjax() -> Path:
    """MathJax with its fonts in one file, as a package of the extra `docs` carries it."""
    found = importlib.util.find_spec("sphinx-mathjax-offline")
    if found is None or found.origin is None:
        raise ImportError("The site needs the extra `docs`: `make docs` installs it.")
    return Path(found.origin).with_name("static") / "mathjax" / "tex-svg-full.js"


html_static_path = ["_static", str(mathjax())]
html_css_files = ["site.css"]
if "QUICK" in os.environ:
    html_theme_options = {
        "announcement": "Built with QUICK=1: the tutorials ran at a small budget. What they print "
        "and draw shows that they run, and is not what their text speaks of."
    }
mathjax_path = "tex-svg-full.js"
# Nothing is loaded later: no menu, no speech.
mathjax3_config = {"options": {"enableMenu": False}}

sphinx_gallery_conf = {
    "examples_dirs": ["tutorials"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "download_all_examples": False,
    "min_reported_time": 86400,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
}

# The gallery's settings hold what Sphinx cannot keep from one build to the next.
suppress_warnings = ["config.cache"]


# What a formula of a docstring may spell.
FORMULA = {"exp", "from", "grad", "log", "mean", "prod", "sqrt", "start", "sum"}
FORMULA |= {"eps", "eta", "tau"}


def as_restructured_text(lines: list[str]) -> Iterator[str]:
    """Docstrings in the house's style.

    |m - x| is a norm, an indented block is code, and formulas keep their lines.
    """
    previous = ""
    for is_blank, group in itertools.groupby(lines, key=lambda line: not line.strip()):
        paragraph = list(group)
        if is_blank:
            yield from paragraph
            continue
        if previous and _indent(paragraph[0]) > _indent(previous):
            yield from (" " * _indent(previous) + "::", "")
        bar = "| " if all(map(_is_formula, paragraph)) else ""
        yield from (bar + _escaped(line) for line in paragraph)
        previous = paragraph[-1]


def _is_formula(line: str) -> bool:
    words = set(re.findall(r"[A-Za-z]{3,}", re.sub("`.*?`", "", line)))
    return _indent(line) == 0 and bool(re.search(r" (=|~|<-) ", line)) and words <= FORMULA


def _escaped(line: str) -> str:
    """What is not between backticks, with the signs escaped that mean something else."""
    parts = line.split("`")
    parts[::2] = [part.replace("|", r"\|").replace(", *", r", \*") for part in parts[::2]]
    return "`".join(parts)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def prepare(_app: Any, _what: str, _name: str, _it: Any, _options: Any, lines: list[str]) -> None:
    """Makes reStructuredText of a docstring before Napoleon reads it."""
    lines[:] = as_restructured_text(lines)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", prepare, priority=400)
