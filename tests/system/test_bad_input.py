#!/usr/bin/env python3
"""Mistakes of users and strangers: each gets a clear error or a closed link, and the daemon continues."""

import os
import random
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402


def poured(address, family, data):
    """Send data to a listening socket and wait until the other side has closed. TimeoutError if it does not."""
    with socket.socket(family) as link:
        link.settimeout(20)
        link.connect(address)
        try:
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65536):
                pass
        except TimeoutError:
            raise
        except OSError:
            pass # cut before we were done, which is as good


class BadToken(SystemTest):
    def test_a_damaged_token_is_refused(self):
        node, token = self.found()
        other = self.folder.node("node2").start()
        middle = len(token) // 2
        damaged = token[:middle] + ("A" if token[middle] != "A" else "B") + token[middle + 1:]
        error = self.fails("E0203", 65, other.ask, "join", damaged)
        self.assertTrue(error["why"] and error["fix"])
        self.fails("E0203", 65, other.ask, "join", token[:-9])
        self.fails("E0203", 65, other.ask, "token", "inspect", damaged)
        self.assertEqual(other.ask("status")["state"], "idle")
        other.ask("join", token) # The good one still works on that daemon.

    def test_an_expired_token_is_refused(self):
        node, _ = self.found()
        token = node.ask("invite", "--expires", "1s")["token"]
        other = self.folder.node("node2").start()

        def expired():
            try:
                return not node.ask("token", "inspect", token)["valid"]
            except systemtest.CliError as no:
                return no.status == 1
        wait_for(expired, 10, "the token expires")
        self.fails("E0201", 65, other.ask, "join", token)

    def test_a_token_for_one_node_admits_no_second(self):
        node, _ = self.found()
        token = node.ask("invite", "--uses", "1")["token"]
        second = self.joined("node2", token)
        wait_for(lambda: second.run().get("counted", 0) > 0, 30, "node2 is counted")
        third = self.folder.node("node3").start()
        self.fails("E0209", 77, third.ask, "join", token)
        before = node.run()["round"]
        wait_for(lambda: node.run()["round"] >= before + 3, 30, "three more rounds")
        names = [p["name"] for r in node.lines("rounds", "-n", "100") for p in r["peers"]]
        self.assertNotIn("node3", names)

    def test_of_two_nodes_that_use_a_single_use_token_at_once_one_is_refused(self):
        """The nodes that they met accepted both; the chain admits one. The other must not train in vain."""
        node, _ = self.found()
        wait_for(lambda: node.run().get("counted", 0) > 1, 30, "the founder is counted")
        token = node.ask("invite")["token"]
        others = [self.folder.node(name).start() for name in ("node2", "node3")]
        ends = {}

        def join(other):
            try:
                ends[other.name] = other.ask("join", "-", "--name", other.name, stdin=token)
            except systemtest.CliError as no:
                ends[other.name] = no
        workers = [threading.Thread(target=join, args=(other,)) for other in others]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        late = [end for end in ends.values() if isinstance(end, systemtest.CliError)]
        self.assertEqual((len(ends), len(late)), (2, 1), ends)
        self.assertEqual((late[0].error["code"], late[0].status), ("E0209", 77))
        winner = next(other for other in others if isinstance(ends[other.name], dict))
        loser = next(other for other in others if other is not winner)
        self.assertEqual(ends[winner.name]["run"], "tiny")
        wait_for(lambda: winner.run()["counted"] > 0, 30, "what it publishes counts")
        self.assertEqual(loser.ask("status")["state"], "idle")

    def test_a_full_run_says_so_and_takes_a_newcomer_when_a_member_is_away(self):
        node = self.folder.node("node1").start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        token = node.create(self.file("full.yaml", systemtest.TINY + "members: {max: 2, absent: 5}\n"),
                         "--text", text)["invite"]
        second = self.joined("node2", token)
        wait_for(lambda: second.run().get("counted", 0) > 0, 30, "node2 is counted")
        third = self.folder.node("node3").start()
        error = self.fails("E0211", 75, third.ask, "join", token)
        self.assertIn("2 members, members.max", error["why"])
        second.kill()
        away = node.run()["round"]
        wait_for(lambda: node.run()["round"] > away + 4, 60, "rounds without node2")

        def taken():
            try:
                return third.ask("join", token)
            except systemtest.CliError as no:
                self.assertEqual(no.error["code"], "E0211")
                return False
        self.assertFalse(taken())
        wait_for(taken, 60, "node2 is away for long")
        wait_for(lambda: third.run().get("counted", 0) > 0, 30, "node3 is counted")

    def test_a_token_of_another_run_is_refused(self):
        stranger, token = self.found("stranger")
        port = stranger.port
        stranger.end()
        host = self.folder.node("host")
        host.port = port # the address in the token now belongs to another run
        host.start()
        host.ask("run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", os.path.join(self.folder.path, "text.txt"))
        guest = self.folder.node("guest").start()
        error = self.fails("E0202", 75, guest.ask, "join", token)
        self.assertIn(str(port), error["why"])
        self.assertIn("closes every connection", error["why"])
        self.assertEqual(guest.ask("status")["state"], "idle")
        self.assertEqual([p["self"] for p in host.ask("peers")["peers"]], [True])

    def test_a_node_in_a_run_joins_no_other(self):
        node, token = self.found()
        again = node.ask("join", token) # of its own: it is where it was told to be
        self.assertEqual((again["run"], again["id"]), ("tiny", node.run()["id"]))
        self.assertIn(again["already"], ("joining", "training", "gossip"))
        other = self.folder.node("other").start()
        theirs = other.create(self.file("tiny.yaml", systemtest.TINY), "--text",
                           os.path.join(self.folder.path, "text.txt"))["invite"]
        self.assertIn("tiny", self.fails("E0111", 64, node.ask, "join", theirs)["why"])
        self.fails("E0111", 64, node.ask, "run", "create", self.file("tiny.yaml", systemtest.TINY), "--text",
                   os.path.join(self.folder.path, "text.txt"))


