#!/usr/bin/env python3
"""One PyTorch script behind slow lines while nodes are killed: in a run of dpnode, with torchft's DiLoCo, and with hivemind's Optimizer.

bench_script_peers.py [--binaries FOLDER] [--systems NAME,...] [--nodes 4] [--wan 100mbit] [--delay 25ms] [--seconds 300] [--kill-every 60]
[--every 50] [--width 128] [--layers 4] [--rate 2e-3]: the character model of bench_script_torch.py, in hosts of tests/lib/netlab.sh (root).
Every --kill-every seconds all processes of one node are killed (SIGKILL) and started again 5 s later; never those of the first node, which holds what
torchft and hivemind cannot lose: the lighthouse, the first peer. Systems: dpnode-MODE (a run of that mode), torchft, hivemind. Each is set up as
its own guide says, with --every optimizer steps of a node per outer step; torchft and hivemind with shorter timeouts than their defaults, which are
longer than the time between two deaths. Prints one JSON object per system:
  samples   that outer steps have counted: of the audit, of the manager's committed batches, of the epochs
  restarts  of scripts that ended by themselves
  loss      held-out, in nats per character, of the first node's model at the end (torchft and hivemind: the better of the model after its last
            outer step and of its own weights)
  sent      MB that a host sent, the mean; headers and all
All nodes share this machine's processors. Exit status 77 if PyTorch cannot be imported; a system that is not installed is left out."""

import argparse
import datetime
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "tests", "lib"), os.path.join(HERE, "..", "python")]
import bench_script_torch as script  # noqa: E402 (the path comes first)
from bench_wan import Host, carried_by, netlab  # noqa: E402
import torch  # noqa: E402
import dpnode  # noqa: E402
from daemons import wait_for  # noqa: E402

DOWN_S = 5  # from a death to the next start
LIGHTHOUSE, STORE, FIRST = 29510, 29600, 29700  # ports; each host has its own
YAML = """name: characters
model: {{arch: external}}
data: {{samples: {samples}, unit: {context}}}
members: {{trust: members}}
vote: {{uptime: 0}}
round: {{time: {time}, mode: {mode}, steps_max: {every}}}
"""


# ---- What runs in a node: this file with --member.


class Until:
    """The end of the measurement, and the first step, of which the bench hears by a file."""

    def __init__(self, args):
        self.stop, self.began = args.folder + "/stop", f"{args.folder}/began{args.number}"

    def over(self):
        if not os.path.exists(self.began):
            open(self.began, "w", encoding="ascii").close()
        return os.path.exists(self.stop)


def tell(args, samples, models, text):
    """The result of the first node."""
    if args.number == 1:
        with open(args.folder + "/result", "w", encoding="ascii") as out:
            json.dump({"samples": samples, "loss": min(script.held_out(model, text) for model in models)}, out)


def member_of_dpnode(args, text):
    model, until = script.model_of(text, args.seed), Until(args)
    optimizer = script.optimizer_of(model, args.rate)
    with dpnode.DiLoCo(model, optimizer) as run:
        for batch in run.shard(text, batch_size=script.ROWS):
            run.loss(script.step(model, optimizer, batch))
            if until.over():
                break


def member_of_torchft(args, text):
    address, until = f"10.77.0.{args.number}", Until(args)
    socket.gethostname = lambda: address  # Newcomers fetch weights from that name.
    from torchft import Manager, ProcessGroupGloo
    from torchft.local_sgd import DiLoCo
    model, data = script.model_of(text, args.seed), script.batches(text, time.time_ns() % 2**31, 0, 1)
    inner = script.optimizer_of(model, args.rate)
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    store = torch.distributed.TCPStore(address, STORE, is_master=True, wait_for_workers=False)
    brief = datetime.timedelta(seconds=20)

    def load(state):
        model.load_state_dict(state["model"])
        inner.load_state_dict(state["inner"])
        outer.load_state_dict(state["outer"])

    def save():
        return {"model": model.state_dict(), "inner": inner.state_dict(), "outer": outer.state_dict()}

    manager = Manager(pg=ProcessGroupGloo(timeout=brief), load_state_dict=load, state_dict=save, min_replica_size=1, use_async_quorum=False,
                      timeout=brief, rank=0, world_size=1, store_addr=address, store_port=store.port, hostname=address,
                      lighthouse_addr=f"http://10.77.0.1:{LIGHTHOUSE}", replica_id=f"node_{args.number}", quorum_timeout=3 * brief)
    last, held = manager.current_step(), script.model_of(text, args.seed)
    with DiLoCo(manager, [model], inner, outer, sync_every=args.every):
        while not until.over():
            script.step(model, inner, next(data))
            if manager.current_step() != last:
                last = manager.current_step()
                held.load_state_dict(model.state_dict())
    tell(args, manager.batches_committed() * args.every * script.ROWS, (model, held), text)
    os._exit(0)


