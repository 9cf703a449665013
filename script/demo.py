#!/usr/bin/env python3
"""The demo behind script/demo: drives real daemons through the command line, measures, and fails loudly.

Its measurements, and the bounds that it holds the run to, stand in BOUNDS and measure().
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "lib"))

from daemons import CliError, Folder, wait_for  # noqa: E402 (the path comes first)

KJV = "gen1:1-rev22:21"
FROZEN_S = 20
SAMPLE_BYTES = 400
BYTES_MOST = 0.036 # sent per parameter and round, one copy: 1 of 32 elements take 0.0344
TEXT_LEAST = 20_000 # characters, of which a part is held out
KJV_PROMPT = "Jesus saith unto them,"
TOKENS_PER_MINUTE = 900_000 # that two cores train together; sets the end of the learning rate's fall


class Screen:
    """Lines that stay, and on a terminal one that changes."""

    def __init__(self):
        self.live = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.lock = threading.Lock()
        self.begin = time.monotonic()
        self.text = ""

    def say(self, line=""):
        with self.lock:
            if self.live:
                sys.stdout.write("\r\x1b[K")
            print(line, flush=True)
            self._draw()

    def event(self, line):
        self.say(f"{time.monotonic() - self.begin:6.1f} s  {line}")

    def status(self, text):
        with self.lock:
            self.text = text
            if self.live:
                sys.stdout.write("\r\x1b[K")
                self._draw()

    def _draw(self):
        if self.live and self.text:
            sys.stdout.write(self.text[:shutil.get_terminal_size().columns - 1])
            sys.stdout.flush()


def draw_curve(points, width=64, height=12):
    """Lines of a chart: points are (x, y)."""
    if len(points) < 2:
        return ["(too few rounds for a curve)"]
    low, high = min(y for _, y in points), max(y for _, y in points)
    first, last = points[0][0], points[-1][0]
    grid = [[" "] * width for _ in range(height)]
    for x, y in points:
        column = round((x - first) / ((last - first) or 1) * (width - 1))
        row = round((high - y) / ((high - low) or 1) * (height - 1))
        grid[row][column] = "*"
    lines = []
    for i, row in enumerate(grid):
        label = f"{high - (high - low) * i / (height - 1):6.2f}" if i in (0, height // 2, height - 1) else " " * 6
        lines.append(f"{label} |{''.join(row).rstrip()}")
    lines.append(" " * 6 + " +" + "-" * width)
    lines.append(" " * 8 + f"round {first}" + f"round {last}".rjust(width - len(f"round {first}")))
    return lines


class Story:
    """The run: what was done when, and what every node said."""

    def __init__(self, options, folder, screen):
        self.options = options
        self.folder = folder
        self.screen = screen
        self.nodes = []
        self.follows = {}
        self.ids = {}
        self.joined = {}   # name -> unix time at which its join began
        self.seen = {}     # round -> unix time of its commit where it was decided first
        self.rate = (0, 0.0)
        self.restarted = 0.0
        self.thawed = 0.0
        self.frozen = 0.0
        self.first_bpb = None
        self.named = False
        self.over = False

    # ---- steps ----

    def manifest(self):
        with open(os.path.join(HERE, "..", "docs", "examples", "kjv.yaml"), encoding="utf-8") as file:
            text = file.read()
        total = int(TOKENS_PER_MINUTE * self.options.minutes)
        text = re.sub(r"total_tokens: \d+", f"total_tokens: {total}", text)
        text = re.sub(r"name: kjv", f"name: {'kjv' if self.options.is_kjv else 'demo'}", text)
        path = os.path.join(self.folder.path, "run.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def on_round(self, node, record):
        when = record["time_ms"] / 1000
        if record["kind"] == "gossip":
            self.screen.event(f"{node.name}: gossip with {record['exchange']['peer'].get('name', '?')}")
            return
        if self.over:
            return
        number = record["round"]
        new = number not in self.seen
        self.seen[number] = min(when, self.seen.get(number, when))
        if not new:
            return
        names = ",".join(p.get("name") or p["short"] for p in record["peers"])
        line = (f"round {number:3d}  {record['listed']}/{record['active']} [{names}]  "
                f"loss {record.get('loss', float('nan')):.3f}  {record['tokens'] / 1000:.0f}k tokens")
        for left in record["left_out"]:
            line += f"  left out: {left.get('name') or left['short']} ({left['cause']})"
        if self.screen.live:
            self.screen.status(f"{time.monotonic() - self.screen.begin:6.1f} s  {line}")
            if record["left_out"]:
                self.screen.event(line)
        else:
            self.screen.event(line)

    def bring_in(self):
        founder = self.folder.node("node1").start()
        self.nodes.append(founder)
        self.begin = founder.started
        created = founder.create(self.manifest(), "--text", self.options.text, "--name", "node1")
        self.screen.event(f"node1 created run {created['run']}, id {created['id'][:16]}")
        self.follow(founder)
        for i in range(1, self.options.nodes):
            self.nodes.append(self.folder.node(f"node{i + 1}").start())
        workers = [threading.Thread(target=self.join, args=(node, created["invite"])) for node in self.nodes[1:]]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        missing = [n.name for n in self.nodes if n.name not in self.follows]
        if missing:
            raise AssertionError(f"{', '.join(missing)} could not join")

    def join(self, node, token):
        self.joined[node.name] = time.time()
        try:
            joined = node.ask("join", "-", "--name", node.name, stdin=token)
        except CliError as problem:
            self.screen.event(f"{node.name} could not join: {problem}")
            return
        self.screen.event(f"{node.name} joined by token at round {joined['round']}")
        self.follow(node)

    def follow(self, node):
        self.ids[node.name] = node.ask("status")["id"]
        self.follows[node.name] = self.folder.follow(node, self.on_round)

    def until(self, fraction):
        """Sleep until so much of the time for training has gone by."""
        wait = self.train_begin + fraction * self.options.minutes * 60 - time.time()
        if wait > 0:
            time.sleep(wait)

    def listed(self, name, after):
        """Rounds, committed after that time, whose record lists the node: [(round, time)] in order."""
        rounds = {}
        for follow in self.follows.values():
            for record in follow.all():
                # One that comes while this runs may not be noted yet.
                if record["round"] in self.seen and any(p["id"] == self.ids[name] for p in record["peers"]):
                    rounds[record["round"]] = self.seen[record["round"]]
        return [(r, rounds[r]) for r in sorted(rounds) if rounds[r] > after]

    def all_in(self):
        return [r for r in self.follows[self.nodes[-1].name].all() if r["listed"] == self.options.nodes]

    def kill_and_restart(self):
        founder, witness = self.nodes[0], self.follows[self.nodes[-1].name]
        founder.kill()
        killed_at = witness.last()
        self.screen.event(f"SIGKILL to {founder.name}, who founded the run")
        wait_for(lambda: witness.last() >= killed_at + 2, 60, "the others go on without the founder")
        self.screen.event(f"the others went on to round {witness.last()}; {founder.name} starts again")
        founder.start(wait=False)
        self.restarted = founder.started
        back = wait_for(lambda: self.listed(founder.name, self.restarted), 90, "the founder is counted again")
        self.screen.event(f"{founder.name} is counted again in round {back[0][0]}, "
                          f"{back[0][1] - self.restarted:.1f} s after its start")

    def freeze_and_thaw(self):
        node, witness = self.nodes[1], self.nodes[-1]
        rounds = self.follows[witness.name]
        begin = rounds.last()
        self.frozen = time.time()
        node.signal_all(signal.SIGSTOP)
        self.screen.event(f"SIGSTOP to {node.name} for {FROZEN_S} s")
        without = wait_for(lambda: [r for r in rounds.all() if r["round"] > begin
                                    and not any(p["id"] == self.ids[node.name] for p in r["peers"])],
                           60, "a round is decided without the frozen node")[0]
        answer = witness.ask("why", "round", str(without["round"]))["answer"]
        self.named = node.name in answer
        self.screen.event(f"dpnode why round {without['round']}: {answer}")
        time.sleep(max(0.0, self.frozen + FROZEN_S - time.time()))
        node.signal_all(signal.SIGCONT)
        self.thawed = time.time()
        self.screen.event(f"SIGCONT to {node.name}")
        wait_for(lambda: self.listed(node.name, self.thawed), 90, "the thawed node is counted again")

    def same_roots(self):
        """State roots of all nodes at one round: asked until they stand at the same one."""
        def ask():
            roots = []
            for node in self.nodes:
                run = node.run()
                roots.append({"node": node.name, "round": run["applied"], "root": run["state_root"]})
            return roots if len({r["round"] for r in roots}) == 1 else None
        return wait_for(ask, 60, "all nodes stand at one round")

    def play(self):
        self.bring_in()
        self.train_begin = time.time()
        self.first_bpb = self.nodes[0].ask("eval")["bits_per_byte"]
        self.screen.event(f"before training much: {self.first_bpb:.3f} bits per byte")
        wait_for(self.all_in, 90, "a round that counts every node")
        self.until(0.35)
        self.kill_and_restart()
        self.until(0.60)
        self.freeze_and_thaw()
        self.until(1.0)
        self.over = True # The requests below take trainers' time from rounds, which is not part of the demo.
        self.screen.event("training is over; measuring")


# ---- measuring ----

def words_known(sample, text):
    """Share of the sample's words that occur in the text. The last word may be cut off and does not count."""
    words = re.findall(r"[A-Za-z']+", sample)[:-1]
    known = set(re.findall(r"[A-Za-z']+", text))
    return sum(w in known for w in words) / len(words) if words else 0.0


