"""Where the node of this machine is, and how a script starts one."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from typing import List, Mapping, Optional

from .errors import Error, Offline, Timeout
from .link import Link

SOCKET_NAME = "script.sock"
POLL_S = 0.05


def node_dir(given: Optional[str] = None, environment: Mapping[str, str] = os.environ) -> str:
    """The node's directory: the argument, else DPNODE_DIR, else the default of dpnode (cli/paths.c)."""
    chosen = given or environment.get("DPNODE_DIR")
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen) if given else chosen)
    if os.geteuid() == 0:
        return "/var/lib/dpnode"
    state = environment.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return os.path.join(state, "dpnode")
    return os.path.join(environment.get("HOME", ""), ".local/state/dpnode")


def daemon_runs(folder: str) -> bool:
    """Whether a daemon holds the lock of the node's directory, as the command line sees it (cli/start.c)."""
    try:
        fd = os.open(os.path.join(folder, "lock"), os.O_RDONLY)
    except PermissionError:
        return True  # Of another user: somebody was there.
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


class Place:
    """A node's directory. The socket in it appears when the run is open, and goes with the daemon."""

    def __init__(self, folder: Optional[str] = None, environment: Optional[Mapping[str, str]] = None) -> None:
        self.environment = os.environ if environment is None else environment
        self.folder = node_dir(folder, self.environment)
        self.socket = os.path.join(self.folder, SOCKET_NAME)

    def listens(self) -> bool:
        """Whether a worker listens: a file alone may be what a worker that was killed has left."""
        try:
            Link(self.socket, 1.0).close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError:
            return True  # The session tells why it cannot be used.
        return True

    def prepare(self, timeout: float) -> None:
        """Returns when a worker listens; joins a run if there is a token and none does.

        Raises Offline if nobody will make one, Timeout if nobody has within the timeout.
        """
        deadline = time.monotonic() + timeout
        if self.listens():
            return
        if self._join_command() is not None:
            self._join(timeout)
        while not self.listens():
            if not daemon_runs(self.folder):
                raise Offline("no node is running", f"nobody listens at {self.socket}",
                              "dpnode join TOKEN, or dpnode up if this node has a run; or DPNODE_TOKEN=TOKEN in the "
                              "environment of the script; or DPNODE_DIR=DIR if the node is in another directory")
            if time.monotonic() >= deadline:
                raise Timeout(f"the node accepts no script after {timeout:g} s",
                              f"nobody listens at {self.socket}; a node does when it has the run's model, unless the run "
                              "exchanges gradients (round.mode ddp) or trains adapters (model.adapt)",
                              "dpnode why; a larger timeout=... if it is still fetching")
            time.sleep(POLL_S)

    def _join_command(self) -> Optional[List[str]]:
        """The token itself stays in the environment: arguments are visible to other users."""
        program = self.environment.get("DPNODE_PROGRAM") or "dpnode"
        if self.environment.get("DPNODE_TOKEN"):
            return [program, "join"]
        if self.environment.get("DPNODE_TOKEN_FILE"):
            return [program, "join", self.environment["DPNODE_TOKEN_FILE"]]
        return None

    def _join(self, timeout: float) -> None:
        command = self._join_command()
        assert command is not None
        if shutil.which(command[0], path=self.environment.get("PATH")) is None:
            raise Offline("no node is running, and none can be started", f"there is no program {command[0]}",
                          "install dpnode, or DPNODE_PROGRAM=/path/to/dpnode")
        with tempfile.TemporaryFile() as output:  # No pipe: a daemon that inherits one would keep it open.
            try:
                done = subprocess.run(command, env={**self.environment, "DPNODE_DIR": self.folder}, timeout=timeout,
                                      stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
            except subprocess.TimeoutExpired as error:
                raise Timeout(f"dpnode join has not ended after {timeout:g} s", "",
                              "run dpnode join yourself; or a larger timeout=...") from error
            except OSError as error:
                raise Error(f"{command[0]} could not be run", str(error), "DPNODE_PROGRAM=/path/to/dpnode") from error
            if done.returncode != 0:
                output.seek(0)
                said = output.read(4096).decode(errors="replace").strip()
                # The command line has a fix of its own for most errors.
                raise Offline("this machine could not join the run", said,
                              "" if "fix:" in said else "a new token: dpnode invite, on a machine of the run")
