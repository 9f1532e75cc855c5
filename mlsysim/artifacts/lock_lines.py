"""The lines of results/artifacts.lock: how they are written, read, and brought together.

    lock 2 CHECK
    chapter 01_reference_step INGREDIENTS MADE PARTS CHECK
    library pint DIGEST CHECK
    module mlsysim.units.vocabulary DIGEST CHECK
    product figures/01_reference_step/losses csv=DIGEST svg=DIGEST CHECK
    record quotes.json INGREDIENTS MADE PARTS CHECK
    scenario DenseLLMPretrainingStep INGREDIENTS MADE PARTS CHECK
    uses 01_reference_step files chapters/formats.toml CHECK

INGREDIENTS and MADE are digests of all that something was made from and of the files that were
made; the two together certify. PARTS tells which ingredient is another one, whichever lines a merge
brings together. Products name the file that was edited, modules show in a diff what a change
touched. Lines are a set: their order and merges that keep both sides do no harm, and a line that is
damaged, which CHECK tells, certifies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from mlsysim import paths
from mlsysim.artifacts import fingerprint
from mlsysim.artifacts.ingredients import Ingredients, short
from mlsysim.canonical import digest
from mlsysim.naming import stems

__all__ = [
    "LONGEST",
    "SCHEMA",
    "Certificate",
    "Line",
    "Lock",
    "chapter_of",
    "has_room",
    "parsed",
    "uses_line",
]

SCHEMA = 2
LONGEST = 200  # characters of a line; what is longer is none of ours

_CHECK = 3  # characters of a blank and the check of a line

# The words of lines that certify.
_MADE = ("chapter", "record", "scenario")

Files = Mapping[str, Mapping[str, str]]
Uses = Iterable[tuple[str, str]]


@dataclass(frozen=True, order=True)
class Line:
    """That something was made: digests of its ingredients and of itself, and its parts."""

    ingredients: str
    made: str
    parts: str

    def changed(self, now: Ingredients) -> list[str]:
        """Which ingredients are other ones now, so far as the parts tell."""
        return [] if self.ingredients == now.digest else fingerprint.changed(self.parts, now.parts)


@dataclass(frozen=True)
class Certificate:
    """What a build made: word and name of its line, from what, and the digest of what was made.

    A chapter has products, the digest of each file by ending, and what its cells used.
    """

    word: str
    name: str
    made_from: Ingredients
    made: str
    products: Files = field(default_factory=dict)
    uses: Uses = ()

    def line(self) -> Line:
        """The line that certifies it."""
        head = f"{self.word} {self.name} {self.made_from.digest} {short(self.made)} "
        parts = fingerprint.packed(self.made_from.parts, LONGEST - len(head) - _CHECK)
        return Line(self.made_from.digest, short(self.made), parts)


@dataclass(frozen=True)
class Lock:
    """What the lock holds: sets, because a merge can leave several lines of one thing."""

    schemas: set[str] = field(default_factory=set)
    made: dict[tuple[str, str], set[Line]] = field(default_factory=dict)
    code: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    products: dict[str, set[tuple[tuple[str, str], ...]]] = field(default_factory=dict)
    uses: set[tuple[str, str, str]] = field(default_factory=set)

    def lines(self, word: str, name: str) -> set[Line]:
        """What certifies a thing: one line, or those of several branches."""
        return self.made.get((word, name), set())

    def certifies(
        self, name: str, made_from: Ingredients, made: str, word: str = "scenario"
    ) -> bool:
        """Whether some line says that these ingredients made this."""
        found = self.lines(word, name)
        return bool(found) and (made_from.digest, short(made)) in {
            (line.ingredients, line.made) for line in found
        }

    def merged(self) -> list[tuple[str, str]]:
        """What has lines of several branches: where both changed it, or what stands beside it."""
        doubled = {key for key, found in self.made.items() if len(found) > 1}
        products = (name for name, found in self.products.items() if len(found) > 1)
        return sorted(doubled | {("chapter", chapter_of(name)) for name in products})

    def put(self, made: Certificate) -> None:
        """Certify this in place of whatever is certified of its name."""
        self._forget(made.word, made.name)
        self.made[made.word, made.name] = {made.line()}
        for name, digests in made.products.items():
            found = tuple(sorted((end, short(each)) for end, each in digests.items()))
            self.products[name] = {found}
        self.uses.update((made.name, kind, path) for kind, path in made.uses)

    def _forget(self, word: str, name: str) -> None:
        self.made.pop((word, name), None)
        if word == "chapter":
            for product in [each for each in self.products if chapter_of(each) == name]:
                del self.products[product]
            self.uses.difference_update([each for each in self.uses if each[0] == name])

    def forget_what_is_gone(self) -> None:
        """Drop the lines of scenarios and chapters that are there no longer."""
        for word, name in self.gone():
            self._forget(word, name)

    def gone(self) -> list[tuple[str, str]]:
        """The scenarios and chapters that are certified, and are there no longer."""
        scenarios = {("scenario", name) for name in stems("Scenarios")}
        chapters = {("chapter", path.stem) for path in paths.chapters().glob("*.md")}
        named = {key for key in self.made if key[0] != "record"}
        return sorted(named - scenarios - chapters)

    def take(self, other: Lock) -> None:
        """Certify what another lock certifies, in place of what is certified of these names."""
        for (word, name), found in other.made.items():
            self._forget(word, name)
            self.made[word, name] = set(found)
        self.products.update(other.products)
        self.uses.update(other.uses)

    def text(self) -> str:
        """The lock as a build writes it."""
        lines = [
            f"{word} {name} {line.ingredients} {line.made} {line.parts}"
            for (word, name), found in self.made.items()
            for line in found
        ]
        lines += [
            f"{word} {name} {each}" for (word, name), found in self.code.items() for each in found
        ]
        lines += [
            " ".join(("product", name, *(f"{end}={each}" for end, each in digests)))
            for name, found in self.products.items()
            for digests in found
            if ("chapter", chapter_of(name)) in self.made
        ]
        lines += [uses_line(*each) for each in self.uses if ("chapter", each[0]) in self.made]
        return "".join(f"{line} {_check(line)}\n" for line in (f"lock {SCHEMA}", *sorted(lines)))


def _check(line: str) -> str:
    """Two characters that tell a damaged line, all but one in 4,096."""
    return short(digest(line))[:2]


def uses_line(chapter: str, kind: str, path: str) -> str:
    """The line that says what cells of a chapter used."""
    return f"uses {chapter} {kind} {quote(path)}"


def has_room(line: str) -> bool:
    """Whether a line and its check are no longer than a line may be."""
    return len(line) + _CHECK <= LONGEST


def chapter_of(product: str) -> str:
    """The chapter of ``tables/01_x/ledger``."""
    return product.split("/")[1]


def parsed(data: bytes) -> Lock:
    """What the lines say; nothing but its schema of a lock that has another."""
    lock = Lock()
    for line in data.decode(errors="replace").splitlines():
        whole, _, check = line.rpartition(" ")
        if len(line) > LONGEST or _check(whole) != check:
            continue
        word, *rest = whole.split() or [""]
        if word == "lock" and len(rest) == 1:
            lock.schemas.add(rest[0])
        elif word in _MADE and len(rest) == 4:
            lock.made.setdefault((word, rest[0]), set()).add(Line(*rest[1:]))
        elif word in ("library", "module") and len(rest) == 2:
            lock.code.setdefault((word, rest[0]), set()).add(rest[1])
        elif word == "product" and len(rest) > 1 and rest[0].count("/") == 2:
            pairs = tuple(
                (end, made) for end, _, made in (each.partition("=") for each in rest[1:])
            )
            lock.products.setdefault(rest[0], set()).add(pairs)
        elif word == "uses" and len(rest) == 3:
            lock.uses.add((rest[0], rest[1], unquote(rest[2])))
    return lock if lock.schemas <= {str(SCHEMA)} else Lock(schemas=lock.schemas)
