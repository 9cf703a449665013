"""A run of a tiny model for system tests: created, joined, and compared."""

import os

from daemons import wait_for

TEXT = ("In the beginning God created the heaven and the earth. And the earth was without form, and void; and darkness "
        "was upon the face of the deep. And the Spirit of God moved upon the face of the waters. And God said, Let there "
        "be light: and there was light. And God saw the light, that it was good. ")

MANIFEST = """name: small
model: {{layers: 1, width: 32, heads: 2, context: 32, vocab: 300}}
train: {{batch: 4, lr: 3e-3, warmup_tokens: 1000, total_tokens: 10000000}}
round: {{time: {round_s}, steps_max: {steps_max}, codec: sparse}}
gossip: {{time: {gossip_s}}}
vote: {{uptime: 0, voters_max: {voters_max}}}
"""


def write_inputs(folder, **values):
    """Paths of a manifest and a text in the folder."""
    manifest = os.path.join(folder.path, "small.yaml")
    text = os.path.join(folder.path, "small.txt")
    with open(manifest, "w", encoding="utf-8") as file:
        file.write(MANIFEST.format(**values))
    with open(text, "w", encoding="utf-8") as file:
        for i in range(200): # numbers make it less than one sentence learned by heart
            file.write(f"{i} {TEXT}\n")
    return manifest, text


def create_and_join(folder, count, round_s=1.0, gossip_s=0.5, voters_max=7, steps_max=500):
    """So many running nodes of one run, the founder first. On a fast machine steps_max ends a round before its time."""
    manifest, text = write_inputs(folder, round_s=round_s, gossip_s=gossip_s, voters_max=voters_max,
                                  steps_max=steps_max)
    nodes = [folder.node(f"n{i + 1}").start() for i in range(count)]
    created = nodes[0].create(manifest, "--text", text, "--name", "n1")
    for node in nodes[1:]:
        node.ask("join", "-", "--name", node.name, stdin=created["invite"])
    return nodes


def state_roots_agree(nodes, seconds=60):
    """Waits until all nodes have the same state root at one round."""
    def same():
        runs = [n.run() for n in nodes]
        # 0: a restarted trainer has no state yet
        if len({r["applied"] for r in runs}) != 1 or not all(r["state_root"] for r in runs):
            return None
        return {r["state_root"] for r in runs}
    roots = wait_for(same, seconds, "all nodes stand at one round")
    assert len(roots) == 1, f"the replicas differ: {roots}"
