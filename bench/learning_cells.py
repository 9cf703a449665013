"""The cells of bench/learning.py: the runs of bench_quality that a table needs, the sweep that decides a method's rates, and the file of finished
cells. Starts nothing."""
import dataclasses
import json
import os

UNIT_STEPS, UNIT_NODES = 300, 16  # steps of a node are a multiple of these, where the nodes are 2, 4, 8 or 16: rounds of 15 to 300 fit
SHARED_INNER = 15                 # of cells whose steps are the same in rounds of any length
ALONE = ("single",)               # one node
UNROUNDED = ("single", "ddp")     # the length of a round does not matter to them
WITH_OUTER = ("diloco", "int4")   # names of methods with an outer step to be swept begin so


@dataclasses.dataclass(frozen=True)
class Scale:
    layers: int
    width: int
    heads: int
    context: int
    rows: int    # sequences of a node and step
    tokens: int  # of all nodes; 0: 20 for each parameter
    lr: float    # the middle of the sweep
    inner: str
    eval: int    # tokens of the held-out text behind a loss
    points: int

    def parameters(self):
        """A GPT-2 over bytes, its head tied."""
        width = self.width
        return self.layers * (12 * width * width + 13 * width) + 2 * width + (256 + self.context) * width

    def tokens_of_all(self):
        unit = UNIT_STEPS * UNIT_NODES * self.rows * self.context
        return self.tokens or -(-20 * self.parameters() // unit) * unit

    def steps(self, nodes, inner, share=1.0):
        """Steps of one node: whole rounds, as close as possible to that share of the tokens."""
        return max(1, round(share * self.tokens_of_all() / (nodes * self.rows * self.context * inner))) * inner


SCALES = {
    "small": Scale(2, 64, 2, 64, 4, 4 * 1920 * 4 * 64, 4e-3, "15", 32768, 8),
    "1m": Scale(5, 128, 4, 256, 2, 0, 2e-3, "30", 65536, 16),
    "10m": Scale(8, 320, 5, 256, 8, 0, 1e-3, "30", 65536, 16),
}


@dataclasses.dataclass(frozen=True)
class Group:
    """Rows that one table compares."""
    text: str
    optimizer: str
    nodes: int
    inner: int


@dataclasses.dataclass(frozen=True)
class Row:
    group: Group
    method: str


@dataclasses.dataclass(frozen=True)
class Sweep:
    factors: tuple  # of the scale's learning rate
    outer: tuple    # (eta, mu)
    share: float    # of the length of the table's runs
    widen: int      # further factors at most, each beside a least or greatest one that was the best


def key_of(cell):
    return json.dumps(cell, sort_keys=True)


def has_outer(method):
    return method.startswith(WITH_OUTER)


def settings_of(method, scale, sweep, factors):
    """Every setting with one of these learning rates, as fields of a cell."""
    outer = [{"alpha": round(1000 * eta), "mu": round(1000 * mu)} for eta, mu in sweep.outer] if has_outer(method) else [{}]
    return [{"lr": float(f"{scale.lr * factor:.6g}"), **pair} for factor in factors for pair in outer]


def cell_of(row, scale, setting, seed, share=1.0, points=None, split="alike"):
    """A run of bench_quality: equal cells give equal results, up to the noise that the bench has."""
    group = row.group
    steps = scale.steps(group.nodes, group.inner, share)
    inner = SHARED_INNER if row.method in UNROUNDED and steps % SHARED_INNER == 0 else group.inner
    cell = {"only": row.method, "text": group.text, "optimizer": group.optimizer, "seed": seed, "steps": steps, "inner": inner,
            "layers": scale.layers, "width": scale.width, "heads": scale.heads, "context": scale.context, "rows": scale.rows,
            "eval": scale.eval, "points": points or scale.points, "split": split, **setting}
    if row.method not in ALONE:
        cell["nodes"] = group.nodes
    return cell


def swept(row, scale, sweep, results, split="alike"):
    """The settings that the sweep tries, with their cells, as far as the finished cells tell: where the best rate of those tried is the
    least or the greatest the next one joins, sweep.widen times. None where there is no choice."""
    factors = sorted(sweep.factors)
    for widened in range(sweep.widen + 1):
        settings = settings_of(row.method, scale, sweep, factors)
        if len(settings) < 2:
            return []
        pairs = [(setting, cell_of(row, scale, setting, 1, sweep.share, 1, split)) for setting in settings]
        best = least_of(pairs, results)
        if widened == sweep.widen or best is None or len(factors) < 2:
            break
        if best["lr"] == settings[0]["lr"]:
            factors = [factors[0] ** 2 / factors[1]] + factors
        elif best["lr"] == settings[-1]["lr"]:
            factors = factors + [factors[-1] ** 2 / factors[-2]]
        else:
            break
    return pairs


def least_of(pairs, results):
    """The setting of the least loss; None while one of them is missing, or where all of them failed."""
    found = [results.get(key_of(cell)) for _, cell in pairs]
    losses = [(result["losses"][0], i) for i, result in enumerate(found) if result and "losses" in result]
    return None if None in found or not losses else pairs[min(losses)[1]][0]


def best_setting(row, scale, sweep, results, split="alike"):
    """Of the sweep, once it is complete; None before that, or where all of its cells failed."""
    pairs = swept(row, scale, sweep, results, split)
    return least_of(pairs, results) if pairs else settings_of(row.method, scale, sweep, sweep.factors)[0]


def is_at_edge(row, scale, sweep, results, split="alike"):
    """The best learning rate is still the least or the greatest that was tried: a wider sweep might find a better one."""
    pairs = swept(row, scale, sweep, results, split)
    rates = sorted({setting["lr"] for setting, _ in pairs})
    best = best_setting(row, scale, sweep, results, split)
    return len(rates) > 1 and best is not None and best["lr"] in (rates[0], rates[-1])


def wanted(rows, scale, sweep, seeds, results, split="alike"):
    """The cells that may run now, in the order of the rows. Those of a row's table come when its sweep is complete."""
    given = set(results)
    for row in rows:
        cells = [cell for _, cell in swept(row, scale, sweep, results, split)]
        if all(key_of(cell) in results for cell in cells):
            best = best_setting(row, scale, sweep, results, split)
            cells = [cell_of(row, scale, best, seed, split=split) for seed in seeds] if best else []
        for cell in cells:
            if key_of(cell) not in given:
                given.add(key_of(cell))
                yield cell


def command(program, cell, paths):
    """paths: files of the texts of cells; None: the bench's own text."""
    words = [program, "--json", "--jobs", "1"]
    for name, value in cell.items():
        path = paths.get(value) if name == "text" else None
        if name != "text" or path:
            words += [f"--{name}", path or (f"{value:.9f}" if name == "lr" else str(value))]
    return words


def read_results(path):
    """Finished cells by key. A line that was cut by an interruption is ignored."""
    results = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                try:
                    record = json.loads(line)
                    results[key_of(record["cell"])] = record["result"]
                except (ValueError, KeyError, TypeError):
                    continue
    return results


def keep_result(path, cell, result):
    """Begins a new line after one that was cut."""
    with open(path, "ab+") as file:
        file.seek(0, os.SEEK_END)
        cut = False
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            cut = file.read(1) != b"\n"
        file.write((("\n" if cut else "") + json.dumps({"cell": cell, "result": result}) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())