def gaps_of(records):
    times = [r["time_ms"] / 1000 for r in records]
    return [b - a for a, b in zip(times, times[1:])]


def measure(story):
    options, nodes = story.options, story.nodes
    records = story.follows[nodes[-1].name].all()
    full = [i for i, r in enumerate(records) if r["listed"] == options.nodes]
    steady = records[full[0]:]
    quiet = nodes[2:] # neither killed nor stopped
    gap = 0.0
    for node in quiet:
        mine = story.follows[node.name].all()
        start = next(i for i, r in enumerate(mine) if r["listed"] == options.nodes)
        gap = max([gap, *gaps_of(mine[start:])])
    run = nodes[-1].run()
    roots = story.same_roots()
    thawed = story.listed(nodes[1].name, story.thawed)[0][0]
    rounds_to_back = sum(story.thawed < story.seen[r["round"]] and r["round"] <= thawed for r in records)
    sample = nodes[-1].ask("sample", "-p", options.prompt, "-n", "300", "--seed", "7")["text"]
    sample = sample.removeprefix(options.prompt).encode()[:SAMPLE_BYTES].decode(errors="ignore")
    evaluation = nodes[-1].ask("eval")
    exchanges = sum(len(f.exchanges) for f in story.follows.values())
    joins = [story.listed(name, begin)[0][1] - begin for name, begin in story.joined.items()]
    back = story.listed(nodes[0].name, story.restarted)
    return {
        **about(story, options),
        "nodes": options.nodes,
        "curve": curve(story),
        "seconds": round(time.time() - story.begin, 1),
        "median_round_s": round(statistics.median(gaps_of(steady)), 3),
        "rounds_committed": run["round"],
        "rounds_gossip": exchanges,
        "kills": 1,
        "rejoined": int(len(back) >= 2),
        "replicas_identical": len({r["root"] for r in roots}) == 1,
        "state_roots": roots,
        "first_val_bpb": round(story.first_bpb, 4),
        "last_val_bpb": round(evaluation["bits_per_byte"], 4),
        "tokens": run["tokens"],
        "join_to_first_round_s": round(max(joins), 2),
        "restart_to_first_round_s": round(back[0][1] - story.restarted, 2),
        "longest_commit_gap_s": round(gap, 2),
        "bytes_sent_per_param_per_round": round(statistics.median(
            r["wire_bytes_per_copy"] for r in records) / run["elements"], 5),
        "sample": sample,
        "sample_words_known": round(words_known(sample, options.text_content), 3),
        "frozen_named_by_why": story.named,
        "frozen_back_after_rounds": rounds_to_back,
    }


