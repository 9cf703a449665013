"""A StatefulSet on one machine, from the manifests of contrib/kubernetes: each pod has a root, a network namespace and a process namespace of its own.

What a cluster does and this does too: volumes at their paths, with the owner and the modes that fsGroup gives; a root that cannot be written; user,
capabilities; variables with $(NAME); names of pods that lead to their newest address; probes; the order of starts and stops; preStop, SIGTERM, and
SIGKILL after the time of grace; a container that ends is started again in its pod. What it does not: limits of memory and processors, seccomp, the
real kubelet, scheduler and API server. Needs root, and what netlab.sh needs."""

import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import threading
import time

from daemons import Node, children_of, wait_for
from netlab import Lab

NAMESPACE = "default"
PROGRAMS = "/opt/dpnode" # the folder of the binaries, in a pod


class Pod(Node):
    """One pod of the set, over its lives. Its volume stays, its address does not."""

    def __init__(self, cluster, number):
        super().__init__(cluster.folder.binaries, cluster.folder.path, f"{cluster.name}-{number}")
        self.cluster = cluster
        self.volume = cluster.folder.path + f"/volume-{self.name}"
        self.socket = cluster.folder.path + f"/{self.name}-run/dpnode.sock" # in the emptyDir at /run/dpnode
        self.address = None
        self.launcher = None # the process outside of the pod, whose child is the pod's first
        self.ends = []       # (seconds, SIGKILL was needed, exit status, the end of the log) of each stop
        self.restarts = 0

    def paths(self):
        """What lies at the mount paths: (folder on this machine, path in the pod, read-only)."""
        sources = {volume["name"]: volume for volume in self.cluster.chart.pod["volumes"]}
        for mount in self.cluster.chart.container["volumeMounts"]:
            if mount["name"] in sources:
                source = sources[mount["name"]]
                if "secret" in source:
                    folder = self.cluster.secret(source["secret"]["secretName"])
                elif "configMap" in source:
                    folder = self.cluster.config_map(source["configMap"]["name"])
                else:
                    assert source["emptyDir"] == {}
                    folder = f"{self.cluster.folder.path}/{self.name}-{mount['name']}"
            else:
                assert mount["name"] in [claim["metadata"]["name"] for claim in self.cluster.chart.set["volumeClaimTemplates"]]
                folder = self.volume
            yield folder, mount["mountPath"], mount.get("readOnly", False)

    def make_folders(self, new_pod):
        group = self.cluster.chart.pod["securityContext"]["fsGroup"]
        for folder, path, _ in self.paths():
            empty = folder.startswith(f"{self.cluster.folder.path}/{self.name}-")
            if empty and new_pod:
                shutil.rmtree(folder, ignore_errors=True)
            if os.path.exists(folder):
                continue
            os.mkdir(folder)
            if folder == self.volume: # a new ext4 file system
                os.mkdir(os.path.join(folder, "lost+found"), 0o700)
            os.chown(folder, 0, group)
            os.chmod(folder, 0o2777 if empty else 0o2775)

    def environment_of_pod(self):
        """As the kubelet makes it: envFrom first, then env, in which $(NAME) is a variable before it."""
        fields = {"metadata.name": self.name, "metadata.namespace": NAMESPACE}
        made = {"PATH": PROGRAMS + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": self.name, "HOME": "/"}
        for source in self.cluster.chart.container["envFrom"]:
            made.update(self.cluster.chart.one("ConfigMap", source["configMapRef"]["name"])["data"])
        for variable in self.cluster.chart.container["env"]:
            if "value" in variable:
                value = re.sub(r"\$\((\w+)\)", lambda m: made.get(m.group(1), m.group(0)), variable["value"])
            else:
                value = fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
            made[variable["name"]] = value
        return {**made, **self.cluster.machine}

    def words(self, command):
        """The command as the container's user, without capabilities, with its variables."""
        context = self.cluster.chart.pod["securityContext"]
        assert self.cluster.chart.container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        return ["setpriv", f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}", f"--groups={context['fsGroup']}",
                "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "env", "-i", "--chdir=/",
                *(f"{name}={value}" for name, value in self.environment_of_pod().items()), *command]

    def script(self):
        root = f"{self.cluster.folder.path}/{self.name}-root"
        os.makedirs(root, exist_ok=True)
        lines = ["set -e", f"mount -t tmpfs -o mode=755,size=4m pod {root}", f"cd {root}",
                 "mkdir usr etc proc dev sys opt opt/dpnode", "mount --rbind /usr usr", "mount --rbind /dev dev", "mount --rbind /sys sys",
                 "mount -t tmpfs -o mode=1777,size=64m shm dev/shm", "mount -t proc proc proc",
                 "for f in bin sbin lib lib64; do [ ! -e /$f ] || ln -s usr/$f $f; done",
                 "for f in passwd group nsswitch.conf ld.so.cache localtime; do [ ! -e /etc/$f ] || cp -L /etc/$f etc; done",
                 "touch etc/hosts etc/resolv.conf", f"mount --bind {self.cluster.hosts_file} etc/hosts",
                 f"mount --bind {self.binaries} opt/dpnode"]
        for folder, path, read_only in self.paths():
            lines += [f"mkdir -p .{path}", f"mount --bind {folder} .{path}"]
            if read_only:
                lines.append(f"mount -o remount,bind,ro .{path}")
        if self.cluster.chart.container["securityContext"]["readOnlyRootFilesystem"]:
            lines.append(f"mount -o remount,ro {root}")
        lines.append(f"exec chroot {root} " + shlex.join(self.words(self.cluster.chart.container["command"])))
        return "\n".join(lines)

    def launch(self, new_pod):
        self.make_folders(new_pod)
        with open(self.log, "ab") as log:
            self.started = time.time()
            self.launcher = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.cluster.lab.namespace(self.address)}", "unshare", "--mount", "--pid", "--fork",
                 "/bin/sh", "-c", self.script()],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.process = self.launcher # for Folder, which asks whether it runs

    def start(self, wait=True):
        """A new pod, at an address that it did not have before."""
        self.address = self.cluster.next_address(self.address)
        self.cluster.write_hosts()
        self.launch(True)
        return self

    def first_process(self):
        """The number of the pod's process 1 on this machine; None: it has none."""
        return next(iter(children_of(self.launcher.pid)), None) if self.runs() else None

    def runs(self):
        return self.launcher is not None and self.launcher.poll() is None

    def inside(self, command):
        """The command in the running container, as words for a shell of this machine."""
        return ["nsenter", "-t", str(self.first_process()), "--mount", "--pid", "--net", "--root", "--wd=/", *self.words(command)]

    def execute(self, command, seconds):
        """A probe or a hook: (exit status, output); None: it took too long."""
        if self.first_process() is None:
            return 1, "the container does not run"
        try:
            done = subprocess.run(self.inside(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return None, "no answer in time"
        return done.returncode, done.stdout

    def probe(self, kind):
        wanted = self.cluster.chart.container[kind]
        return self.execute(wanted["exec"]["command"], wanted["timeoutSeconds"])[0] == 0

    def ready(self):
        return self.runs() and self.probe("readinessProbe")

    def kill(self):
        """The container ends: process 1 of a process namespace takes all others with it."""
        pid = self.first_process()
        if pid is not None:
            os.kill(pid, 9)
        self.launcher.wait()

    def restart(self):
        """The kubelet starts a container that has ended again: the same pod, the same address."""
        self.restarts += 1
        self.launch(False)

    def stop(self):
        """The pod is deleted: preStop, then SIGTERM, then SIGKILL when the time of grace, which began with preStop, is over."""
        grace = self.cluster.chart.pod["terminationGracePeriodSeconds"]
        began = time.monotonic()
        self.execute(self.cluster.chart.container["lifecycle"]["preStop"]["exec"]["command"], grace)
        pid, forced = self.first_process(), False
        try:
            if pid is not None:
                os.kill(pid, 15)
        except ProcessLookupError:
            pass
        try:
            self.launcher.wait(max(grace - (time.monotonic() - began), 0.1))
        except subprocess.TimeoutExpired:
            forced = True
            self.kill()
        self.ends.append((time.monotonic() - began, forced, self.launcher.returncode, self.tail(10)))
        return self

    def end(self):
        """For Folder: at once."""
        if self.runs():
            self.kill()

    def signal_all(self, number):
        pass

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()


class Cluster:
    """The set, its Service, ConfigMaps and Secret."""

    def __init__(self, folder, chart, hosts, machine):
        """hosts: addresses that pods get in turn. machine: variables that stand for limits, which nothing here enforces."""
        self.folder, self.chart, self.machine = folder, chart, machine
        self.name = chart.one("StatefulSet")["metadata"]["name"]
        self.lab = Lab("pods")
        self.n_hosts = hosts
        self.hosts_file = os.path.join(folder.path, "hosts")
        self.pods = []
        self.lab.tell("up", str(hosts), "--delay", "1ms")
        self.write_hosts()
        self.watched = threading.Event()
        self.failures = [] # of liveness: (pod, number in a row)
        self.kubelet = threading.Thread(target=self._watch, daemon=True)
        self.kubelet.start()

    def end(self):
        self.watched.set()
        self.kubelet.join()
        self.folder.__exit__()
        self.lab.tell("down")

    def _watch(self):
        """The liveness probe of each pod that has started, at its interval."""
        probe = self.chart.container["livenessProbe"]
        failed = {}
        while not self.watched.wait(probe["periodSeconds"]):
            for pod in list(self.pods):
                began = pod.started
                if not pod.runs() or time.time() - began < probe["periodSeconds"] or pod.probe("livenessProbe"):
                    failed[pod.name] = 0
                elif pod.runs() and pod.started == began:
                    failed[pod.name] = failed.get(pod.name, 0) + 1
                    self.failures.append((pod.name, failed[pod.name]))

    def next_address(self, old):
        taken = {pod.address for pod in self.pods} | {old}
        free = [host for host in range(1, self.n_hosts + 1) if host not in taken]
        return free[(old or 0) % len(free)]

    def write_hosts(self):
        """What the DNS of the cluster says, in place: the file is in every pod."""
        service = self.chart.one("Service")["metadata"]["name"]
        lines = ["127.0.0.1 localhost\n"]
        for pod in self.pods:
            if pod.address is not None:
                lines.append(f"{self.lab.tell('ip', str(pod.address))} {pod.name}.{service}.{NAMESPACE}.svc\n")
        with open(self.hosts_file, "w", encoding="ascii") as file:
            file.write("".join(lines))

    def secret(self, name):
        """The folder of an optional Secret, which is empty until the Secret is made."""
        folder = f"{self.folder.path}/secret-{name}"
        if not os.path.exists(folder):
            os.mkdir(folder)
        return folder

    def config_map(self, name):
        folder = f"{self.folder.path}/config-{name}"
        if not os.path.exists(folder):
            os.mkdir(folder)
            for key, text in self.chart.one("ConfigMap", name)["data"].items():
                with open(os.path.join(folder, key), "w", encoding="utf-8") as file:
                    file.write(text)
        return folder

    def pod(self, number):
        while len(self.pods) <= number:
            self.pods.append(Pod(self, len(self.pods)))
            self.folder.nodes.append(self.pods[-1])
        return self.pods[number]

    def running(self):
        return [pod for pod in self.pods if pod.runs()]

    def wait_ready(self, pod, seconds):
        probe = self.chart.container["startupProbe"]
        wait_for(lambda: pod.runs() and pod.probe("startupProbe"), probe["periodSeconds"] * probe["failureThreshold"],
                 f"{pod.name} has started: {pod.tail()}")
        wait_for(pod.ready, seconds, f"{pod.name} is ready: {pod.tail()}")

    def ordered(self):
        """The controller makes a pod when all lower ones are ready, and ends one when all higher ones have ended."""
        return self.chart.set["podManagementPolicy"] == "OrderedReady"

    def make(self, pod, seconds=120):
        """The controller makes a pod that is not there."""
        for lower in self.pods[:self.pods.index(pod)] if self.ordered() else []:
            self.wait_ready(lower, seconds)
        return pod.start()

    def scale(self, count, seconds=120):
        for pod in [self.make(self.pod(number), seconds) for number in range(len(self.running()), count)]:
            self.wait_ready(pod, seconds)
        away = self.running()[count:][::-1]
        with concurrent.futures.ThreadPoolExecutor(1 if self.ordered() else len(away) or 1) as stops:
            list(stops.map(Pod.stop, away))

    def roll(self, seconds=120):
        """A rolling update: from the last pod to the first, each ready before the next is stopped."""
        assert self.chart.set["updateStrategy"]["type"] == "RollingUpdate"
        for pod in reversed(self.running()):
            self.wait_ready(pod.stop().start(), seconds)
