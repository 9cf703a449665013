#!/usr/bin/env python3
"""dpfault between a client and an echo server: each fault has its described effect, and mistakes are reported."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from daemons import free_port, wait_for  # noqa: E402

DPFAULT = os.path.join(os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "build/release", "dpfault")


class Echo:
    """Sends back all bytes that it gets, and counts them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = 0
        self.ended = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        with peer:
            while True:
                try:
                    data = peer.recv(65536)
                    if data:
                        self.got += len(data)
                        peer.sendall(data)
                except OSError:
                    data = b""
                if not data:
                    self.ended += 1
                    return

    def close(self):
        self.listener.close()


class Faults(unittest.TestCase):
    def setUp(self):
        self.echo = Echo()
        self.addCleanup(self.echo.close)
        self.port = free_port()
        self.proxy = subprocess.Popen([DPFAULT, "--seed", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        self.addCleanup(self._end)
        self.tell(f"forward a 127.0.0.1:{self.port} 127.0.0.1:{self.echo.port}")

    def _end(self):
        if self.proxy.poll() is None:
            self.proxy.stdin.close()
            self.assertEqual(self.proxy.wait(10), 0)
        for stream in (self.proxy.stdin, self.proxy.stdout, self.proxy.stderr):
            stream.close()

    def tell(self, *lines):
        self.proxy.stdin.write("".join(line + "\n" for line in lines) + "say done\n")
        self.proxy.stdin.flush()
        self.assertEqual(self.proxy.stdout.readline(), "done\n")

    def dial(self, address="127.0.0.1"):
        client = socket.create_connection(("127.0.0.1", self.port), source_address=(address, 0))
        client.settimeout(10)
        self.addCleanup(client.close)
        return client

    def echoed(self, client, data):
        threading.Thread(target=client.sendall, args=(data,), daemon=True).start()
        got = b""
        while len(got) < len(data):
            got += client.recv(65536)
        return got

    def silent(self, client, seconds=0.3):
        client.settimeout(seconds)
        try:
            with self.assertRaises(TimeoutError):
                client.recv(1)
        finally:
            client.settimeout(10)

    def test_bytes_and_ends_pass(self):
        client = self.dial()
        data = os.urandom(3_000_000)
        self.assertEqual(self.echoed(client, data), data)
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(client.recv(1), b"")
        wait_for(lambda: self.echo.ended == 1, 5, "the server sees the end")

    def test_delay_and_rate_take_their_time(self):
        self.tell("set a delay=100ms")
        client = self.dial()
        begin = time.monotonic()
        self.echoed(client, b"x")
        self.assertGreater(time.monotonic() - begin, 0.199)
        self.tell("set a delay=0ms", "set a up rate=500K")
        begin = time.monotonic()
        data = os.urandom(250_000)
        self.assertEqual(self.echoed(client, data), data)
        self.assertGreater(time.monotonic() - begin, 0.45)

    def test_loss_stalls_and_loses_nothing(self):
        self.tell("set a loss=5%,stall=30ms")
        data = os.urandom(60_000)
        begin = time.monotonic()
        self.assertEqual(self.echoed(self.dial(), data), data)
        self.assertGreater(time.monotonic() - begin, 0.029)

    def test_corruption_flips_bits(self):
        self.tell("set a up corrupt=100%")
        data = bytes(100)
        got = self.echoed(self.dial(), data)
        self.assertEqual(bin(int.from_bytes(got, "big")).count("1"), 1)

    def test_a_cut_is_silent_and_heals_without_loss(self):
        client = self.dial()
        self.echoed(client, b"before")
        self.tell("cut a")
        client.sendall(b"during")
        self.silent(client)
        self.assertEqual(self.echo.got, 6)
        late = self.dial() # taken by the system; the target is not dialled
        late.sendall(b"late")
        self.silent(late)
        self.tell("heal a")
        self.assertEqual(client.recv(6), b"during")
        self.assertEqual(late.recv(4), b"late")

    def test_one_way_lets_the_other_way_through(self):
        client = self.dial()
        self.echoed(client, b"before")
        self.tell("cut a down")
        client.sendall(b"during")
        wait_for(lambda: self.echo.got == 12, 5, "the way up is open")
        self.silent(client)
        self.tell("heal a")
        self.assertEqual(client.recv(6), b"during")

    def test_a_cut_from_one_program_spares_the_others(self):
        self.tell(f"forward b 127.0.0.1:{free_port()} 127.0.0.9:{free_port()}",
                  f"forward c 127.0.0.1:{free_port()} 127.0.0.8:{free_port()}")
        b, c = self.dial("127.0.0.9"), self.dial("127.0.0.8")
        self.echoed(b, b"before")
        self.tell("cut a from b")
        b.sendall(b"during")
        self.silent(b)
        late = self.dial("127.0.0.9")
        late.sendall(b"late")
        self.silent(late)
        self.echoed(c, b"free")
        self.tell("heal a from c")
        self.silent(b)
        self.tell("heal a")
        self.assertEqual((b.recv(6), late.recv(4)), (b"during", b"late"))
        self.tell("set a from b delay=100ms")
        begin = time.monotonic()
        self.echoed(b, b"slow")
        self.assertGreater(time.monotonic() - begin, 0.199)
        self.tell("reset a from b")
        with self.assertRaises(ConnectionResetError):
            b.recv(1)
        self.echoed(c, b"still free")

    def test_half_open_is_told_to_the_target_only(self):
        client = self.dial()
        self.echoed(client, b"before")
        self.tell("halfopen a")
        wait_for(lambda: self.echo.ended == 1, 5, "the server sees the end")
        client.sendall(b"into the void")
        self.silent(client)
        self.assertEqual(self.echoed(self.dial(), b"new"), b"new")

    def test_a_reset_is_told_to_both(self):
        client = self.dial()
        self.echoed(client, b"before")
        self.tell("reset a")
        with self.assertRaises(ConnectionResetError):
            client.recv(1)
        wait_for(lambda: self.echo.ended == 1, 5, "the server sees the end")

    def test_a_target_that_is_down_is_told_and_resets_the_dialler(self):
        self.tell(f"forward b 127.0.0.1:{free_port()} 127.0.0.1:{free_port()}")
        self.proxy.stdin.write("check b\n")
        self.proxy.stdin.flush()
        self.assertEqual(self.proxy.wait(10), 69)
        self.assertRegex(self.proxy.stderr.read(), r"forward b: the target 127.0.0.1:\d+ is not up: Connection refused")


class Mistakes(unittest.TestCase):
    def run_script(self, text, *arguments):
        return subprocess.run([DPFAULT, *arguments], input=text, capture_output=True, text=True, timeout=10, check=False)

    def test_a_script_that_does_not_parse_names_line_and_column(self):
        done = self.run_script("say one\nset a delay=fast\n")
        self.assertEqual((done.returncode, done.stdout), (65, ""))
        self.assertIn('standard input, line 2, column 13: a time is needed', done.stderr)

    def test_a_forward_that_is_not_there_is_told(self):
        done = self.run_script("cut nobody\n")
        self.assertEqual((done.returncode, done.stderr), (65, "dpfault: there is no forward nobody\n"))
        done = self.run_script("cut * from nobody\n")
        self.assertEqual((done.returncode, done.stderr), (65, "dpfault: there is no forward nobody\n"))

    def test_a_taken_address_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = self.run_script(f"forward a 127.0.0.1:{taken.getsockname()[1]} 127.0.0.1:1\n")
        self.assertEqual(done.returncode, 73)
        self.assertIn("forward a cannot listen at 127.0.0.1:", done.stderr)

    def test_a_missing_script_and_a_wrong_seed_are_told(self):
        self.assertEqual(self.run_script("", "--script", "/nonexistent").returncode, 66)
        self.assertEqual(self.run_script("", "--script", "/tmp").returncode, 66)
        for words, what in ((["--seed", "x"], "--seed needs a number"), (["--seed"], "--seed needs a number"),
                            (["--script"], "--script needs the name of a file"), (["--script", ""], "--script needs"),
                            (["--sede", "1"], "--sede: there is no such option"), (["more"], "more: there is"), ([""], '"": there is')):
            done = self.run_script("", *words)
            self.assertEqual((done.returncode, done.stdout), (64, ""), words)
            self.assertTrue(done.stderr.startswith("dpfault: " + what), done.stderr)
        done = self.run_script("", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("usage: dpfault", done.stdout)

    def test_times_run_from_the_start_and_a_signal_ends_it(self):
        begin = time.monotonic()
        done = self.run_script("at 200ms say later\nquit\nsay never\n")
        self.assertEqual((done.returncode, done.stdout), (0, "later\n"))
        self.assertGreater(time.monotonic() - begin, 0.19)
        waiting = subprocess.Popen([DPFAULT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        waiting.stdin.write(b"say ready\nat 1m quit\n")
        waiting.stdin.flush()
        self.assertEqual(waiting.stdout.readline(), b"ready\n") # signals are set up before commands are read
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(waiting.wait(10), 0)
        waiting.stdin.close()
        waiting.stdout.close()


if __name__ == "__main__":
    if not os.access(DPFAULT, os.X_OK):
        print(f"no {DPFAULT}: skipped")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
