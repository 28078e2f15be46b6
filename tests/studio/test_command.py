"""The command `mercer studio`: address, port, interrupt, missing packages."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

from mercer.cli import main
from mercer.cli.studio import listen

pytest.importorskip("uvicorn")


def start(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "mercer", "studio", "--no-browser", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is sent as a signal")
def test_it_prints_an_address_and_stops_quietly(tmp_path):
    """The printed address opens the page with the named table; Ctrl-C ends the process with status 0, no traceback."""
    table = tmp_path / "small.csv"
    table.write_text("a,b,class\n" + "".join(f"{i},{i % 7},{'xy'[i % 2]}\n" for i in range(40)))
    process = start(str(table))
    try:
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)[0]
        for _ in range(100):
            try:
                with urllib.request.urlopen(address, timeout=5) as page:
                    assert page.status == 200
                break
            except OSError:
                time.sleep(0.1)
        base, token = address.split("/?token=")
        question = urllib.request.Request(
            f"{base}/api/session", data=b"{}", headers={"X-Mercer-Token": token}, method="POST"
        )
        with urllib.request.urlopen(question, timeout=30) as answer:
            assert '"name":"small.csv"' in answer.read().decode()
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0 and "stopped" in errors and "Traceback" not in errors


def test_a_port_in_use_is_said_so(capsys):
    """The message names the port and the next step."""
    with listen(None) as taken:
        port = taken.getsockname()[1]
        assert main(["studio", "--no-browser", "--port", str(port)]) == 1
    message = capsys.readouterr().err
    assert f"port {port} cannot be used" in message and "--port N" in message


def test_the_preferred_port_is_left_for_a_free_one():
    """Without --port a second studio finds a port of its own, on the loopback address."""
    with listen(None) as first, listen(None) as second:
        assert first.getsockname() != second.getsockname()
        assert {one.getsockname()[0] for one in (first, second)} == {"127.0.0.1"}
        # small answers must not wait for the acknowledgement of earlier ones
        assert first.proto == socket.IPPROTO_TCP


def test_missing_packages_are_named(monkeypatch, capsys):
    """Without the extra one sentence tells how to install it."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["studio", "--no-browser"]) == 1
    message = capsys.readouterr().err
    assert message.endswith("needs uvicorn, which is not installed: please run  pip install 'mercer[studio]'\n")
    assert message.count("\n") == 1


def test_a_missing_table_is_said_so(tmp_path, capsys):
    """A file that is not there, or not a table, ends the command in one sentence."""
    assert main(["studio", "--no-browser", str(tmp_path / "no.csv")]) == 1
    assert "no.csv" in capsys.readouterr().err
    (tmp_path / "text.pdf").write_text("x")
    assert main(["studio", "--no-browser", str(tmp_path / "text.pdf")]) == 1
    assert "text.pdf is not a table" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["x", "-1", "70000"])
def test_ports_that_are_none(port, capsys):
    """An invalid port is refused by the parser."""
    with pytest.raises(SystemExit):
        main(["studio", "--port", port])
    assert "--port" in capsys.readouterr().err