class BadFiles(SystemTest):
    def create(self, node, text):
        return node.ask("run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", text)

    def test_text_that_is_empty_or_not_utf8_is_refused_and_the_daemon_stays_idle(self):
        node = self.folder.node("node1").start()
        for name, content in (("empty", b""), ("binary", b"good words\n" * 2000 + b"\xff\xfe\n" + b"more\n" * 2000)):
            error = self.fails("E0304", 65, self.create, node, self.file(name, content))
            self.assertTrue(error["why"])
            self.assertEqual(node.ask("status")["state"], "idle")
        self.create(node, systemtest.tiny_text(os.path.join(self.folder.path, "text.txt")))

    def test_a_run_that_could_not_train_is_not_made(self):
        words = self.file("short.txt", "a few words, " * 8)
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        vast = self.file("vast.yaml", systemtest.VAST)
        tiny = self.file("tiny.yaml", systemtest.TINY)
        node = self.folder.node("node1").start()
        error = self.fails("E0304", 65, node.ask, "run", "create", tiny, "--text", words)
        self.assertRegex(error["why"], r"has \d+ tokens, of which \d+ train and \d+ are held out .* needs 33")
        with self.assertRaises(systemtest.CliError) as caught: # its states would fill most disks too
            node.ask("run", "create", vast, "--text", text)
        self.assertIn((caught.exception.error["code"], caught.exception.status), (("E0311", 69), ("E0312", 74)))
        self.assertEqual(node.ask("status")["state"], "idle")
        self.assertEqual([name for name in os.listdir(node.dir) if name.startswith("work-")], [])
        node.end()
        if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > systemtest.VAST_BYTES:
            self.skipTest("this machine has memory for the largest model")
        for manifest, data, code, status in ((tiny, words, "E0304", 65), (vast, text, "E0311", 69)):
            alone = self.folder.node("alone")
            self.fails(code, status, alone.ask, "run", "create", manifest, "--text", data, "--dir", alone.dir)
            self.assertFalse(os.path.exists(alone.dir), code) # no daemon was started for it

    def test_a_daemon_that_was_started_for_a_run_ends_when_the_run_is_refused(self):
        node = self.folder.node("node1")
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        with socket.socket() as other:
            other.bind(("127.0.0.1", node.port))
            other.listen()
            self.fails("E0303", 73, node.ask, "run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", text,
                       "--dir", node.dir, "--listen", f"127.0.0.1:{node.port}")
        self.fails("E0101", 69, node.ask, "status")
        self.assertTrue(os.path.exists(os.path.join(node.dir, "dpnoded.log")))

    def test_a_daemon_that_was_started_for_a_join_ends_when_the_join_fails(self):
        _, token = self.found()
        node = self.folder.node("node2")
        self.fails("E0203", 65, node.ask, "join", token[:-9], "--dir", node.dir, "--listen", f"127.0.0.1:{node.port}")
        self.fails("E0101", 69, node.ask, "status")
        node.ask("join", token, "--dir", node.dir, "--listen", f"127.0.0.1:{node.port}")
        self.assertEqual(node.ask("status")["state"] == "idle", False)
        node.ask("down")

    def test_a_port_in_use_is_named(self):
        node = self.folder.node("node1")
        with socket.socket() as other:
            other.bind(("127.0.0.1", node.port))
            other.listen()
            node.start()
            with self.assertRaises(systemtest.CliError) as caught:
                self.create(node, systemtest.tiny_text(os.path.join(self.folder.path, "text.txt")))
        self.assertEqual(caught.exception.status, 73)
        self.assertIn(str(node.port), caught.exception.error["why"])

    def test_a_second_daemon_leaves_a_directory_alone(self):
        node, _ = self.found()
        second = self.folder.node("second")
        second.dir = node.dir
        second.start(wait=False)
        self.assertEqual(second.process.wait(10), 73)
        self.assertIn(node.dir, second.tail())
        self.assertEqual(node.ask("status")["state"] in ("training", "joining"), True)

    def test_a_second_daemon_leaves_a_socket_alone(self):
        node = self.folder.node("node1").start()
        second = self.folder.node("second")
        second.socket = node.socket
        second.start(wait=False)
        self.assertEqual(second.process.wait(10), 73)
        self.assertEqual(node.ask("status")["pid"], node.process.pid)

    def test_a_store_of_a_newer_version_is_left_alone(self):
        node, _ = self.found()
        wait_for(lambda: node.run().get("round", 0) > 0, 30, "a round")
        self.assertEqual(node.end(), 0)
        path = os.path.join(node.dir, "meta.db")
        with sqlite3.connect(path) as store:
            version = store.execute("PRAGMA user_version").fetchone()[0]
            store.execute(f"PRAGMA user_version = {version + 1}")
        store.close()
        node.start(wait=False)
        self.assertEqual(node.process.wait(10), 76)
        self.assertIn("version", node.tail())


