"""Five pods of contrib/kubernetes that train a tiny run, and what must hold of their rounds. For the tests of the StatefulSet."""

import os
import shlex
import subprocess
import unittest

from daemons import Folder, place_for_tests, wait_for
from manifests import KUBERNETES, Chart
from pods import Cluster
from small_run import state_roots_agree
import systemtest

PODS = 5
HOSTS = 8
PATIENCE_S = 120
GAP_S = 20 # between two rounds at most: a deadline, the time until a dead voter's turn is over, and a busy machine
MANIFEST = """name: pods
text: text.txt
model: {layers: 1, width: 32, heads: 2, context: 32, vocab: 300}
train: {batch: 2, lr: 3e-3, warmup_tokens: 100, total_tokens: 100000000}
round: {time: 0.8, steps_max: 100000}
gossip: {time: 0.5}
vote: {uptime: 0}
"""
# A test has two processors for all pods: no pod gets the two that its limits say.
MACHINE = {"DPNODE_THREADS": "1", "DPNODE_BACKEND": "cpu"}

# kubectl, as far as contrib/kubernetes/invite uses it: exec in a pod; a Secret of files, as the kubelet shows it to pods.
KUBECTL = '''#!/bin/sh
set -eu
case "$*" in
"exec dpnode-0 -c dpnode -- "*) shift 5; exec {inside} "$@" ;;
"create secret generic dpnode-invite --from-file="*" --dry-run=client -o yaml")
  for word in "$@"; do case $word in --from-file=*) echo "${{word#--from-file=}}" ;; esac; done ;;
"apply -f "*)
  while read -r file; do install -m {mode:04o} -g {group} "$file" {secret}/; done <"$3" ;;
*) echo "unknown: $*" >&2; exit 1 ;;
esac
'''


class StatefulSet(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.chart = Chart()
        # The one value that differs: the test's run instead of the demo, which is as an owner gives a run.
        cls.chart.one("ConfigMap", "dpnode-settings")["data"]["CREATE_FROM"] = "/var/lib/dpnode/run.yaml"
        folder = Folder(systemtest.BINARIES, "dpnode-test-", place_for_tests())
        cls.cluster = Cluster(folder, cls.chart, HOSTS, MACHINE)
        cls.addClassCleanup(cls.cluster.end)
        cls.first = cls.cluster.pod(0).start()
        systemtest.tiny_text(os.path.join(cls.first.volume, "text.txt")) # kubectl cp
        with open(os.path.join(cls.first.volume, "run.yaml"), "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        cls.cluster.wait_ready(cls.first, PATIENCE_S)
        cls.rounds = folder.follow(cls.first)

    @classmethod
    def invite(cls):
        """Runs contrib/kubernetes/invite with a kubectl that reaches the pods here."""
        secret, = [volume["secret"] for volume in cls.chart.pod["volumes"] if "secret" in volume]
        tools = os.path.join(cls.cluster.folder.path, "tools")
        os.makedirs(tools, exist_ok=True)
        kubectl = os.path.join(tools, "kubectl")
        with open(kubectl, "w", encoding="ascii") as file:
            file.write(KUBECTL.format(inside=shlex.join(cls.first.inside([])), mode=secret["defaultMode"],
                                      group=cls.chart.pod["securityContext"]["fsGroup"],
                                      secret=cls.cluster.secret(secret["secretName"])))
        os.chmod(kubectl, 0o755)
        subprocess.run([os.path.join(KUBERNETES, "invite")], env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}, check=True,
                       timeout=60)

    # ---- what must hold ----

    def pods(self):
        return self.cluster.running()

    def all_counted(self, count=PODS):
        """Waits until a round lists all pods; its number."""
        wait_for(lambda: (self.rounds.all() or [{"listed": 0}])[-1]["listed"] == count, PATIENCE_S,
                 f"{count} are counted: {[pod.tail(1) for pod in self.pods()]}")
        return self.rounds.last()

    def rounds_since(self, begin):
        """The records after round begin: none is missing, and none came late."""
        records = [record for record in self.rounds.all() if record["round"] >= begin]
        numbers = [record["round"] for record in records]
        self.assertEqual(numbers, list(range(numbers[0], numbers[-1] + 1)))
        gaps = [(b["time_ms"] - a["time_ms"]) / 1000 for a, b in zip(records, records[1:])]
        self.assertLessEqual(max(gaps, default=0), GAP_S, f"between two rounds of {numbers[0]} to {numbers[-1]}")
        return records

    def stopped_orderly(self, pod):
        """Its newest stop ended in the time of grace, after a round had counted its work."""
        seconds, forced, status, log = pod.ends[-1]
        self.assertEqual((forced, status), (False, 0), log)
        self.assertLess(seconds, self.chart.pod["terminationGracePeriodSeconds"])
        self.assertIn("drained: this node's work is counted", log, pod.name)

    def kill_and_return(self, pod, new_machine):
        """Its container is killed and started again, in the same pod; or its machine is lost, and it starts on another. The rounds until it is counted."""
        last = self.rounds.last()
        pod.kill()
        if pod is not self.first: # whose rounds are followed
            wait_for(lambda: self.rounds.last() >= last + 2, PATIENCE_S, "rounds go on without it")
        if new_machine:
            pod.start()
        else:
            pod.restart()
        self.cluster.wait_ready(pod, PATIENCE_S)
        return self.all_counted() - last

    def one_run_of_five(self, ids):
        """All pods are the nodes that they were, in one state, and no sample counts twice."""
        self.assertEqual([pod.ask("status")["id"] for pod in self.pods()], ids)
        state_roots_agree(self.pods(), PATIENCE_S)
        run = self.first.run()
        self.assertEqual((run["members"], run["alive"]), (PODS, PODS))
        self.assertEqual(self.first.ask("audit")["n_findings"], 0)
        self.assertEqual([failed for failed in self.cluster.failures if failed[1] >= self.chart.container["livenessProbe"]["failureThreshold"]],
                         [], "the liveness probe would have ended a pod")
