#!/usr/bin/env python3
"""The recipes of contrib: facts of the Kubernetes manifests, and the shell of the Slurm job and of the SkyPilot task around real daemons, with the
commands of the cloud or of Slurm played. test_statefulset.py runs the manifests."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import systemtest  # noqa: E402
from systemtest import BINARIES, SystemTest, wait_for  # noqa: E402
from daemons import Node  # noqa: E402

try:
    import yaml
    import manifests
except ImportError:
    yaml = None

CONTRIB = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "contrib"))
PATIENCE_S = 60
WRITE_S = 15 # what a daemon that has drained may need to end


def text_of(*path):
    with open(os.path.join(CONTRIB, *path), encoding="utf-8") as file:
        return file.read()


@unittest.skipIf(yaml is None, "PyYAML is not here")
class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.chart = manifests.Chart()

    def test_labels_names_and_ports_fit_together(self):
        labels = self.chart.set["template"]["metadata"]["labels"]
        service = self.chart.one("Service")
        self.assertEqual(self.chart.set["selector"]["matchLabels"], labels)
        self.assertEqual(service["spec"]["selector"], labels)
        self.assertEqual(self.chart.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels)
        self.assertEqual((self.chart.set["serviceName"], service["spec"]["clusterIP"]), (service["metadata"]["name"], "None"))
        self.assertIs(service["spec"]["publishNotReadyAddresses"], True)
        port, = self.chart.container["ports"]
        self.assertEqual(service["spec"]["ports"], [{"name": "peers", "port": port["containerPort"], "targetPort": port["name"]}])
        told, = [v["value"] for v in self.chart.container["env"] if v["name"] == "DPNODE_ADVERTISE"]
        self.assertEqual(told, f"$(DPNODE_NAME).{service['metadata']['name']}.$(NAMESPACE).svc:{port['containerPort']}")
        self.assertIn(f"EXPOSE {port['containerPort']}/tcp", text_of("..", "docker", "Dockerfile"))
        volumes = {v["name"] for v in self.chart.pod["volumes"] + [c["metadata"] for c in self.chart.set["volumeClaimTemplates"]]}
        self.assertEqual({mount["name"] for mount in self.chart.container["volumeMounts"]}, volumes)

    def test_a_pod_has_time_to_drain_and_keeps_a_majority_of_the_voters(self):
        drain_s = int(self.chart.one("ConfigMap", "dpnode-settings")["data"]["DPNODE_DRAIN_TIME"])
        self.assertGreaterEqual(self.chart.pod["terminationGracePeriodSeconds"], drain_s + WRITE_S)
        self.assertEqual(self.chart.container["lifecycle"]["preStop"]["exec"]["command"], ["dpnode", "drain"])
        voters = len(re.findall(r"/invite/voter ;;", text_of("kubernetes", "base", "start"))) + 2 # 0, and "1 | 2"
        self.assertEqual(voters, 3)
        away = self.chart.one("PodDisruptionBudget")["spec"]["maxUnavailable"]
        self.assertGreater(voters - away, voters // 2)
        self.assertEqual(self.chart.set["podManagementPolicy"], "Parallel")

    def test_no_process_has_a_token_among_its_words(self):
        self.assertNotRegex(text_of("kubernetes", "invite"), r"exec (echo|printf)")

    def test_a_pod_may_do_little(self):
        context = self.chart.pod["securityContext"]
        user = int(re.search(r"^USER (\d+):\1$", text_of("..", "docker", "Dockerfile"), re.MULTILINE).group(1))
        self.assertEqual((context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"], context["fsGroup"]), (True, user, user, user))
        self.assertEqual(context["fsGroupChangePolicy"], "OnRootMismatch") # else the keys become readable for the group
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(self.chart.pod["automountServiceAccountToken"], False)
        self.assertEqual(self.chart.container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                                   "capabilities": {"drop": ["ALL"]}})
        secret, = [v["secret"] for v in self.chart.pod["volumes"] if "secret" in v]
        self.assertEqual(secret["defaultMode"] & 0o007, 0)

    def test_the_components_change_what_they_say(self):
        patches = {name: manifests.read(manifests.read(text_of("kubernetes", name, "kustomization.yaml"))[0]["patches"][0]["patch"])[0]
                   for name in ("gpu", "kueue", "nodeport")}
        for patch in patches.values():
            self.assertEqual((patch["kind"], patch["metadata"]["name"]), ("StatefulSet", "dpnode"))
        self.assertEqual(patches["kueue"]["metadata"]["labels"], {"kueue.x-k8s.io/queue-name": "dpnode"})
        container, = patches["gpu"]["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["resources"]["limits"], {"nvidia.com/gpu": 1})
        first = int(patches["nodeport"]["spec"]["template"]["spec"]["containers"][0]["env"][1]["value"])
        for number, service in enumerate(manifests.read(text_of("kubernetes", "nodeport", "services.yaml"))):
            self.assertEqual(service["spec"]["selector"], {"statefulset.kubernetes.io/pod-name": f"dpnode-{number}"})
            self.assertEqual(service["spec"]["ports"][0]["nodePort"], first + number)
            self.assertIs(service["spec"]["publishNotReadyAddresses"], True)
        self.assertEqual(number, 2)

    def kustomize(self, name):
        done = subprocess.run(["kubectl", "kustomize", os.path.join(CONTRIB, "kubernetes", name)], capture_output=True, text=True,
                              timeout=60, check=False)
        if "unknown field" in done.stderr:
            self.skipTest("kubectl is older than 1.21")
        self.assertEqual(done.returncode, 0, done.stderr)
        return manifests.read(done.stdout)

    @unittest.skipUnless(shutil.which("kubectl"), "kubectl is not here")
    def test_kustomize_makes_of_it_what_these_tests_read(self):
        made = {(o["kind"], re.sub(r"-[a-z0-9]{10}$", "", o["metadata"]["name"])): o for o in self.kustomize("base")}
        self.assertEqual(len(made), len(self.chart.objects))
        for known in self.chart.objects:
            other = made[known["kind"], known["metadata"]["name"]]
            if known["kind"] == "ConfigMap":
                self.assertEqual(other["data"], known["data"])
            elif known["kind"] == "StatefulSet":
                text = re.sub(r"(dpnode-(settings|start))-[a-z0-9]{10}", r"\1", yaml.safe_dump(other["spec"]))
                self.assertEqual(yaml.safe_load(text), known["spec"])
            else:
                self.assertEqual(other["spec"], known["spec"])
        whole, = [o for o in self.kustomize("all") if o["kind"] == "StatefulSet"]
        container, = whole["spec"]["template"]["spec"]["containers"]
        self.assertEqual(container["resources"]["limits"], {"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": 1})
        self.assertEqual(whole["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "dpnode")
        self.assertIn("HOST_IP", [variable["name"] for variable in container["env"]])
        self.assertEqual((container["image"], whole["spec"]["replicas"], whole["metadata"]["namespace"]),
                         ("registry.example/dpnode:1", 3, "dpnode"))

    @unittest.skipUnless(yaml is not None, "")
    def test_the_manifests_have_no_field_that_kubernetes_lacks(self):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("kubernetes-validate is not here")
        for known in self.chart.objects:
            kubernetes_validate.validate(known, "1.30", strict=True)

    def test_a_key_that_stands_twice_is_refused(self):
        with self.assertRaises(yaml.YAMLError):
            manifests.read("a: 1\na: 2\n")


class Start(SystemTest):
    """contrib/kubernetes/base/start in a root of its own, with a dpnoded that shows its variables."""

    def begin(self, name, *invites, founder=False, **variables):
        root = self.folder.path
        script = text_of("kubernetes", "base", "start")
        for folder in ("invite", "var/lib/dpnode/node", "bin"):
            shutil.rmtree(os.path.join(root, folder), ignore_errors=True)
            os.makedirs(os.path.join(root, folder))
        for name_of_key in invites:
            self.file(os.path.join("invite", name_of_key), "token")
        if founder:
            self.file("var/lib/dpnode/node/root.key", "")
        os.chmod(self.file("bin/dpnoded", "#!/bin/sh\nenv\n"), 0o755)
        script = script.replace("/invite/", f"{root}/invite/").replace("/var/lib/dpnode", f"{root}/var/lib/dpnode")
        done = subprocess.run(["/bin/sh", "-c", script], env={"PATH": f"{root}/bin:/usr/bin:/bin", "DPNODE_NAME": name, "CREATE_FROM": "demo:kjv",
                                                            "DPNODE_DIR": f"{root}/var/lib/dpnode/node",
                                                            "DPNODE_ADVERTISE": f"{name}:7717", **variables},
                              capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        made = dict(line.split("=", 1) for line in done.stdout.splitlines() if line.startswith("DPNODE_"))
        return {key: value.replace(root, "") for key, value in made.items()}

    def test_each_pod_gets_its_way_into_the_run(self):
        own = {"DPNODE_TOKEN_FILE": "/var/lib/dpnode/invite", "DPNODE_CREATE_FROM": "demo:kjv"}
        self.assertLessEqual(own.items(), self.begin("dpnode-0").items())
        self.assertLessEqual(own.items(), self.begin("dpnode-0", "voter", founder=True).items())
        new = self.begin("dpnode-0", "voter", "trainer") # its volume is new; no copy of the Secret, which its owner may renew
        self.assertEqual(new["DPNODE_TOKEN_FILE"], "/invite/voter")
        for name, file in (("dpnode-1", "voter"), ("dpnode-2", "voter"), ("dpnode-3", "trainer"), ("my-dpnode-12", "trainer")):
            told = self.begin(name)
            self.assertEqual(told["DPNODE_TOKEN_FILE"], f"/invite/{file}")
            self.assertNotIn("DPNODE_CREATE_FROM", told)
            self.assertEqual(told["DPNODE_ADVERTISE"], f"{name}:7717")

    def test_voters_tell_the_port_of_their_machine_where_there_is_one(self):
        more = {"HOST_IP": "192.0.2.7", "FIRST_NODE_PORT": "30717"}
        self.assertEqual(self.begin("dpnode-2", **more)["DPNODE_ADVERTISE"], "dpnode-2:7717,192.0.2.7:30719")
        self.assertEqual(self.begin("dpnode-3", **more)["DPNODE_ADVERTISE"], "dpnode-3:7717")
        more["HOST_IP"] = "2001:db8::7"
        self.assertEqual(self.begin("dpnode-0", **more)["DPNODE_ADVERTISE"], "dpnode-0:7717,[2001:db8::7]:30717")


class Job(SystemTest):
    """A shell script of a recipe around a daemon, in a run of a founder and of it."""

    def setUp(self):
        super().setUp()
        self.founder, token = self.found()
        self.token = self.file("token", token)
        self.tools = os.path.join(self.folder.path, "tools")
        os.mkdir(self.tools)
        self.log = os.path.join(self.folder.path, "job.log")
        self.process = None

    def tool(self, name, text):
        os.chmod(self.file(f"tools/{name}", "#!/bin/bash\n" + text), 0o755)

    def begin(self, command, **variables):
        """The script, in a session of its own, as a batch system starts it."""
        home = os.path.join(self.folder.path, "home")
        os.makedirs(home, exist_ok=True)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder.path,
                env={"PATH": f"{self.tools}:{BINARIES}:/usr/bin:/bin", "HOME": home, "TMPDIR": self.folder.path, "DPNODE_BACKEND": "cpu",
                     "DPNODE_THREADS": "1", "DPNODE_BALLAST": "1M", "DPNODE_MARGIN": "1M", **variables})
        self.addCleanup(self.end, self.process)
        return self.process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def node(self, pattern):
        """The daemon of the script, by its socket."""
        path, = wait_for(lambda: glob.glob(os.path.join(self.folder.path, pattern)), PATIENCE_S, f"a socket: {self.said()}")
        node = Node(BINARIES, self.folder.path, "job")
        node.socket, node.log, node.process = path, self.log, self.process
        wait_for(node.answers, PATIENCE_S, "it answers")
        return node

    def trains(self, node):
        wait_for(lambda: node.run().get("counted", 0) > 0, PATIENCE_S, f"it is counted: {self.said()}")
        return node.ask("status")["id"]

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()


class Slurm(Job):
    SCRIPT = os.path.join(CONTRIB, "slurm", "dpnode.sbatch")

    def setUp(self):
        super().setUp()
        self.asked = os.path.join(self.folder.path, "asked")
        self.state("RUNNING")

    def state(self, word):
        """scontrol says that the job is in this state, and writes down what it is asked for."""
        self.tool("scontrol", f'echo "$*" >>{self.asked}\n[[ $1 != show ]] || echo "JobId=19 JobState={word} Reason=None"\n')

    def requeued(self):
        with open(self.asked, encoding="utf-8") as file:
            return "requeue 17_2\n" in file.readlines()

    def sbatch(self, **variables):
        self.begin([self.SCRIPT], SLURM_JOB_NAME="nodes", SLURM_JOB_ID="19", SLURM_ARRAY_JOB_ID="17", SLURM_ARRAY_TASK_ID="2",
                   DPNODE_TOKEN_FILE=self.token, DPNODE_LISTEN="127.0.0.1:0",
                   DPNODE_TOKEN="DPN1-AEAA", **variables) # of the shell that called sbatch, which passes its variables on
        return self.node("tmp.*/dpnode.sock")

    def test_the_notice_leaves_time_to_drain(self):
        text = text_of("slurm", "dpnode.sbatch")
        notice_s = int(re.search(r"^#SBATCH --signal=B:TERM@(\d+)$", text, re.MULTILINE).group(1))
        drain_s = int(re.search(r"DPNODE_DRAIN_TIME=(\d+)$", text, re.MULTILINE).group(1))
        self.assertGreaterEqual(notice_s, drain_s + WRITE_S)
        self.assertRegex(text, r"(?m)^#SBATCH --requeue$")

    def test_a_job_takes_as_many_threads_as_it_asked_for(self):
        node = self.sbatch(DPNODE_THREADS="", SLURM_CPUS_PER_TASK="1")
        threads, = [row for row in node.ask("config", "show")["settings"] if row["name"] == "threads"]
        self.assertEqual((threads["value"], threads["from"]), ("1", "environment"))

    def test_before_its_limit_a_job_drains_and_comes_back_as_the_same_node(self):
        identity = self.trains(self.sbatch())
        self.process.send_signal(signal.SIGTERM) # B: to the script alone
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.said())
        self.assertIn("drained: this node's work is counted", self.said())
        self.assertTrue(self.requeued())
        self.assertEqual(glob.glob(os.path.join(self.folder.path, "tmp.*")), [])
        node = self.sbatch()
        self.assertEqual(self.trains(node), identity)
        self.assertEqual(node.ask("status")["name"], "nodes-2")
        self.assertEqual(self.founder.run()["members"], 2)

    def test_a_signal_to_all_processes_drains_and_a_cancelled_job_is_not_queued(self):
        node = self.sbatch()
        self.trains(node)
        trainer = node.run()["trainer_pid"]
        self.state("CANCELLED")
        os.kill(trainer, signal.SIGTERM) # in a group of its own
        os.killpg(self.process.pid, signal.SIGTERM)
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.said())
        self.assertIn("drained: this node's work is counted", self.said())
        self.assertNotIn("received twice", self.said())
        self.assertFalse(self.requeued())

    def test_a_job_that_waits_for_its_token_ends_at_once(self):
        os.unlink(self.token)
        self.sbatch()
        wait_for(lambda: "E0215" in self.said(), PATIENCE_S, "it waits")
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.said())

    def test_a_daemon_that_dies_fails_the_job(self):
        node = self.sbatch()
        self.trains(node)
        os.kill(node.ask("status")["pid"], signal.SIGKILL)
        self.assertEqual(self.process.wait(PATIENCE_S), 128 + signal.SIGKILL)
        self.assertFalse(os.path.exists(self.asked))


# The metadata services: the file cloud names the one that answers, the file notice is there when the machine is to go.
CURL = '''url=${{@: -1}}; [[ $* != *http*" -H "* ]] || url=$(printf '%s\\n' "$@" | grep http)
cloud=$(cat {folder}/cloud); notice=no; [[ ! -e {folder}/notice ]] || notice=yes
case "$cloud $notice $url" in
"aws "*" http://169.254.169.254/latest/api/token") [[ "$*" == *"-X PUT"* ]] && echo secret ;;
"aws "*" http://169.254.169.254/latest/meta-data/public-ipv4") [[ "$*" == *"token: secret"* ]] && echo 198.51.100.9 ;;
"aws yes http://169.254.169.254/latest/meta-data/spot/instance-action") echo '{{"action": "terminate"}}' ;;
"google "*/preempted) [[ "$*" == *"Metadata-Flavor: Google"* ]] && {{ [[ $notice == yes ]] && echo TRUE || echo FALSE; }} ;;
"google "*/external-ip) echo 198.51.100.8 ;;
"azure "*scheduledevents*) [[ $notice == yes ]] && echo '{{"Events":[{{"EventType":"Preempt"}}]}}' || echo '{{"Events":[]}}' ;;
*) exit 22 ;;
esac
'''


@unittest.skipIf(yaml is None, "PyYAML is not here")
class SkyPilot(Job):
    def launch(self, cloud):
        task, = manifests.read(text_of("skypilot", "dpnode.yaml"))
        self.assertTrue(task["resources"]["use_spot"])
        self.assertEqual((task["resources"]["ports"], task["secrets"]), (7717, {"DPNODE_TOKEN": None}))
        self.file("cloud", cloud)
        self.tool("curl", CURL.format(folder=self.folder.path))
        with open(self.token, encoding="ascii") as file:
            token = file.read()
        self.begin(["/bin/bash", "-c", task["run"]], DPNODE_TOKEN=token, DPNODE_LISTEN="127.0.0.1:0", DPNODE_PREEMPTED_WAIT="0")
        return self.node("home/dpnode/dpnode.sock")

    def test_a_notice_of_any_cloud_drains_the_node(self):
        for cloud, public in (("aws", "198.51.100.9"), ("google", "198.51.100.8"), ("azure", None)):
            node = self.launch(cloud)
            self.trains(node)
            own, = [peer["addresses"] for peer in node.ask("peers")["peers"] if peer["self"]]
            self.assertEqual(public is not None and f"{public}:7717" in own, public is not None, own)
            with open(self.log, "w", encoding="utf-8"):
                pass
            notice = self.file("notice", "")
            self.assertEqual(self.process.wait(PATIENCE_S), 1, self.said()) # the next machine takes the job over
            self.assertIn("drained: this node's work is counted", self.said())
            os.unlink(notice)
            shutil.rmtree(os.path.join(self.folder.path, "home"))

    def test_a_node_that_its_owner_ends_ends_the_job(self):
        node = self.launch("aws")
        self.trains(node)
        node.ask("down")
        self.assertEqual(self.process.wait(PATIENCE_S), 0, self.said())


if __name__ == "__main__":
    systemtest.main()
