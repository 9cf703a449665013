#!/usr/bin/env python3
"""The owner's hours, battery and heat at a real daemon: the node stops by itself, its peers do not wait for it, and it goes on by itself. The machine
is a folder (machine-root)."""

import os
import subprocess
import sys
import time
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402


class Owner(SystemTest):
    def setUp(self):
        super().setUp()
        self.machine = os.path.join(self.folder.path, "machine")
        self.put("sys/class/power_supply/AC/type", "Mains\n")
        self.put("sys/class/power_supply/AC/online", "1\n")
        self.put("sys/class/power_supply/BAT0/type", "Battery\n")
        self.put("sys/class/power_supply/BAT0/status", "Not charging\n")
        self.put("sys/class/hwmon/hwmon0/name", "coretemp\n")
        self.put("sys/class/hwmon/hwmon0/temp1_input", "40000\n")
        first, token = self.found()
        self.node = self.folder.node("node2", "--machine-root", self.machine).start()
        self.node.ask("join", "-", stdin=token)
        self.follow = self.folder.follow(first)
        self.both_count()

    def put(self, name, text):
        path = os.path.join(self.machine, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(path + ".new", path)

    def both_count(self):
        wait_for(lambda: self.follow.all() and self.follow.all()[-1]["listed"] == 2, 60, "a round counts both")

    def is_out(self, cause):
        """It is suspended for that, says so, and rounds go on without it."""
        wait_for(lambda: [c["cause"] for c in self.node.ask("status").get("suspended", [])] == [cause], 60, f"suspended: {cause}")
        wait_for(lambda: self.node.ask("status")["state"] == "paused", 20, "it is paused")
        wait_for(lambda: self.follow.all()[-1]["listed"] == 1, 20, "the other does not wait for it")
        return self.node.ask("why")["answer"]

    def is_back(self):
        wait_for(lambda: self.node.ask("status")["state"] == "training", 60, "it trains")
        self.assertNotIn("suspended", self.node.ask("status"))
        self.both_count()

    @staticmethod
    def hours(begin, end):
        return "-".join(time.strftime("%H:%M", time.localtime(time.time() + 3600 * hours)) for hours in (begin, end))

    def test_outside_of_its_hours_a_node_waits_also_after_a_restart(self):
        counted = self.node.run()["counted"]
        later = self.hours(2, 4)
        told = self.node.ask("limits", "--schedule", later)
        self.assertEqual((told["schedule"], told["from"]["schedule"]), (later, "dpnode limits"))
        self.assertIn(f"it is outside of the schedule ({later}) until ", self.is_out("schedule"))
        self.assertGreater(self.node.run()["counted"], counted)  # the round under way has counted its work
        self.fails("E0135", 75, self.node.ask, "resume")
        self.node.kill()
        self.node.start()
        self.is_out("schedule")
        shown = subprocess.run([word for word in self.node.command("limits") if word != "--json"], capture_output=True, text=True,
                               timeout=60, check=True).stdout
        self.assertIn("closed until ", shown)
        for text, words in (("22:00-22:00", "is empty"), ("moon", "unknown day"), ("22:00-25:00", "is not like 22:00-07:00")):
            self.assertIn(words, self.fails("E0125", 64, self.node.ask, "limits", "--schedule", text)["why"])
        self.node.ask("limits", "--schedule", self.hours(-2, 2))
        self.is_back()
        self.node.ask("limits", "--schedule", "always")
        self.assertEqual(self.node.run()["trainer"], "up")

    def test_on_battery_and_while_it_is_hot_a_node_is_out(self):
        self.node.ask("limits", "--not-on-battery", "on", "--celsius", "60")
        wait_for(lambda: self.node.ask("limits")["notes"].get("not_on_battery") == "on mains", 30, "it has looked")
        self.put("sys/class/power_supply/AC/online", "0\n")
        self.assertIn("the machine runs on battery", self.is_out("battery"))
        self.put("sys/class/power_supply/AC/online", "odd\n")  # A supply that says nonsense stops nothing.
        self.is_back()
        self.assertTrue([e for e in self.node.lines("logs", "--last", "200") if e["name"] == "machine.blind" and "E0134" in e["text"]])

        self.put("sys/class/hwmon/hwmon0/temp1_input", "75000\n")
        self.assertIn("it was at 75 degrees Celsius, far above its limit of 60", self.is_out("heat"))
        self.put("sys/class/hwmon/hwmon0/temp1_input", "40000\n")
        self.is_back()
        self.put("sys/class/hwmon/hwmon0/temp1_input", "900000\n")  # Nor does a sensor that lies.
        before = self.node.run()["counted"]
        wait_for(lambda: self.node.run()["counted"] >= before + 5, 60, "it trains on")

    def test_a_machine_that_is_used_is_left_alone(self):
        self.put("dev/pts/1", "")
        self.node.ask("limits", "--idle-only", "on")
        self.assertIn("somebody uses the machine: the last input is ", self.is_out("use"))
        quiet = time.time() - 600
        os.utime(os.path.join(self.machine, "dev/pts/1"), (quiet, quiet))
        self.is_back()


class Card(SystemTest):
    """Another program on the GPU of a node: a backend that has a name of its own (tests/plugins/plain.c), and NVIDIA's library of sensors,
    played by tests/cuda/nvml."""

    def setUp(self):
        super().setUp()
        plugin = os.path.join(BINARIES, "plugins", "libdpnode_plain.so")
        played = os.path.join(BINARIES, "fake_nvml")
        if not os.path.exists(plugin) or not os.path.exists(played):
            self.skipTest("no plugins here")
        first, token = self.found()
        self.programs = self.file("programs", "")
        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": played, "FAKE_NVML_PROGRAMS": self.programs}):
            self.node = self.folder.node("node2", "--backend", plugin, "--yield-card").start()
        self.node.ask("join", "-", stdin=token)
        self.follow = self.folder.follow(first)
        wait_for(lambda: self.node.run().get("trainer") == "up" and self.node.ask("status")["state"] == "training", 120, "it trains")

    def put(self, *lines):
        with open(self.programs + ".new", "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.rename(self.programs + ".new", self.programs)

    def test_a_node_gives_its_card_back_within_a_second(self):
        trainer = self.node.run()["trainer_pid"]
        self.assertRegex(self.node.run()["device"], "^plain: ")
        other = subprocess.Popen(["sleep", "600"])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        self.put(f"0 {trainer} compute\n", f"1 {other.pid} compute\n")
        wait_for(lambda: self.node.ask("limits")["notes"].get("yield_card") == "no other program uses its GPU", 30, "it has looked")
        begun = time.monotonic()
        self.put(f"0 {trainer} compute\n", f"0 {other.pid} compute\n")
        wait_for(lambda: not os.path.exists(f"/proc/{trainer}"), 30, "the trainer has ended")
        took = time.monotonic() - begun
        print(f"the trainer had ended after {took:.2f} s", file=sys.stderr)
        self.assertLess(took, 5)  # Its goal is 1 s; this machine may be busy.
        self.assertIn(f"another program uses its GPU: sleep (process {other.pid})", self.node.ask("why")["answer"])
        wait_for(lambda: self.follow.all()[-1]["listed"] == 1, 20, "the other does not wait for it")
        self.assertEqual(self.node.run()["trainer_pid"], 0)
        self.node.ask("limits", "--yield-card", "off")
        wait_for(lambda: self.node.ask("status")["state"] == "training", 120, "it trains again")
        self.assertEqual([e for e in self.node.lines("logs", "--last", "200") if e["name"] == "machine.blind"], [])


if __name__ == "__main__":
    systemtest.main()
