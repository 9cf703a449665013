"""A worker that is played: listens on script.sock and speaks docs/TRAINER.md, strictly, in a thread of the test.

The test says what the word and the answers are: due("copy"), give("add", floats), pause(), over(), refuse(code, text),
vanish(). What the script did is in seen (names of messages, with DONE's numbers) and in weights.
"""

import array
import fcntl
import mmap
import os
import socket
import struct
import threading

HELLO, WELCOME, REFUSED, LOOK, DO, DONE, DRAW, DRAWN = range(1, 9)
GO, ASSIGN, ADD, COPY, PAUSED = range(5)
BITS = {COPY: 1, ADD: 2, ASSIGN: 4, PAUSED: 8}
OFFSET = 4096
F_ADD_SEALS, SEAL_SHRINK, SEAL_GROW = 1033, 2, 4


def rows_of(data):
    """(name, type, shape) of each row; fails where compute/model/tensor_table.c would."""
    magic, version, zero, n, also_zero, elements = struct.unpack_from("<4sHHIIQ", data)
    assert (magic, version, zero, also_zero) == (b"DPX1", 1, 0, 0) and n > 0, data[:24]
    rows, at, total = [], 24, 0
    for _ in range(n):
        kind, dims, size = struct.unpack_from("<BBB", data, at)
        name = data[at + 3:at + 3 + size].decode("ascii")
        shape = struct.unpack_from(f"<{dims}I", data, at + 3 + size)
        at += 3 + size + 4 * dims
        count = 1
        for extent in shape:
            count *= extent
        assert kind in (1, 2, 3) and dims <= 8 and count > 0 and name
        assert not rows or rows[-1][0] < name, "rows are in the order of names"
        rows.append((name, kind, shape))
        total += count
    assert at == len(data) and total == elements
    return rows


