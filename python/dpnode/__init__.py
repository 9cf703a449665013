"""dpnode for PyTorch: a training script as a member of a run on many machines.

    import dpnode

    with dpnode.DiLoCo(model, optimizer) as run:
        for batch in run.shard(dataset, batch_size=8):
            loss = model(batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if run.should_stop:
                break

docs/PYTORCH.md is the guide. The run's model is external to dpnode (model.arch external in its manifest), or a built-in one
under Hugging Face's names, of which about() tells; this library speaks docs/TRAINER.md to the node of this machine. It needs
Linux, Python 3.9 and PyTorch 1.13 or later; importing it does not import PyTorch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from .about_run import About, about
from .errors import Error, Mismatch, Offline, ProtocolError, RankLost, Refused, Timeout, WrongProcess

if TYPE_CHECKING:
    from .diloco import DiLoCo
    from .files import load_model, save_model
    from .optimizer import Optimizer

__version__ = "0.1.0"
__all__ = ["About", "DiLoCo", "Error", "Mismatch", "Offline", "Optimizer", "ProtocolError", "RankLost", "Refused", "Timeout",
           "WrongProcess", "about", "load_model", "save_model"]

# Names that need PyTorch, and their modules.
_WITH_TORCH = {"DiLoCo": "diloco", "Optimizer": "optimizer", "load_model": "files", "save_model": "files"}


def __getattr__(name: str) -> Any:
    if name not in _WITH_TORCH and name != "hf":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f".{_WITH_TORCH.get(name, name)}", __name__)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "transformers"):
            raise
        raise Error(f"dpnode.{name} needs {error.name}", "it is not installed for this Python",
                    f"pip install {error.name}") from error
    return module if name == "hf" else getattr(module, name)


def __dir__() -> List[str]:
    return sorted([*globals(), *_WITH_TORCH, "hf"])
