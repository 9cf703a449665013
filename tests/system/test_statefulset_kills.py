#!/usr/bin/env python3
"""contrib/kubernetes without a cluster, as test_statefulset.py: each minute a pod is killed, or its machine lost, for ten minutes."""

import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402

try:
    import yaml  # noqa: F401
except ImportError:
    print("no PyYAML: skipped")
    sys.exit(77)
from netlab import can_run  # noqa: E402
from statefulset import PATIENCE_S, PODS, StatefulSet  # noqa: E402
from daemons import wait_for  # noqa: E402

KILLS = 10
EACH_S = 60
RETURN_S = 30 # until it is counted again, within the minute


class Kills(StatefulSet):
    def test_a_pod_is_killed_each_minute_and_the_run_goes_on(self):
        self.invite()
        self.cluster.scale(PODS)
        ids = [pod.ask("status")["id"] for pod in self.pods()]
        begin = self.all_counted()
        chance = random.Random(22)
        began = time.monotonic()
        for number in range(KILLS):
            wait_for(lambda n=number: time.monotonic() >= began + n * EACH_S, EACH_S + PATIENCE_S, "the next minute")
            pod = self.pods()[chance.randrange(PODS)]
            before = time.monotonic()
            rounds = self.kill_and_return(pod, chance.random() < 0.5)
            seconds = time.monotonic() - before
            print(f"{pod.name} killed: counted again after {seconds:.1f} s, {rounds} rounds", file=sys.stderr)
            self.assertLess(seconds, RETURN_S, pod.name)
        self.rounds_since(begin)
        self.one_run_of_five(ids)


if __name__ == "__main__":
    if not can_run():
        print("no root, /dev/net/tun or compiler: skipped")
        sys.exit(77)
    systemtest.main()
