#!/usr/bin/env python3
"""contrib/kubernetes without a cluster: its StatefulSet is played on this machine (tests/lib/pods.py), from the very manifests. Needs root,
/dev/net/tun, a compiler and PyYAML; otherwise skipped."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402

try:
    import yaml  # noqa: F401
except ImportError:
    print("no PyYAML: skipped")
    sys.exit(77)
from netlab import can_run  # noqa: E402
from statefulset import PATIENCE_S, PODS, StatefulSet  # noqa: E402
from daemons import CliError, wait_for  # noqa: E402

ROUNDS_TO_RETURN = 30 # of half a second or more: the start, the links, the state, and a busy machine


class Life(StatefulSet):
    """One run over all tests, in the order of their names."""

    def test_1_pods_wait_for_the_secret_and_then_are_five_of_which_three_vote(self):
        second = self.cluster.pod(1).start()
        wait_for(lambda: second.probe("startupProbe"), PATIENCE_S, "it lives")
        problem = wait_for(lambda: second.ask("status").get("problem"), PATIENCE_S, "it says that it waits")
        self.assertEqual(problem["code"], "E0215")
        self.assertIn("/invite/voter", problem["why"])
        self.assertFalse(second.ready())
        self.assertTrue(second.probe("livenessProbe"))
        self.invite()
        self.cluster.wait_ready(second, PATIENCE_S)
        self.cluster.scale(PODS)
        self.all_counted()
        peers = {peer["name"]: peer for peer in self.first.ask("peers")["peers"]}
        self.assertEqual(sorted(name for name, peer in peers.items() if peer["voter"]), ["dpnode-0", "dpnode-1", "dpnode-2"])
        for name, peer in peers.items():
            self.assertEqual(peer["addresses"], [f"{name}.dpnode.default.svc:7717"])
        for pod in self.pods():
            self.assertNotIn("problem", pod.ask("status"))
            self.assertNotIn("chmod", pod.log_text()) # keys, store and token have the modes that they should

    def test_2_scaled_to_two_and_back_nothing_is_lost(self):
        ids = [pod.ask("status")["id"] for pod in self.pods()]
        begin = self.all_counted()
        self.cluster.scale(2)
        for pod in self.cluster.pods[2:]:
            self.stopped_orderly(pod)
        few = self.all_counted(2)
        wait_for(lambda: self.rounds.last() >= few + 3, PATIENCE_S, "two of three voters decide")
        self.cluster.scale(PODS)
        self.all_counted()
        self.rounds_since(begin)
        self.one_run_of_five(ids)

    def test_3_rolled_to_new_addresses_one_by_one_nothing_is_lost(self):
        ids = [pod.ask("status")["id"] for pod in self.pods()]
        addresses = [pod.address for pod in self.pods()]
        begin = self.all_counted()
        self.cluster.roll()
        for pod, address in zip(self.pods(), addresses):
            self.stopped_orderly(pod)
            self.assertNotEqual(pod.address, address)
        self.all_counted()
        for record in self.rounds_since(begin): # one at a time was away
            self.assertGreaterEqual(record["listed"], PODS - 2, record)
        self.one_run_of_five(ids)

    def test_4_a_paused_pod_keeps_no_other_from_being_made_again(self):
        pod = self.cluster.pods[4]
        before = pod.ask("status")["id"]
        self.first.ask("pause")
        wait_for(lambda: not self.first.ready(), PATIENCE_S, "it does not train")
        self.stopped_orderly(pod.stop())
        self.cluster.wait_ready(self.cluster.make(pod, PATIENCE_S), PATIENCE_S)
        self.assertEqual(pod.ask("status")["id"], before)
        self.first.ask("resume")
        self.all_counted()

    def test_4_killed_one_after_the_other_they_return(self):
        ids = [pod.ask("status")["id"] for pod in self.pods()]
        begin = self.all_counted()
        for number, pod in enumerate(self.pods()):
            self.assertLessEqual(self.kill_and_return(pod, number % 2 == 1), ROUNDS_TO_RETURN, pod.name)
        self.rounds_since(begin)
        self.one_run_of_five(ids)

    def test_5_a_pod_that_has_lost_its_volume_joins_anew(self):
        pod = self.cluster.pods[4]
        before = pod.ask("status")["id"]
        self.stopped_orderly(pod.stop())
        shutil.rmtree(pod.volume)
        self.cluster.wait_ready(pod.start(), PATIENCE_S)
        self.assertNotEqual(pod.ask("status")["id"], before)
        self.all_counted()
        self.assertEqual(self.first.run()["members"], PODS + 1) # the lost node's row stays: docs/CLUSTERS.md

    def test_6_a_founder_that_has_lost_its_volume_returns_by_the_secret_and_then_by_its_root_key(self):
        run = self.first.run()["id"]
        self.invite() # by the founder that there is
        key = subprocess.run(self.first.inside(["cat", "/var/lib/dpnode/node/root.key"]), check=True, capture_output=True).stdout
        self.stopped_orderly(self.first.stop())
        shutil.rmtree(self.first.volume)
        with open(os.path.join(self.secret(), "voter"), encoding="ascii") as file:
            token = file.read()
        self.secret("voter", "DPN1-AEAA") # an old one: the owner renews the Secret, and no pod starts again for that
        self.first.start()
        wait_for(lambda: self.first.probe("startupProbe") and (self.first.ask("status").get("problem") or {}).get("code") == "E0203", PATIENCE_S, "it waits")
        self.secret("voter", token)
        self.cluster.wait_ready(self.first, PATIENCE_S)
        self.assertEqual(self.first.run()["id"], run)
        wait_for(lambda: all(pod.run()["listed"] == PODS for pod in self.pods()), PATIENCE_S, "five are counted")
        with self.assertRaises(CliError) as caught: # a voter, without the right to invite
            self.first.ask("invite")
        self.assertEqual(caught.exception.error["code"], "E0205")
        subprocess.run(self.first.inside(["sh", "-c", "umask 077; cat >/var/lib/dpnode/node/root.key"]), check=True, input=key)
        self.cluster.wait_ready(self.first.stop().start(), PATIENCE_S)
        self.invite()
        with open(os.path.join(self.secret(), "voter"), encoding="ascii") as file:
            self.assertNotEqual(file.read(), token)

    def secret(self, key=None, text=None):
        """The Secret's folder; with a key, its text is replaced."""
        folder = self.cluster.secret("dpnode-invite")
        if key is not None:
            with open(os.path.join(folder, key), "w", encoding="ascii") as file:
                file.write(text)
        return folder

    def test_7_keys_that_the_group_may_read_are_refused(self):
        """What fsGroupChangePolicy: Always does to a volume at each start: why the manifest says OnRootMismatch."""
        pod = self.cluster.pods[3]
        self.stopped_orderly(pod.stop())
        for folder, _, files in os.walk(pod.volume):
            os.chmod(folder, 0o2775)
            for file in files:
                os.chmod(os.path.join(folder, file), 0o660)
        pod.start()
        self.assertEqual(pod.launcher.wait(PATIENCE_S), 77, pod.tail())
        self.assertIn("chmod", pod.tail(3))


if __name__ == "__main__":
    if not can_run():
        print("no root, /dev/net/tun or compiler: skipped")
        sys.exit(77)
    systemtest.main()
