"""Where trainers' time went between two looks at their nodes, from the totals of dpnode status (run.trainer_ms): a part of bench_scaling.py and
bench_wan.py. A node whose trainer is down, or has not computed since it was started, tells no totals."""


def grown(before, after, key):
    """ms; who restarted its trainer counts from 0. None: the trainer is down."""
    if "trainer_ms" not in after:
        return None
    same = before.get("trainer_pid") == after.get("trainer_pid")
    return after["trainer_ms"][key] - (before.get("trainer_ms", {}).get(key, 0) if same else 0)


def share(before, after):
    """Of the time in which a trainer trained, what it computed local steps; None: it is down, or has not trained in between."""
    trained = grown(before, after, "trained")
    return grown(before, after, "computed") / trained if trained else None


def mean_of(values):
    """Of those that are known; None of none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
