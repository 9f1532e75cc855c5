"""Every page of the built book: nothing fetched, nothing broken, nothing wider than a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from .conftest import BOOK, PAGES, PHONE, Visit

pytestmark = pytest.mark.browser

Visits = dict[str, Visit]


def scripts() -> dict[str, dict[str, str]]:
    """The cards of each scenario, as its script holds them."""
    found = {}
    for path in sorted((BOOK / "cards").glob("*.js")):
        call = re.fullmatch(
            r'addQuoteCards\("(\w+)", (.*)\);\n', path.read_text("utf-8"), re.DOTALL
        )
        assert call, path
        found[call[1]] = json.loads(call[2])
    return found


def links_of_cards() -> list[tuple[str, str]]:
    """Every link in a card, with the script that it stands in."""
    return [
        (f"cards/{scenario}.js", f"{BOOK.as_uri()}/{href}")
        for scenario, content in scripts().items()
        for text in (content["basis"], *content["cards"].values())
        for href in re.findall(r'href="([^"]*)"', text)
    ]


def in_book(url: str) -> bool:
    """If an address is that of a file of the book."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    return parts.scheme == "file" and path.is_relative_to(BOOK) and path.is_file()


def test_the_book_has_chapters_and_their_numbers(visits: Visits) -> None:
    assert {"index.html", "01_reference_step.html", "bibliography.html"} <= set(PAGES)
    assert sum(len(visit.quotes) for visit in visits.values()) > 50


def test_no_page_says_anything_on_the_console(visits: Visits) -> None:
    assert {name: visit.console for name, visit in visits.items() if visit.console} == {}


def test_no_request_leaves_the_book(visits: Visits) -> None:
    asked = {
        name: [url for url in visit.requests if urlsplit(url).scheme not in ("data", "blob")]
        for name, visit in visits.items()
    }
    left = {name: [url for url in urls if not in_book(url)] for name, urls in asked.items()}
    assert {name: urls for name, urls in left.items() if urls} == {}
    assert {name: visit.failed for name, visit in visits.items() if visit.failed} == {}


def test_no_link_inside_the_book_is_dead(visits: Visits) -> None:
    ids = {BOOK / name: visit.ids for name, visit in visits.items()}
    links = [(name, link) for name, visit in visits.items() for link in visit.links]
    dead = []
    for name, link in dict.fromkeys([*links, *links_of_cards()]):
        target, fragment = urldefrag(link)
        parts = urlsplit(target)
        if parts.scheme != "file":
            assert parts.scheme in ("http", "https"), (name, link)  # to the sources, for a click
            continue
        path, anchor = Path(unquote(parts.path)), unquote(fragment)
        if not in_book(target) or (anchor and path in ids and anchor not in ids[path]):
            dead.append((name, link))
    assert dead == []


def test_no_page_scrolls_sideways_on_a_phone(visits: Visits) -> None:
    wide = {name: visit.width for name, visit in visits.items() if visit.width > PHONE["width"]}
    assert wide == {}


def test_every_number_has_a_card_that_names_its_place(visits: Visits) -> None:
    cards = {key: text for content in scripts().values() for key, text in content["cards"].items()}
    missing = [
        (name, key)
        for name, visit in visits.items()
        for key, anchor in visit.quotes
        if f'href="{name}#{anchor}"' not in cards.get(key, "")
    ]
    assert missing == []
