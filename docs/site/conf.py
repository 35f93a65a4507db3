"""What Sphinx builds the site with; ``build.py`` beside it lays out the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.lexers.special import TextLexer

import uncertain_cep
from docs.site.query_lexer import QueryLexer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "uncertain-cep"
author = "The uncertain-cep authors"
version = release = uncertain_cep.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
# The tests run them; the site shows what they said when they were last saved.
nb_execution_mode = "off"
# A query of the language and one of the oracle have one name.
suppress_warnings = ["ref.python"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
# A page of a name would list it twice beside its text.
toc_object_entries = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Docstrings name types of other libraries in their own words.
nitpicky = False

# Blocks without a language are tables, output and commands.
highlight_language = "none"
html_theme = "furo"
html_title = f"uncertain-cep {version}"
# It stands below each page.
copyright = f"{author}. These pages are those of version {version}"
# The search has the entries; no page lists them.
html_use_index = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["copy.js"]
html_favicon = "static/favicon.svg"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False


def setup(app: Sphinx) -> None:
    """Colour queries; show tables as plain text."""
    app.add_lexer("csv", TextLexer)
    app.add_lexer("sase", QueryLexer)