def check(summary, options):
    """Sentences about what is not as it should be."""
    median = summary["median_round_s"]
    wrong = []

    def bound(key, most, what):
        if not summary[key] <= most:
            wrong.append(f"{key} is {summary[key]}, at most {most:.3f} was promised: {what}")

    bound("join_to_first_round_s", 1.5 * median + 5, "1.5 rounds + 5 s")
    bound("restart_to_first_round_s", 1.5 * median + 3, "1.5 rounds + 3 s")
    bound("longest_commit_gap_s", 1.5 * median + 2, "1.5 rounds + 2 s")
    bound("bytes_sent_per_param_per_round", BYTES_MOST, "sparse updates, 1 of 32 elements")
    bound("frozen_back_after_rounds", 3, "the round under way and two more")
    bound("seconds", options.minutes * 60 + 180, "the time for training and 3 minutes")
    for key, what in (("replicas_identical", "the replicas differ"), ("rejoined", "the killed node did not rejoin"),
                      ("frozen_named_by_why", "dpnode why does not name the frozen node")):
        if not summary[key]:
            wrong.append(f"{key} is {summary[key]}: {what}")
    if not summary["last_val_bpb"] < summary["first_val_bpb"]:
        wrong.append(f"last_val_bpb is {summary['last_val_bpb']}: the model learned nothing")
    if options.is_kjv and options.minutes >= 4:
        bound("last_val_bpb", 2.35, "bits per byte on held-out text")
        if len(summary["sample"].encode()) < SAMPLE_BYTES - 3:
            wrong.append(f"sample has only {len(summary['sample'].encode())} bytes")
        if summary["sample_words_known"] < 0.85:
            wrong.append(f"sample_words_known is {summary['sample_words_known']}, at least 0.85 was promised")
    return wrong


