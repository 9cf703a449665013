"""Three trainers that continue in gossip while they hear no majority of voters, and the effect of their return on the model's loss.

away 3: the only voter does not train and is killed; 2: it is one of the three; 1: three voters, one of which is cut off.
"""

import os
import time

from daemons import Folder, wait_for
from web import Web

MANIFEST = """name: returning
model: {{layers: 2, width: 64, heads: 4, context: 64, vocab: 512}}
train: {{batch: 8, lr: 3e-3, warmup_tokens: 20000, total_tokens: 100000000}}
round: {{mode: {mode}, time: 1}}
gossip: {{time: 0.5}}
vote: {{uptime: 0, voters_max: {voters}}}
"""
PATIENCE_S = 120
SETTLED = 3 # rounds in a row that list everybody


class Run:
    """A founder and trainers of one run; trainers that are away exchange in pairs."""

    def __init__(self, binaries, mode, away, text, place=None):
        self.folder = Folder(binaries, "dpnode-return-", place)
        self.away = away
        self.web = Web(self.folder, 4 if away == 3 else 3)
        self.nodes = self.web.nodes
        manifest = os.path.join(self.folder.path, "run.yaml")
        with open(manifest, "w", encoding="utf-8") as file:
            file.write(MANIFEST.format(mode=mode, voters=3 if away == 1 else 1))
        first = self.nodes[0].start()
        token = first.create(manifest, "--text", text)["invite"]
        for node in self.nodes[1:]:
            node.start().ask("join", "-", stdin=token)
        if away == 3:
            first.ask("pause")
        self.rounds = self.folder.follow(self.nodes[-1])

    def end(self):
        self.folder.__exit__()
        self.web.end()

    def settle(self, tokens, seconds=PATIENCE_S):
        """Waits until this many tokens are committed and rounds list all three trainers."""
        def holds():
            last = self.rounds.all()[-SETTLED:]
            return len(last) == SETTLED and all(r["listed"] == 3 for r in last) and self.committed() >= tokens
        wait_for(holds, seconds, f"rounds of three trainers, {tokens} tokens committed")

    def wait_for_rounds(self, count, seconds=1200):
        wait_for(lambda: len(self.rounds.all()) >= count, seconds, f"{count} rounds")

    def sleep(self, seconds):
        """The fault, for so long in any case."""
        time.sleep(seconds)

    def voter_rounds(self):
        """As the first voter knows them."""
        return self.nodes[0].lines("rounds", "-n", "100")

    def committed(self):
        return sum(r["tokens"] for r in self.rounds.all())

    def part(self):
        if self.away == 1:
            self.web.cut([3], [1, 2])
        else:
            self.nodes[0].signal_all(9)
            self.nodes[0].process.wait()

    def heal(self):
        if self.away == 1:
            self.web.heal()
        else:
            self.nodes[0].start() # Paused still, where it was: the order lasts.

    def gossiping(self):
        return self.nodes[3 - self.away:] if self.away < 3 else self.nodes[1:]

    def returned(self, after, seconds=PATIENCE_S):
        """The round of the return: the first later round that counts the work of the fault, which is more than twice that of a round, of all
        trainers that were away. If six rounds have counted these trainers and none of them this work, which was then too old, it is the first of
        the six. Also waits for the round after it."""
        away = {node.ask("status")["id"] for node in self.gossiping()}
        def of_away(record):
            return [p["tokens"] for p in record["peers"] if p["id"] in away]
        usual = [sum(of_away(r)) for r in self.rounds.all() if r["round"] <= after][-SETTLED:]
        def counted():
            later = [r for r in self.rounds.all() if r["round"] > after]
            with_all = [r for r in later[:-1] if len(of_away(r)) == len(away)]
            whole = [r for r in with_all if sum(of_away(r)) > 2 * sum(usual) / len(usual)]
            return whole[0] if whole else with_all[0] if len(with_all) > 5 else None
        return wait_for(counted, seconds, "a round counts the work of all that were away")
