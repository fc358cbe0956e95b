"""The server on a real port: directly, as a proxy, inside TLS; and the programs that start it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from webcrawl.simulator import program
from webcrawl.simulator.addresses import has_further_loopback
from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.folder import FolderWeb
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import serve

ROOT = Path(__file__).parents[2]
WEB = GeneratedWeb(pages=60, hosts=5)
HOME = "http://harbour-1.example/"
LINE = re.compile(
    r"^127\.0\.0\.1 \d+ 127\.0\.0\.\d+:\d+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d\.\d{6} \+0000\] "
    r'"(\S+) (\S+) HTTP/1\.\d" (\d{3}) (\d+) "[^"]*" "([^"]*)" (\d+\.\d{6}) (\S+) (\S+)$'
)


@pytest.fixture(scope="module")
def server():
    with serve(WEB) as running:
        yield running


class Client:
    """One connection on which bytes are sent as they are."""

    def __init__(self, port, address="127.0.0.1"):
        self.socket = socket.create_connection((address, port), timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *lines):
        self.socket.sendall("\r\n".join((*lines, "", "")).encode())

    def response(self, method="GET"):
        response = http.client.HTTPResponse(self.socket, method=method)
        response.begin()
        return response, response.read()

    def ask(self, *lines):
        self.send(*lines)
        return self.response(lines[0].split()[0])


def ask(server, *lines):
    with Client(server.port) as client:
        return client.ask(*lines)


def test_served_bytes_are_the_generated_bytes_both_ways(server):
    with Client(server.port) as client:
        for url in WEB.manifest():
            host, slash, path = url.removeprefix("http://").partition("/")
            direct, direct_body = client.ask(f"GET {slash}{path} HTTP/1.1", f"Host: {host}")
            proxied, proxied_body = client.ask(f"GET {url} HTTP/1.1", f"Host: {host}")
            assert direct_body == proxied_body == WEB.page(url)
            assert direct.status == proxied.status == 200
            assert direct.getheader("Content-Type") == "text/html; charset=utf-8"


def test_what_serve_says_of_the_web(server):
    assert server.seeds == (HOME,)
    assert (server.host_count, server.page_count) == (5, 60)
    assert server.proxy_url == f"http://127.0.0.1:{server.port}"


def test_the_servers_own_pages(server):
    own = f"Host: 127.0.0.1:{server.port}"
    assert ask(server, "GET /seeds.txt HTTP/1.1", own)[1].decode().split() == [HOME]
    assert ask(server, "GET /manifest.txt HTTP/1.1", own)[1].decode().split() == list(WEB.manifest())
    page = ask(server, "GET / HTTP/1.1", own)[1].decode()
    assert "5 hosts, 60 pages" in page and HOME in page and f"http_proxy={server.proxy_url}" in page
    assert ask(server, "GET /x HTTP/1.1", own)[0].status == 404
    assert ask(server, f"GET {server.proxy_url}/seeds.txt HTTP/1.1", own)[0].status == 502


def test_head_has_the_length_and_no_body(server):
    with Client(server.port) as client:
        response, body = client.ask(f"HEAD {HOME} HTTP/1.1")
        assert (response.status, int(response.getheader("Content-Length")), body) == (200, len(WEB.page(HOME)), b"")
        assert client.ask(f"GET {HOME} HTTP/1.1")[1] == WEB.page(HOME)


def test_pipelined_requests_are_answered_in_order_however_they_are_cut(server):
    urls = list(WEB.manifest())[:10]
    stream = "".join(f"GET {url} HTTP/1.1\r\nHost: x\r\n\r\n" for url in urls).encode()
    for size in (7, len(stream)):
        with Client(server.port) as client:
            for start in range(0, len(stream), size):
                client.socket.sendall(stream[start : start + size])
            with client.socket.makefile("rb") as answers:
                for url in urls:
                    head = b"".join(iter(answers.readline, b"\r\n"))
                    length = re.search(rb"Content-Length: (\d+)", head)
                    assert length is not None
                    assert answers.read(int(length[1])) == WEB.page(url)


def test_a_client_that_does_not_read_costs_no_memory(server):
    """Fifty megabytes of answers are asked for and not taken; others are served meanwhile."""
    with Client(server.port) as greedy:
        before = resident_bytes(server.pid)
        greedy.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            for _ in range(4000):
                greedy.socket.send(f"GET {HOME} HTTP/1.1\r\n\r\n".encode())
        for _ in range(20):
            assert ask(server, f"GET {HOME} HTTP/1.1")[0].status == 200
        assert resident_bytes(server.pid) - before < 10 << 20


def resident_bytes(pid):
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except FileNotFoundError:
        pytest.skip("this system has no /proc")


def test_other_methods_bodies_and_nonsense(server):
    with Client(server.port) as client:
        response, _ = client.ask(f"POST {HOME} HTTP/1.1", "Content-Length: 5")
        assert (response.status, response.getheader("Allow")) == (405, "GET, HEAD, CONNECT")
        client.socket.sendall(b"GET /")
        assert client.ask(f"GET {HOME} HTTP/1.1")[1] == WEB.page(HOME)
    assert ask(server, "GET / HTTP/1.1")[0].status == 400
    assert ask(server, "nonsense")[0].status == 400
    assert ask(server, "GET / HTTP/1.1", "Host: a", "X: " + "x" * 70_000)[0].status == 431
    assert ask(server, f"GET {HOME}no/such/page HTTP/1.1")[0].status == 404


def test_connections_end_when_the_client_asks_for_it(server):
    with Client(server.port) as client:
        response, body = client.ask(f"GET {HOME} HTTP/1.1", "Connection: close")
        assert (response.getheader("Connection"), body) == ("close", WEB.page(HOME))
        assert client.socket.recv(1) == b""
    with Client(server.port) as client:
        client.ask(f"GET {HOME} HTTP/1.0")
        assert client.socket.recv(1) == b""


def tls(client, server, host, trust=None):
    """The client's connection after CONNECT, as TLS."""
    client.send(f"CONNECT {host}:443 HTTP/1.1", f"Host: {host}:443")
    reply = b""
    while not reply.endswith(b"\r\n\r\n"):
        reply += client.socket.recv(1)
    assert reply.startswith(b"HTTP/1.1 200 ")
    context = ssl.create_default_context(cadata=trust) if trust else ssl._create_unverified_context()
    client.socket = context.wrap_socket(client.socket, server_hostname=host)


