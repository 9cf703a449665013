#!/usr/bin/env python3
"""The pages for people show what dpnode says: each command of their examples is run, in order, on real daemons, and its output is the one shown, but
for numbers. tests/lib/pages.py has the notation. test_pages.py BINARIES Pages.test_... prints what was said where it differs."""

import glob
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pages  # noqa: E402
from daemons import free_port, wait_for  # noqa: E402
from systemtest import BINARIES, SystemTest, main  # noqa: E402

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
PATIENCE_S = 120
# Verbs that only look may be asked again until what they show has come.
LOOKS = ("status", "peers", "rounds", "why", "limits", "audit", "token ls", "wait", "logs")
CHECKED = ("OPERATIONS", "QUICKSTART", "RUN-OWNER", "VOLUNTEER")


class Person:
    """Somebody of a page: a machine with a node at the standard places, by variables of its own."""

    def __init__(self, folder, name):
        self.dir = os.path.join(folder, name)
        self.socket = self.dir + ".s"
        self.home = os.path.join(folder, name + "-home")
        os.mkdir(self.home)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("DPNODE_")},
            "PATH": BINARIES + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8", "DPNODE_NAME": name, "DPNODE_DIR": self.dir,
            "DPNODE_SOCKET": self.socket, "DPNODE_LISTEN": f"127.0.0.1:{free_port()}", "DPNODE_BACKEND": "cpu", "DPNODE_THREADS": "1",
            "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M"}

    def say(self, command, typed=None):
        """The lines of a command, with paths as a page has them. typed: at a terminal, which shows it, and not to us."""
        command = command.replace("/var/lib/dpnode/", self.dir + "/") # No file of a test lies outside of its folder.
        terminal, own = pty.openpty()
        if typed is not None:
            os.write(terminal, typed.encode())
        done = subprocess.run(["bash", "-c", command], cwd=self.home, env=self.environment, stdin=own if typed is not None else None,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        os.close(own)
        os.close(terminal)
        said = done.stdout.replace(self.home, ".").replace(self.socket, "/run/dpnode/dpnode.sock").replace(self.dir, "/var/lib/dpnode")
        return said.splitlines()

    def kill(self):
        """SIGKILL to the daemon, whoever started it: its directory's lock has its process id."""
        try:
            with open(os.path.join(self.dir, "lock"), encoding="ascii") as file:
                pid = int(file.read().split()[0])
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                if self.dir in file.read().split("\0"):
                    os.kill(pid, signal.SIGKILL)
                    wait_for(lambda: not os.path.exists(f"/proc/{pid}"), PATIENCE_S, "the daemon is gone")
        except (OSError, ValueError, IndexError):
            pass


class Pages(SystemTest):
    def setUp(self):
        super().setUp()
        if shutil.which("bible") is None:
            self.skipTest("bible-kjv is not installed")
        self.people = {}
        self.token = None
        self.addCleanup(lambda: [person.kill() for person in self.people.values()])

    def person(self, name):
        if name not in self.people:
            self.people[name] = Person(self.folder.path, name)
            shutil.copy(os.path.join(DOCS, "examples", "kjv.yaml"), self.people[name].home)
        return self.people[name]

    def direct(self, words):
        """A directive of a page: `run ALICE BOB...` is a run of the first, in which the others vote, and a token for one more; `lose BOB...`: these
        machines burn."""
        verb, *names = words.split()
        if verb == "lose":
            for name in names:
                self.person(name).kill()
                shutil.rmtree(self.person(name).dir)
            return
        self.assertEqual(verb, "run")
        founder = self.person(names[0])
        founder.say("dpnode run create --demo kjv")
        vote = founder.say("dpnode invite --role vote --uses 9")[-1]
        for name in names[1:]:
            self.assertIn("joined kjv", " ".join(self.person(name).say(f"dpnode join {vote}")))
        said = wait_for(lambda: (lambda lines: lines if sum(" voter " in line for line in lines) == len(names) else None)(
            founder.say("dpnode peers")), PATIENCE_S, "all vote")
        self.assertTrue(said)
        self.token = founder.say("dpnode invite")[-1]

    def follow(self, page):
        with open(os.path.join(DOCS, page + ".md"), encoding="utf-8") as file:
            steps = pages.steps(file.read())
        self.assertTrue(steps)
        for kind, who, words, shown in steps:
            if kind == "directive":
                self.direct(words)
                continue
            command = words.replace("sudo ", "").replace("TOKEN", self.token or "TOKEN")
            looks = command.startswith(tuple(f"dpnode {verb}" for verb in LOOKS))
            tell = {}

            def fits():
                tell["said"] = self.person(who).say(command, f"{self.token}\n\x04" if command.endswith(" join -") else None)
                tell["difference"] = pages.difference(shown, tell["said"])
                return tell["difference"] is None or not looks

            try:
                wait_for(fits, PATIENCE_S, command)
            except AssertionError:
                pass # the difference says more
            self.assertIsNone(tell["difference"], f"{page}: {who}$ {words}\n" + "\n".join(tell["said"]))
            if command.startswith("dpnode invite"):
                self.token = tell["said"][-1]

    def test_quickstart(self):
        self.follow("QUICKSTART")

    def test_volunteer(self):
        self.follow("VOLUNTEER")

    def test_run_owner(self):
        self.follow("RUN-OWNER")

    def test_operations(self):
        self.follow("OPERATIONS")

    def test_the_page_of_operations_has_every_alert(self):
        with open(os.path.join(DOCS, "..", "contrib", "prometheus", "alerts.yml"), encoding="utf-8") as file:
            alerts = re.findall(r"alert: (\w+)", file.read())
        with open(os.path.join(DOCS, "OPERATIONS.md"), encoding="utf-8") as file:
            self.assertEqual(re.findall(r"^\| (Dpnode\w+) \|", file.read(), re.MULTILINE), alerts)

    def test_each_page_with_examples_is_followed(self):
        with_examples = []
        for path in glob.glob(os.path.join(DOCS, "*.md")):
            with open(path, encoding="utf-8") as file:
                if pages.steps(file.read()):
                    with_examples.append(os.path.basename(path)[:-len(".md")])
        self.assertEqual(tuple(sorted(with_examples)), CHECKED)


class Notation(unittest.TestCase):
    def test_numbers_and_ids_may_differ_and_words_may_not(self):
        shown = ["bob xnznf7h3zju5 alive 0.5 ms 1.49e+03 ms in 23 h 59 min", "by root, since 2026-11-28 23:08:54 UTC", "...", "on cpu: avx512, 3.5 MiB ..."]
        said = ["bob  aaaaaaaaaaaa alive 38 us - in 7 s", "by ann, since 2027-01-01 00:00:00 UTC", "more", "lines", "on cpu: generic, 12 B and more"]
        self.assertIsNone(pages.difference(shown, said))
        for at, other in ((0, "bob aaaaaaaaaaaa dead 38 us - in 7 s"), (1, "by ann, until 2027-01-01 00:00:00 UTC"), (4, "on cuda: generic, 12 B and more")):
            wrong = [*said[:at], other, *said[at + 1:]]
            self.assertIsNotNone(pages.difference(shown, wrong), other)
        self.assertIsNotNone(pages.difference(shown[:2], said[:1]))
        self.assertIsNotNone(pages.difference(shown[:1], said[:2]))
        self.assertIsNotNone(pages.difference([], ["a word"]))
        self.assertIsNone(pages.difference(["In the beginning ..."], ["In the beginninging% suumo"]))
        self.assertIsNotNone(pages.difference(["In the beginning ..."], ["At the beginninging% suumo"]))

    def test_a_page_is_commands_in_order(self):
        page = "text\n<!-- test: run a -->\n```console\na$ sudo one\nsaid\n\nmore\nb$ two\n```\n```sh\nc$ three\n```\n"
        self.assertEqual(pages.steps(page), [("directive", "", "run a", []), ("command", "a", "sudo one", ["said", "", "more"]),
                                             ("command", "b", "two", [])])
        with self.assertRaises(ValueError):
            pages.steps("```console\nsaid\n```\n")



if __name__ == "__main__":
    main()
