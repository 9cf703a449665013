#!/usr/bin/env python3
"""The messages for a user with a bad card or a bad driver: the CUDA backend on the emulator, whose card fails on demand. Skipped if the plugins of
the tests are not built."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, tiny_text  # noqa: E402

PLUGIN = os.path.join(BINARIES, "plugins", "libdpnode_cuda_emulated.so")
SMALL = "capabilities=265"  # fp32, AdamW, codecs: a self-test of seconds
MANIFEST = """name: card
model: {layers: 2, width: 64, heads: 2, context: 128, vocab: 400}
train: {batch: 4, lr: 3e-3, warmup_tokens: 1920, total_tokens: 15360}
"""
ARMED = "armed_by_kib=6000"  # a limit that this model exceeds, but not the self-test
PATIENCE_S = 250


class Card(SystemTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(PLUGIN):
            self.skipTest("no plugins here")
        self.text = tiny_text(os.path.join(self.folder.path, "text.txt"))

    def start(self, card, name, steps):
        command = [os.path.join(BINARIES, "dpnode"), "train", self.file("card.yaml", MANIFEST), "--text", self.text, "--out",
                   os.path.join(self.folder.path, name), "--steps", str(steps), "--backend", PLUGIN, "--json"]
        environment = {**os.environ, "DP_FAKE_CUDA": card, "DPNODE_SOCKET": "/nonexistent/s", "LC_ALL": "C"}
        process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def error(self, process, status=78, code="E0514"):
        """The error message of a run that cannot continue."""
        out, _ = process.communicate(timeout=PATIENCE_S)
        told = json.loads(out.splitlines()[-1])
        self.assertEqual((process.returncode, told["error"]["code"]), (status, code), out)
        self.assertTrue(told["error"]["fix"])
        return told["error"]["why"]

    def test_an_unusable_card_or_driver_is_named_with_the_fix(self):
        for card, words in (("no_driver=1", "no driver: libcuda.so.1 of NVIDIA is not installed or not loaded"),
                            ("driver=11040,count_error=35", "the driver is too old: it offers CUDA 11.4 and this dpnode needs 13.0; update NVIDIA's driver"),
                            ("no_card=1", "no card: the driver is there and sees none"),
                            ("arch=60", "is of architecture 6.0; the kernels need 7.5 (Turing, 2018) or later"),
                            ("set_error=46", "another process has the card for itself; stop it or take another card"),
                            ("memory_kib=512", "end what else uses the card"),
                            ("fail_at=40,fail_with=214", "the card's memory lost data that could not be mended"),
                            ("fail_at=40,fail_with=702", "the driver ended a kernel that took too long"),
                            ("fail_at=40,fail_with=719", "the card has failed or is gone; the kernel log (dmesg, Xid) says more")):
            with self.subTest(card):
                self.assertIn(words, self.error(self.start(card, "bad", 2)))

    def test_a_card_that_goes_in_mid_step_leaves_a_checkpoint(self):
        why = self.error(self.start(f"{SMALL},{ARMED},fail_at=60,fail_with=719", "gone", 20))
        self.assertIn("the device failed: Emulated Card: the card has failed or is gone", why)
        self.assertIn("--resume goes on from the newest checkpoint", why)

    def test_a_second_worker_for_one_card_names_the_first(self):
        card = f"{SMALL},card={os.getpid()}"
        first = self.start(card, "first", 1000)
        for line in first.stdout:
            if json.loads(line).get("event") == "step":
                break
        why = self.error(self.start(card, "second", 2), 75, "E0512")
        first.terminate()
        first.communicate(timeout=PATIENCE_S)
        self.assertIn("another trainer of dpnode on this machine has Emulated Card (0000:00:00.0); stop it, or take another card", why)


if __name__ == "__main__":
    systemtest.main()