class PlayedWorker:
    """weights: what the first ASSIGN gives, a list of floats; by default zeros. The data set has `samples` items."""

    def __init__(self, folder, weights=None, samples=100, unit=1, tokens_total=0, sealed=True):
        self.path = os.path.join(folder, "script.sock")
        self.samples, self.unit, self.tokens_total = samples, unit, tokens_total
        self.weights = weights
        self.sealed = sealed
        self.seen = []
        self.errors = []
        self.rows = None
        self.tables = []
        self.drawn = 0 # of this connection
        self.used = 0
        self.connections = 0
        self.next_index = 0
        self.draw_most = 1 << 20
        self.round, self.tokens, self.rate = 0, 0, 0.0
        self.refusal = None # (code, text): the answer to everything
        self.answer_with = None # bytes: the next answer, whatever it should be
        self.hang = threading.Event() # set: questions stay without an answer
        self._due = [] # (what, floats or None)
        self._paused = self._over = False
        self._lock = threading.RLock()
        self._connection = None
        self._map = None
        self._fd = -1
        self._told = None
        self._closing = False
        self._listener = None
        self.listen()

    # Calls of a test.

    def listen(self):
        self._closing = False
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(os.path.dirname(self.path), os.O_RDONLY)
        self._listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(self.path)}")
        os.close(folder)
        self._listener.listen(4)
        self._thread = threading.Thread(target=self._serve, args=(self._listener,), daemon=True)
        self._thread.start()

    def due(self, what, floats=None):
        with self._lock:
            self._due.append(({"assign": ASSIGN, "add": ADD, "copy": COPY}[what], floats))
            self._write_word()

    def now(self, round_, tokens, rate=0.0):
        with self._lock:
            self.round, self.tokens, self.rate = round_, tokens, rate
            self._write_word()

    def pause(self, paused=True):
        with self._lock:
            self._paused = paused
            self._write_word()

    def over(self):
        with self._lock:
            self._over = True
            self.refusal = (5, "the node ends")
            self._write_word()

    def vanish(self):
        """As if the worker was killed: no socket, no connection; the header stays as it was."""
        self._closing = True
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def close(self):
        if not self._closing:
            self.vanish()
        if self.errors:
            raise AssertionError(self.errors[0])

    def header(self):
        """steps, samples, loss as the script has written them."""
        return struct.unpack_from("<QQd", self._map, 64)

    # The worker itself.

    def _write_word(self):
        if self._map is None:
            return
        word = 0
        for what, _ in self._due:
            word |= BITS[what]
        word |= 8 * self._paused | 16 * self._over
        struct.pack_into("<QQ", self._map, 8, self.round, self.tokens)
        struct.pack_into("<d", self._map, 32, self.rate)
        struct.pack_into("<I", self._map, 0, word)

    def _serve(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self._connection = connection
            try:
                self._talk(connection)
            except (BrokenPipeError, ConnectionResetError):
                pass
            except AssertionError as error:
                self.errors.append(f"the script broke the protocol: {error}")
            finally:
                with self._lock:
                    self._connection = None
                connection.close()

    def _talk(self, connection):
        first = True
        while True:
            packet, ancillary, _, _ = connection.recvmsg(1 << 17, socket.CMSG_SPACE(64))
            fds = array.array("i")
            for _, _, data in ancillary:
                fds.frombytes(data)
            if not packet:
                assert not fds
                return
            while self.hang.is_set():
                if self._closing:
                    return
                threading.Event().wait(0.01)
            with self._lock:
                if self.refusal is not None:
                    code, text = self.refusal
                    for fd in fds:
                        os.close(fd)
                    connection.send(struct.pack("<II", REFUSED, code) + text.encode())
                    return
                if self.answer_with is not None:
                    answer, self.answer_with = self.answer_with, None
                    for fd in fds:
                        os.close(fd)
                    connection.send(answer)
                    continue
                assert len(packet) <= 65536
                if first:
                    self._hello(connection, packet, list(fds))
                    first = False
                    continue
                assert not fds, "a descriptor with a later packet"
                connection.send(self._answer(packet))

    def _hello(self, connection, packet, fds):
        assert packet == struct.pack("<II", HELLO, 1) and len(fds) == 1, packet
        size = os.fstat(fds[0]).st_size
        self.tables.append(os.pread(fds[0], size, 0))
        os.close(fds[0])
        self.rows = rows_of(self.tables[-1])
        self.elements = struct.unpack_from("<Q", self.tables[-1], 16)[0]
        if self.weights is None:
            self.weights = [0.0] * self.elements
        size = OFFSET + 4 * self.elements
        self._fd = os.memfd_create("played", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.ftruncate(self._fd, size)
        if self.sealed:
            fcntl.fcntl(self._fd, F_ADD_SEALS, SEAL_SHRINK | SEAL_GROW)
        self._map = mmap.mmap(self._fd, size)
        self.connections += 1
        self.drawn = self.used = 0
        self._totals = (0, 0)
        self._told = None
        self._due = [(ASSIGN, None)] + [one for one in self._due if one[0] == COPY]
        self.seen.append("hello")
        self._write_word()
        welcome = struct.pack("<IIQQQQQQ", WELCOME, 1, self.elements, self.samples, self.unit, self.tokens_total, OFFSET, size)
        connection.sendmsg([welcome], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self._fd]))])
        os.close(self._fd)

    def _answer(self, packet):
        kind = struct.unpack_from("<I", packet)[0]
        if kind == LOOK:
            assert len(packet) == 8 and struct.unpack("<II", packet)[1] in (0, 1, 2)
            assert self._told is None, "LOOK in the place of DONE"
            self.seen.append("look")
            if struct.unpack("<II", packet)[1] == 2:
                self._due.append((COPY, None))
            return self._do()
        if kind == DONE:
            self._done(packet)
            return self._do()
        assert kind == DRAW and len(packet) == 8, packet
        assert self._told is None, "DRAW in the place of DONE"
        n = struct.unpack("<II", packet)[1]
        assert 1 <= n <= 8000, n
        n = max(0, min(n, self.draw_most - (self.drawn - self.used)))
        indices = [(7 * (self.next_index + i)) % self.samples for i in range(n)]
        self.next_index += n
        self.drawn += n
        self.seen.append(("draw", n))
        return struct.pack(f"<II{n}Q", DRAWN, n, *indices)

    def _do(self):
        if self._due:
            what, floats = self._due[0]
            if what == ASSIGN:
                self._fill(floats if floats is not None else self.weights)
            elif what == ADD:
                self._fill(floats)
        else:
            what = PAUSED if self._paused else GO
        self._told = what if what in (ASSIGN, ADD, COPY) else None
        return struct.pack("<IIQQ", DO, what, self.round, self.tokens)

    def _fill(self, floats):
        self._map[OFFSET:OFFSET + 4 * self.elements] = struct.pack(f"<{self.elements}f", *floats)

    def _done(self, packet):
        assert len(packet) == 32, packet
        _, what, steps, samples, loss = struct.unpack("<IIQQd", packet)
        assert what == self._told, f"DONE {what} for DO {self._told}"
        assert steps >= self._totals[0] and samples >= self._totals[1], "totals fell"
        assert samples <= self.drawn, f"{samples} samples are used, {self.drawn} drawn"
        self._totals = (steps, samples)
        self._told = None
        floats = self._due.pop(0)[1]
        name = {ASSIGN: "assign", ADD: "add", COPY: "copy"}[what]
        self.seen.append((name, steps, samples, loss))
        if what == COPY:
            self.used = samples
            self.weights = list(struct.unpack_from(f"<{self.elements}f", self._map, OFFSET))
        elif what == ADD:
            self.weights = [one + other for one, other in zip(self.weights, floats)]
        self._write_word()
