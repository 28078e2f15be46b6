"""Threads that share one loop at a time without the interpreter: they live in compiled code.

A thread that is woken by the interpreter's pool begins 0.1 to 0.25 ms later, as long as a small loop takes, and each
time that it asks for the interpreter another one may wait. Those of a team spin for a while instead, and find the next
loop within a microsecond. A loop is cut into parts, each of which writes to places of its own, so that nothing depends
on who takes which.

The loop that is open is described by the mail, an array of whole numbers that all see. Its owner writes what the loop
needs, opens it by a ticket, takes parts like the others, closes it when none are left, and waits until nobody is
inside.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer._compiled.compile import compiled
from mercer._compiled.pointers import at, call
from mercer._compiled.thread_pool import available_cores, local

# places in the mail, each on a cache line of its own, then what the loop needs
OPEN, NEXT, INSIDE, QUIT, PARTS, JOB, NEEDS = 0, 8, 16, 24, 32, 33, 40
MAIL = 64
# places at the desk of a helper: the address of the mail that it attends to, 0 if it is free, and a semaphore
WANTED, SEMAPHORE, DESK = 0, 8, 16
# turns of waiting: with a pause each, then giving the processor to others, until a thread goes back to sleep
PAUSES, MOST_TURNS = 4_000, 12_000
# semaphores without a name, and the processor given to others, are not to be had everywhere
CAN_SPIN = sys.platform == "linux"


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


def _semaphore(name, *constants):
    """A function of the system that takes the semaphore of a desk, and some numbers."""

    @intrinsic
    def function(typingctx, desk):
        def codegen(context, builder, signature, args):
            numbers = [ir.Constant(ir.IntType(32), value) for value in constants]
            kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64).as_pointer(), *(n.type for n in numbers)])
            place = ir.Constant(context.get_value_type(types.intp), SEMAPHORE)
            system = cgutils.get_or_insert_function(builder.module, kind, name)
            return builder.call(system, [_pointer(context, builder, desk, args[0], place), *numbers])

        return types.int32(desk), codegen

    return function


_sem_init, _sem_wait, _sem_post = _semaphore("sem_init", 0, 0), _semaphore("sem_wait"), _semaphore("sem_post")


@compiled()
def _take_parts(mail):
    parts, job = load(mail, PARTS), load(mail, JOB)
    while True:
        part = add(mail, NEXT, 1)
        if part >= parts:
            return
        call(job, mail, part)


@compiled()
def _serve(mail):
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
def prepare(desk):
    """Make a desk ready for its helper."""
    _sem_init(desk)


@compiled()
def attend(desk):
    """The life of a helper: it sleeps until it is wanted, and never comes back."""
    while True:
        address = load(desk, WANTED)
        if address == 0:
            _sem_wait(desk)
            continue
        _serve(carray(at(address), (MAIL,), np.int64))
        store(desk, WANTED, 0)


@compiled()
def hire(desk, mail):
    """Let a helper that is free attend to this mail."""
    store(desk, WANTED, mail.ctypes.data)
    _sem_post(desk)


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


class Team:
    """The threads of one fit: its own, and helpers that wait for loops."""

    def __init__(self, n_helpers: int) -> None:
        self.size = 1 + n_helpers
        self._ticket = 0
        self._desks: list[np.ndarray] = []
        self.mail = _take_mail()
        self._address = self.mail.ctypes.data
        self._ask()

    def _ask(self) -> None:
        """Ask for helpers that are free, at most as many as are missing."""
        self._desks = [desk for desk in self._desks if desk[WANTED] == self._address]
        while len(self._desks) < self.size - 1:
            desk = _hire(self.mail)
            if desk is None:
                return
            self._desks.append(desk)

    def ticket(self) -> int:
        """Of the next loop; helpers that were busy before, or went to sleep since, are asked for it."""
        self._ticket += 1
        here = sum(int(desk[WANTED]) == self._address for desk in self._desks)
        if here < self.size - 1:
            self._ask()
        return self._ticket

    def dismiss(self) -> None:
        """No more loops: helpers go back to sleep."""
        self.mail[QUIT] = 1
        _mails.append(self.mail)


_lock = threading.Lock()
# desks of each process, since threads do not survive a fork; mails that no team has, which are never given back to the
# system: a helper may look at one late
_desks: dict[int, list[np.ndarray]] = {}
_mails: list[np.ndarray] = []


def _take_mail() -> np.ndarray:
    """One that nobody attends to."""
    with _lock:
        attended = {int(desk[WANTED]) for desk in _desks.get(os.getpid(), ())}
        for k, mail in enumerate(_mails):
            if mail.ctypes.data not in attended:
                mail[:] = 0
                return _mails.pop(k)
    return np.zeros(MAIL, np.int64)


def _hire(mail: np.ndarray) -> np.ndarray | None:
    """The desk of a helper that is free, who attends to this mail from now on; a new one while there are cores."""
    with _lock:
        mine = _desks.setdefault(os.getpid(), [])
        desk = next((desk for desk in mine if desk[WANTED] == 0), None)
        if desk is None:
            if len(mine) >= available_cores() - 1:
                return None
            desk = np.zeros(DESK, np.int64)
            prepare(desk)
            threading.Thread(target=attend, args=(desk,), name="mercer-helper", daemon=True).start()
            mine.append(desk)
        hire(desk, mail)
        return desk


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
