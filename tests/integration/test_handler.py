"""LeanHttpHandler in real crawls against a site that plays scripted bytes over raw sockets.

One crawl per kind of loop does all exchanges, each after the other, and writes down what came of it; the tests read
that. Run as a program this file is that crawl: `python test_handler.py plan.json result.json`.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadCancelledError, DownloadFailedError
from scrapy.utils.test import get_crawler

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # for the crawl, which runs as a program

from webcrawl.handlers.http import LeanHttpHandler  # noqa: E402

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = (
    OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n6;x=1\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n"
    b"0\r\nVary: x\r\n\r\n"
)


def sized(body, extra=b"", status=b"200 OK"):
    return b"HTTP/1.1 %b\r\nContent-Type: text/html\r\nContent-Length: %d\r\n%b\r\n%b" % (
        status,
        len(body),
        extra,
        body,
    )


class Site:
    """Every path is a script: bytes to send, seconds to wait, or None to close; `{n}` is the connection's number."""

    def __init__(self, scripts, tls=None):
        self.scripts = scripts
        self.tls = tls
        self.heads = []
        self.connections = 0
        self.listeners = []
        self.port = self.listen(socket.AF_INET, "0.0.0.0", 0)
        self.has_ipv6 = False
        with contextlib.suppress(OSError):
            self.listen(socket.AF_INET6, "::1", self.port)
            self.has_ipv6 = True

    def listen(self, family, address, port):
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen()
        self.listeners.append(listener)
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()
        return listener.getsockname()[1]

    def accept(self, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.talk, args=(peer, self.connections), daemon=True).start()

    def talk(self, peer, number):
        with contextlib.suppress(OSError), contextlib.ExitStack() as closing:
            closing.enter_context(peer)
            if self.tls is not None:
                peer = closing.enter_context(self.tls.wrap_socket(peer, server_side=True))
            stream = closing.enter_context(peer.makefile("rb"))
            served = 0
            while head := self.read_head(stream):
                served += 1
                if not self.play(peer, head, number, served):
                    return

    def read_head(self, stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line or line.startswith(
                b"\x16\x03"
            ):  # the end, or a TLS greeting, which plain servers do not answer
                return b""
            head += line
        length = [line for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")]
        body = stream.read(int(length[0][16:])) if length else b""
        self.heads.append((head, body))
        return head

    def play(self, peer, head, number, served):
        path = head.split(b" ", 2)[1].decode().partition("?")[0]
        if path.startswith("http://"):
            peer.sendall(sized(b"by proxy", b"X-Target: %b\r\n" % path.encode()))
            return True
        script = self.scripts[path]
        for step in script(served) if callable(script) else script:
            if step is None:
                return False
            if isinstance(step, float):
                time.sleep(step)
            else:
                peer.sendall(step.replace(b"{n}", b"%d" % number))
        return True

    def head_of(self, path):
        return next(head for head, _ in self.heads if head.split(b" ", 2)[1].startswith(path.encode()))

    def close(self):
        for listener in self.listeners:
            listener.close()


class Rude(Site):
    """Closes, or speaks and then closes, before it is asked."""

    def talk(self, peer, number):
        with contextlib.suppress(OSError), peer:
            peer.sendall(self.scripts)


class Proxy(Site):
    """Answers absolute-form requests itself and tunnels CONNECT to whatever port is asked for, on loopback."""

    def play(self, peer, head, number, served):
        if not head.startswith(b"CONNECT "):
            return super().play(peer, head, number, served)
        if b"refuse.test" in head:
            peer.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return False
        peer.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with socket.create_connection(("127.0.0.1", int(head.split(b" ", 2)[1].rpartition(b":")[2]))) as origin:
            back = threading.Thread(target=pump, args=(origin, peer), daemon=True)
            back.start()
            pump(peer, origin)
            back.join()
        return False


def pump(source, sink):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def scripts():
    big = b"x" * 300_000
    flood = [OK] + [b"X-%d: %b\r\n" % (n, b"y" * 1000) for n in range(100)]
    return {
        "/plain": [sized(b"hello", b"X-Conn: {n}\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n")],
        "/close": [OK + b"Connection: close\r\n\r\nuntil the end", None],
        "/close-said": [sized(b"bye", b"Connection: close\r\nX-Conn: {n}\r\n"), None],
        "/http10": [b"HTTP/1.0 200 OK\r\n\r\nold", None],
        "/chunked": [CHUNKED[:70], 0.02, CHUNKED[70:]],
        "/chunked-and-length": [CHUNKED.replace(b"chunked\r\n", b"chunked\r\nContent-Length: 3\r\n")],
        "/interim": [b"HTTP/1.1 103 Early Hints\r\nLink: </s>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n", sized(b"final")],
        "/switch": [b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nxx"],
        "/head": [OK + b"Content-Length: 999\r\nX-Conn: {n}\r\n\r\n"],
        "/nothing": [b"HTTP/1.1 204 No Content\r\nX-Conn: {n}\r\n\r\n"],
        "/same": [b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"],
        "/short": [OK + b"Content-Length: 50\r\n\r\nonly this", None],
        "/short-chunks": [OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwo", None],
        "/long": [sized(b"right") + b"and then some"],
        "/announced": [OK + b"Content-Length: 5000\r\n\r\n", 5.0],
        "/growing": [OK + b"\r\n", *[b"z" * 1000, 0.001] * 20, None],
        "/big": [sized(big)],
        "/silent": [5.0],
        "/trickle": [OK + b"Content-Length: 100\r\n\r\n", *[b"t", 0.05] * 100],
        "/flood": [*flood, b"\r\n"],
        "/endless-trailer": [OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nT: ", *[b"y" * 9000, 0.001] * 20],
        "/garbage": [b"SSH-2.0-OpenSSH_9.6\r\n", 5.0],
        "/cut-head": [b"HTTP/1.1 200 OK\r\nContent-Ty", None],
        "/vanish": [None],
        "/colonless": [
            b"HTTP/1.1 200 OK\r\nno colon here\r\nA: 1\r\n  folded\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"
        ],
        "/lengths": [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk"],
        "/bare-lf": [b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok"],
        "/gzip": [sized(gzip.compress(b"<p>squeezed</p>"), b"Content-Encoding: gzip\r\n")],
        "/echo": [sized(b"got it")],
        "/once": lambda served: [sized(b"first", b"X-Conn: {n}\r\n")] if served == 1 else [None],
        "/again": lambda served: [sized(b"fresh", b"X-Conn: {n}\r\n")] if served == 1 else [None],
        "/": [sized(b"root")],
    }


def plan(site, secure, proxy, slam, greet, dead_port):
    """Name -> request; done in this order, one after the other."""
    here, safe = f"http://127.0.0.1:{site.port}", f"https://localhost:{secure.port}"
    via = f"http://user:secret@127.0.0.1:{proxy.port}"
    wanted = {path[1:]: {"url": here + path} for path in site.scripts if path[1:] not in ("", "once", "again")}
    for name in ("silent", "trickle"):
        wanted[name]["meta"] = {"download_timeout": 0.3}
    wanted["head"]["method"] = "HEAD"
    wanted["announced"]["meta"] = {"download_maxsize": 4000}
    wanted["growing"]["meta"] = {"download_maxsize": 8500, "download_warnsize": 2500}
    wanted["gzip"]["meta"] = {"webcrawl_keep_exchange": True}
    wanted["echo"] |= {
        "method": "POST",
        "body": "a=b",
        "headers": {"X-Evil": "1\r\nForged: yes", "Content-Length": "99"},
    }
    return wanted | {
        "plain-2": {"url": f"{here}/plain?q=1#frag", "meta": {"webcrawl_keep_exchange": True}},
        "plain-3": {"url": f"{here}/plain"},
        "short-kept": {"url": f"{here}/short", "meta": {"download_fail_on_dataloss": False}},
        "once": {"url": f"http://127.0.0.2:{site.port}/once"},
        "again": {"url": f"http://127.0.0.2:{site.port}/again"},
        "once-3": {"url": f"http://127.0.0.3:{site.port}/once"},
        "again-post": {"url": f"http://127.0.0.3:{site.port}/again", "method": "POST"},
        "no-path": {"url": f"{here}?a=/b", "meta": {"verbatim_url": True}},
        "spaces": {"url": f"{here}/plain?a b\r\nX: 1", "meta": {"verbatim_url": True}},
        "stop-head": {"url": f"{here}/big", "meta": {"stop": "headers"}},
        "stop-body": {"url": f"{here}/big", "meta": {"stop": "bytes"}},
        "stop-fail": {"url": f"{here}/big", "meta": {"stop": "fail"}},
        "refused": {"url": f"http://127.0.0.1:{dead_port}/"},
        "no-name": {"url": "http://no-such-host.invalid/"},
        "bad-name": {"url": f"http://{'a' * 70}.invalid/"},
        "address-refused": {"url": f"http://127.0.0.99:{site.port}/plain"},
        "slam": {"url": f"http://127.0.0.1:{slam.port}/"},
        "greet": {"url": f"http://127.0.0.1:{greet.port}/"},
        "ipv6": {"url": f"http://[::1]:{site.port}/plain"},
        "tls": {"url": f"{safe}/plain"},
        "tls-again": {"url": f"{safe}/plain"},
        "tls-close": {"url": f"{safe}/close"},
        "tls-to-plain": {"url": f"https://127.0.0.1:{site.port}/plain"},
        "proxied": {
            "url": f"http://127.0.0.99:{site.port}/far?x=1",
            "meta": {"proxy": via, "webcrawl_keep_exchange": True},
        },
        "tunnelled": {"url": f"{safe}/plain", "meta": {"proxy": via}},
        "tunnelled-again": {"url": f"{safe}/plain", "meta": {"proxy": via}},
        "tunnel-refused": {"url": "https://refuse.test/", "meta": {"proxy": via}},
        "socks": {"url": f"{here}/plain", "meta": {"proxy": f"socks5://127.0.0.1:{proxy.port}"}},
        "bound": {"url": f"{here}/plain", "meta": {"bindaddress": "127.0.0.5"}},
        "bound-again": {"url": f"{here}/plain", "meta": {"bindaddress": "127.0.0.5"}},
    }


def self_signed(folder):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    alternatives = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(alternatives, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "site.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return pem, certificate.public_bytes(serialization.Encoding.DER)


class Crawl:
    """What one crawl over the whole plan left behind."""

    def __init__(self, loop, folder):
        pem, self.certificate = self_signed(folder)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem)
        self.site, self.secure, self.proxy = Site(scripts()), Site(scripts(), tls), Proxy(scripts())
        servers = (self.site, self.secure, self.proxy, Rude(b""), Rude(b"220 mail.test ESMTP\r\n"))
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            dead_port = unused.getsockname()[1]
        requests = plan(*servers, dead_port)
        asked, told = folder / "plan.json", folder / "result.json"
        asked.write_text(json.dumps({"loop": loop, "requests": requests}))
        command = [sys.executable, "-W", "always::ResourceWarning", __file__, str(asked), str(told)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        self.log = done.stderr
        assert done.returncode == 0, self.log
        self.results = json.loads(told.read_text())
        for server in servers:
            server.close()

    def __getitem__(self, name):
        result = self.results[name]
        if "body" in result:
            result = {**result, "body": base64.b64decode(result["body"])}
        return result


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def crawl(request, tmp_path_factory):
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    return Crawl(request.param, tmp_path_factory.mktemp(request.param))


def test_a_response_has_all_that_scrapy_promises(crawl):
    plain = crawl["plain"]
    assert (plain["status"], plain["body"], plain["class"]) == (200, b"hello", "HtmlResponse")
    assert (plain["ip"], plain["protocol"], plain["flags"]) == ("127.0.0.1", "HTTP/1.1", [])
    assert plain["headers"]["Set-Cookie"] == ["a=1", "b=2"]
    assert 0 < plain["latency"] <= plain["times"][2] < 2
    assert plain["times"][0] > 0


def test_connections_are_kept_and_reused(crawl):
    first, second, third = crawl["plain-2"], crawl["plain-3"], crawl["once"]
    assert first["headers"]["X-Conn"] == second["headers"]["X-Conn"] != third["headers"]["X-Conn"]
    assert second["times"][0] == 0


def test_the_fragment_stays_at_home(crawl):
    assert crawl["plain-2"]["url"].endswith("/plain?q=1")
    assert crawl.site.head_of("/plain?q=1").startswith(b"GET /plain?q=1 HTTP/1.1\r\nHost: 127.0.0.1:")


def test_a_body_may_end_with_the_connection(crawl):
    assert (crawl["close"]["body"], crawl["close"]["flags"]) == (b"until the end", ["partial"])
    assert (crawl["http10"]["body"], crawl["http10"]["protocol"]) == (b"old", "HTTP/1.0")
    assert crawl["close-said"]["flags"] == []


@pytest.mark.parametrize("name", ["chunked", "chunked-and-length"])
def test_chunks_are_put_together_and_trailers_dropped(crawl, name):
    assert crawl[name]["body"] == b"Wikipedia in \r\n\r\nchunks."
    assert "Vary" not in crawl[name]["headers"]


def test_interim_answers_are_skipped_and_protocol_switches_refused(crawl):
    assert (crawl["interim"]["body"], crawl["interim"]["headers"].get("Link")) == (b"final", None)
    assert crawl["switch"]["error"] == "DownloadFailedError"


def test_answers_without_a_body(crawl):
    assert [crawl[name]["body"] for name in ("head", "nothing", "same")] == [b"", b"", b""]
    assert [crawl[name]["status"] for name in ("head", "nothing", "same")] == [200, 204, 304]
    assert crawl["head"]["headers"]["X-Conn"] == crawl["nothing"]["headers"]["X-Conn"]


def test_lost_data_is_an_error_or_a_flag(crawl):
    assert crawl["short"]["error"] == crawl["short-chunks"]["error"] == "ResponseDataLossError"
    assert (crawl["short-kept"]["body"], crawl["short-kept"]["flags"]) == (b"only this", ["dataloss"])
    assert crawl.log.count("Got data loss in") == 1


def test_bytes_after_the_end_do_not_reach_the_next_response(crawl):
    assert crawl["long"]["body"] == b"right"


def test_sizes_are_checked_while_bytes_come_in(crawl):
    announced, growing = crawl["announced"], crawl["growing"]
    assert announced["error"] == growing["error"] == "DownloadCancelledError"
    assert announced["message"].startswith(
        "Expected to receive 5000 bytes which is larger than download max size (4000)"
    )
    assert " bytes which is larger than download max size (8500) in request <GET " in growing["message"]
    assert crawl.log.count("larger than download warn size (2500)") == 1


@pytest.mark.parametrize("name", ["silent", "trickle"])
def test_the_time_out_bounds_the_whole_exchange(crawl, name):
    assert crawl[name]["error"] == "DownloadTimeoutError"
    assert crawl[name]["message"].endswith(f"/{name} took longer than 0.3 seconds.")
    assert 0.25 < crawl[name]["seconds"] < 1.5


@pytest.mark.parametrize("name", ["flood", "endless-trailer"])
def test_floods_of_header_fields_are_cut_off(crawl, name):
    assert crawl[name]["error"] == "DownloadFailedError"
    assert "65536 bytes of header fields" in crawl[name]["message"]


@pytest.mark.parametrize("name", ["garbage", "cut-head", "vanish", "lengths", "slam", "greet"])
def test_what_is_not_http_fails(crawl, name):
    assert crawl[name]["error"] in ("DownloadFailedError", "ConnectionDroppedError")
    assert crawl[name]["seconds"] < 1


def test_broken_heads_that_browsers_take_are_taken(crawl):
    assert (crawl["colonless"]["body"], crawl["colonless"]["headers"]["A"]) == (b"ok", ["1 folded"])
    assert crawl["bare-lf"]["body"] == b"ok"


def test_a_request_lost_on_a_reused_connection_is_sent_once_more(crawl):
    assert crawl["again"]["body"] == b"fresh"
    assert crawl["again"]["headers"]["X-Conn"] != crawl["once"]["headers"]["X-Conn"]


def test_a_post_is_never_sent_twice(crawl):
    assert crawl["again-post"]["error"] == "ConnectionDroppedError"


def test_requests_cannot_forge_header_fields(crawl):
    (head, body), *_ = [seen for seen in crawl.site.heads if seen[0].startswith(b"POST /echo")]
    assert b"\r\nX-Evil: 1 Forged: yes\r\n" in head
    assert (head.count(b"Content-Length:"), body) == (1, b"a=b")
    assert crawl["spaces"]["body"] == b"hello"
    assert any(head.startswith(b"GET /plain?a%20b%0D%0AX:%201 HTTP/1.1\r\n") for head, _ in crawl.site.heads)


def test_a_url_without_a_path_asks_for_the_root(crawl):
    assert crawl["no-path"]["body"] == b"root"
    assert crawl.site.head_of("/?a=/b")


def test_compressed_bodies_pass_scrapys_middleware_and_stay_raw_for_the_archive(crawl):
    squeezed = crawl["gzip"]
    assert (squeezed["body"], squeezed["class"]) == (b"<p>squeezed</p>", "HtmlResponse")
    exchange = squeezed["exchange"]
    assert gzip.decompress(base64.b64decode(exchange["raw_body"])) == b"<p>squeezed</p>"
    assert exchange["peer"] == ["127.0.0.1", crawl.site.port]


def test_the_archive_gets_the_heads_as_they_were(crawl):
    exchange = crawl["plain-2"]["exchange"]
    head = base64.b64decode(exchange["raw_response_head"])
    assert b"\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n" in head
    assert base64.b64decode(exchange["raw_request_head"]) == crawl.site.head_of("/plain?q=1")
    assert exchange["total_seconds"] >= exchange["first_byte_seconds"] > 0


def test_receivers_may_stop_a_download(crawl):
    if not crawl.results["is_listening"]:
        assert len(crawl["stop-body"]["body"]) == 300_000
        return
    assert (crawl["stop-head"]["body"], crawl["stop-head"]["flags"]) == (b"", ["download_stopped"])
    assert 0 < len(crawl["stop-body"]["body"]) < 300_000
    assert crawl["stop-fail"]["error"] == "StopDownload"


def test_failures_to_connect_have_scrapys_names(crawl):
    assert crawl["refused"]["error"] == "DownloadConnectionRefusedError"
    assert crawl["no-name"]["error"] == crawl["bad-name"]["error"] == "CannotResolveHostError"


def test_the_address_check_decides(crawl):
    refused = crawl["address-refused"]
    assert (refused["error"], refused["message"]) == ("AddressRefused", "127.0.0.99 for 127.0.0.99 is off limits.")


def test_ipv6_literals(crawl):
    if not crawl.site.has_ipv6:
        pytest.skip("no IPv6 on loopback")
    assert (crawl["ipv6"]["body"], crawl["ipv6"]["ip"]) == (b"hello", "::1")


def test_tls(crawl):
    assert base64.b64decode(crawl["tls"]["certificate"]) == crawl.certificate
    assert crawl["tls"]["headers"]["X-Conn"] == crawl["tls-again"]["headers"]["X-Conn"]
    assert crawl["tls-close"]["body"] == b"until the end"
    assert crawl["tls-to-plain"]["error"] == "DownloadFailedError"


def test_certificates_are_verified_if_scrapys_setting_says_so(tmp_path):
    pem, _ = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    site = Site(scripts(), tls)

    async def ask():
        crawler = get_crawler(Spider, {"DOWNLOAD_VERIFY_CERTIFICATES": True})
        handler = LeanHttpHandler(crawler)
        try:
            await handler.download_request(Request(f"https://localhost:{site.port}/plain"))
        finally:
            await handler.close()

    with pytest.raises(DownloadFailedError, match="CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(ask())
    site.close()


def test_closing_cancels_what_is_under_way():
    site = Site({"/silent": [0.5]})

    async def ask_and_close():
        handler = LeanHttpHandler(get_crawler(Spider))
        asking = asyncio.ensure_future(handler.download_request(Request(f"http://127.0.0.1:{site.port}/silent")))
        while not handler._pool.busy:  # noqa: ASYNC110  the handler has no event to wait for
            await asyncio.sleep(0)
        await handler.close()
        await asking

    with pytest.raises(DownloadCancelledError, match="handler was closed"):
        asyncio.run(ask_and_close())
    site.close()


def test_plain_requests_reach_a_proxy_in_absolute_form(crawl):
    proxied = crawl["proxied"]
    assert proxied["body"] == b"by proxy"
    head = next(head for head, _ in crawl.proxy.heads if b"/far" in head)
    assert head.startswith(b"GET http://127.0.0.99:%d/far?x=1 HTTP/1.1\r\nHost: 127.0.0.99:" % crawl.site.port)
    assert b"\r\nProxy-Authorization: Basic " in head
    assert b"Proxy-Authorization" not in base64.b64decode(proxied["exchange"]["raw_request_head"])


def test_secure_requests_pass_a_proxy_through_a_tunnel(crawl):
    assert crawl["tunnelled"]["body"] == b"hello"
    assert crawl["tunnelled"]["headers"]["X-Conn"] == crawl["tunnelled-again"]["headers"]["X-Conn"]
    (head,) = [head for head, _ in crawl.proxy.heads if head.startswith(b"CONNECT localhost")]
    assert b"\r\nProxy-Authorization: Basic " in head
    assert not any(b"Proxy-Authorization" in head for head, _ in crawl.secure.heads)
    assert crawl["tunnel-refused"]["message"].endswith("[407 Proxy Authentication Required]")


def test_what_it_does_not_do_goes_to_scrapys_own_handler(crawl):
    assert crawl["bound"]["body"] == crawl["bound-again"]["body"] == b"hello"
    assert crawl["bound"]["times"] is None
    assert crawl.log.count("Handler fallback: Scrapy's own takes requests with meta bindaddress.") == 1
    assert crawl.log.count("Handler fallback: Scrapy's own takes requests with a socks5 proxy.") == 1
    assert crawl.log.count("Address check bypassed: requests with meta bindaddress") == 1
    assert "webcrawl" not in crawl["socks"].get("module", "")


def test_the_crawl_ends_without_complaints(crawl):
    # Scrapy leaves a loop of its own behind when it installs uvloop; everything else that is unclosed is ours.
    log = crawl.log.replace("unclosed event loop", "")
    for complaint in ("was destroyed", "never retrieved", "unclosed", "Traceback", "Unhandled"):
        assert complaint not in log, log


# ---------------------------------------------------------------------- the crawl


def record_of(response):
    meta = response.meta
    exchange = meta.get("webcrawl_exchange")
    fields = exchange and {name: getattr(exchange, name) for name in type(exchange).__slots__}
    return {
        "url": response.url,
        "status": response.status,
        "body": text(response.body),
        "class": type(response).__name__,
        "flags": response.flags,
        "headers": {k.decode(): [v.decode() for v in vs] for k, vs in response.headers.items()},
        "ip": str(response.ip_address),
        "protocol": response.protocol,
        "certificate": text(response.certificate) if isinstance(response.certificate, bytes) else None,
        "latency": meta["download_latency"],
        "times": meta.get("webcrawl_times"),
        "exchange": fields and {k: text(v) if isinstance(v, bytes) else v for k, v in fields.items()},
    }


def text(data):
    return base64.b64encode(data).decode()


def check_address(host, ip):
    return f"{ip} for {host} is off limits." if ip == "127.0.0.99" else None


def run_crawl(asked, told):
    import scrapy
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess
    from scrapy.exceptions import StopDownload

    wanted = json.loads(Path(asked).read_text())
    is_listening = wanted["loop"] == "asyncio"  # one crawl with receivers, one with none
    results = {"is_listening": is_listening}

    class Plan(scrapy.Spider):
        name = "plan"

        async def start(self):
            for name, request in wanted["requests"].items():
                started = time.monotonic()
                try:
                    response = await self.crawler.engine.download_async(scrapy.Request(**request, dont_filter=True))
                    results[name] = record_of(response)
                except Exception as error:  # noqa: BLE001  whatever it is, it is the result
                    results[name] = {
                        "error": type(error).__name__,
                        "message": str(error),
                        "module": type(error).__module__,
                    }
                results[name]["seconds"] = time.monotonic() - started
            for url in self.start_urls:  # none: all is done, but start() has to be a generator
                yield scrapy.Request(url)

        def on_headers(self, request):
            if request.meta.get("stop") in ("headers", "fail"):
                raise StopDownload(fail=request.meta["stop"] == "fail")

        def on_bytes(self, request):
            if request.meta.get("stop") == "bytes":
                raise StopDownload(fail=False)

    handler = "webcrawl.handlers.http.LeanHttpHandler"
    settings = {
        "DOWNLOAD_HANDLERS": {"http": handler, "https": handler},
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop" if wanted["loop"] == "uvloop" else None,
        "RETRY_ENABLED": False,
        "REDIRECT_ENABLED": False,
        "COOKIES_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "TELNETCONSOLE_ENABLED": False,
        "REMOTE_CONTROL_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(Plan)
    setattr(crawler, "webcrawl_check_address", check_address)  # noqa: B010  an attribute of ours

    def listen(spider):
        crawler.signals.connect(spider.on_headers, signals.headers_received)
        crawler.signals.connect(spider.on_bytes, signals.bytes_received)

    if is_listening:
        crawler.signals.connect(listen, signals.spider_opened)
    process.crawl(crawler)
    process.start()
    Path(told).write_text(json.dumps(results))


if __name__ == "__main__":
    run_crawl(*sys.argv[1:])