def machine(node):
    """The machine of the run: processor, how many, memory, system, and the device that computed."""
    def first(path, pattern):
        try:
            with open(path, encoding="utf-8") as file:
                found = re.search(pattern, file.read(), re.MULTILINE)
        except OSError:
            found = None
        return found.group(1).strip('"') if found else "?"
    memory = first("/proc/meminfo", r"^MemTotal:\s*(\d+)")
    return {
        "processor": first("/proc/cpuinfo", r"^model name\s*:\s*(.*)$"),
        "processors": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory) / 2**20, 1) if memory.isdigit() else "?",
        "system": f"{first('/etc/os-release', r'^PRETTY_NAME=(.*)$')}, {os.uname().sysname} {os.uname().release}, {os.uname().machine}",
        "device": node.run().get("device", "?"),
    }


def about(story, options):
    """Version, machine and text: what the figures are of."""
    text = options.text_content.encode()
    return {
        "version": story.nodes[-1].ask("status")["version"],
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "machine": machine(story.nodes[-1]),
        "text": {"name": "King James Bible" if options.is_kjv else os.path.basename(options.text), "bytes": len(text),
                 "sha256": hashlib.sha256(text).hexdigest()},
        "minutes": options.minutes,
    }


def curve(story):
    """Training loss of each round."""
    return [[r["round"], round(r["loss"], 4)] for r in story.follows[story.nodes[-1].name].all() if "loss" in r]


