"""Answers and the cache around a web."""

from __future__ import annotations

from webcrawl.simulator.answers import Answer, CachedWeb, message, redirect
from webcrawl.simulator.generated import GeneratedWeb


def test_the_cache_gives_the_same_answers_and_stays_within_its_bound():
    web = GeneratedWeb(pages=100, hosts=4)
    cached = CachedWeb(web, limit_bytes=200_000)
    for _ in range(2):
        for url in web.manifest():
            name, _, path = url.removeprefix("http://").partition("/")
            answer = cached.answer(name, "/" + path)
            assert answer is not None and answer.body == web.page(url)
            assert cached.kept_bytes <= 200_000
    assert cached.kept_bytes > 100_000
    assert cached.answer("harbour-1.example", "/") is cached.answer("harbour-1.example", "/")


def test_what_does_not_exist_is_not_kept():
    cached = CachedWeb(GeneratedWeb(pages=10, hosts=2))
    for number in range(100):
        cached.answer("harbour-1.example", f"/no-such-page-{number}")
        cached.answer(f"no-such-host-{number}.example", "/")
    assert cached.kept_bytes == 0


def test_headers_say_what_the_answer_holds():
    answer = Answer(503, b"busy", retry_after_seconds=2.5)
    assert answer.status_line == b"HTTP/1.1 503 Service Unavailable\r\n"
    assert answer.headers == b"Content-Type: text/html; charset=utf-8\r\nContent-Length: 4\r\nRetry-After: 2.5\r\n"


def test_a_location_cannot_smuggle_in_header_lines():
    assert redirect("http://a.example/x\r\nSet-Cookie: y").location == "http://a.example/x%0D%0ASet-Cookie:%20y"


def test_messages_escape_what_the_client_sent():
    assert b"<script>" not in message(404, "no page <script>").body
