"""A terminal for tests: a program in a pty, and its screen as lines of text. It is a VT52, the plainest terminal that ncurses can place a cursor on,
so a few lines emulate it whole. Standard library only."""

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time


class Screen:
    """The cells that the bytes of a program leave behind."""

    def __init__(self, columns, rows):
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.waiting = ""  # the begin of a sequence
        self.resize(columns, rows)

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0

    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def feed(self, data):
        text = self.waiting + self.decoder.decode(data)
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                size = self._escape(text[at:at + 4])
                if size == 0:
                    break
                at += size
            else:
                self._put(text[at])
                at += 1
        self.waiting = text[at:]

    def _escape(self, text):
        """Obeys one sequence; returns its size, 0 if it is not whole."""
        if len(text) < 2 or (text[1] == "Y" and len(text) < 4):
            return 0
        kind = text[1]
        if kind == "Y":
            self.row = min(max(ord(text[2]) - 32, 0), self.rows - 1)
            self.column = min(max(ord(text[3]) - 32, 0), self.columns - 1)
            return 4
        if kind == "H":
            self.row = self.column = 0
        elif kind in "ABCD":
            down, right = {"A": (-1, 0), "B": (1, 0), "C": (0, 1), "D": (0, -1)}[kind]
            self.row = min(max(self.row + down, 0), self.rows - 1)
            self.column = min(max(self.column + right, 0), self.columns - 1)
        elif kind in "JK":
            self.cells[self.row][self.column:] = [" "] * (self.columns - self.column)
            for row in range(self.row + 1, self.rows if kind == "J" else 0):
                self.cells[row] = [" "] * self.columns
        elif kind == "I":
            if self.row > 0:
                self.row -= 1
            else:
                self.cells = [[" "] * self.columns] + self.cells[:-1]
        return 2

    def _put(self, character):
        if character == "\n":
            if self.row < self.rows - 1:
                self.row += 1
            else:
                self.cells = self.cells[1:] + [[" "] * self.columns]
        elif character == "\r":
            self.column = 0
        elif character == "\b":
            self.column = max(self.column - 1, 0)
        elif character == "\t":
            self.column = min(self.column // 8 * 8 + 8, self.columns - 1)
        elif character >= " ":
            self.cells[self.row][min(self.column, self.columns - 1)] = character
            self.column += 1 # A VT52 does not wrap: what comes beyond the last column is seen there.


class Terminal:
    """A program that runs in a pty of its own."""

    def __init__(self, command, columns=80, rows=24, environment=None):
        self.screen = Screen(columns, rows)
        self.raw = b""
        self.master, self.slave = pty.openpty()
        self._size(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        settings = {**os.environ, "TERM": "vt52", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(environment or {})}
        settings = {name: value for name, value in settings.items() if value is not None}
        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=self.slave, env=settings, close_fds=True,
                                        preexec_fn=self._lead)

    @staticmethod
    def _lead():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, columns, rows):
        self.read()
        self.screen.resize(columns, rows)
        self._size(columns, rows)

    def read(self, seconds=0.0):
        """What the program has written, or writes within that time."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.raw += data
            self.screen.feed(data)
            seconds = 0.0

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait(self, condition, seconds=30, what=None):
        """Reads until the screen has that text, or condition(lines) holds."""
        until = time.monotonic() + seconds
        holds = (lambda lines: any(condition in line for line in lines)) if isinstance(condition, str) else condition
        while not holds(self.screen.lines()):
            if time.monotonic() > until or self.process.poll() is not None:
                self.read(0.1)
                if holds(self.screen.lines()):
                    return
                raise AssertionError(f"not within {seconds} s: {what or condition}; status {self.process.poll()}; the screen:\n"
                                     + "\n".join(self.screen.lines()))
            self.read(0.05)

    def end(self, seconds=20):
        """Its exit status, once it has ended; what it writes until then is read."""
        until = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < until:
            self.read(0.05)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"it has not ended within {seconds} s")
        self.read(0.05)
        return self.process.returncode

    def restored(self):
        """The settings of the terminal are those from before."""
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            try:
                os.close(fd)
            except OSError:
                pass
