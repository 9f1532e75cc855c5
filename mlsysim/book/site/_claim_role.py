"""The {claim} role on a page: a phrase with a light mark, and a title that says what was tested."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxRole

from mlsysim import paths
from mlsysim.book.claims.chapter_claims import Claim, split
from mlsysim.book.pages import page_sources
from mlsysim.book.reference.generated_pages import is_generated
from mlsysim.book.source.cells import place
from mlsysim.book.source.scanner import CLAIM, CLAIM_MARK
from mlsysim.errors import InputError, MlsysimError

__all__ = ["register"]


class claim(nodes.Inline, nodes.TextElement):  # type: ignore[misc]
    """A phrase whose condition was tested."""


class ClaimRole(SphinxRole):
    """``{claim}`PHRASE if CONDITION```."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The phrase; CheckClaims sees whether it is true."""
        spec = " ".join(self.text.split())
        try:
            phrase = split(spec)[0]
        except InputError:
            phrase = spec  # the page's own claims say what is wrong, and where
        return [claim("", phrase, spec=spec)], []


class CheckClaims(SphinxTransform):
    """Put in the titles of claims what was tested, and see that none of the source's was lost."""

    default_priority = 401

    def apply(self, **_options: Any) -> None:
        """Look at the claims of one page. Raises MlsysimError with ``chapters/x.md:LINE``."""
        if is_generated(self.env.docname):
            return  # it holds no roles
        page = page_sources.page(self.env.docname)
        expected = page.claims
        tested = {role.spec: made for role, made in expected}
        seen: Counter[str] = Counter()
        for node in list(self.document.findall(claim)):
            seen[node["spec"]] += 1
            made = tested.get(node["spec"]) or page.test(node["spec"], node.line or 1)
            _show(node, made)
        for image in list(self.document.findall(nodes.image)):
            seen.update(_fill(image))
        for role, _ in expected:
            seen[role.spec] -= 1
            if seen[role.spec] < 0:
                raise MlsysimError(
                    f"{place(page.name, role.line)}: claim `{role.spec}` is lost on the page: what "
                    "stands around it drops it, or shows it as it is"
                )
        extra = [spec for spec, count in seen.items() if count > 0]
        if extra:
            raise MlsysimError(
                f"chapters/{page.name}.md: claim `{extra[0]}` is on the page, but not in its "
                "source; an included file cannot hold claims"
            )
        for scenario in {name for made in tested.values() for name in made.scenarios}:
            self.env.note_dependency(str(paths.artifact(scenario)))


def _show(node: claim, made: Claim) -> None:
    """The phrase with what was tested as its title; plain text in a heading."""
    outer = node.parent
    while outer is not None and not isinstance(outer, nodes.title):
        outer = outer.parent
    if outer is not None and isinstance(outer.parent, nodes.section):
        node.replace_self(nodes.Text(made.phrase))
        return
    node["title"] = f"Tested: {made.condition}; {made.values}"


def _fill(image: nodes.image) -> list[str]:
    """Put phrases in place of the claims in an alternative text; what these say."""
    specs: list[str] = []

    def phrase(role: re.Match[str]) -> str:
        specs.append(" ".join(role["spec"].split()))
        return split(role["spec"])[0]

    if CLAIM_MARK in image.get("alt", ""):
        image["alt"] = CLAIM.sub(phrase, image["alt"])
    return specs


def _open(self: Any, node: claim) -> None:
    self.body.append(self.starttag(node, "span", "", CLASS="claim", title=node["title"]))


def _close(self: Any, _node: claim) -> None:
    self.body.append("</span>")


def _pass(_self: Any, _node: claim) -> None:
    """Elsewhere than on a web page a claim is its phrase."""


def register(app: Sphinx) -> None:
    """Register the role with Sphinx."""
    app.add_role("claim", ClaimRole())
    app.add_transform(CheckClaims)
    other = (_pass, _pass)
    app.add_node(claim, html=(_open, _close), latex=other, text=other, man=other, texinfo=other)