def test_https_is_redirected_to_http(server):
    with Client(server.port) as client:
        tls(client, server, "harbour-1.example")
        for path in ("/a?b=1", "/"):
            response, _ = client.ask(f"GET {path} HTTP/1.1", "Host: harbour-1.example")
            assert (response.status, response.getheader("Location")) == (301, f"http://harbour-1.example{path}")


def test_a_client_that_verifies_can_trust_the_authority(server):
    authority = ask(server, "GET /ca.pem HTTP/1.1", f"Host: 127.0.0.1:{server.port}")[1].decode()
    for host in ("harbour-1.example", "garden-2.example"):
        with Client(server.port) as client:
            tls(client, server, host, trust=authority)
            assert client.ask("GET / HTTP/1.1", f"Host: {host}")[0].status == 301


def test_a_tunnel_with_something_else_than_tls_is_closed(server):
    with Client(server.port) as client:
        client.send("CONNECT harbour-1.example:443 HTTP/1.1")
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while client.socket.recv(1000):
                pass


def test_nothing_leaves_the_server(server):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        address = f"127.0.0.1:{outside.getsockname()[1]}"
        for line in (
            f"GET http://{address}/ HTTP/1.1", f"CONNECT {address} HTTP/1.1", "GET http://www.iana.org/ HTTP/1.1",
            "CONNECT www.iana.org:443 HTTP/1.1", "CONNECT harbour-1.example:22 HTTP/1.1",
            "GET http://harbour-1.example:8080/ HTTP/1.1", "GET https://www.iana.org/ HTTP/1.1",
        ):  # fmt: skip
            response, body = ask(server, line, "Host: x")
            assert response.status == 502, line
            assert b"Nothing is forwarded to the real network." in body
        assert not select.select([outside], [], [], 0)[0]
    assert ask(server, "GET / HTTP/1.1", "Host: www.iana.org")[0].status == 404


