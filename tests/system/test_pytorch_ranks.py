#!/usr/bin/env python3
"""PyTorch scripts of several processes as members of a run on real daemons: one by DistributedDataParallel, one by fully_shard.
Their ranks are killed, and the scripts started again; no sample is counted twice, and the members have one state.

Status 77 if no Python here has PyTorch.
"""

import os
import signal
import subprocess
import sys
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import SystemTest, wait_for  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = 2
RUN = """name: ranks
model: {arch: external}
data: {samples: 20000}
train: {total_tokens: 30000000}
members: {trust: members}
round: {time: 0.5, steps_max: 200}
vote: {uptime: 0}
"""
SCRIPT = textwrap.dedent("""
    import sys
    import torch
    from torch import nn
    import dpnode

    kind, folder, met, rank, ranks = *sys.argv[1:4], *map(int, sys.argv[4:6])
    torch.set_num_threads(1)
    torch.manual_seed(rank) # The run's weights make the ranks equal.
    model = nn.Sequential(nn.Linear(2, 33), nn.Tanh(), nn.Linear(33, 1))
    if kind == "write":
        dpnode.save_model(model, folder)
        sys.exit(0)
    torch.distributed.init_process_group("gloo", init_method="file://" + met, rank=rank, world_size=ranks)
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        fully_shard(model, mesh=init_device_mesh("cpu", (ranks,)))
    draw = torch.Generator().manual_seed(1)
    points = torch.rand(20000, 2, generator=draw)
    data = torch.utils.data.TensorDataset(points, (points[:, :1] * points[:, 1:]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    with dpnode.DiLoCo(model, optimizer, dir=folder) as run:
        for inputs, wanted in run.shard(data, batch_size=16):
            loss = ((model(inputs) - wanted) ** 2).mean()
            loss.backward()
            run.loss(loss)
            optimizer.step()
            optimizer.zero_grad()
            if run.should_stop:
                break
""")


def python_with(module):
    """This Python or Debian's, whose PyTorch needs it; None if neither has the module."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True).returncode == 0:
            return python
    return None


PYTHON = python_with("torch")


class Script:
    """The ranks of a script, each a process."""

    def __init__(self, test, node, kind):
        Script.made = getattr(Script, "made", 0) + 1
        met = os.path.join(test.folder.path, f"met{Script.made}")
        self.ranks = [subprocess.Popen([PYTHON, test.program, kind, node.dir, met, str(rank), str(RANKS)], env=test.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for rank in range(RANKS)]
        for rank in self.ranks:
            test.addCleanup(rank.communicate)
            test.addCleanup(rank.kill)

    def ended(self):
        """What a rank that should run has written; "" if all run."""
        return "".join(rank.stderr.read() for rank in self.ranks if rank.poll() is not None)

    def stop(self, number):
        """Ends all ranks by a signal."""
        for rank in self.ranks:
            rank.send_signal(number)
        return [rank.communicate(timeout=60)[1] for rank in self.ranks]


class PyTorchRanks(SystemTest):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), "PYTHONDONTWRITEBYTECODE": "1",
                            "OMP_NUM_THREADS": "1"}
        for name in ("DPNODE_DIR", "DPNODE_TOKEN", "DPNODE_TOKEN_FILE"):
            self.environment.pop(name, None)
        self.program = self.file("train.py", SCRIPT)
        first = os.path.join(self.folder.path, "first.safetensors")
        subprocess.run([PYTHON, self.program, "write", first, "", "0", "0"], check=True, env=self.environment)
        self.founder = self.folder.node("founder").start()
        self.token = self.founder.create(self.file("run.yaml", RUN), "--from", first)["invite"]
        wait_for(lambda: self.founder.run().get("trainer") == "up", 30, "the founder holds the model")

    def trains(self, node, script):
        """Rounds count the script's work."""
        before = node.run()["counted"]

        def counted():
            self.assertEqual(script.ended(), "")
            return node.run()["counted"] > before + 2
        wait_for(counted, 90, f"rounds count {node.name}: {node.run()}")

    def audited(self, *nodes):
        """The members have one state, and no sample was counted twice."""
        def same():
            runs = [node.run() for node in nodes]
            return len({(run["applied"], run["state_root"]) for run in runs}) == 1
        wait_for(same, 60, "replicas are equal")
        audit = nodes[0].ask("audit")
        self.assertEqual((audit["twice"], audit["n_findings"]), (0, 0))

    def lives_through_deaths(self, kinds):
        nodes = [self.founder, self.joined("joiner", self.token)]
        scripts = [Script(self, node, kind) for node, kind in zip(nodes, kinds)]
        for node, script in zip(nodes, scripts):
            self.trains(node, script)
        for death in range(4): # of both scripts each rank once
            which, victim = death % 2, 1 - death // 2
            node, script = nodes[which], scripts[which]
            script.ranks[victim].kill()
            # The other rank ends by itself, and then the node waits for a script.
            said = script.ranks[1 - victim].communicate(timeout=90)[1]
            self.assertRegex(said, "RankLost|RuntimeError|DistBackendError")
            wait_for(lambda n=node: n.ask("status")["state"] == "waiting", 30, f"{node.name} waits for a script")
            scripts[which] = Script(self, node, kinds[which])
            for one, its in zip(nodes, scripts):
                self.trains(one, its)
        wait_for(lambda: 0 < self.founder.run().get("loss", 9) < 0.02, 120, "it learns")
        for script in scripts:
            script.stop(signal.SIGINT)
        for node in nodes:
            wait_for(lambda n=node: n.ask("status")["state"] == "waiting", 30, "no script is left")
        self.audited(*nodes)

    def test_members_of_ranks_that_are_killed_count_no_sample_twice_and_stay_equal(self):
        self.lives_through_deaths(("ddp", "ddp"))

    def test_a_member_of_replicas_and_one_of_pieces_stay_equal(self):
        if python_with("torch.distributed.fsdp, torch.distributed.tensor") is None:
            self.skipTest("this PyTorch has no fully_shard")
        self.lives_through_deaths(("ddp", "fsdp"))

    def test_a_node_that_restarts_or_pauses_is_followed_by_all_ranks(self):
        script = Script(self, self.founder, "ddp")
        self.trains(self.founder, script)
        os.kill(self.founder.run()["trainer_pid"], signal.SIGKILL)
        wait_for(lambda: self.founder.run().get("trainer_restarts", 0) == 1, 30, "the trainer died")
        self.trains(self.founder, script)
        self.founder.kill()
        self.founder.start()
        self.trains(self.founder, script)
        self.founder.ask("pause")
        wait_for(lambda: self.founder.ask("status")["state"] == "paused", 10, "paused")
        self.founder.ask("resume")
        self.trains(self.founder, script)
        script.stop(signal.SIGINT)
        self.audited(self.founder)


if __name__ == "__main__":
    if PYTHON is None:
        print("skipped: PyTorch is not installed")
        sys.exit(77)
    systemtest.main()
