"""`mlsysim live`: the book in a browser, built again and reloaded whenever a source is saved.

It is `snakemake all` in a loop, beside a server of build/book that only this machine reaches. Each
page is sent with a few lines of script that wait for news: a new version reloads the page, an error
is shown on it, and the loop goes on.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mlsysim import paths
from mlsysim.building import records
from mlsysim.errors import InputError
from mlsysim.templates import template

__all__ = ["News", "run", "said", "snapshot", "with_script"]

_HOST = "127.0.0.1"
_SECONDS = 0.25  # between two looks at the sources
_BEAT = 5.0  # seconds after which a silent connection is tried
_NEWS = "/live-news"
_BUILD = [sys.executable, "-m", "snakemake", "all"]
_QUIET = ["--quiet", "all"]  # what the commands say is enough, unless Snakemake itself stumbles
_PROFILE = "Using workflow specific profile"


@dataclass
class News:
    """What browsers wait for: the version of the page, and the error of the last build."""

    version: int = 0
    error: str = ""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def tell(self, *, error: str = "") -> None:
        """The build is over: a new version of the page, or the old one and what is wrong."""
        with self.changed:
            self.version += not error
            self.error = error
            self.changed.notify_all()

    def state(self) -> tuple[int, str]:
        """Version and error as they are now."""
        with self.changed:
            return self.version, self.error

    def wait_for_other(self, than: tuple[int, str]) -> bool:
        """Whether the state differs from `than`; waits a while for it."""
        with self.changed:
            return self.changed.wait_for(lambda: (self.version, self.error) != than, _BEAT)


class Handler(SimpleHTTPRequestHandler):
    """Files of the book; pages with the script; and the news, as they come."""

    def __init__(self, *arguments: Any, news: News, folder: Path) -> None:
        self.news = news
        super().__init__(*arguments, directory=str(folder))

    def do_GET(self) -> None:
        """Answer one request, of this machine's browsers alone."""
        name = self.headers.get("Host", "").rpartition(":")[0]
        if name not in (_HOST, "localhost"):
            self.send_error(403, "only for this machine")
        elif self.path == _NEWS:
            self._send_news()
        else:
            path = Path(self.translate_path(self.path))
            page = path / "index.html" if path.is_dir() else path
            if page.suffix == ".html":
                self._send_page(page)
            else:
                super().do_GET()

    def _send_page(self, page: Path) -> None:
        found = page.is_file()
        waiting = template("cli/templates/not_built.html")
        text = page.read_text(encoding="utf-8") if found else waiting.render()
        body = with_script(text, self.news.state()[0]).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _send_news(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        told: tuple[int, str] = (-1, "")
        try:
            while True:
                if self.news.wait_for_other(told):
                    told = self.news.state()
                    content = json.dumps({"version": told[0], "error": told[1]})
                    self.wfile.write(f"data: {content}\n\n".encode())
                else:
                    self.wfile.write(b": still here\n\n")
                self.wfile.flush()
        except OSError:  # the browser left
            return

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """The terminal is for the build."""


def with_script(page: str, version: int) -> str:
    """A page with the script that waits for a version after this one."""
    script = template("cli/templates/live.html").render(version=version, news=_NEWS)
    head, end, tail = page.rpartition("</body>")
    return head + script + end + tail if end else page + script


def snapshot() -> dict[Path, tuple[int, int]]:
    """Time stamp and size of every source: enough to see that something was saved."""
    found = {}
    folders = (paths.chapters(), paths.scenarios(), paths.root() / "mlsysim")
    listed = [path for folder in folders for path in folder.rglob("*")]
    listed += records.used_files()
    for path in (*listed, paths.root() / "Snakefile", paths.requirements()):
        hidden = path.name.startswith(".") or path.name.endswith("~")
        if not hidden and not {"__pycache__", ".ipynb_checkpoints"} & set(path.parts):
            try:
                stat = path.stat()
            except OSError:  # gone between the two looks
                continue
            if path.is_file():
                found[path] = stat.st_mtime_ns, stat.st_size
    return found


def said(output: str) -> str:
    r"""What is wrong, of all that a build that failed printed: its first message and what follows.

    >>> said("solved DenseLLMReplica\nmlsysim: chapters/02_memory.md:9: NameError\n")
    'mlsysim: chapters/02_memory.md:9: NameError'
    >>> said("mlsysim: One: scenarios/A.toml: no\nmlsysim: Two: scenarios/A.toml: no\n")
    'mlsysim: scenarios/A.toml: no'
    """
    lines: list[str] = []
    for line in filter(str.strip, output.splitlines()):
        # A mistake in one scenario is told once more for each that refers to it.
        reason = re.sub(r"^mlsysim: \w+: (?=scenarios/)", "mlsysim: ", line.rstrip())
        if reason not in lines:
            lines.append(reason)
    first = next((n for n, line in enumerate(lines) if line.startswith("mlsysim: ")), 0)
    return "\n".join(lines[first:])


def _build() -> tuple[bool, str]:
    """Run `snakemake all`, printing what its commands print; whether it went well, and that."""
    good, output = _printed([*_BUILD, *_QUIET])
    return (good, output) if good or said(output) else _printed(_BUILD)


def _printed(command: list[str]) -> tuple[bool, str]:
    lines = []
    with subprocess.Popen(
        command,
        cwd=paths.root(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            if not line.startswith(_PROFILE):
                print(line, end="", flush=True)
                lines.append(line)
    return process.returncode == 0, "".join(lines)


def _changed_from(before: dict[Path, tuple[int, int]]) -> dict[Path, tuple[int, int]]:
    """Wait until the sources differ from `before`, and are still: editors save in several steps."""
    found = before
    while True:
        time.sleep(_SECONDS)
        now = snapshot()
        if now != before and now == found:
            return now
        found = now


def run(port: int, *, build: Callable[[], tuple[bool, str]] = _build) -> None:
    """Serve the book and build it again at each change, until it is interrupted.

    Raises InputError if the port is taken.
    """
    news = News()
    handler = partial(Handler, news=news, folder=paths.build() / "book")
    try:
        server = ThreadingHTTPServer((_HOST, port), handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", "") or "it is not within 0 to 65535"
        raise InputError(f"port {port} cannot be used ({why}); try --port 0") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"serving http://{_HOST}:{server.server_port}/ until Ctrl-C", flush=True)
    sources = snapshot()
    try:
        while True:
            good, output = build()
            news.tell(error="" if good else said(output))
            moment = time.strftime("%H:%M:%S")
            told = "the page is up to date" if good else "the build failed; the page is the old one"
            print(f"{moment} {told}; watching chapters, scenarios and mlsysim", flush=True)
            sources = _changed_from(sources)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.shutdown()
        server.server_close()
