"""Errors of the library. Each says what happened, why, and what to do about it."""

from __future__ import annotations


class Error(Exception):
    """Base of all errors of this library: what happened, why, and the next step (fix)."""

    def __init__(self, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix)
        self.what = what
        self.why = why
        self.fix = fix

    def __str__(self) -> str:
        text = f"{self.what}: {self.why}" if self.why else self.what
        return f"{text}\nfix: {self.fix}" if self.fix else text


class Refused(Error):
    """The node refused the script. code is that of REFUSED (docs/TRAINER.md, section 1)."""

    def __init__(self, code: int, what: str, why: str = "", fix: str = "") -> None:
        super().__init__(what, why, fix)
        self.args = (code, what, why, fix)
        self.code = code


class Timeout(Error):
    """The node did not answer, or did not come back, within the timeout."""


class Offline(Error):
    """No node runs here, and none could be started."""


class Mismatch(Error):
    """The model, the data or an argument does not fit the run, or cannot travel in any."""


class WrongProcess(Error):
    """A run was used in another process, or thread, than the one that opened it."""


class ProtocolError(Error):
    """The node sent bytes that docs/TRAINER.md does not allow."""


class RankLost(Error):
    """Another process of the same script (a rank) has ended, or does something else than this one."""


# Codes of REFUSED.
ANOTHER_SCRIPT = 1
VERSION = 2
TENSORS = 3
OTHER_USER = 4
RUN_OVER = 5
BAD_PACKET = 6
NOT_FINITE = 7
TOO_MANY_SAMPLES = 8
TOO_SLOW = 9
NO_MEMORY = 10

SAME_VERSION = "install dpnode and this library of the same version: the same wheel, or the same packages"

_FIXES = {
    ANOTHER_SCRIPT: "end the other script; a node trains with one at a time",
    VERSION: SAME_VERSION,
    TENSORS: "build the model that the run was created with; "
             "dpnode ckpt export DIR shows its tensors: DIR/model.safetensors; dpnode.hf.model(dpnode.about()) builds a "
             "built-in one",
    OTHER_USER: "run the script as the user that runs dpnoded, or as root",
    RUN_OVER: "dpnode status; dpnode up if the node is down; dpnode join TOKEN if it has no run",
    BAD_PACKET: SAME_VERSION,
    NOT_FINITE: "lower the learning rate, clip gradients, or skip steps whose loss is not finite",
    TOO_MANY_SAMPLES: "take batches from run.shard(...), or say run.step(samples)",
    TOO_SLOW: "give the script processor time; stop debuggers in run.step and optimizer.step",
    NO_MEMORY: "end other programs of this machine; dpnode doctor tells what the run needs",
}


def refused(code: int, text: str, why: str = "") -> Refused:
    """The error for a REFUSED packet of the node."""
    return Refused(code, text or f"the node refused the script with code {code}", why,
                   _FIXES.get(code, "dpnode why"))