def test_the_access_log(tmp_path):
    log = tmp_path / "access.log"
    with serve(WEB, log=log) as server, Client(server.port) as client:
        client.ask(f"GET {HOME} HTTP/1.1", "User-Agent: me/1.0")
        client.ask("GET /nowhere HTTP/1.1", "Host: harbour-1.example:8000")
        client.ask("GET http://unknown.example:81/?q HTTP/1.1")
        tls(client, server, "harbour-1.example")
        client.ask("HEAD /x HTTP/1.1", "Host: harbour-1.example")
    lines = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert [match and match.group(1, 2, 3, 5, 7, 8) for match in lines] == [
        ("GET", "/", "200", "me/1.0", "harbour-1.example", "-"),
        ("GET", "/nowhere", "404", "-", "harbour-1.example:8000", "-"),
        ("GET", "/?q", "502", "-", "unknown.example:81", "-"),
        ("HEAD", "/x", "301", "-", "harbour-1.example:443", "-"),
    ]
    assert lines[0] is not None and int(lines[0][4]) == len(WEB.page(HOME))


def test_latency_delays_each_answer_and_keeps_the_order(tmp_path):
    log = tmp_path / "access.log"
    with serve(WEB, log=log, latency_seconds=0.05) as server, Client(server.port) as client:
        client.send(f"GET {HOME} HTTP/1.1", "", f"GET {HOME}robots.txt HTTP/1.1")
        with client.socket.makefile("rb") as answers:
            while b"Disallow" not in answers.readline():
                pass
    lines = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert [match and match[2] for match in lines] == ["/", "/robots.txt"]
    assert all(match and float(match[6]) >= 0.049 for match in lines)


def test_a_folder_is_served_as_its_hosts(tmp_path):
    (tmp_path / "a.example" / "docs").mkdir(parents=True)
    (tmp_path / "a.example" / "docs" / "index.html").write_bytes(b"caf\xe9")
    (tmp_path / "a.example" / "docs" / "x.png").write_bytes(b"\x89PNG")
    with serve(FolderWeb(tmp_path)) as server:
        moved, _ = ask(server, "GET http://a.example/docs HTTP/1.1")
        assert (moved.status, moved.getheader("Location")) == (301, "http://a.example/docs/")
        page, body = ask(server, "GET http://a.example/docs/ HTTP/1.1")
        assert (page.getheader("Content-Type"), body) == ("text/html", b"caf\xe9")
        assert ask(server, "GET http://a.example/docs/x.png HTTP/1.1")[0].getheader("Content-Type") == "image/png"
        assert ask(server, "GET http://a.example/../../etc/passwd HTTP/1.1")[0].status == 404
        assert server.seeds == ("http://a.example/",)


def test_hosts_fail_as_their_rules_say(tmp_path):
    log, hosts = tmp_path / "access.log", list(GeneratedWeb(pages=60, hosts=5).host_names())
    faults = ("busy:429,retry=200000", "refuse", "reset", "silent")
    web = GeneratedWeb(
        pages=60, hosts=5, faults=tuple(f"{fault}@{host}" for fault, host in zip(faults, hosts[:4], strict=True))
    )
    with serve(web, log=log) as server:
        response, _ = ask(server, f"GET http://{hosts[0]}/ HTTP/1.1")
        assert (response.status, response.getheader("Retry-After")) == (429, "200000")
        assert ask(server, f"GET http://{hosts[0]}/robots.txt HTTP/1.1")[0].status == 200
        with Client(server.port) as client:
            client.send(f"GET http://{hosts[1]}/ HTTP/1.1")
            assert client.socket.recv(1) == b""
        with Client(server.port) as client:
            client.send(f"GET http://{hosts[2]}/robots.txt HTTP/1.1")
            with pytest.raises(ConnectionResetError):
                client.socket.recv(1)
        with Client(server.port) as left, Client(server.port) as kept:
            for client in (left, kept):
                client.send(f"GET http://{hosts[3]}/ HTTP/1.1")
            assert ask(server, f"GET http://{hosts[4]}/ HTTP/1.1")[0].status == 200
            assert not select.select([left.socket, kept.socket], [], [], 0)[0]
            left.socket.shutdown(socket.SHUT_WR)
            assert left.socket.recv(1) == b""
    lines = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert [match and match.group(2, 3, 7, 8) for match in lines] == [
        ("/", "429", hosts[0], "200000"),
        ("/robots.txt", "200", hosts[0], "-"),
        ("/", "521", hosts[1], "-"),
        ("/robots.txt", "520", hosts[2], "-"),
        ("/", "200", hosts[4], "-"),
        ("/", "524", hosts[3], "-"),
        ("/", "524", hosts[3], "-"),
    ]


