#!/usr/bin/env python3
"""The daemon's log file: moved, deleted, on a full disk. The daemon continues in each case."""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402


def content(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


class Log(SystemTest):
    def test_a_log_that_was_moved_or_deleted_is_opened_again(self):
        path = os.path.join(self.folder.path, "node.log")
        node, _ = self.found("node1", "--log-file", path, "--log-level", "debug")
        wait_for(lambda: "evt=daemon.started" in content(path), 10, "the first lines")
        os.rename(path, path + ".1")
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for(lambda: "lvl=" in content(path), 20, "a new file after SIGHUP")
        os.unlink(path)
        wait_for(lambda: "lvl=" in content(path), 20, "a deleted file is noticed")
        self.assertEqual(node.ask("status")["log_dropped"], 0)
        self.assertNotIn("lvl=", content(node.log)) # nothing on standard error but the trainer's words

    def test_the_log_of_a_daemon_that_a_verb_started_is_bounded_and_reopened(self):
        node = self.folder.node("node1")
        path = os.path.join(node.dir, "dpnoded.log")
        os.makedirs(node.dir, 0o700)
        with open(path, "w", encoding="utf-8") as log:
            log.truncate(10 << 20) # of the weeks before
        done = subprocess.run([os.path.join(BINARIES, "dpnode"), "up", "--dir", node.dir, "--socket", node.socket,
                               "--listen", f"127.0.0.1:{node.port}"],
                              env={**os.environ, "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M"}, capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        pid = node.ask("status")["pid"]
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGKILL))
        wait_for(lambda: "evt=daemon.started" in content(path), 20, "a new file")
        self.assertEqual(os.path.getsize(path + ".1"), 10 << 20)
        os.rename(path, path + ".9") # as logrotate does
        os.kill(pid, signal.SIGHUP)
        wait_for(lambda: "lvl=" in content(path), 20, "a new file after SIGHUP")
        self.assertTrue(os.path.samefile(f"/proc/{pid}/fd/2", path)) # also for its children
        node.ask("down")

    def test_a_log_that_cannot_be_written_stops_nothing(self):
        node, _ = self.found("node1", "--log-file", "/dev/full", "--log-level", "debug")
        wait_for(lambda: node.ask("status")["log_dropped"] > 3, 30, "lines are counted")
        done = node.run()["round"]
        wait_for(lambda: node.run()["round"] > done + 1, 30, "rounds go on")

    def test_a_folder_that_is_not_there_is_told_at_the_start(self):
        node = self.folder.node("node1", "--log-file", "/nowhere/at/all")
        node.start(wait=False)
        self.assertEqual(node.process.wait(10), 74)
        self.assertIn("cannot open the log file /nowhere/at/all: No such file", node.tail())


if __name__ == "__main__":
    systemtest.main()