def report(summary, story):
    say = story.screen.say
    story.screen.status("")
    say("\nTraining loss, nats per token:\n")
    for line in draw_curve(summary["curve"]):
        say(line)
    say(f"\nHeld-out text: {summary['first_val_bpb']:.3f} -> {summary['last_val_bpb']:.3f} bits per byte "
        f"after {summary['tokens'] / 1e6:.2f}M tokens\n")
    say("State roots (BLAKE2b of weights and moments):")
    for root in summary["state_roots"]:
        say(f"  {root['node']:8s} round {root['round']}  {root['root']}")
    say("  " + ("all replicas are identical" if summary["replicas_identical"] else "THE REPLICAS DIFFER"))
    say(f"\nThe model writes:\n\n  {story.options.prompt}" + summary["sample"].replace("\n", "\n  ") + "\n")
    on = summary["machine"]
    say(f"  dpnode {summary['version']}, {summary['date']}, {on['processors']} x {on['processor']}, {on['memory_gib']} GiB, {on['system']}")
    say(f"  computed by {on['device']}; text: {summary['text']['name']}, {summary['text']['bytes']:,} bytes\n")
    for key in ("seconds", "rounds_committed", "rounds_gossip", "median_round_s", "join_to_first_round_s",
                "restart_to_first_round_s", "longest_commit_gap_s", "bytes_sent_per_param_per_round"):
        say(f"  {key:32s} {summary[key]}")


# ---- arguments and ends ----

def read_options():
    parser = argparse.ArgumentParser(prog="script/demo", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=4, help="of training [4]; at least 1.5")
    parser.add_argument("--nodes", type=int, default=3, help="3 to 16 [3]")
    parser.add_argument("--text", help="any UTF-8 text [the King James Bible]")
    parser.add_argument("--summary", help="write what was measured there, as JSON")
    parser.add_argument("--check", action="store_true", help="look whether these options are good, and end")
    parser.add_argument("--binaries", default=os.path.join(HERE, "..", "build", "release"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not 1.5 <= options.minutes <= 1000 or not 3 <= options.nodes <= 16:
        parser.error("--minutes must be 1.5 to 1000, --nodes 3 to 16")
    try:
        if options.text is not None:
            with open(options.text, encoding="utf-8") as file:
                if len(file.read(TEXT_LEAST)) < TEXT_LEAST:
                    parser.error(f"--text {options.text}: it has fewer than {TEXT_LEAST:,} characters, too few to learn from")
        if options.summary is not None:
            with open(options.summary, "a", encoding="utf-8"):
                pass
    except UnicodeDecodeError:
        parser.error(f"--text {options.text}: it is no UTF-8 text; iconv -t utf-8 makes it one")
    except OSError as problem:
        parser.error(f"{problem.filename}: {problem.strerror}")
    options.is_kjv = options.text is None
    return options


def load_text(options, folder):
    if options.is_kjv:
        options.text = os.path.join(folder.path, "kjv.txt")
        with open(options.text, "wb") as file:
            subprocess.run(["bible", "-f", KJV], stdout=file, stderr=subprocess.DEVNULL, check=True)
    options.text = os.path.abspath(options.text)
    with open(options.text, encoding="utf-8") as file:
        options.text_content = file.read()
    options.prompt = KJV_PROMPT if options.is_kjv else " ".join(options.text_content[:60].split()[:4])


ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(number, frame):
    for again in ENDINGS: # Cleaning up takes a moment, and is not to be interrupted.
        signal.signal(again, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    options = read_options()
    if options.check:
        return 0
    screen = Screen()
    for number in ENDINGS:
        signal.signal(number, interrupt)
    try:
        with Folder(options.binaries, "dpnode-demo-") as folder:
            load_text(options, folder)
            story = Story(options, folder, screen)
            try:
                story.play()
                summary = measure(story)
            except (AssertionError, CliError):
                for node in folder.nodes:
                    screen.say(f"{node.name}: {node.tail(8)}")
                raise
            finally:
                story.over = True # On a failure too: now the nodes are ended.
            report(summary, story)
            if options.summary:
                with open(options.summary, "w", encoding="utf-8") as file:
                    json.dump(summary, file, indent=2)
                    file.write("\n")
            wrong = check(summary, options)
    except KeyboardInterrupt:
        print("\ndemo: interrupted; all nodes are ended", file=sys.stderr)
        return 130
    except (AssertionError, CliError, OSError, UnicodeDecodeError, subprocess.SubprocessError) as problem:
        print(f"\ndemo: FAILED: {problem}", file=sys.stderr)
        return 1
    for line in wrong:
        print(f"demo: FAILED: {line}", file=sys.stderr)
    if not wrong:
        print("\nEverything is as it should be.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