def test_tunnels_fail_as_the_rules_say(tmp_path):
    log = tmp_path / "access.log"
    web = GeneratedWeb(pages=60, hosts=5, faults=("tls,first=1@harbour-1.example", "reset@garden-2.example"))
    with serve(web, log=log) as server:
        with Client(server.port) as client, pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"):
            tls(client, server, "harbour-1.example")
        with Client(server.port) as client:
            tls(client, server, "harbour-1.example")
            assert client.ask("GET / HTTP/1.1", "Host: harbour-1.example")[0].status == 301
        with Client(server.port) as client:
            client.send("CONNECT garden-2.example:443 HTTP/1.1")
            with pytest.raises(ConnectionResetError):
                client.socket.recv(1)
    lines = [LINE.fullmatch(line) for line in log.read_text().splitlines()]
    assert [match and match.group(1, 3, 7) for match in lines] == [
        ("CONNECT", "525", "harbour-1.example:443"),
        ("GET", "301", "harbour-1.example:443"),
        ("CONNECT", "520", "garden-2.example:443"),
    ]


def test_robots_files_change_while_the_server_runs():
    web = GeneratedWeb(pages=60, hosts=5, robots=("status:503,retry=5,fetches=2,then=disallow-all,max-age=60",))
    with serve(web) as server, Client(server.port) as client:
        found = [client.ask(f"GET {HOME}robots.txt HTTP/1.1") for _ in range(3)]
    assert [response.status for response, _ in found] == [503, 503, 200]
    assert [response.getheader("Retry-After") for response, _ in found] == ["5", "5", None]
    assert found[2][0].getheader("Cache-Control") == "max-age=60" and b"Disallow: /\n" in found[2][1]


def test_the_rules_of_a_web_reach_its_server():
    web = GeneratedWeb(
        pages=60, hosts=5, robots=("none@0.4", "crawl-delay:1.5@0.4"), faults=("latency:castillo,factor=0.001",),
        directive_ratio=0.5, rel_ratio=0.2, agent="my-bot",
    )  # fmt: skip
    with serve(web) as server, Client(server.port) as client:
        for host in web.host_names():
            expected = web.answer(host, "/robots.txt")
            response, body = client.ask(f"GET http://{host}/robots.txt HTTP/1.1")
            assert expected is not None and (response.status, body) == (expected.status, expected.body)
        for url in web.manifest():
            response, body = client.ask(f"GET {url} HTTP/1.1")
            assert body == web.page(url)
            sent = [f"{name}: {value}" for name, value in response.getheaders()]
            assert set(web.directives_of(url).lines) <= set(sent)


@pytest.mark.skipif(not has_further_loopback(), reason="this system has one loopback address")
def test_hosts_have_addresses_and_the_log_tells_connections_apart(tmp_path):
    log = tmp_path / "access.log"
    web = GeneratedWeb(pages=60, hosts=9, address_count=3, faults=("refuse@garden-2.example",))
    addresses = web.addresses()
    hosts = [host for host in addresses if host != "garden-2.example"]
    with serve(web, log=log) as server:
        for host in hosts:
            with Client(server.port, addresses[host]) as client:
                for _ in range(2):
                    assert client.ask("GET / HTTP/1.1", f"Host: {host}")[0].status == 200
        with pytest.raises(ConnectionRefusedError):
            Client(server.port, addresses["garden-2.example"])
        own = ask(server, "GET /hosts.txt HTTP/1.1", f"Host: 127.0.0.1:{server.port}")[1].decode()
    assert own == "".join(f"{address} {host}\n" for host, address in addresses.items())
    fields = [line.split() for line in log.read_text().splitlines()[:-1]]
    assert [(line[1], line[2], line[-2]) for line in fields] == [
        (str(number), f"{addresses[host]}:{server.port}", host)
        for number, host in enumerate(hosts, 1)
        for _ in range(2)
    ]
    assert len({line[2] for line in fields}) == 3


