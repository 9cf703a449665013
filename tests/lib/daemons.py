"""Real daemons on loopback for the demo and the system tests: start, ask, follow, kill, clean up. Standard library only."""

import ctypes
import glob
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

ANSWER_S = 20  # a started daemon must answer within this time
END_S = 10     # a daemon that was told to stop must have ended within this time
PR_SET_PDEATHSIG = 1


class CliError(Exception):
    """dpnode refused a command; error is its message, status its exit status."""

    def __init__(self, status, error, text=""):
        super().__init__(f"{error.get('code', '?')} {error.get('what', text)}: {error.get('why', '')} (status {status})")
        self.status = status
        self.error = error


def stored_addresses(node):
    """Reads the peers from a copy of the node's database; None if the copy is inconsistent."""
    with tempfile.TemporaryDirectory() as folder:
        for path in glob.glob(os.path.join(node.dir, "**", "meta.db*"), recursive=True):
            if not path.endswith("-shm"):
                shutil.copy(path, folder)
        try:
            with sqlite3.connect(os.path.join(folder, "meta.db")) as db:
                return " ".join(row[0] for row in db.execute("SELECT addresses FROM peer"))
        except sqlite3.DatabaseError:
            return None


def wait_for(condition, seconds, what):
    """Calls condition() repeatedly; returns its first true value, or raises an AssertionError with the description."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def _ports():
    """The widest range of ports that the system does not give to outgoing connections."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            first, last = (int(word) for word in file.read().split())
    except (OSError, ValueError):
        return range(15000, 32768)
    widest = max(range(5000, first), range(last + 1, 65536), key=len)
    return widest if len(widest) >= 1000 else range(5000, 65536)


_held = []  # descriptors, one per port that this process chose; the kernel frees them when the process ends


