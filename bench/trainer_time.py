"""The use of trainers' time between two queries of their nodes, from the totals of dpnode status (run.trainer_ms): a part of bench_scaling.py and
bench_wan.py. A node whose trainer is down, or has not computed since its start, reports no totals."""


def grown(before, after, key):
    """ms; after a restart of the trainer they count from 0. None: the trainer is down."""
    if "trainer_ms" not in after:
        return None
    same = before.get("trainer_pid") == after.get("trainer_pid")
    return after["trainer_ms"][key] - (before.get("trainer_ms", {}).get(key, 0) if same else 0)


def share(before, after):
    """The share of its training time in which a trainer computed local steps; None: it is down, or has not trained in between."""
    trained = grown(before, after, "trained")
    return grown(before, after, "computed") / trained if trained else None


def mean_of(values):
    """The mean of the known values; None if there are none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
