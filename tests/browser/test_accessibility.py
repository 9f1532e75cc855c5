"""What axe-core finds in a chapter, with its card closed and open, in light and in dark."""

from __future__ import annotations

from importlib.resources import files

import pytest
from playwright.sync_api import Page

from .conftest import Open

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

# (rule, start of the element's HTML without its line breaks): why it stays as it is.
EXCEPTIONS = {
    ("summary-name", "<summary>"): (
        "the theme folds the sections of its sidebar behind an icon without a name"
    ),
    ("region", '<div class="sidebar-primary-item"><a class="navbar-brand logo"'): (
        "the theme puts the title of the book into the sidebar outside its landmark"
    ),
}
RUN = """async (options) => {
  const { violations } = await axe.run(document, options);
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => [id, node.html]));
}"""
# The card in full length: axe sees no colors of what is scrolled out of sight.
UNROLLED = "#quote-card { max-height: none !important }"
LONG = {"width": 1280, "height": 9000}
# Light and dark differ in their colors alone.
COLORS_ONLY = {"runOnly": ["color-contrast", "link-in-text-block"]}


def findings(page: Page, options: dict[str, object]) -> list[tuple[str, str]]:
    """Every rule that is broken, with the HTML of the element that breaks it."""
    found = page.evaluate(RUN, options)
    return [(rule, "".join(html.split("\n")).replace("  ", "")) for rule, html in found]


def excepted(finding: tuple[str, str]) -> bool:
    return any(finding[0] == rule and finding[1].startswith(html) for rule, html in EXCEPTIONS)


@pytest.mark.parametrize(("scheme", "options"), [("light", {}), ("dark", COLORS_ONLY)])
def test_axe_finds_nothing_but_the_exceptions(
    open_page: Open, scheme: str, options: dict[str, object]
) -> None:
    page = open_page("01_reference_step.html", color_scheme=scheme)
    page.evaluate(AXE)
    assert page.locator("html").get_attribute("data-theme") == scheme
    closed = findings(page, options)
    assert [each for each in closed if not excepted(each)] == []
    page.set_viewport_size(LONG)
    page.add_style_tag(content=UNROLLED)
    page.locator("button.quote").first.click()
    page.wait_for_selector("#quote-card:popover-open")
    for details in page.locator("#quote-card summary").all():
        details.click()
    opened = findings(page, options)
    assert [each for each in opened if not excepted(each)] == []
    if not options:  # an exception that nothing needs is no exception
        needed = {key for key in EXCEPTIONS if any(key[0] == rule for rule, _ in closed)}
        assert needed == set(EXCEPTIONS)