def member_of_hivemind(args, text):
    import hivemind
    address, until = f"10.77.0.{args.number}", Until(args)
    model, data = script.model_of(text, args.seed), script.batches(text, time.time_ns() % 2**31, 0, 1)
    peers = None
    if args.number != 1:
        wait_for(lambda: os.path.exists(args.folder + "/peer"), 60, "the first peer")
        with open(args.folder + "/peer", encoding="ascii") as file:
            peers = [file.read()]
    dht = hivemind.DHT(host_maddrs=[f"/ip4/{address}/tcp/{FIRST}"], initial_peers=peers, start=True)
    if args.number == 1:
        with open(args.folder + "/peer.new", "w", encoding="ascii") as file:
            file.write(str(next(one for one in dht.get_visible_maddrs() if address in str(one))))
        os.rename(args.folder + "/peer.new", args.folder + "/peer")
    target = args.nodes * args.every * script.ROWS
    optimizer = hivemind.Optimizer(dht=dht, run_id="characters", batch_size_per_step=script.ROWS, target_batch_size=target,
                                   optimizer=script.optimizer_of(model, args.rate), use_local_updates=True, matchmaking_time=3.0,
                                   averaging_timeout=10.0)
    optimizer.load_state_from_peers()
    last, held = optimizer.local_epoch, script.model_of(text, args.seed)
    while not until.over():
        script.step(model, optimizer, next(data))
        if optimizer.local_epoch != last:
            last = optimizer.local_epoch
            held.load_state_dict(model.state_dict())
    tell(args, optimizer.local_epoch * target, (model, held), text)
    os._exit(0)


MEMBERS = {"dpnode": member_of_dpnode, "torchft": member_of_torchft, "hivemind": member_of_hivemind}


def member(args):
    torch.set_num_threads(1)
    MEMBERS[args.member](args, script.Text(args.text))


# ---- The bench.


class Scripts:
    """The scripts of all nodes, each in its host."""

    def __init__(self, args, name, folder, lives=()):
        self.args, self.name, self.folder, self.lives, self.running = args, name, folder, lives, {}

    def start(self, number):
        args = self.args
        words = [sys.executable, os.path.abspath(__file__), "--member", self.name, "--number", str(number), "--folder", self.folder]
        for word in ("nodes", "every", "width", "layers", "rate", "seed", "text"):
            words += [f"--{word}", str(getattr(args, word))]
        more = {"DPNODE_DIR": self.lives[number - 1].dir} if self.lives else {}
        with open(f"{self.folder}/log{number}", "ab") as log:
            self.running[number] = subprocess.Popen([os.path.join(HERE, "..", "tests", "lib", "netlab.sh"), "exec", str(number), *words],
                                                    env={**os.environ, **more, "NETLAB": "benchwan", "GLOO_SOCKET_IFNAME": "lab0"}, stdout=log, stderr=log,
                                                    start_new_session=True)

    def kill(self, number):
        os.killpg(self.running[number].pid, signal.SIGKILL)
        self.running.pop(number).wait()

    def restart(self):
        """As a supervisor does: those that ended by themselves. Returns how many."""
        ended = [number for number, one in self.running.items() if one.poll() is not None]
        for number in ended:
            self.start(number)
        return len(ended)

    def end(self):
        for number in list(self.running):
            try:
                self.kill(number)
            except ProcessLookupError:
                pass


def measured(args, scripts, finish):
    """Trains and kills for so long; then finish(scripts) gives the row."""
    for number in range(1, args.nodes + 1):
        scripts.start(number)
    for number in range(1, args.nodes + 1):
        wait_for(lambda number=number: os.path.exists(f"{scripts.folder}/began{number}"), 180, f"the first step of node {number}")
    netlab("stats", "--reset")
    begin, deaths, restarts = time.monotonic(), 0, 0
    while time.monotonic() - begin < args.seconds:
        time.sleep(1)
        restarts += scripts.restart()
        if time.monotonic() - begin >= (deaths + 1) * args.kill_every and time.monotonic() - begin < args.seconds - DOWN_S:
            number = 2 + deaths % (args.nodes - 1)
            deaths += 1
            scripts.kill(number)
            if scripts.lives:
                scripts.lives[number - 1].kill()
            time.sleep(DOWN_S)
            if scripts.lives:
                scripts.lives[number - 1].start(wait=False)
            scripts.start(number)
    sent = carried_by(netlab("stats"))[0]
    open(scripts.folder + "/stop", "w", encoding="ascii").close()
    return {"deaths": deaths, "restarts": restarts, "sent": round(sent / 1e6, 2), **finish(scripts)}


