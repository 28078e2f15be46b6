"""``mercer studio``: a local page where you move points and see the exact machine."""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from mercer.exceptions import InvalidInputError, MissingExtraError

HOST = "127.0.0.1"
# this port is tried first, so that the address rarely changes; if it is in use, any free port is taken
PREFERRED = 8710


def run(arguments: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C; return the exit status."""
    uvicorn = server_package()
    with listen(arguments.port) as listening:  # first, because imports take seconds and the port may be in use
        return serve(uvicorn, listening, arguments)


def serve(uvicorn: Any, listening: socket.socket, arguments: argparse.Namespace) -> int:
    """Serve the page on a socket until Ctrl-C; return the exit status."""
    from mercer.studio.jobs import JOBS
    from mercer.studio.server import studio_app
    from mercer.studio.warming import Warming

    if arguments.table is not None:
        open_table(arguments.table)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    app = studio_app(token, port, Warming().start())
    address = f"http://{HOST}:{port}/?token={token}"
    print(f"mercer studio: {address}", flush=True)
    print("Ctrl-C stops it. The page stays on this computer; nothing is sent elsewhere.", file=sys.stderr, flush=True)
    if not arguments.no_browser:
        threading.Timer(0.5, open_browser, [address]).start()
    configuration = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=1, lifespan="off", server_header=False
    )
    try:
        uvicorn.Server(configuration).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        JOBS.kill_all()
    print("\nmercer studio: stopped", file=sys.stderr, flush=True)
    if any(thread.name.startswith("mercer-studio") for thread in threading.enumerate()):
        # a computation that is still running must not delay the end
        sys.stdout.flush()
        os._exit(0)
    return 0


def open_table(path: Path) -> None:
    """Open the table of the command line, so that the page begins with it."""
    from mercer.studio.session import SESSION
    from mercer.studio.tables import TABLES

    SESSION.table = TABLES.add(path.name, path).id


def server_package() -> Any:
    """The module uvicorn, if it and Starlette are installed."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("mercer studio", error.name or "starlette", "studio") from None
    return uvicorn


def listen(port: int | None) -> socket.socket:
    """A socket that listens on the loopback address at this port, or at a free one."""
    for tried in (PREFERRED, 0) if port is None else (port,):
        # asyncio turns off Nagle's delay, 40 ms an answer, only for sockets that name their protocol
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if os.name == "posix":  # allow a port that was released a moment ago
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, tried))
            listening.listen(128)
        except (OSError, OverflowError) as error:
            listening.close()
            if tried == PREFERRED and port is None:
                continue
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInputError(
                f"port {tried} cannot be used: {reason.lower()}. Choose another one with --port N, or leave --port out "
                "for a free one."
            ) from None
        return listening
    raise AssertionError("a free port is always found or reported")


def open_browser(address: str) -> None:
    """Open the page in a graphical browser, if there is one."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return  # the address is printed
    if not isinstance(browser, webbrowser.GenericBrowser) or isinstance(browser, webbrowser.BackgroundBrowser):
        browser.open(address)


def port_number(text: str) -> int:
    """A port number, for argparse."""
    try:
        port = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} was given, but a port is at most 65535")
    return port


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("table", metavar="TABLE", nargs="?", type=Path, help="a table: CSV, Parquet or JSON lines")
    parser.add_argument(
        "--port", metavar="N", type=port_number, help=f"port of the page (default: {PREFERRED}, or a free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, but do not open a browser")
