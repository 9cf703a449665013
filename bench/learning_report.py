"""The report of bench/learning.py on finished cells: bytes of a node, computed wall time, table, headlines, plots. Starts nothing."""
import os
import statistics

import svg_curves
from learning_cells import best_setting, cell_of, is_at_edge, key_of, swept

LINES = (20, 100, 1000)  # Mbit/s
DENSE = ("ddp", "diloco", "average", "diloco-int4", "diloco-paper")  # whole vectors: an all-reduce could carry them
MEGA = 1e6


def bytes_of(result, steps):
    """Sent by one node in the run: as dpnode sends it, each update to every other node; and the least, which for whole vectors is an
    all-reduce (reduce-scatter and all-gather): 2 (n - 1) / n copies."""
    nodes = max(result["nodes"], 1)
    each = result["parameters"] * steps
    sent = result["sent_per_param_step"] * each
    if result["configuration"] not in DENSE or nodes < 2:
        return sent, sent
    return sent, min(sent, 2 * (nodes - 1) / nodes * result["bytes_per_param_step"] * each)


def step_s(result, steps):
    """CPU seconds of one step of one node on one core, with its share of the rounds."""
    return (result["cpu_s"] - result["eval_s"]) / (max(result["nodes"], 1) * steps)


def wall_s(steps, seconds, sent, mbit):
    """Computed: steps one after the other, then all bytes over a line of that rate in both directions; no overlap, no delay of the line."""
    return steps * seconds + 8 * sent / (mbit * MEGA)


def measures(row, scale, setting, seeds, results, split="alike"):
    """The mean over the finished seeds; None: no seed is finished."""
    cells = [cell_of(row, scale, setting, seed, split=split) for seed in seeds]
    done = {cell["seed"]: results[key_of(cell)] for cell in cells if key_of(cell) in results and "losses" in results[key_of(cell)]}
    if not done:
        return None
    steps = cells[0]["steps"]
    first = next(iter(done.values()))
    sent, least = bytes_of(first, steps)
    seconds = statistics.median(step_s(result, steps) for result in done.values())
    return {"losses": {seed: result["losses"][0] for seed, result in done.items()}, "steps": steps, "tokens": first["tokens"],
            "parameters": first["parameters"], "sent": sent, "least": least, "step_s": seconds,
            "wall": [wall_s(steps, seconds, least, mbit) for mbit in LINES], "curve": first["curves"][0],
            "copy": first["bytes_per_param_step"] * first["parameters"] * steps, "setting": setting}


def distance(one, other):
    """Of losses, mean and range over the seeds that both have; None: they share none."""
    both = sorted(set(one["losses"]) & set(other["losses"]))
    gaps = [one["losses"][seed] - other["losses"][seed] for seed in both]
    return (statistics.mean(gaps), min(gaps), max(gaps)) if gaps else None


def say_gap(one, other):
    found = distance(one, other) if one and other and one is not other else None
    return f"{found[0]:+.4f}" if found else ""


def say_time(seconds):
    return f"{seconds / 3600:.1f} h" if seconds >= 36000 else f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def say_setting(setting, edge=False):
    outer = f", eta {setting['alpha'] / 1000:g}, mu {setting['mu'] / 1000:g}" if "alpha" in setting else ""
    return f"{setting['lr']:g}{' !' if edge else ''}{outer}"


def say_bytes(count):
    return f"{count / MEGA:.3g}" if count < 1000 * MEGA else f"{count / MEGA:,.0f}"


def say_times(more, fewer):
    return f"{more / fewer:,.0f}" if more >= 10 * fewer else f"{more / fewer:.1f}"


def line(row, own, found, seeds, edge):
    if own is None:
        return f"| {row.method} | not run |" + " |" * (8 + len(LINES))
    losses = list(own["losses"].values())
    spread = f" ({min(losses):.4f} to {max(losses):.4f})" if len(losses) > 1 else ""
    missing = f", {len(losses)} of {len(seeds)} seeds" if len(losses) < len(seeds) else ""
    return (f"| {row.method} | {say_setting(own['setting'], edge)} | {statistics.mean(losses):.4f}{spread}{missing} | "
            f"{say_gap(own, found.get('ddp'))} | {say_gap(own, found.get('diloco'))} | {own['tokens'] / MEGA:.2f} | {say_bytes(own['sent'])} | "
            f"{say_bytes(own['least'])} | {own['sent'] / own['parameters']:.3g} | {1000 * own['step_s']:.1f} | "
            + " | ".join(say_time(seconds) for seconds in own["wall"]) + " |")


