"""Fits of whole tables as `mercer fit` makes them: start, progress, stop, results."""

from __future__ import annotations

import atexit
import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from mercer.studio.state import StateError, number, one_of
from mercer.studio.tables import TABLES, OpenTable

# jobs that run at the same time, and finished ones that are kept
RUNNING, KEPT = 2, 6
# seconds of a search, unless the question sets them; seconds after which a job is ended by force
TIME_LIMIT, LONGEST = 120.0, 1800.0
MOST_MODEL_BYTES = 100 * 1024 * 1024


class FitJob:
    """One fit in a process of its own."""

    def __init__(self, table: OpenTable, question: dict[str, Any]) -> None:
        self.id = secrets.token_hex(8)
        self.table = table
        self.state, self.progress, self.line = "running", 0.0, "starting"
        self.stopping = False
        self._failed: str | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="mercer-studio-fit-", ignore_cleanup_errors=True)
        self.folder = Path(self._folder.name)
        (self.folder / "question.json").write_text(json.dumps(question), encoding="utf-8")
        # the process imports the same mercer as this one
        source = str(Path(__file__).resolve().parents[2])
        paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mercer.studio.training_process", str(self.folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=os.name == "posix",  # Ctrl-C of the terminal stops the server, which stops its jobs
        )
        self._deadline = threading.Timer(LONGEST, self.kill)
        self._deadline.daemon = True
        self._deadline.start()
        threading.Thread(target=self._follow, daemon=True, name="mercer-studio-job").start()

    def _follow(self) -> None:
        """Read the progress until the process ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self._take(json.loads(line))
            except (ValueError, TypeError):
                continue
        status = self.process.wait()
        self._deadline.cancel()
        if (self.folder / "model.mercer").is_file() and status == 0:
            self.state, self.progress, self.line = "done", 1.0, "done"
        elif self.stopping:
            self.state, self.line = "stopped", "stopped before there was a model"
        else:
            self.state = "failed"
            self.line = self._failed or f"The fit ended unexpectedly (status {status})."

    def _take(self, told: dict[str, Any]) -> None:
        if "failed" in told:
            self._failed = str(told["failed"])
        elif "say" in told:
            self.line = str(told["say"])
        else:
            share, left = told.get("share"), told.get("left")
            self.progress = self.progress if share is None else max(self.progress, min(1.0, float(share)))
            rest = "" if left is None else f"about {max(1, round(float(left)))} s left"
            self.line = ", ".join(str(one) for one in (told.get("stage"), told.get("detail"), rest) if one)

    def stop(self) -> None:
        """End the search and keep its best machine; end the process at the second call."""
        if self.process.poll() is not None:
            return
        if self.stopping or os.name != "posix":
            self.stopping = True
            self.kill()
            return
        self.stopping = True
        self.line = "stopping: the best machine so far is kept"
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the process by force."""
        if self.process.poll() is None:
            self.process.kill()

    def to_json(self) -> dict[str, Any]:
        """The answer to `job`."""
        found = {"job": self.id, "state": self.state, "progress": round(self.progress, 4), "line": self.line}
        if self.state != "done":
            return found
        report, model = self.folder / "report.html", self.folder / "model.mercer"
        summary = self.folder / "summary.txt"
        if model.stat().st_size <= MOST_MODEL_BYTES:
            found["model"] = base64.b64encode(model.read_bytes()).decode()
        return found | {
            "name": f"{Path(self.table.name).stem}.mercer",
            "report": report.read_text(encoding="utf-8") if report.is_file() else None,
            "text": summary.read_text(encoding="utf-8"),
        }


class Jobs:
    """The jobs of this process."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, FitJob] = OrderedDict()
        self._lock = threading.Lock()
        atexit.register(self.kill_all)

    def start(self, payload: dict[str, Any]) -> FitJob:
        """Start a fit of a table."""
        table = TABLES.get(payload.get("table"))
        target = payload.get("target", table.default)
        if not isinstance(target, str):
            raise StateError("target must be the name of a column.", "target")
        kernel, task = payload.get("kernel"), payload.get("task")
        if kernel is not None and not (isinstance(kernel, str) and len(kernel) <= 500):
            raise StateError("kernel must be a short text.", "kernel")
        question = {
            "path": str(table.path),
            "name": table.name,
            "target": target,
            "kernel": kernel,
            "task": None if task is None else one_of(task, "task", ("classification", "regression")),
            "time_limit": number(payload.get("time_limit", TIME_LIMIT), "time_limit", 1.0, 600.0),
        }
        with self._lock:
            if sum(job.state == "running" for job in self._jobs.values()) >= RUNNING:
                raise StateError(f"{RUNNING} fits are running: wait for one, or stop it.", "job")
            job = FitJob(table, question)
            self._jobs[job.id] = job
            for old in [one for one in self._jobs.values() if one.state != "running"][: len(self._jobs) - KEPT]:
                del self._jobs[old.id]
        return job

    def get(self, identity: Any) -> FitJob:
        """A job by its id."""
        with self._lock:
            if not isinstance(identity, str) or identity not in self._jobs:
                raise StateError("There is no such job: start the fit again.", "job")
            return self._jobs[identity]

    def kill_all(self) -> None:
        """End all processes."""
        for job in list(self._jobs.values()):
            job.kill()


JOBS = Jobs()
