#!/usr/bin/env python3
"""The owner's hours, battery and heat at a real daemon: the node stops by itself, its peers do not wait for it, and it goes on by itself. The machine
is a folder (machine-root)."""

import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402


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


if __name__ == "__main__":
    systemtest.main()
