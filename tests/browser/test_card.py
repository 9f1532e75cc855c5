"""The card of a number: how it opens and closes, what it shows, and what a reader may expect."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from mlsysim.artifacts.reading import read

from .conftest import DESKTOP, PHONE, Open

pytestmark = pytest.mark.browser

CHAPTER = "01_reference_step.html"
KEY = "DenseLLMPretrainingStep.step_time"
TOUCH: dict[str, Any] = {"viewport": PHONE, "is_mobile": True, "has_touch": True}
# A number of that chapter whose neighbors in the order of tab stops are links, not numbers.
AMONG_LINKS = "DenseLLMPretrainingStep.batch_tokens"
LONGER_THAN_ANY_DELAY = 700  # ms


def number(page: Page, key: str = KEY) -> Locator:
    return page.locator(f'button.quote[data-key="{key}"]').first


def card(page: Page) -> Locator:
    return page.locator("#quote-card:popover-open")


def in_artifact(key: str) -> dict[str, Any]:
    scenario, _, rest = key.partition(".")
    return read(scenario).entry(rest)


def shows_the_artifact(text: str, key: str) -> bool:
    """Whether the text is the value of the artifact, to the last digit."""
    value = in_artifact(key)["value"]
    if isinstance(value, bool):
        return text == ("yes" if value else "no")
    if isinstance(value, str):
        return text == value
    shown = re.match(r"\$?(−?[\d.,]+)(?:×10([⁻⁰-⁹¹²³]+))?", text)
    assert shown, text
    digits = shown[1].replace(",", "").replace("−", "-")
    power = (shown[2] or "0").translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789"))
    return float(f"{digits}e{power}") == value


def test_a_card_opens_when_the_pointer_rests_on_a_number(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page).hover()
    assert card(page).count() == 0  # not at once
    expect(card(page)).to_be_visible()
    assert shows_the_artifact(card(page).locator(".value").inner_text(), KEY)
    expect(card(page)).to_contain_text(in_artifact(KEY)["description"])
    card(page).locator(".key").hover()
    page.wait_for_timeout(LONGER_THAN_ANY_DELAY)
    expect(card(page)).to_be_visible()
    page.mouse.move(5, DESKTOP["height"] - 5)
    expect(card(page)).to_have_count(0)


def test_a_pointer_that_only_passes_opens_nothing(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page).hover()
    page.mouse.move(5, DESKTOP["height"] - 5)
    page.wait_for_timeout(LONGER_THAN_ANY_DELAY)
    assert card(page).count() == 0


def test_a_clicked_card_stays_until_a_click_elsewhere(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page).hover()
    expect(card(page)).to_be_visible()
    number(page).click()
    page.mouse.move(5, DESKTOP["height"] - 5)
    page.wait_for_timeout(LONGER_THAN_ANY_DELAY)
    expect(card(page)).to_be_visible()
    page.locator("article h1").click()
    expect(card(page)).to_have_count(0)
    number(page).click()
    expect(card(page)).to_be_visible()
    number(page).click()
    expect(card(page)).to_have_count(0)


def test_a_card_opens_by_keyboard_and_gives_the_focus_back(open_page: Open) -> None:
    page = open_page(CHAPTER)
    button = number(page)
    button.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(button).to_be_focused()
    expect(card(page)).to_be_visible()
    assert shows_the_artifact(card(page).locator(".value").inner_text(), KEY)

    page.keyboard.press("Enter")
    expect(page.locator("#quote-card")).to_be_focused()
    page.keyboard.press("Tab")
    expect(card(page).locator(":focus")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(card(page)).to_have_count(0)
    expect(button).to_be_focused()
    page.wait_for_timeout(LONGER_THAN_ANY_DELAY)
    assert card(page).count() == 0


def test_a_focus_that_only_passes_opens_nothing(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page, AMONG_LINKS).focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.wait_for_timeout(LONGER_THAN_ANY_DELAY)
    assert card(page).count() == 0


def test_links_of_a_card_are_tab_stops_only_once_it_is_pinned(open_page: Open) -> None:
    page = open_page(CHAPTER)
    button = number(page, AMONG_LINKS)
    following = button.locator("xpath=following::a[@href][1]")
    button.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(card(page)).to_be_visible()
    page.keyboard.press("Tab")
    expect(following).to_be_focused()
    expect(card(page)).to_have_count(0)

    page.keyboard.press("Shift+Tab")
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    controls = card(page).locator("a:visible, button:visible, summary:visible").count()
    assert controls > 3
    for _ in range(controls):
        page.keyboard.press("Tab")
        expect(card(page).locator(":focus")).to_have_count(1)
    page.keyboard.press("Tab")  # out of the card: no trap
    expect(card(page)).to_have_count(0)
    expect(following).to_be_focused()


def test_a_tap_opens_a_sheet_that_leaves_the_number_in_sight(open_page: Open) -> None:
    page = open_page(CHAPTER, **TOUCH)
    button = number(page)
    button.evaluate("(node) => scrollBy(0, node.getBoundingClientRect().bottom - innerHeight + 9)")
    button.tap()
    expect(card(page)).to_be_visible()
    assert shows_the_artifact(card(page).locator(".value").inner_text(), KEY)
    sheet, seen = card(page).bounding_box(), button.bounding_box()
    assert sheet
    assert seen
    assert (sheet["x"], sheet["width"]) == (0, PHONE["width"])
    assert sheet["y"] + sheet["height"] == pytest.approx(PHONE["height"], abs=1)
    assert 0 <= seen["y"] <= sheet["y"] - seen["height"]
    page.touchscreen.tap(200, 30)
    expect(card(page)).to_have_count(0)
    button.tap()
    card(page).get_by_role("button", name="Close").tap()
    expect(card(page)).to_have_count(0)


def test_a_card_leads_to_the_other_places_that_print_the_number(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page).click()
    places = card(page).locator(".places a")
    places.first.wait_for()  # its file is loaded when it is asked for
    assert places.count() > 1
    expect(card(page).locator(".places a[aria-current]")).to_have_count(1)
    elsewhere = card(page).locator(".places a:not([href*='01_reference'])").last
    text = elsewhere.inner_text()
    elsewhere.click()
    page.wait_for_url(re.compile(r"/(?!01_)\w+\.html#quote-"))
    target = page.locator("button.quote:target")
    expect(target).to_have_text(text)
    expect(target).to_be_in_viewport()
    target.click()
    assert shows_the_artifact(card(page).locator(".value").inner_text(), KEY)


def test_every_card_of_a_chapter_shows_its_artifact_inside_the_window(open_page: Open) -> None:
    page = open_page(CHAPTER)
    keys = page.locator("main button.quote").evaluate_all("(all) => all.map((b) => b.dataset.key)")
    assert len(set(keys)) > 15
    for key in dict.fromkeys(keys):
        number(page, key).click()
        expect(card(page).locator(".key")).to_have_text(key)
        assert shows_the_artifact(card(page).locator(".value").inner_text(), key), key
        expect(card(page).locator(".command code")).to_have_text(f"mlsysim show {key}")
        box = card(page).bounding_box()
        assert box
        assert box["x"] >= 0, key
        assert box["y"] >= 0, key
        assert box["x"] + box["width"] <= DESKTOP["width"], key
        assert box["y"] + box["height"] <= DESKTOP["height"], key
        page.keyboard.press("Escape")


def test_a_result_shows_equation_inputs_sources_and_assumptions(open_page: Open) -> None:
    page = open_page(CHAPTER)
    artifact = read("DenseLLMPretrainingStep")
    number(page).click()
    opened = card(page)
    expect(opened.locator(".equation").first).to_have_text(f"= {in_artifact(KEY)['equation']}")
    opened.get_by_text("inputs and their sources").click()
    expect(opened.locator(".basis dl > div")).to_have_count(len(artifact.inputs))
    expect(opened.get_by_text("Table 2.1: batch size of GPT-3 175B")).to_be_visible()
    opened.locator("summary", has_text="assumptions").click()
    expect(opened.get_by_text(artifact.assumptions[0]["text"][5:])).to_be_visible()


def test_an_input_shows_its_source_and_leads_to_the_bibliography(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page, "DenseLLMPretrainingStep.replica.workload.layers").click()
    work = card(page).get_by_role("link", name="Brown et al. 2020")
    expect(work.locator("..")).to_have_text("Brown et al. 2020, Table 2.1")
    work.click()
    page.wait_for_url(re.compile(r"bibliography\.html#"))
    expect(page.locator(":target")).to_contain_text("Language models are few-shot")


def test_the_command_can_be_copied(open_page: Open) -> None:
    page = open_page(CHAPTER, permissions=["clipboard-read", "clipboard-write"])
    number(page).click()
    card(page).get_by_role("button", name="Copy").click()
    expect(card(page).get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"mlsysim show {KEY}"


def test_a_number_in_a_table_opens_its_card_and_stays_at_the_right(open_page: Open) -> None:
    page = open_page(CHAPTER)
    key = "DenseLLMPretrainingStep.result.forward"
    button = page.locator(f'td button.quote[data-key="{key}"]').first
    cell, seen = button.locator("xpath=ancestor::td").bounding_box(), button.bounding_box()
    assert cell
    assert seen
    assert seen["x"] + seen["width"] > cell["x"] + cell["width"] - 20
    button.click()
    assert shows_the_artifact(card(page).locator(".value").inner_text(), key)
    expect(card(page).locator(".places a[aria-current]")).to_have_text(button.inner_text())


def test_a_screen_reader_hears_the_number_then_what_it_does(open_page: Open) -> None:
    page = open_page(CHAPTER)
    button = number(page)
    expect(button).to_have_accessible_name(button.inner_text())
    expect(button).to_have_accessible_description(re.compile("where this number comes from"))
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("dialog")).to_have_accessible_name(KEY)


def test_print_shows_no_card_and_numbers_as_text(open_page: Open) -> None:
    page = open_page(CHAPTER)
    number(page).click()
    expect(card(page)).to_be_visible()
    page.emulate_media(media="print")
    expect(card(page)).not_to_be_visible()
    expect(number(page)).to_have_css("text-decoration-line", "none")
    expect(number(page)).to_have_css("border-top-width", "0px")


def test_without_scripts_numbers_are_text(open_page: Open) -> None:
    page = open_page(CHAPTER, java_script_enabled=False)
    expect(page.locator("p", has_text="According to the model")).to_contain_text(
        f"it takes {number(page).inner_text()}, of which"
    )
    expect(number(page)).to_have_css("text-decoration-line", "none")


def test_a_selected_sentence_keeps_its_numbers(open_page: Open) -> None:
    page = open_page(CHAPTER)
    sentence = page.locator("p", has_text="According to the model")
    sentence.evaluate("(node) => getSelection().selectAllChildren(node)")
    assert f"it takes {number(page).inner_text()}, of which" in page.evaluate(
        "String(getSelection())"
    )
