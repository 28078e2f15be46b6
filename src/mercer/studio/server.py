"""The local server: static files of the page, and `POST /api/NAME` for its questions.

Only this computer's own page may ask: the server listens on the loopback address, a question carries the token of the
page's URL, and `Host` and `Origin` must be this address, so that no other site can ask by way of the browser.

The page leaves a cookie. A browser that has it is sent from `/` to the address with the token, so that links copied on
the page, which hold a state but no token, open in that browser; redirects keep the fragment, where the state is. The
cookie is not the token: it opens the page, and no question is answered because of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from mercer.studio.answers import ANSWERS, guarded
from mercer.studio.jobs import JOBS
from mercer.studio.session import SESSION
from mercer.studio.state import StateError
from mercer.studio.warming import Warming

LARGEST_BODY = 20 * 1024 * 1024
# seconds after which a question is answered "takes too long"; all computations have shorter limits of their own
TIME_LIMIT = 60.0
# questions that are computed at the same time
THREADS = 4
# content security policy of reports: embedded pictures and styles, no scripts
REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox; frame-ancestors 'self'"
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "frame-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REFUSED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>mercer studio</title>
<body style="font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 4em auto; padding: 0 1em">
<h1>This address needs its token</h1><p>WHY</p>
<p>Open the whole address that <code>mercer studio</code> printed in the terminal; it ends in <code>?token=…</code>.
If the terminal is closed, start <code>mercer studio</code> again.</p>
<p id="with-state" hidden>This link holds a state of the page. To open it, open the printed address, click the page and
press Ctrl+V with this link copied; or paste the printed address here:<br>
<label>Printed address <input id="printed" size="50" autocomplete="off" spellcheck="false"></label>
<a id="open" hidden>Open the state</a></p>
<script type="module" src="/static/refused.js"></script></body></html>"""


class Refused(Exception):
    """A request that gets an error status instead of an answer."""

    def __init__(self, status: int, what: str, where: str | None = None) -> None:
        super().__init__(what)
        self.status, self.what, self.where = status, what, where


class Guard:
    """Refuses requests of other sites and sets the security headers of every response."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        wrong = self.why_refused(request)

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                extra = {**HEADERS, "Content-Security-Policy": POLICY}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in extra.items() if k.lower().encode() not in given),
                ]
            await send(message)

        if wrong is not None:
            await error_response(403, wrong, "address")(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)

    def why_refused(self, request: Request) -> str | None:
        """Why a request is refused; None if it is not."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if host.lower() not in self.hosts:
            return f"This server answers to its own address only, not to {host[:80]!r}."
        if origin is not None and origin.lower() not in {f"http://{one}" for one in self.hosts}:
            return f"This server answers its own page only, not pages of {origin[:80]!r}."
        if request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
            return "This server answers its own page only, not links from other sites."
        return None


def error_response(status: int, what: str, where: str | None) -> JSONResponse:
    """An error as JSON."""
    return JSONResponse({"error": {"what": what, "where": where}}, status_code=status)