def free_port(host="127.0.0.1"):
    """A port that nobody has, and that no other test which asks here gets while this process lives.

    The daemon binds it later, perhaps after minutes, so a probe alone leaves time for another test to take it. A Unix
    socket with the port as its abstract name is the reservation: the kernel gives a name to one process.
    """
    while True:
        port = random.choice(_ports())
        name = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe:
            try:
                name.bind(f"\0dpnode-test-port-{port}")
                probe.bind((host, port))
                _held.append(name.detach())
                return port
            except OSError:
                name.close()


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Node:
    """One dpnoded with its directory, and the dpnode that controls it."""

    def __init__(self, binaries, folder, name, arguments=(), host="127.0.0.1"):
        self.binaries = binaries
        self.program = "dpnoded"
        self.name = name
        self.host = host
        self.dir = os.path.join(folder, name)
        self.socket = os.path.join(folder, name + ".s")
        self.log = os.path.join(folder, name + ".log")
        self.no_settings = os.path.join(folder, "empty.conf")
        self.port = free_port(host)
        self.arguments = list(arguments)
        self.environment = None # more variables
        self.user = None        # (uid, gid) of the daemon; None: as the test
        self.process = None
        self.started = 0.0 # unix time of the last exec

    def start(self, wait=True):
        command = [os.path.join(self.binaries, self.program), "--dir", self.dir, "--socket", self.socket,
                   "--listen", f"{self.host}:{self.port}", "--name", self.name, "--write-per-day", "0",
                   "--ballast", "1M", "--margin", "1M", "--threads", "1", *self.arguments]
        with open(self.no_settings, "ab"), open(self.log, "ab") as log:
            self.started = time.time()
            # Several nodes share this machine: a card would serve only one of them, and give other bits. The developer's own
            # configuration is not read: a test that has one names it.
            environment = {"DPNODE_BACKEND": "cpu", **os.environ, "DPNODE_CONFIG": self.no_settings, **(self.environment or {})}
            uid, gid = self.user or (None, None)
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=environment, start_new_session=True, user=uid, group=gid,
                                            extra_groups=[] if self.user else None,
                                            preexec_fn=_die_with_parent)
        if wait:
            wait_for(self.answers, ANSWER_S, f"{self.name} answers; see {self.log}")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}: {self.tail()}")
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.socket) == 0

    def tail(self, lines=3):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                return " | ".join(log.read().splitlines()[-lines:])
        except OSError:
            return ""

    def command(self, *words):
        return [os.path.join(self.binaries, "dpnode"), *words, "--socket", self.socket, "--json"]

    def lines(self, *words, stdin=None, timeout=120):
        """Run a verb; its lines of JSON. Raises CliError."""
        done = subprocess.run(self.command(*words), input=stdin, capture_output=True, text=True, timeout=timeout,
                              check=False)
        lines = []
        for line in done.stdout.splitlines():
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError as problem:
                raise CliError(done.returncode, {"code": "?", "what": f"no JSON: {line!r} ({problem})"}) from problem
        if done.returncode != 0:
            error = lines[-1].get("error", {}) if lines else {}
            raise CliError(done.returncode, error, done.stderr.strip())
        return lines

    def ask(self, *words, **more):
        """Run a verb; its last object."""
        return self.lines(*words, **more)[-1]

    def create(self, *words, **more):
        """A run, and a token by which any number of nodes may join and vote."""
        created = self.ask("run", "create", *words, **more)
        created["invite"] = self.ask("invite", "--role", "vote", "--uses", "0")["token"]
        return created

    def run(self):
        """The run of status, which exists once the chain is read, shortly after a start; {} before. Values that are not known yet are 0."""
        until = time.monotonic() + ANSWER_S
        status = self.ask("status")
        while status["state"] == "starting" and time.monotonic() < until:
            time.sleep(0.02)
            status = self.ask("status")
        return {key: 0 if value is None else value for key, value in status.get("run", {}).items()}

    def signal_all(self, number):
        """Sends a signal to the process group of the daemon and to those of its children: the trainer leads its own group."""
        if self.process is not None and self.process.poll() is None:
            groups = [self.process.pid, *children_of(self.process.pid)]
            for group in groups:
                try:
                    os.killpg(group, number)
                except ProcessLookupError:
                    pass  # The child is in the daemon's group, or has just ended.

    def kill(self):
        """SIGKILL to the daemon only."""
        self.process.kill()
        self.process.wait()

    def end(self):
        """Stops it with SIGINT, which ends it at once (SIGTERM would drain), then with SIGKILL."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.signal_all(signal.SIGCONT)
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.signal_all(signal.SIGKILL)
            return self.process.wait()


class Rounds:
    """Follows the rounds of a node in a thread, over restarts of its daemon: every record that it reports, by round."""

    def __init__(self, node, on_round=None):
        self.node = node
        self.on_round = on_round
        self.records = {}
        self.exchanges = []
        self.lock = threading.Lock()
        self.ending = False
        self.process = None
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.ending:
            self.process = subprocess.Popen(self.node.command("rounds", "-f", "-n", "100000"), stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
            for line in self.process.stdout:
                record = json.loads(line)
                if "error" not in record:
                    self._take(record)
            self.process.wait()
            time.sleep(0.1) # the daemon is away

    def _take(self, record):
        with self.lock:
            if record["kind"] == "gossip":
                key = (record["round"], record["time_ms"])
                if key in [(r["round"], r["time_ms"]) for r in self.exchanges]:
                    return
                self.exchanges.append(record)
            elif record["round"] in self.records:
                return # told again after a restart; the first time counts
            else:
                self.records[record["round"]] = record
        if self.on_round is not None:
            self.on_round(self.node, record)

    def all(self):
        with self.lock:
            return [self.records[r] for r in sorted(self.records)]

    def last(self):
        with self.lock:
            return max(self.records, default=0)

    def end(self):
        self.ending = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
        self.thread.join(2)
        if self.process is not None and not self.thread.is_alive():
            self.process.stdout.close()


def place_for_tests():
    """A folder in memory, if there is enough, rather than on a disk: tests check time limits, and a shared disk may stall for seconds."""
    room = "/dev/shm"
    try:
        space = os.statvfs(room)
    except OSError:
        return None
    return room if os.access(room, os.W_OK) and space.f_bavail * space.f_frsize >= 2 << 30 else None


class Folder:
    """A folder with a short name for nodes; at the end of the with block all of them are stopped and it is removed."""

    def __init__(self, binaries, prefix="dpnode-", place=None):
        self.binaries = os.path.abspath(binaries)
        self.path = tempfile.mkdtemp(prefix=prefix, dir=place)
        self.nodes = []
        self.follows = []

    def node(self, name, *arguments, host="127.0.0.1"):
        self.nodes.append(Node(self.binaries, self.path, name, arguments, host))
        return self.nodes[-1]

    def follow(self, node, on_round=None):
        self.follows.append(Rounds(node, on_round))
        return self.follows[-1]

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        for follow in self.follows:
            follow.end()
        for node in self.nodes: # all at once ...
            if node.process is not None and node.process.poll() is None:
                node.signal_all(signal.SIGCONT)
                node.process.send_signal(signal.SIGINT)
        for node in self.nodes: # ... then wait for each
            node.end()
        shutil.rmtree(self.path, ignore_errors=True)
