"""How Sphinx lays out the book. `mlsysim book` runs it; nothing here asks the network."""

from mlsysim.book.products.latex import PREAMBLE
from mlsysim.book.source.myst import EXTENSIONS

project = "Machine-Learning Systems by the Numbers"
author = "The authors of mlsysim"
language = "en"

extensions = ["myst_nb", "sphinxcontrib.bibtex", "mlsysim.book.site.sphinx_extension"]
source_suffix = {".md": "myst-nb"}
exclude_patterns = ["**.ipynb_checkpoints", "**.ipynb", ".*", "**/.*", "**~"]

# Chapters are executed by `mlsysim execute`, and their outputs pasted in.
nb_execution_mode = "off"
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_custom_formats = {".md": "mlsysim.book.site.sphinx_extension.read_page"}
myst_enable_extensions = list(EXTENSIONS)

# The generated pages of the scenario classes use Sphinx's Python domain.
add_module_names = False
toc_object_entries = False

numfig = True
numfig_secnum_depth = 1
math_numfig = True
math_eqref_format = "Equation {number}"

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "unsrt"
bibtex_reference_style = "author_year"

mathjax_path = "mathjax/tex-svg.js"  # version 3.2.2, in _static

html_theme = "sphinx_book_theme"
html_title = project
html_static_path = ["_static"]
html_css_files = ["book.css", "quote-card.css"]
html_js_files = [("quote-card.js", {"defer": "defer"})]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {
    "logo": {"text": project},
    "navbar_persistent": [],  # the sidebar has the search button already
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
}

# `mlsysim book --pdf`
latex_engine = "pdflatex"
latex_documents = [("index", "book.tex", project, author, "manual")]
today = "\N{NO-BREAK SPACE}"  # on the title page, and the same every day
latex_elements = {
    "preamble": PREAMBLE,
    "papersize": "a4paper",
    "pointsize": "10pt",
    "fncychap": "",  # its headings are in capitals, in which ms and MS are one
    "extraclassoptions": "openany,oneside",
}
latex_show_urls = "no"
latex_domain_indices = False
