"""The server: only its own page gets answers, and whatever is sent, the answer is a sentence."""

import asyncio
import http.client
import json
import re
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from mercer.cli.studio import listen
from mercer.studio.presets import all_presets
from mercer.studio.warming import Warming

uvicorn = pytest.importorskip("uvicorn")
server = pytest.importorskip("mercer.studio.server")

TOKEN = "a-token-of-the-tests"
BLOBS = next(preset["state"] for preset in all_presets() if preset["name"] == "blobs")


@dataclass
class Reply:
    """A response that was read."""

    status_code: int
    headers: Any
    text: str

    def json(self):
        return json.loads(self.text)


class Client:
    """Requests to a running server, as they are: nothing is normalised."""

    def __init__(self, port):
        self.port = port

    def send(self, method, path, content=None, headers=None):
        given = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        given = {key: value.replace("PORT", str(self.port)) for key, value in given.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for key, value in given.items():
                connection.putheader(key, value)
            chunked = content is not None and not isinstance(content, bytes)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            elif content is not None:
                connection.putheader("Content-Length", str(len(content)))
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                connection.endheaders(content, encode_chunked=chunked)
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read().decode())
        finally:
            connection.close()

    def get(self, path, headers=None):
        return self.send("GET", path, headers=headers)

    def post(self, path, content, headers=None):
        return self.send("POST", path, content, headers)


@pytest.fixture(scope="module")
def client():
    with listen(0) as listening:
        port = listening.getsockname()[1]
        running = uvicorn.Server(uvicorn.Config(server.studio_app(TOKEN, port), log_level="error", lifespan="off"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield Client(port)
        running.should_exit = True
        thread.join(10)


def ask(client, name, payload, **headers):
    given = {"X-Mercer-Token": TOKEN, **{key.replace("_", "-"): value for key, value in headers.items()}}
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return client.post(f"/api/{name}", body, given)


def test_the_page_needs_its_token(client):
    """Without or with a wrong token the page tells what to do; with it the page is served."""
    assert client.get(f"/?token={TOKEN}").status_code == 200
    for wrong in ("/", "/?token=", "/?token=x", f"/?token={TOKEN}x"):
        refused = client.get(wrong)
        assert refused.status_code == 403 and "mercer studio</code> printed" in refused.text
        assert TOKEN not in refused.text


def test_a_browser_that_opened_the_page_opens_it_without_the_token(client):
    """The page's cookie leads from `/` to the address with the token; it is not the token and answers no question."""
    given = client.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert "HttpOnly" in given and "SameSite=strict" in given and TOKEN not in given
    cookie = {"Cookie": given.split(";")[0]}
    again = client.get("/", headers=cookie)
    assert again.status_code == 303 and again.headers["location"] == f"/?token={TOKEN}"
    assert client.post("/api/presets", b"{}", cookie).status_code == 403
    for other in (cookie["Cookie"] + "0", cookie["Cookie"].replace("=", "0="), f"mercer-studio-{client.port}={TOKEN}"):
        assert client.get("/", headers={"Cookie": other}).status_code == 403
    refused = client.get("/", headers={**cookie, "Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403 and TOKEN not in refused.text


def test_answers_need_the_token_in_their_header(client):
    """A question without the token, or with it in the URL only, is refused."""
    assert ask(client, "presets", {}).status_code == 200
    for headers in ({}, {"X-Mercer-Token": "wrong"}, {"X-Mercer-Token": "ü".encode().decode("latin-1")}):
        refused = client.post(f"/api/presets?token={TOKEN}", b"{}", headers)
        assert refused.status_code == 403 and refused.json()["error"]["where"] == "token"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "http://127.0.0.1:1"},
        {"Host": "evil.example"},
        {"Host": "evil.example:PORT"},
        {"Host": "127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_other_sites_are_refused(client, headers):
    """Requests of other origins and with other hosts get 403, even with the token."""
    refused = ask(client, "fit", {"state": BLOBS}, **headers)
    assert refused.status_code == 403 and refused.json()["error"]["where"] == "address"
    assert client.get(f"/?token={TOKEN}", headers=headers).status_code == 403


def test_its_own_page_may_ask(client):
    """The page's own origin is accepted, by number and by name."""
    for host in ("127.0.0.1:PORT", "localhost:PORT"):
        assert ask(client, "presets", {}, Origin=f"http://{host}", Host=host).status_code == 200


@pytest.mark.parametrize("path", [f"/?token={TOKEN}", "/", "/static/main.js", "/static/nothing.js", "/api/presets"])
def test_every_response_has_the_security_headers(client, path):
    """No inline script, no sniffing, no referrer, whatever the status."""
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    scripts = re.search(r"script-src ([^;]*)", policy)
    assert "default-src 'self'" in policy and scripts and scripts[1] == "'self'"
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["../server.py", "..%2fserver.py", "%2e%2e/server.py", "..\\server.py", "/etc/passwd", "%2fetc%2fpasswd"]
)
def test_static_files_do_not_leave_their_folder(client, path):
    """Paths that lead out of the folder of static files are not found."""
    assert client.get(f"/static/{path}").status_code in (404, 403, 405)
    assert client.get("/static/main.js").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"{", 400),
        (b"\xff\xfe\x00", 400),
        (b"[" * 200_000, 400),
        (b'{"a":' * 100_000, 400),
        (b'{"state": {"C": NaN}}', 400),
        (b'{"state": {"C": Infinity}}', 400),
        (b'{"state": {"C": 1e999}}', 422),
        (b'{"state": {"points": [[0, 0, 1e400]]}}', 422),
        (b"[]", 422),
        (b"3", 422),
        (b'"state"', 422),
        (b"null", 422),
        (b'{"state": null}', 422),
        (b'{"state": {"points": [[1' + b"0" * 5000 + b", 0, 0]]}}", 400),
    ],
    ids=lambda one: repr(one)[:30],
)
def test_bodies_that_are_no_question_get_a_sentence(client, body, status):
    """Malformed, deep and non-finite JSON is answered by one sentence."""
    refused = ask(client, "fit", body)
    assert refused.status_code == status
    assert refused.json()["error"]["what"].endswith(".") and "Traceback" not in refused.text