def told(scripts):
    scripts.running[1].wait(timeout=300)
    with open(scripts.folder + "/result", encoding="ascii") as file:
        return json.load(file)


def by_torchft(args, folder, text):
    program = os.path.join(os.path.dirname(sys.executable), "torchft_lighthouse")
    lighthouse = subprocess.Popen([os.path.join(HERE, "..", "tests", "lib", "netlab.sh"), "exec", "1", program, "--bind", f"[::]:{LIGHTHOUSE}",
                                   "--min_replicas", "1", "--join_timeout_ms", "10000"], env={**os.environ, "NETLAB": "benchwan"},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    scripts = Scripts(args, "torchft", folder)
    try:
        return measured(args, scripts, told)
    finally:
        scripts.end()
        os.killpg(lighthouse.pid, signal.SIGKILL)
        lighthouse.wait()


def by_hivemind(args, folder, text):
    scripts = Scripts(args, "hivemind", folder)
    try:
        return measured(args, scripts, told)
    finally:
        scripts.end()


def by_dpnode(args, folder, text, mode):
    model = script.model_of(text, args.seed)
    dpnode.save_model(model, folder + "/first.safetensors")
    with open(folder + "/run.yaml", "w", encoding="ascii") as file:
        file.write(YAML.format(samples=len(text), context=script.CONTEXT, mode=mode, every=args.every, time=args.longest))
    nodes = [Host(args.binaries, folder, number + 1) for number in range(args.nodes)]
    scripts = Scripts(args, "dpnode", folder, nodes)
    try:
        for node in nodes:
            node.start()
        token = nodes[0].create(folder + "/run.yaml", "--from", folder + "/first.safetensors")["invite"]
        for node in nodes[1:]:
            node.ask("join", "-", stdin=token)
        for node in nodes:
            wait_for(lambda node=node: node.run().get("trainer") == "up", 120, f"{node.name} holds the model")

        def finish(scripts):
            scripts.running[1].wait(timeout=120)
            exported = folder + "/out"
            nodes[0].ask("ckpt", "export", exported)
            dpnode.load_model(model, exported)
            audit = nodes[0].ask("audit")
            return {"samples": audit["samples"], "loss": script.held_out(model, text), "rounds": nodes[0].run()["round"], "twice": audit["twice"]}
        return measured(args, scripts, finish)
    finally:
        scripts.end()
        for node in nodes:
            node.end()


def row_of(args, system, text):
    name, _, mode = system.partition("-")
    if name != "dpnode" and importlib.util.find_spec(name) is None:
        print(f"bench_script_peers: {name} is not installed, left out", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="dpnode-peers-") as folder:
        try:
            row = by_dpnode(args, folder, text, mode) if name == "dpnode" else {"torchft": by_torchft, "hivemind": by_hivemind}[name](args, folder, text)
        except BaseException:
            for number in range(1, args.nodes + 1):
                if os.path.exists(f"{folder}/log{number}"):
                    with open(f"{folder}/log{number}", encoding="utf-8", errors="replace") as log:
                        print(f"--- node {number}:\n{log.read()[-2000:]}", file=sys.stderr)
            raise
    row = {"system": system, "seconds": args.seconds, **row, "samples_per_hour": round(row["samples"] * 3600 / args.seconds)}
    row["loss"] = round(row["loss"], 4)
    print(json.dumps(row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default=os.path.join(HERE, "..", "build", "release"))
    parser.add_argument("--systems", default="dpnode-sparse,dpnode-diloco,torchft,hivemind")
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--wan", default="100mbit")
    parser.add_argument("--delay", default="25ms", help="one way")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--kill-every", type=float, default=60)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--longest", type=float, default=30, help="round.time of the runs")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text")
    parser.add_argument("--member", choices=MEMBERS, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    args = parser.parse_args()
    script.WIDTH, script.LAYERS = args.width, args.layers
    if args.member:
        return member(args)
    args.binaries = os.path.abspath(args.binaries)
    args.text = args.text or script.bible()
    text = script.Text(args.text)
    netlab("up", str(args.nodes), "--rate", args.wan, "--delay", args.delay)
    try:
        for system in args.systems.split(","):
            row_of(args, system, text)
    finally:
        netlab("down")
    return 0


if __name__ == "__main__":
    sys.exit(main())