class FullDisk(SystemTest):
    def setUp(self):
        super().setUp()
        self.disk = os.path.join(self.folder.path, "disk")
        os.mkdir(self.disk)
        mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "none", self.disk]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("needs root to make a small disk")
        self.addCleanup(lambda: subprocess.run(["umount", "-l", self.disk], check=False))

    def fill(self):
        with open(os.path.join(self.disk, "rubbish"), "ab", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 65536)
            except OSError:
                pass

    def test_a_full_disk_is_reported_and_the_run_continues_when_there_is_space(self):
        node = self.folder.node("node1")
        node.dir = os.path.join(self.disk, "node1")
        node.start()
        node.ask("run", "create", self.file("tiny.yaml", systemtest.TINY), "--text",
                 systemtest.tiny_text(os.path.join(self.folder.path, "text.txt")))
        wait_for(lambda: node.run().get("round", 0) > 1, 30, "two rounds")
        self.fill()
        wait_for(lambda: any("disk is full" in e["text"] for e in node.lines("logs", "-n", "200")), 30, "it is told")
        self.assertEqual(node.ask("status")["pid"], node.process.pid)
        self.assertIsNone(node.process.poll())
        os.unlink(os.path.join(self.disk, "rubbish"))
        after = node.run()["round"]
        wait_for(lambda: node.run()["round"] > after + 2, 30, "the run goes on")
        self.assertEqual(node.ask("ckpt", "verify")["bad"], 0)
        reserve = os.path.join(node.dir, "reserve.bin") # whether it was needed or not
        wait_for(lambda: os.path.exists(reserve) and os.path.getsize(reserve) == 1 << 20, 15, "there is a reserve again")

    def test_a_run_cannot_be_created_on_a_full_disk(self):
        node = self.folder.node("node1")
        node.dir = os.path.join(self.disk, "node1")
        node.start()
        text = systemtest.tiny_text(os.path.join(self.folder.path, "text.txt"))
        self.fill()
        error = self.fails("E0312", 74, node.ask, "run", "create", self.file("tiny.yaml", systemtest.TINY), "--text", text)
        self.assertRegex(error["why"], r"need .* are free in ")
        self.assertIn(node.ask("status")["state"], ("idle",))


