"""A mark that touches a number or a formula does not begin or end a line of its own."""

import pytest
from docutils import nodes
from docutils.utils import new_document

from mlsysim.book.site._line_breaks import KeepPunctuation
from mlsysim.book.site._quote_nodes import quote


@pytest.mark.parametrize("box", [quote("", "7.73 s", ids=["here"]), nodes.math("", "m = f")])
@pytest.mark.parametrize(
    ("before", "after", "together"),
    [
        ("takes ", ", and", "{},"),
        ("trace (", " in the mean)", "({}"),
        ("as (", "), or", "({}),"),
        ("takes ", " s.", None),
        ("takes ", "", None),
    ],
)
def test_marks_stay_with_the_box_that_they_touch(
    box: nodes.Element, before: str, after: str, together: str | None
) -> None:
    document = new_document("page")
    here = box.deepcopy()
    document += nodes.paragraph("", "", nodes.Text(before), here, nodes.Text(after))
    KeepPunctuation(document).run()
    kept = [node.astext() for node in document.findall(nodes.inline)]
    assert kept == ([together.format(box.astext())] if together else [])
    assert document.astext() == before + box.astext() + after
    assert here.get("ids") == box.get("ids")


def test_two_formulas_with_a_comma_between_them_are_two_pieces() -> None:
    document = new_document("page")
    first, second = nodes.math("", "a"), nodes.math("", "b")
    document += nodes.paragraph("", "", first, nodes.Text(", "), second, nodes.Text("."))
    KeepPunctuation(document).run()
    assert [node.astext() for node in document.findall(nodes.inline)] == ["a,", "b."]
    assert document.astext() == "a, b."
