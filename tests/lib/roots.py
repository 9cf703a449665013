"""Compares the states of nodes in every round: what each says in `dpnode rounds` that its own trainer's state is after a round."""

import threading

from daemons import CliError, wait_for

EVERY_S = 0.4
LAST = "200"  # rounds that a node is asked for: far more than it decides between two questions


class Differs(AssertionError):
    """Two states of one round."""


class Roots:
    """Asks nodes in a thread, until end. A daemon that is away is asked later; it forgets the states of its former life, so ask before a kill."""

    def __init__(self, *nodes):
        self.nodes = nodes
        self.roots = {}  # by round: {name of the node: root}
        self.difference = None
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.over.wait(EVERY_S):
            for node in self.nodes:
                self.ask(node)

    def ask(self, node):
        try:
            rows = node.lines("rounds", "-n", LAST)
            diverged = node.run().get("diverged", 0)
        except CliError:
            return
        for row in rows:
            self.take(node.name, row)
        if diverged:  # A state that differs from one that was certified before is dropped at once, and in no row.
            self.differs(f"{node.name} had {diverged} states that were not the certified ones")

    def take(self, name, row):
        """A node's row of a round. The first difference of a run is kept."""
        root = row.get("state_root")
        if row.get("kind") != "sync" or root is None:
            return
        with self.lock:
            known = self.roots.setdefault(row["round"], {})
            others = {who: theirs for who, theirs in known.items() if theirs != root}
            known[name] = root
        if others:  # its own former one, too: a replay has led elsewhere
            self.differs(f"round {row['round']}: {name} has the state {root}, others have {others}")

    def differs(self, text):
        if self.difference is None:
            self.difference = text

    def check(self):
        if self.difference is not None:
            raise Differs(self.difference)

    def figures(self):
        """(rounds, states that were compared, rounds with one state alone, rounds with all nodes' states)"""
        with self.lock:
            counts = [len(known) for known in self.roots.values()]
        return len(counts), sum(counts), counts.count(1), counts.count(len(self.nodes))

    def missing(self):
        """Rounds from the first to the last that fewer than two nodes have told of."""
        with self.lock:
            return [r for r in range(min(self.roots), max(self.roots) + 1) if len(self.roots.get(r, {})) < 2]

    def end(self):
        self.over.set()
        self.thread.join(30)

    def finish(self, seconds=60):
        """All nodes stand at one round: every round since the beginning has at least two states, and all of it are equal."""
        def whole():
            for node in self.nodes:
                self.ask(node)
            self.check()
            return not self.missing()
        try:
            wait_for(whole, seconds, "two nodes or more told their states after every round")
        except AssertionError as problem:
            self.check()
            raise AssertionError(f"{problem}; not in {self.missing()}") from problem
        self.end()
        for node in self.nodes:  # Their journals know of former lives.
            for entry in node.lines("logs", "-n", "100000"):
                if entry.get("name") == "diverged":
                    raise Differs(f"{node.name}: {entry['text']}")
        rounds, states, _, by_all = self.figures()
        return f"{states} states of {rounds} rounds compared, in {by_all} rounds of all {len(self.nodes)} nodes: all are equal"