def test_a_folder_can_have_faults(tmp_path):
    (tmp_path / "a.example").mkdir()
    (tmp_path / "a.example" / "index.html").write_bytes(b"home")
    with serve(FolderWeb(tmp_path, faults=("busy:503,retry=past,first=1",))) as server, Client(server.port) as client:
        statuses = [client.ask("GET http://a.example/ HTTP/1.1")[0].status for _ in range(2)]
    assert statuses == [503, 200]


def test_serve_says_why_it_cannot(server):
    with (
        pytest.raises(CannotServeError, match=f"Port {server.port} of 127.0.0.1 cannot be used"),
        serve(WEB, port=server.port),
    ):
        pass


SENTENCES = """
no-such-folder
The folder no-such-folder cannot be read (No such file or directory), so there is no web to serve.
Name a folder that holds one folder for each host, or none for a generated web.

some-folder --pages 5
A folder was named (some-folder), but --pages shape a generated web, so one of the two would be ignored.
Leave out the folder or these options.

--fault slow
The rule 'slow' begins with an unknown name. Choose one of busy, latency, refuse, reset, silent, tls.

some-folder --robots none
A folder was named (some-folder), but --robots shape a generated web, so one of the two would be ignored.
Leave out the folder or these options.

--robots none@x.example
The rule 'none@x.example' is for x.example, which is no host of this web.

--port 99999
Port 99999 of 127.0.0.1 cannot be used (bind(): port must be 0-65535.), so the web cannot be served there.
Stop the program that uses it, or choose another with --port (0 picks a free one).

--latency -1
A latency of -1.0 seconds makes no sense for a web server.
Choose 0 to 3600 with --latency.

--port 0 --log /no/such/folder/log
The access log /no/such/folder/log cannot be written (No such file or directory).
Choose another file with --log.

--port 0 --ready-file /no/such/folder/ready
The ready file /no/such/folder/ready cannot be written (No such file or directory), so nobody would learn that the
server answers. Choose another file with --ready-file.
"""


@pytest.mark.parametrize("case", SENTENCES.strip().split("\n\n"))
def test_errors_are_told_shortly_with_exit_code_2(case, capsys):
    arguments, sentences = case.split("\n", 1)
    assert program.main(arguments.split()) == 2
    assert capsys.readouterr() == ("", sentences.replace("\n", " ") + "\n")


@pytest.fixture
def project(tmp_path):
    """A Scrapy project of somebody else that has our commands."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = other.settings\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "settings.py").write_text('COMMANDS_MODULE = "webcrawl.commands"\n')
    return tmp_path


def webserve(project, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", "webserve", *arguments],
        cwd=project, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_the_command_serves_until_ctrl_c(project):
    ready_file = project / "ready.json"
    with webserve(project, "--port=0", "--pages=30", "--hosts=3", f"--ready-file={ready_file}") as process:
        try:
            greeting = [process.stdout.readline().rstrip("\n") for _ in range(6)]
            port = int(greeting[0].rpartition(":")[2].rstrip("/"))
            proxy = f"http://127.0.0.1:{port}"
            with Client(port) as client:
                assert client.ask(f"GET {HOME} HTTP/1.1")[0].status == 200
                facts = json.loads(ready_file.read_text())
                process.send_signal(signal.SIGINT)
                rest, complaints = process.communicate(timeout=20)
        finally:
            process.kill()
    assert greeting == [
        f"A web of 3 hosts and 30 pages answers at {proxy}/",
        "Nothing is forwarded to the real network.",
        f"Seed: {HOME}",
        "Crawl it from another terminal:",
        (
            f"  http_proxy={proxy} https_proxy={proxy} scrapy crawl web -a seeds={HOME}"
            " -a scope=all -s WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8"
        ),
        "Ctrl-C ends it.",
    ]
    assert (facts["proxy"], facts["seeds"], facts["hosts"], facts["pages"]) == (proxy, [HOME], 3, 30)
    assert not ready_file.exists()
    assert (rest, complaints, process.returncode) == ("\n1 request answered.\n", "", 0)


def test_the_command_says_what_is_wrong(project, server):
    with webserve(project, f"--port={server.port}") as process:
        output, complaint = process.communicate(timeout=20)
    assert (output, process.returncode) == ("", 2)
    assert complaint == (
        f"Port {server.port} of 127.0.0.1 cannot be used (Address already in use), so the web cannot be served there. "
        "Stop the program that uses it, or choose another with --port (0 picks a free one).\n"
    )
