"""Several processes as the ranks of one script. The test says when each goes on, so what happens between is in its hands.

A body is a generator function of the rank: whatever it yields comes to the test, which then lets it go on.
"""

import multiprocessing
import os
import signal
import time

import dpnode
import kit
from dpnode.follower import Follower
from dpnode.leader import Leader
from dpnode.place import Place
from dpnode.ranks import Hub, Spoke

ANSWER_S = 60 # for anything that a rank does in a test
_groups = 0


class Group:
    """n processes that run the body. They end with the test."""

    def __init__(self, test, n, body):
        global _groups # pylint: disable=global-statement
        _groups += 1
        context = multiprocessing.get_context("fork")
        self._pipes, self.processes = [], []
        for rank in range(n):
            here, there = context.Pipe()
            process = context.Process(target=_run, args=(rank, body, there, [here, *self._pipes]))
            process.start()
            there.close()
            self._pipes.append(here)
            self.processes.append(process)
        test.addCleanup(self.close)

    def turn(self, *ranks):
        """Lets these, or all, go on to their next yield. Their values: an error is one, as an Error of this module."""
        chosen = ranks or range(len(self._pipes))
        self.go(*ranks)
        return [self.value(rank) for rank in chosen]

    def go(self, *ranks):
        for rank in ranks or range(len(self._pipes)):
            self._pipes[rank].send("go")

    def value(self, rank):
        assert self._pipes[rank].poll(ANSWER_S), f"rank {rank} does not come to its next yield"
        try:
            return self._pipes[rank].recv()
        except (EOFError, ConnectionResetError):
            return None

    def kill(self, rank):
        os.kill(self.processes[rank].pid, signal.SIGKILL)
        self.processes[rank].join()

    def close(self):
        for process in self.processes:
            process.kill()
            process.join()
        for pipe in self._pipes:
            pipe.close()


class Error:
    """What a body raised."""

    def __init__(self, error):
        self.kind = type(error).__name__
        self.text = str(error)
        self.fix = getattr(error, "fix", "")

    def __repr__(self):
        return f"{self.kind}: {self.text}"


def _run(rank, body, pipe, others):
    for other in others:
        other.close()
    pipe.recv()
    try:
        for value in body(rank):
            pipe.send(value)
            pipe.recv()
        pipe.send("end")
    except EOFError:
        pass
    except Exception as error: # pylint: disable=broad-except
        pipe.send(Error(error))
    os._exit(0)


class Pieces(kit.Floats):
    """Tensors of a rank without a framework. part: (rank, ranks) of which each has its part of every tensor, or None: all."""

    def __init__(self, part=None, **tensors):
        super().__init__(**tensors)
        self.part = part

    def pieces(self):
        if self.part is None:
            return [(0, row.elements) for row in self.rows]
        return [(1 + self.part[0], len(range(row.elements)[self.part[0]::self.part[1]])) for row in self.rows]

    def sums(self):
        return [sum(int(1024 * number) for number in self.tensors[row.name]) & (1 << 64) - 1 for row in self.rows]

    def copy(self, floats, which=None):
        self.calls.append("copy")
        at = 0
        for index, row in enumerate(self.rows):
            if which is None or which[index]:
                for i in range(row.elements)[slice(None) if self.part is None else slice(self.part[0], None, self.part[1])]:
                    floats[at + i] = self.tensors[row.name][i]
            at += row.elements


def session(rank, n, folder, tensors, timeout=20, wait_s=20, offline=False, wait_while_paused=True,
            sync_every=None):
    """A session of one of n ranks, which find one another by a file of the folder."""
    place = None if offline else Place(folder)
    path = os.path.join(folder, f"address{_groups}")

    def host():
        hub = Hub(n, wait_s)
        with open(path + ".new", "w", encoding="ascii") as file:
            file.write(hub.address)
        os.replace(path + ".new", path)
        return hub

    def join(digest):
        deadline = time.monotonic() + ANSWER_S
        while not os.path.exists(path):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with open(path, encoding="ascii") as file:
            return Spoke(file.read(), rank, digest, wait_s)

    if rank == 0:
        return Leader(tensors, place, timeout, wait_while_paused, None, sync_every, host)
    return Follower(tensors, place, timeout, None, sync_every, rank, join)


def raised(call, *arguments):
    """The dpnode.Error of the call, for a test to see; None if there is none."""
    try:
        call(*arguments)
    except dpnode.Error as error:
        return Error(error)
    return None