def test_a_million_points_are_refused(client):
    """10⁶ points are refused in words."""
    refused = ask(client, "fit", {"state": {"points": [[0, 0, 0]] * 1_000_000}})
    assert refused.status_code == 422 and "1,000,000 points" in refused.json()["error"]["what"]


def test_bodies_that_are_too_large_are_refused(client):
    """More than 20 MB is refused by its declared length, and by counting if the length is not declared."""
    refused = ask(client, "fit", b"x" * (server.LARGEST_BODY + 1))
    assert refused.status_code == 413

    def chunks():
        for _ in range(server.LARGEST_BODY // 2**20 + 2):
            yield b" " * 2**20

    streamed = client.post("/api/fit", chunks(), {"X-Mercer-Token": TOKEN})
    assert streamed.status_code == 413


def test_unknown_names_and_methods(client):
    """There is nothing else to ask, and nothing to ask by other methods."""
    assert ask(client, "eval", {}).status_code == 404
    assert client.get("/api/fit", headers={"X-Mercer-Token": TOKEN}).status_code == 405
    assert client.get("/openapi.json").status_code == 404


def test_an_unexpected_error_is_a_sentence(client, monkeypatch, capsys):
    """An error inside an answer is told in one sentence; its traceback is for the terminal."""

    def broken(payload):
        raise RuntimeError("a wire is loose")

    monkeypatch.setitem(server.ANSWERS, "fit", broken)
    refused = ask(client, "fit", {"state": BLOBS})
    assert refused.status_code == 500 and "a wire is loose" in refused.json()["error"]["what"]
    assert "Traceback" not in refused.text and "Traceback" in capsys.readouterr().err


def test_an_answer_that_takes_too_long_is_given_up(monkeypatch):
    """After the time limit the page is told so."""
    ended = threading.Event()
    monkeypatch.setitem(server.ANSWERS, "fit", lambda payload: {"waited": ended.wait(30.0)})
    hasty = server.Server(TOKEN, None, time_limit=0.05)
    with pytest.raises(server.Refused, match=r"takes longer than 0\.05 s") as refused:
        asyncio.run(hasty.compute("fit", {"state": BLOBS}))
    ended.set()
    assert refused.value.status == 504


def test_answers_wait_for_compiled_loops():
    """While loops are compiled, a fit waits beyond the time limit of an answer; lists are answered at once."""
    warming = Warming(announce=False)
    patient = server.Server(TOKEN, warming, time_limit=5.0)
    assert warming.ready("presets") and not warming.ready("fit")
    order = []

    async def ask_both():
        async def answered(name, payload):
            order.append((name, (await patient.compute(name, payload)).status_code))

        fit = asyncio.create_task(answered("fit", {"state": BLOBS, "grid": [8, 8]}))
        await answered("presets", {})
        warming.done.set()
        await fit

    asyncio.run(ask_both())
    assert order == [("presets", 200), ("fit", 200)]


def test_fits_travel_over_http(client):
    """A fit over HTTP is the fit of the answer."""
    found = ask(client, "fit", {"state": BLOBS, "grid": [8, 8]}).json()
    assert found["status"] == "optimal" and len(found["grid"]["values"]) == 8


def test_the_session_tells_limits(client):
    """The page learns version and limits, and that no table was named."""
    found = ask(client, "session", {}).json()
    assert found["table"] is None and found["ready"] is True and found["limits"]["points"] == 2000


def test_reports_need_the_token(client):
    """A report is served to its page only."""
    assert client.get("/report/x").status_code == 403
    assert client.get(f"/report/x?token={TOKEN}").status_code == 404
