#!/usr/bin/env python3
"""Where the node is, and how a script joins where none runs."""

import fcntl
import os
import time
import unittest.mock

import kit
import dpnode
from dpnode.place import Place, node_dir


class Directory(kit.Test):
    def test_it_is_chosen_as_by_the_command_line(self):
        with unittest.mock.patch("os.geteuid", lambda: 1000):
            self.assertEqual(node_dir(None, {"HOME": "/h"}), "/h/.local/state/dpnode")
            self.assertEqual(node_dir(None, {"HOME": "/h", "XDG_STATE_HOME": "relative"}), "/h/.local/state/dpnode")
            self.assertEqual(node_dir(None, {"HOME": "/h", "XDG_STATE_HOME": "/s"}), "/s/dpnode")
            self.assertEqual(node_dir(None, {"HOME": "/h", "DPNODE_DIR": "/d"}), "/d")
            self.assertEqual(node_dir("/given", {"HOME": "/h", "DPNODE_DIR": "/d"}), "/given")
        with unittest.mock.patch("os.geteuid", lambda: 0):
            self.assertEqual(node_dir(None, {"HOME": "/h", "XDG_STATE_HOME": "/s"}), "/var/lib/dpnode")


class Joining(kit.Test):
    def place(self, **environment):
        return Place(self.dir, {"PATH": os.environ["PATH"], **environment})

    def ready(self):
        """A worker that listens as soon as its socket is moved to its place."""
        worker = self.worker()
        os.rename(worker.path, worker.path + ".ready")
        return 'mv "$DPNODE_DIR/script.sock.ready" "$DPNODE_DIR/script.sock"'

    def program(self, text):
        path = os.path.join(self.dir, "dpnode")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o700)
        return path

    def test_without_a_node_and_a_token_the_next_step_is_named_at_once(self):
        started = time.monotonic()
        error = self.fails(dpnode.Offline, self.place().prepare, 30)
        self.assertIn("dpnode join TOKEN", error.fix)
        self.assertLess(time.monotonic() - started, 5)

    def test_a_daemon_whose_run_is_not_open_yet_is_waited_for(self):
        with open(os.path.join(self.dir, "lock"), "w", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            error = self.fails(dpnode.Timeout, self.place().prepare, 0.2)
            self.assertIn("dpnode why", error.fix)
        self.fails(dpnode.Offline, self.place().prepare, 30)

    def test_a_token_in_the_environment_joins_and_is_no_argument(self):
        program = self.program('echo "$# $1 $DPNODE_TOKEN $DPNODE_DIR" >"$DPNODE_DIR/said"; ' + self.ready())
        self.place(DPNODE_TOKEN="DPN1-XYZ", DPNODE_PROGRAM=program).prepare(10)
        with open(os.path.join(self.dir, "said"), encoding="utf-8") as file:
            self.assertEqual(file.read(), f"1 join DPN1-XYZ {self.dir}\n")

    def test_a_file_with_a_token_joins(self):
        self.program('[ "$1 $2" = "join /a/token" ] && ' + self.ready())
        self.place(DPNODE_TOKEN_FILE="/a/token", PATH=self.dir + ":" + os.environ["PATH"]).prepare(10)

    def test_a_daemon_that_goes_on_holds_nothing_up(self):
        program = self.program('sleep 60 & echo $! >"$DPNODE_DIR/pid"; ' + self.ready())
        started = time.monotonic()
        self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM=program).prepare(30)
        self.assertLess(time.monotonic() - started, 10)
        with open(os.path.join(self.dir, "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), 9)

    def test_a_join_that_fails_says_why(self):
        program = self.program('echo "E0201: the invite has expired" >&2; exit 65')
        error = self.fails(dpnode.Offline, self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM=program).prepare, 30)
        self.assertIn("the invite has expired", error.why)
        self.assertIn("dpnode invite", error.fix)

    def test_a_join_that_names_its_fix_gets_no_other(self):
        program = self.program('printf "E0301: the disk is full\\nfix: free 2 GB\\n" >&2; exit 73')
        error = self.fails(dpnode.Offline, self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM=program).prepare, 30)
        self.assertEqual((error.fix, str(error).count("fix:")), ("", 1))

    def test_a_join_that_hangs_ends_with_the_timeout(self):
        program = self.program("exec sleep 60")
        self.fails(dpnode.Timeout, self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM=program).prepare, 0.3)

    def test_a_missing_program_is_named(self):
        error = self.fails(dpnode.Offline, self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM="no-such-program").prepare, 5)
        self.assertIn("no-such-program", error.why)

    def test_a_socket_that_a_killed_worker_left_is_no_worker(self):
        worker = self.worker()
        os.rename(worker.path, worker.path + ".kept")
        worker.vanish()
        os.rename(worker.path + ".kept", worker.path)
        self.fails(dpnode.Offline, self.place().prepare, 30)
        os.unlink(worker.path)

    def test_with_a_socket_nothing_is_joined(self):
        self.worker()
        self.place(DPNODE_TOKEN="T", DPNODE_PROGRAM="no-such-program").prepare(5)


if __name__ == "__main__":
    kit.main()
