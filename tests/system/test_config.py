#!/usr/bin/env python3
"""The configuration file of a real daemon: its place among the sources, a mistake at the start and by SIGHUP, and what changes while it runs."""

import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


class Config(SystemTest):
    @staticmethod
    def setting(node, name):
        return next(s for s in node.ask("config", "show")["settings"] if s["name"] == name)

    @staticmethod
    def told(node, name):
        return [e["text"] for e in node.lines("logs", "--last", "200") if e["name"] == name]

    def write(self, text):
        return self.file("dpnoded.conf", text)

    def test_each_source_is_named_and_a_change_of_the_file_is_taken(self):
        path = self.write("upload-max = 20\nmonth-day = 5\napply-memory = 2G\n")
        node = self.folder.node("n1", "--config", path, "--download-max", "9").start()
        for name, value, source in (("upload-max", "20", "file"), ("download-max", "9", "command line"), ("month-day", "5", "file"), ("watts-max", "0", "default")):
            told = self.setting(node, name)
            self.assertEqual((told["value"], told["from"]), (value, source))
        shown = subprocess.run([word for word in node.command("config", "show", "--origin") if word != "--json"], capture_output=True,
                               text=True, timeout=60, check=True).stdout
        self.assertIn(f"{path}:1", shown)
        self.assertEqual(node.ask("limits")["from"]["upload_mbit"], "file")

        self.write("upload-max = 30\napply-memory = 3G\n")
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for(lambda: self.setting(node, "upload-max")["value"] == "30", 20, "the file is read again")
        self.assertEqual(self.setting(node, "month-day")["value"], "1")
        self.assertEqual(self.setting(node, "apply-memory")["value"], "2G")  # It needs a restart, and that is said.
        self.assertTrue(self.setting(node, "apply-memory")["until_restart"])
        self.assertIn("changed at the next start of the daemon: apply-memory", self.told(node, "config.reloaded")[-1])

        node.ask("limits", "--upload", "7")  # The owner's order stays, through the file and through a start.
        self.write("upload-max = 40\n")
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for(lambda: len(self.told(node, "config.reloaded")) == 2, 20, "the file is read again")
        self.assertIn("overruled by dpnode limits: upload-max", self.told(node, "config.reloaded")[-1])
        node.kill()
        node.start()
        self.assertEqual((self.setting(node, "upload-max")["value"], self.setting(node, "upload-max")["from"]), ("7", "order"))

    def test_dpnode_finds_directory_and_socket_in_the_file(self):
        where, socket = os.path.join(self.folder.path, "disk", "dp"), os.path.join(self.folder.path, "dp.s")
        path = self.write(f"dir = {where}\nsocket = {socket}\nlisten = 127.0.0.1:0\nballast = 1M\nmargin = 1M\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DPNODE_")}
        environment["DPNODE_CONFIG"] = path

        def ask(*words):
            done = subprocess.run([os.path.join(BINARIES, "dpnode"), *words, "--json"], env=environment, capture_output=True, text=True,
                                  timeout=120, check=False)
            return json.loads(done.stdout)

        self.assertTrue(ask("up")["started"])
        self.addCleanup(ask, "down")
        self.assertEqual(ask("status")["dir"], where)
        told = {setting["name"]: (setting["value"], setting["from"]) for setting in ask("config", "show")["settings"]}
        self.assertEqual((told["dir"], told["socket"]), ((where, "file"), (socket, "file")))
        self.assertTrue(os.path.exists(os.path.join(where, "dpnoded.log")))

    def test_an_ordered_size_of_the_store_holds_after_a_restart(self):
        path = self.write("store-max = 1K\n")  # less than an empty store: every write would fail
        node = self.folder.node("n1").start()
        node.ask("limits", "--disk", "50GB")
        node.end()
        node.arguments = [*node.arguments, "--config", path]
        node.start()
        node.ask("limits", "--nice", "5")  # is stored
        self.assertEqual(self.setting(node, "store-max")["from"], "order")

    def test_the_manual_names_what_changes_without_a_restart(self):
        node = self.folder.node("n1").start()
        with open(os.path.join(ROOT, "docs", "man", "dpnoded.8"), encoding="utf-8") as file:
            manual = re.search(r"These settings change at once: (.*?)\.", file.read(), re.DOTALL).group(1).replace("\\-", "-")
        live = [s["name"] for s in node.ask("config", "show")["settings"] if s["live"] and s["name"] != "config"]
        self.assertEqual(manual.replace("\n", " ").split(", "), live)

    def test_a_mistake_changes_nothing_and_stops_only_a_start(self):
        path = self.write("upload-max = 20\n")
        node = self.folder.node("n1", "--config", path).start()
        self.write("upload-max = 30\nupload-max = 40\n")
        os.kill(node.process.pid, signal.SIGHUP)
        wait_for(lambda: self.told(node, "config.refused"), 20, "the mistake is told")
        self.assertIn(f"E0133 the configuration file is not valid, nothing has changed: {path}:2:1: line 1 has this setting already",
                      self.told(node, "config.refused")[-1])
        self.assertEqual(self.setting(node, "upload-max")["value"], "20")
        node.end()
        for text, words in (("uplaod-max = 1\n", ":1:1: unknown setting \"uplaod-max\"; did you mean upload-max?"),
                            ("nice = 3\nupload-month = 20Gb\n", ":2:16: upload-month: \"20Gb\" is not a size")):
            self.write(text)
            done = subprocess.run([os.path.join(BINARIES, "dpnoded"), "--config", path, "--dir", node.dir], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 78)
            self.assertIn(f"E0133 the configuration file is not valid: {path}{words}", done.stderr)


if __name__ == "__main__":
    systemtest.main()
