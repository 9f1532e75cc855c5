"""The built book in headless Chromium: one browser, and what each page shows and asks for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    sync_playwright,
)

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "build" / "book"
# Templates of the theme lie among its assets; they are no pages.
PAGES = sorted(
    path.relative_to(BOOK).as_posix()
    for path in BOOK.rglob("*.html")
    if path.relative_to(BOOK).parts[0] != "_static"
)
PHONE = {"width": 390, "height": 800}
DESKTOP = {"width": 1280, "height": 900}
# Chromium asks its makers for news unless it is told not to.
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Open = Callable[..., Page]


def address(page: str) -> str:
    return (BOOK / page).as_uri()


@contextmanager
def launched() -> Iterator[Browser]:
    """Debian's Chromium without a window."""
    found = shutil.which("chromium")
    if not found:
        pytest.fail("no chromium on the PATH; install it: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=[*QUIET], chromium_sandbox=os.geteuid() != 0
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if not (BOOK / "index.html").is_file():
        pytest.fail("build/book is not built; run: make")
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Open]:
    """``open_page("x.html", viewport=PHONE)``: the page, with its formulas set, as a Page."""
    contexts: list[BrowserContext] = []

    def opened(page: str, **options: Any) -> Page:
        context = chromium.new_context(**{"viewport": DESKTOP, **options})
        context.set_default_timeout(5_000)
        contexts.append(context)
        made = context.new_page()
        made.goto(address(page))
        return made

    yield opened
    for context in contexts:
        context.close()


@dataclass
class Visit:
    """What one page did as it was opened on a phone.

    `failed` has no requests that the browser itself gave up because the next page was opened.
    """

    console: list[str]
    requests: list[str]
    failed: list[str]
    ids: set[str]
    links: list[str]
    quotes: list[tuple[str, str]]
    width: int


_LOOK = """async () => {
  await window.MathJax?.startup?.promise;
  return {
    ids: [...document.querySelectorAll("[id]")].map((node) => node.id),
    links: [...document.querySelectorAll("a[href], area[href]")].map((node) => node.href),
    quotes: [...document.querySelectorAll("button.quote")].map((b) => [b.dataset.key, b.id]),
    width: document.scrollingElement.scrollWidth,
  };
}"""


@pytest.fixture(scope="session")
def visits(chromium: Browser) -> dict[str, Visit]:
    """Every page of the book, opened once."""
    page = chromium.new_page(viewport=PHONE, is_mobile=True, has_touch=True)
    said: list[str] = []
    asked: list[str] = []
    failed: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    def lose(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":
            failed.append(f"{request.url}: {request.failure}")

    page.on("console", listen)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lose)
    found = {}
    for name in PAGES:
        page.goto(address(name))
        seen = page.evaluate(_LOOK)
        found[name] = Visit(
            [*said],
            [*asked],
            [*failed],
            set(seen["ids"]),
            seen["links"],
            [tuple(each) for each in seen["quotes"]],
            seen["width"],
        )
        for heard in (said, asked, failed):
            heard.clear()
    page.close()
    return found