def headlines(group, found, seeds):
    """The default mode beside ddp and beside dense DiLoCo."""
    own = found.get("shipped")
    for other_name in ("ddp", "diloco"):
        other = found.get(other_name)
        gap = distance(own, other) if own and other else None
        if gap is None:
            yield f"- **shipped to {other_name}, {group.nodes} nodes, rounds of {group.inner}: not run**"
            continue
        seeds_of = len(set(own["losses"]) & set(other["losses"]))
        spread = f" ({gap[1]:+.4f} to {gap[2]:+.4f} in {seeds_of} seeds)" if seeds_of > 1 else " (one seed)"
        yield (f"- **shipped to {other_name}, {group.nodes} nodes, rounds of {group.inner}: {gap[0]:+.4f} nats per byte{spread}**, with "
               f"{say_bytes(own['sent'])} MB sent by each node; {other_name} sends {say_bytes(other['sent'])} MB "
               f"({say_times(other['sent'], own['sent'])} times as much), or {say_bytes(other['least'])} MB by an all-reduce "
               f"({say_times(other['least'], own['sent'])} times).")


def sweep_line(row, scale, sweep, results, split):
    pairs = swept(row, scale, sweep, results, split)
    said = []
    for setting, cell in pairs:
        result = results.get(key_of(cell))
        loss = "not run" if result is None else f"{result['losses'][0]:.4f}" if "losses" in result else "failed"
        said.append(f"{say_setting(setting)}: {loss}")
    return f"- sweep of {row.method}, {pairs[0][1]['steps']} steps of each node, one seed: {'; '.join(said)}" if said else ""


def found_in(group, methods, row_of, scale, sweep, seeds, results, split):
    found = {}
    for method in methods:
        row = row_of(group, method)
        best = best_setting(row, scale, sweep, results, split)
        found[method] = measures(row, scale, best, seeds, results, split) if best else None
    return found


def report(group, methods, row_of, scale, sweep, seeds, results, split="alike"):
    """The lines of one group's table, its headlines and its sweeps."""
    found = found_in(group, methods, row_of, scale, sweep, seeds, results, split)
    tokens = scale.steps(group.nodes, group.inner) * group.nodes * scale.rows * scale.context
    yield (f"**{group.nodes} nodes, rounds of {group.inner} steps, {group.optimizer}, {group.text}**: {scale.parameters():,} parameters, "
           f"context {scale.context}, {scale.rows} sequences of a node and step, {tokens / scale.parameters():.1f} tokens per parameter")
    yield ""
    heads = ["method", "rate", "loss, nats per byte", "to ddp", "to diloco", "tokens, M", "sent, MB", "least, MB", "sent per parameter",
             "CPU ms per step"] + [f"wall at {mbit} Mbit/s" for mbit in LINES]
    yield f"| {' | '.join(heads)} |"
    yield "|" + " --- |" * len(heads)
    for method in methods:
        own = found[method]
        row = row_of(group, method)
        edge = own is not None and is_at_edge(row, scale, sweep, results, split)
        yield line(row, own, found, seeds, edge)
    yield ""
    yield from headlines(group, found, seeds)
    for method in methods:
        said = sweep_line(row_of(group, method), scale, sweep, results, split)
        if said:
            yield said
    yield ""


def curves_of(found, x_of):
    """x_of(measures, share of the steps, bytes of the node so far): a place on the axis."""
    curves = []
    for method, own in found.items():
        if own is not None:
            scaled = own["least"] / own["copy"] if own["copy"] > 0 else 0
            curves.append((method, [(x_of(own, point["tokens"] / own["tokens"], point["bytes"] * own["parameters"] * scaled), point["loss"])
                                    for point in own["curve"]]))
    return curves


def plots(folder, group, found):
    """Loss against bytes, tokens and computed wall time: one SVG each. Returns their names."""
    os.makedirs(folder, exist_ok=True)
    where = f"{group.nodes} nodes, rounds of {group.inner}, {group.optimizer}, {group.text}"
    axes = {"bytes": ("MB sent by one node, dense methods by all-reduce", lambda own, share, sent: sent / MEGA, True),
            "tokens": ("tokens of all nodes, millions", lambda own, share, sent: share * own["tokens"] / MEGA, False)}
    for mbit in LINES:
        axes[f"wall_{mbit}"] = (f"computed hours at {mbit} Mbit/s", lambda own, share, sent, mbit=mbit:
                                wall_s(share * own["steps"], own["step_s"], sent, mbit) / 3600, True)
    for name, (label, x_of, log) in axes.items():
        text = svg_curves.draw(where, label, "loss on held-out text, nats per byte", curves_of(found, x_of), log)
        if text is not None:
            path = os.path.join(folder, f"loss_{name}_{group.nodes}_{group.inner}_{group.optimizer}_{group.text}.svg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            yield path
