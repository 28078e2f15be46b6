"""Threads that share one loop at a time without the interpreter: they wait for it in compiled code.

A thread that is woken by the interpreter's pool begins 0.1 to 0.25 ms later, as long as a small loop takes. Those of a
team spin for a while instead, and find the next loop within a microsecond. A loop is cut into parts, each of which
writes to places of its own, so that nothing depends on who takes which.

The loop that is open is described by the mail, an array of whole numbers that all see. Its owner writes what the loop
needs, opens it by a ticket, takes parts like the others, closes it when none are left, and waits until nobody is inside.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._numerics.compile import compiled
from mercer._numerics.pool import available_cores, local

# places in the mail, each on a cache line of its own, then what the loop needs
OPEN, NEXT, INSIDE, QUIT, PARTS, JOB, NEEDS = 0, 8, 16, 24, 32, 33, 40
MAIL = 64
# turns of waiting: with a pause each, then giving the processor to others, until a thread goes back to sleep
PAUSES, MOST_TURNS = 4_000, 12_000
CAN_SPIN = os.name == "posix"


def _pointer(context, builder, array, mail, place):
    data = context.make_array(array)(context, builder, mail).data
    return builder.gep(data, [place])


@intrinsic
def load(typingctx, mail, place):
    """mail[place] as the others have left it."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_pointer(context, builder, mail, *args), "seq_cst", 8)

    return types.int64(mail, types.intp), codegen


@intrinsic
def store(typingctx, mail, place, value):
    """mail[place] = value, after all that was written before."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[2], _pointer(context, builder, mail, *args[:2]), "seq_cst", 8)
        return context.get_dummy_value()

    return types.void(mail, types.intp, types.int64), codegen


@intrinsic
def add(typingctx, mail, place, value):
    """mail[place] += value, which no other thread can come between; what it was before."""

    def codegen(context, builder, signature, args):
        return builder.atomic_rmw("add", _pointer(context, builder, mail, *args[:2]), args[2], "seq_cst")

    return types.int64(mail, types.intp, types.int64), codegen


@intrinsic
def _wait(typingctx, turn):
    """Let some time pass: a pause at first, then whatever else wants to run."""

    def codegen(context, builder, signature, args):
        late = builder.icmp_signed(">", args[0], ir.Constant(args[0].type, PAUSES))
        with builder.if_else(late) as (then, otherwise):
            with then:
                function = cgutils.get_or_insert_function(
                    builder.module, ir.FunctionType(ir.IntType(32), []), "sched_yield"
                )
                builder.call(function, [])
            with otherwise:
                if platform.machine().lower() in ("x86_64", "amd64"):
                    function = cgutils.get_or_insert_function(
                        builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse2.pause"
                    )
                    builder.call(function, [])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def _call(typingctx, job, mail, part):
    """Run one part of a loop, whose code is at the address ``job``."""

    def codegen(context, builder, signature, args):
        whole = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [whole, whole])
        address = builder.ptrtoint(context.make_array(mail)(context, builder, args[1]).data, whole)
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [address, args[2]])
        return context.get_dummy_value()

    return types.void(types.int64, mail, types.int64), codegen


@intrinsic
def at(typingctx, address):
    """A pointer from a whole number."""

    def codegen(context, builder, signature, args):
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), codegen


@compiled()
def _take_parts(mail):
    parts, job = load(mail, PARTS), load(mail, JOB)
    while True:
        part = add(mail, NEXT, 1)
        if part >= parts:
            return
        _call(job, mail, part)


@compiled()
def serve(mail):
    """Take parts of whatever loop is open, until there is none for long or the owner of the mail has no more."""
    seen, turn = 0, 0
    while load(mail, QUIT) == 0 and turn < MOST_TURNS:
        ticket = load(mail, OPEN)
        if ticket == 0 or ticket == seen:
            _wait(turn)
            turn += 1
            continue
        add(mail, INSIDE, 1)
        # the owner closes the loop before it looks who is inside: one of both sees the other
        if load(mail, OPEN) == ticket:
            _take_parts(mail)
            seen = ticket
        add(mail, INSIDE, -1)
        turn = 0


@compiled()
def share(mail, ticket, job, parts):
    """Run all parts of a loop with whoever comes to help. What it needs is in the mail."""
    store(mail, JOB, job)
    store(mail, PARTS, parts)
    store(mail, NEXT, 0)
    store(mail, OPEN, ticket)
    _take_parts(mail)
    store(mail, OPEN, 0)
    turn = 0
    while load(mail, INSIDE) != 0:
        _wait(turn)
        turn += 1


def address_of(job: Any) -> int:
    """Where the code of job(address of the mail, part), a compiled function, is."""
    signature = (types.int64, types.int64)
    job.compile(signature)
    found = job.overloads[signature]
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_cfunc_wrapper_name))


class Team:
    """The threads of one fit: its own, and helpers that wait for loops."""

    def __init__(self, n_helpers: int) -> None:
        self.mail = np.zeros(MAIL, np.int64)
        self.size = 1 + n_helpers
        self._ticket = 0
        self._helpers: list[_Helper] = []
        self._call()

    def _call(self) -> None:
        """Ask for helpers: those who have none elsewhere, at most as many as are missing."""
        self._helpers = [helper for helper in self._helpers if helper.mail is self.mail]
        while len(self._helpers) < self.size - 1:
            helper = _find_helper()
            if helper is None:
                return
            helper.begin(self.mail)
            self._helpers.append(helper)

    def ticket(self) -> int:
        """Of the next loop; helpers that went to sleep are called for it."""
        self._ticket += 1
        if any(helper.mail is not self.mail for helper in self._helpers):
            self._call()
        return self._ticket

    def dismiss(self) -> None:
        """No more loops: helpers go back to sleep."""
        self.mail[QUIT] = 1


class _Helper(threading.Thread):
    """A thread of this process that sleeps until a team wants it."""

    def __init__(self) -> None:
        super().__init__(name="mercer-helper", daemon=True)
        self.mail: np.ndarray | None = None
        self._wanted = threading.Semaphore(0)

    def begin(self, mail: np.ndarray) -> None:
        """Take part in the loops of this mail."""
        self.mail = mail
        self._wanted.release()

    def run(self) -> None:
        while True:
            self._wanted.acquire()
            serve(self.mail)
            with _lock:
                self.mail = None


_lock = threading.Lock()
_helpers: dict[int, list[_Helper]] = {}  # of each process, since threads do not survive a fork


def _find_helper() -> _Helper | None:
    """One that sleeps; a new one if there are fewer than cores to spare."""
    with _lock:
        mine = _helpers.setdefault(os.getpid(), [])
        for helper in mine:
            if helper.mail is None:
                helper.mail = np.empty(0, np.int64)  # taken
                return helper
        if len(mine) >= available_cores() - 1:
            return None
        helper = _Helper()
        helper.mail = np.empty(0, np.int64)
        mine.append(helper)
    helper.start()
    return helper


def current() -> Team | None:
    """The team of this thread, if it has one."""
    return getattr(local, "team", None)


@contextmanager
def gathered(n_threads: int) -> Iterator[None]:
    """Loops of this thread are shared among so many, as far as there are cores that no other fit uses."""
    if n_threads <= 1 or not CAN_SPIN or current() is not None:
        yield
        return
    team = Team(n_threads - 1)
    local.team = team
    try:
        yield
    finally:
        local.team = None
        team.dismiss()