class Strangers(SystemTest):
    def setUp(self):
        super().setUp()
        self.node, _ = self.found()
        wait_for(lambda: self.node.run().get("round", 0) > 0, 30, "the first round")

    def goes_on(self):
        before = self.node.run()["round"]
        wait_for(lambda: self.node.run()["round"] > before, 30, "the next round")

    def test_garbage_at_the_port_is_cut_off_and_counted(self):
        chance = random.Random(3)
        address = ("127.0.0.1", self.node.port)
        for size in (1, 2, 16, 47, 48, 96, 1000, 70000):
            poured(address, socket.AF_INET, chance.randbytes(size))
        poured(address, socket.AF_INET, struct.pack("<I", 0xffffffff) + b"\0" * 100)
        poured(address, socket.AF_INET, b"GET / HTTP/1.1\r\n\r\n")
        wait_for(lambda: self.node.run()["handshakes_failed"] >= 5, 20, "failed handshakes are counted")
        self.goes_on()

    def test_silent_strangers_do_not_keep_others_out(self):
        links = [socket.create_connection(("127.0.0.1", self.node.port)) for _ in range(40)]
        try:
            token = self.node.ask("invite")["token"]
            friend = self.folder.node("friend").start()
            friend.ask("join", token)
        finally:
            for link in links:
                link.close()
        self.goes_on()

    def test_garbage_at_the_control_socket_is_cut_off_and_told(self):
        chance = random.Random(4)
        begin = time.time() * 1000
        good = b"\x94\x00\x01\xa5hello\x80"
        for data in (chance.randbytes(100), struct.pack("<I", 0xffffffff), struct.pack("<I", 50) + b"\xc1" * 50,
                     struct.pack("<I", 1 << 20) + b"\x92" * (1 << 20), struct.pack("<I", len(good)) + good[:-1] + b"\xc1",
                     struct.pack("<I", 3) + b"\x93\x00\x01", struct.pack("<I", 0), b"\x10\x00"):
            poured(self.node.socket, socket.AF_UNIX, data)
        told = [e for e in self.node.lines("logs", "-n", "200") if e["name"] == "control.garbage" and e["time_ms"] >= begin - 1]
        self.assertGreaterEqual(len(told), 4)
        self.goes_on()

    def test_requests_with_the_wrong_parameters_get_an_error(self):
        def raw(method, body):
            frame = b"\x94\x00\x07" + bytes([0xa0 | len(method)]) + method + body
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(20)
                link.connect(self.node.socket)
                link.sendall(struct.pack("<I", len(frame)) + frame)
                size = struct.unpack("<I", link.recv(4, socket.MSG_WAITALL))[0]
                return link.recv(size, socket.MSG_WAITALL)
        self.assertIn(b"E0102", raw(b"no.such", b"\x80"))
        self.assertIn(b"E0111", raw(b"run.create", b"\xc0"))
        self.assertIn(b"E0403", raw(b"ckpt.export", b"\x81\xa4path\xa3a/b"))
        self.assertIn(b"count", raw(b"rounds", b"\x81\xa4last\xa3all"))
        self.assertIn(b"answer", raw(b"why", b"\x81\xa5round\xcb\x7f\xf0\0\0\0\0\0\0"))
        self.goes_on()


if __name__ == "__main__":
    systemtest.main()