class Server:
    """The questions of one page: its token, its threads, the state of its compilation, and the seconds of an answer."""

    def __init__(self, token: str, warming: Warming | None, time_limit: float = TIME_LIMIT) -> None:
        self.token, self.warming, self.time_limit = token, warming, time_limit
        # a browser sends its cookies of this computer to all its ports: the cookie must not tell the token
        self.cookie = hmac.new(token.encode(), b"mercer studio page", hashlib.sha256).hexdigest()
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="mercer-studio")
        self.waiting = threading.Semaphore(8 * THREADS)

    def knows(self, given: str | None) -> bool:
        """Whether this is the token, compared in constant time."""
        return given is not None and hmac.compare_digest(given.encode(), self.token.encode())

    async def page(self, request: Request) -> Response:
        """The page itself; without a token, the address with it for a browser that has opened the page before."""
        # two studios at two ports have two cookies
        name = f"mercer-studio-{request.url.port}"
        if not self.knows(request.query_params.get("token")):
            if hmac.compare_digest(request.cookies.get(name, "").encode(), self.cookie.encode()):
                return RedirectResponse(f"/?token={self.token}", status_code=303)
            missing = "token" not in request.query_params
            why = "The address has no token." if missing else "The token in the address is not that of this server."
            return HTMLResponse(REFUSED.replace("WHY", why), status_code=403)
        index = files("mercer.studio") / "static" / "index.html"
        if not index.is_file():
            return HTMLResponse("<!doctype html><title>mercer studio</title><p>The page is not installed.", 500)
        page = HTMLResponse(index.read_text(encoding="utf-8"))
        page.set_cookie(name, self.cookie, httponly=True, samesite="strict")
        return page

    async def api(self, request: Request) -> Response:
        """Answer one question."""
        try:
            if not self.knows(request.headers.get("x-mercer-token")):
                raise Refused(
                    403, "The token is missing or wrong: open the address that mercer studio printed.", "token"
                )
            name = request.path_params["name"]
            if name not in ANSWERS:
                raise Refused(404, f"There is no answer {name[:60]!r}. There are {', '.join(ANSWERS)}.", "name")
            payload = read_json(await read_body(request))
            if not self.waiting.acquire(blocking=False):
                raise Refused(503, "The server is still busy with earlier questions: try again in a few seconds.")
            try:
                return await self.compute(name, payload)
            finally:
                self.waiting.release()
        except Refused as refused:
            return error_response(refused.status, refused.what, refused.where)

    async def report(self, request: Request) -> Response:
        """The report of a finished job as a page."""
        if not self.knows(request.query_params.get("token")):
            return HTMLResponse(REFUSED.replace("WHY", "The address has no token."), status_code=403)
        try:
            found = JOBS.get(request.path_params["job"]).to_json().get("report")
        except StateError as error:
            return error_response(404, error.what, error.where)
        if not found:
            return error_response(404, "This job has no report.", "job")
        return HTMLResponse(found, headers={"Content-Security-Policy": REPORT_POLICY})

    async def compute(self, name: str, payload: Any) -> Response:
        """Compute an answer in a thread, within the time limit, which begins when the loops are compiled."""
        if self.warming is not None and not self.warming.ready(name):
            # not in the pool: its threads answer the questions that need no loops
            await asyncio.to_thread(self.warming.wait, name)
        running = asyncio.get_running_loop().run_in_executor(self.pool, self.serialised, name, payload)
        try:
            status, body = await asyncio.wait_for(asyncio.shield(running), self.time_limit)
        except TimeoutError:
            what = f"The answer takes longer than {self.time_limit:g} s: use fewer points or a simpler kernel."
            raise Refused(504, what) from None
        return Response(body, status_code=status, media_type="application/json")

    def serialised(self, name: str, payload: Any) -> tuple[int, bytes]:
        """The status and the JSON of an answer."""
        status, found = guarded(name, payload)
        if name == "job" and found.get("report"):
            found["report_url"] = f"report/{found['job']}?token={self.token}"
        return status, json.dumps(found, allow_nan=False, separators=(",", ":"), ensure_ascii=False).encode()


async def read_body(request: Request) -> bytes:
    """The body of a request, if it is not too large."""
    too_large = Refused(413, f"A question has at most {LARGEST_BODY // 2**20} MB.", "body")
    declared = request.headers.get("content-length", "0")
    if not declared.isdigit() or int(declared[:20]) > LARGEST_BODY:
        raise too_large
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise too_large
    return bytes(body)


def read_json(body: bytes) -> Any:
    """The JSON of a body. NaN and infinities, which JSON does not have, are refused."""

    def refuse(name: str) -> None:
        raise Refused(400, f"{name} is not JSON: numbers must be finite.", "body")

    try:
        return json.loads(body or b"{}", parse_constant=refuse)
    except RecursionError:
        raise Refused(400, "The JSON is nested too deeply.", "body") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise Refused(400, f"The body is not valid JSON: {str(error)[:200]}.", "body") from None


def studio_app(token: str, port: int, warming: Warming | None = None) -> ASGIApp:
    """The application that `mercer studio` serves at http://127.0.0.1:port/?token=token.

    Parameters
    ----------
    token : str
        The secret that the page's URL carries.
    port : int
        The port at which it is served: `Host` and `Origin` of a request must have it.
    warming : Warming, default=None
        Compilation that is under way; questions wait for it.
    """
    server = Server(token, warming)
    SESSION.warming = warming
    hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost"))
    static = files("mercer.studio") / "static"
    routes = [
        Route("/", server.page, methods=["GET"]),
        Route("/api/{name}", server.api, methods=["POST"]),
        Route("/report/{job}", server.report, methods=["GET"]),
        Mount("/static", StaticFiles(directory=str(static), check_dir=False)),
    ]
    return Guard(Starlette(routes=routes), hosts)
