#!/usr/bin/env python3
"""dpnode top in a terminal: a real daemon is paused, limited, restarted and frozen under it; the terminal is as before at each end; and names that
were made to steer a terminal do not."""

import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from daemons import wait_for  # noqa: E402
from played_daemon import PlayedDaemon, run_of  # noqa: E402
from systemtest import BINARIES, SystemTest  # noqa: E402
from vt52 import Terminal  # noqa: E402

DPNODE = os.path.join(BINARIES, "dpnode")
DOWN, PAGE_DOWN, ENTER, TAB = "\x1bB", "\x1b[6~", "\r", "\t"


class Top(SystemTest):
    def top(self, socket_path, *words, **more):
        screen = Terminal([DPNODE, "top", "--socket", socket_path, *words], **more)
        self.addCleanup(screen.close)
        return screen

    def quits(self, screen):
        screen.press("q")
        self.assertEqual(screen.end(), 0)
        self.assertTrue(screen.restored())

    def played(self, answers):
        path = os.path.join(self.folder.path, "played.s")
        daemon = PlayedDaemon(path, answers)
        self.addCleanup(daemon.close)
        return daemon

    def test_keys_pause_resume_limit_and_explain_a_node_that_trains_on(self):
        node, _ = self.found()
        before = node.ask("status")
        screen = self.top(node.socket)
        screen.wait("training   round", 60)
        screen.wait("loss, rounds 1 to", 60)
        screen.press("p")
        screen.wait("Pause training on node1?")
        screen.press("n")
        screen.wait("not paused")
        self.assertNotIn("paused", node.ask("status"))
        screen.press("p")
        screen.wait("Pause training on node1?")
        screen.press("y")
        screen.wait("paused by its owner")
        self.assertEqual(node.ask("status")["state"], "paused")
        screen.wait("no training here now")
        screen.press("r")
        screen.wait("Train again on node1?")
        screen.press("y")
        wait_for(lambda: node.ask("status")["state"] == "training", 60, "it trains again")
        screen.wait("training   round", 60)
        screen.press("l")
        screen.wait("> upload")
        screen.press("7" + TAB + "25" + ENTER)
        screen.wait("upload 7 Mbit/s, download 25 Mbit/s")
        limits = node.ask("limits")
        self.assertEqual((limits["upload_mbit"], limits["download_mbit"]), (7, 25))
        screen.press("l")
        screen.wait("> upload")
        screen.press("\x7f999999" + ENTER)
        screen.wait("E0125")
        screen.press("w")
        screen.wait("why: this node")
        screen.wait("synchronous rounds")
        screen.press("x" + TAB + ENTER)
        screen.wait("tokens of each:")
        screen.wait("node1: ")
        screen.press("x?")
        screen.wait("quit; the node trains on")
        screen.press("x")
        self.quits(screen)
        after = node.ask("status")
        self.assertEqual((after["pid"], after["run"]["trainer_restarts"]), (before["pid"], 0))

    def test_the_picture_stays_marked_as_old_while_the_daemon_is_away_or_hangs(self):
        node, _ = self.found()
        screen = self.top(node.socket)
        screen.wait("training   round", 60)
        node.kill()
        screen.wait("OLD PICTURE")
        screen.wait("no daemon is running")
        screen.wait(lambda lines: lines[0].startswith(" tiny"), what="the last picture stays")
        screen.press("p")
        screen.wait("no daemon answers; this key works when it does")
        node.start()
        screen.wait(lambda lines: not any("OLD PICTURE" in line for line in lines) and any("training   round" in line for line in lines), 90,
                    "it goes on with the new daemon")
        node.process.send_signal(signal.SIGSTOP)
        try:
            screen.wait("OLD PICTURE")
            screen.wait("the daemon gave no answer")
            self.quits(screen)
        finally:
            node.process.send_signal(signal.SIGCONT)

    def test_it_waits_for_a_daemon_and_for_a_run(self):
        node = self.folder.node("node1")
        screen = self.top(node.socket)
        screen.wait("no daemon is running.")
        screen.wait("To start it: dpnode up")
        node.start()
        screen.wait("This node is in no run yet.")
        screen.wait("dpnode join TOKEN")
        self.quits(screen)

    def test_it_takes_each_size_of_the_terminal(self):
        self.played(run_of(64, rounds=40, events=30))
        screen = self.top(os.path.join(self.folder.path, "played.s"))
        screen.wait("nodes 1-5 of 64")
        screen.wait(lambda lines: lines[23].startswith(" q quit"), what="24 lines")
        screen.resize(120, 40)
        screen.wait(lambda lines: lines[39].startswith(" q quit") and any("ADDRESS" in line for line in lines), what="40 lines")
        screen.resize(20, 5)
        screen.wait(lambda lines: lines[:2] == ["training, round 40", "loss 3.100"], what="a few lines")
        for size in ((1, 1), (500, 2), (3, 70), (80, 24)):
            screen.resize(*size)
            screen.press("j")
        screen.wait(lambda lines: lines[23].startswith(" q quit"), what="24 lines again")
        screen.press("g" + "j" * 63)
        screen.wait("nodes 60-64 of 64")
        screen.wait("node63")
        self.quits(screen)

    def test_the_terminal_is_as_before_after_each_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            screen = self.top("/nonexistent/socket", environment={"TERM": "xterm"})
            wait_for(lambda: (screen.read(0.05), b"no daemon is running" in screen.raw)[1], 30, "it is drawn")
            self.assertFalse(screen.restored())
            screen.process.send_signal(number)
            self.assertEqual(screen.end(), 0, number)
            self.assertTrue(screen.restored(), number)
            last = screen.raw.rfind(b"\x1b[?1049")
            self.assertEqual(screen.raw[last:last + 8], b"\x1b[?1049l", "the screen of before is back")
            self.assertLess(screen.raw.rfind(b"\x1b[?25l"), screen.raw.rfind(b"\x1b[?25h"), "the cursor is seen")

    def test_it_ends_with_its_terminal(self):
        screen = self.top("/nonexistent/socket")
        screen.wait("no daemon is running")
        os.close(screen.slave)
        os.close(screen.master)
        wait_for(lambda: screen.process.poll() is not None, 20, "it ends")

    def test_colours_are_used_where_there_are_some_and_they_are_wanted(self):
        self.played(run_of(3, rounds=5))
        for settings, coloured in (({"TERM": "xterm-256color", "NO_COLOR": None}, True), ({"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
                                   ({"TERM": "vt100", "NO_COLOR": None}, False)):
            screen = self.top(os.path.join(self.folder.path, "played.s"), environment=settings)
            wait_for(lambda: (screen.read(0.05), b"q quit" in screen.raw)[1], 30, "it is drawn")
            self.assertEqual(re.search(rb"\x1b\[([0-9;]*;)?3[0-7](;[0-9;]*)?m", screen.raw) is not None, coloured, settings)
            self.quits(screen)

    def test_ascii_is_enough(self):
        self.played(run_of(3, rounds=5))
        screen = self.top(os.path.join(self.folder.path, "played.s"), environment={"LC_ALL": "C", "LANG": "C"})
        screen.wait("-- loss, rounds 1 to 5 ")
        self.quits(screen)
        self.assertTrue(screen.raw.isascii())

    def test_a_name_that_steers_a_terminal_steers_nothing(self):
        """An adversary names its node, its reasons and the run with sequences that clear, set titles, hide and move. None reaches the terminal."""
        evil = "\x1b[2J\x1b[1;1H\x1b]0;owned\x07\x9b8m\r\n\u202e{}"
        self.played(run_of(5, rounds=8, events=5, name=evil))
        screen = self.top(os.path.join(self.folder.path, "played.s"), environment={"TERM": "xterm"})
        wait_for(lambda: (screen.read(0.05), b"q quit" in screen.raw)[1], 30, "it is drawn")
        for keys in (ENTER, "x" + TAB + ENTER, "xw", "xp"):
            seen = len(screen.raw)
            screen.press(keys)
            wait_for(lambda: (screen.read(0.05), len(screen.raw) > seen)[1], 30, "it is drawn")
        self.assertIn(b"?]0;owned?", screen.raw)
        for part in (b"\x1b]", b"\x07", "\u202e".encode(), "\x9b".encode()):
            self.assertNotIn(part, screen.raw)
        self.assertIn(b"?[2J?[1;1H", screen.raw)
        screen.press("n")
        self.quits(screen)

    def test_without_a_terminal_it_says_what_to_use(self):
        done = subprocess.run([DPNODE, "top"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL, check=False)
        self.assertEqual(done.returncode, 69)
        self.assertIn("E0607", done.stderr)
        self.assertIn("dpnode status", done.stderr)
        self.assertIn("--json", done.stderr)
        for name in ("dumb", "no-such-terminal", ""):
            screen = self.top("/nonexistent/socket", environment={"TERM": name})
            self.assertEqual(screen.end(), 69, name)
            self.assertIn(b"E0608", screen.raw)
            self.assertTrue(screen.restored())

    def test_one_picture_as_text(self):
        self.played(run_of(64, rounds=600, events=200))
        done = subprocess.run([DPNODE, "top", "--once", "--size", "100x30", "--socket", os.path.join(self.folder.path, "played.s")],
                              capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 30)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertIn("loss, rounds 89 to 600", done.stdout) # the newest 512


if __name__ == "__main__":
    systemtest.main()
