"""The server of `mlsysim live`: pages with their script, and the news of each build."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from mlsysim.cli import live
from mlsysim.errors import InputError

PAGE = "<!doctype html><html><body><p>Hello</p></body></html>"


@pytest.fixture
def news() -> live.News:
    return live.News()


@pytest.fixture
def server(tmp_path: Path, news: live.News) -> Iterator[ThreadingHTTPServer]:
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "book.css").write_text("p {}", encoding="utf-8")
    handler = partial(live.Handler, news=news, folder=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        made.daemon_threads = True
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def get(
    server: ThreadingHTTPServer, path: str, host: str = "localhost"
) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    return connection, connection.getresponse()


def body(server: ThreadingHTTPServer, path: str, host: str = "localhost") -> tuple[int, str]:
    connection, response = get(server, path, host)
    text = response.read().decode()
    connection.close()
    return response.status, text


def next_news(response: http.client.HTTPResponse) -> dict[str, object]:
    while True:
        line = response.readline().decode()
        if line.startswith("data: "):
            return dict(json.loads(line.removeprefix("data: ")))


def test_a_page_has_the_script_and_nothing_else_changes(
    server: ThreadingHTTPServer, news: live.News
) -> None:
    news.tell()
    for path in ("/", "/index.html", "/index.html?x=1"):
        status, text = body(server, path)
        assert status == 200
        assert "const here = 1;" in text
        start, end = text.index("<script>"), text.index("</script>\n") + len("</script>\n")
        assert text[:start] + text[end:] == PAGE
    assert body(server, "/book.css") == (200, "p {}")


def test_a_page_that_is_not_built_yet_waits_for_it(server: ThreadingHTTPServer) -> None:
    status, text = body(server, "/other.html")
    assert status == 404
    assert "EventSource" in text


def test_news_come_when_a_build_ends_and_an_error_is_told_once_mended_too(
    server: ThreadingHTTPServer, news: live.News
) -> None:
    connection, response = get(server, "/live-news")
    assert response.headers["Content-Type"] == "text/event-stream"
    assert next_news(response) == {"version": 0, "error": ""}
    news.tell()
    assert next_news(response) == {"version": 1, "error": ""}
    news.tell(error="mlsysim: no")
    assert next_news(response) == {"version": 1, "error": "mlsysim: no"}
    news.tell()
    assert next_news(response) == {"version": 2, "error": ""}
    connection.close()


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "0.0.0.0"])
def test_only_this_machine_is_answered(server: ThreadingHTTPServer, host: str) -> None:
    assert body(server, "/", host)[0] == 403


def test_nothing_outside_the_book_is_served(server: ThreadingHTTPServer) -> None:
    assert body(server, "/../../etc/passwd")[0] == 404
    assert body(server, "/%2e%2e/%2e%2e/etc/passwd")[0] == 404


def test_saving_a_source_is_seen_and_what_a_build_makes_is_not(root: Path) -> None:
    before = live.snapshot()
    assert root / "scenarios/DenseLLMReplica.toml" in before
    for path in ("build/x", "results/x", "chapters/.x.swp", "chapters/x~", "chapters/x.ipynb"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("x", encoding="utf-8")
    assert set(live.snapshot()) - set(before) == {root / "chapters/x.ipynb"}
    (root / "scenarios/DenseLLMReplica.toml").write_text("kind = 1", encoding="utf-8")
    now = live.snapshot()
    assert [path.name for path in before if now[path] != before[path]] == ["DenseLLMReplica.toml"]


def test_a_taken_port_is_named(server: ThreadingHTTPServer, root: Path) -> None:
    assert root.is_dir()
    with pytest.raises(InputError, match=r"cannot be used .* try --port 0"):
        live.run(server.server_address[1])


@pytest.mark.parametrize("port", [65536, -1])
def test_a_port_that_no_machine_has_is_refused(port: int) -> None:
    with pytest.raises(InputError, match=rf"port {port} cannot be used \(it is not within"):
        live.run(port, build=lambda: (True, ""))
