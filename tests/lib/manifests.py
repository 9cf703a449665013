"""Reads the manifests of contrib/kubernetes strictly: YAML without a key twice, and what kustomize makes of contrib/kubernetes/base."""

import os

import yaml

KUBERNETES = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "contrib", "kubernetes"))


class Strict(yaml.SafeLoader):
    """A key that occurs twice is a mistake, which YAML leaves to the reader."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(None, None, f"twice: {twice}", node.start_mark)
        return super().construct_mapping(node, deep)


def read(text):
    """The documents of a text."""
    return [document for document in yaml.load_all(text, Loader=Strict) if document is not None]


def read_file(path):
    with open(path, encoding="utf-8") as file:
        return read(file.read())


def settings(path):
    """Lines NAME=value, as configMapGenerator reads them."""
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if line.strip() and not line.startswith("#"))


class Chart:
    """The objects of contrib/kubernetes/base, without kubectl: names of generated ConfigMaps lack their hashes."""

    def __init__(self):
        base = os.path.join(KUBERNETES, "base")
        kustomization, = read_file(os.path.join(base, "kustomization.yaml"))
        self.objects = [document for name in kustomization["resources"] for document in read_file(os.path.join(base, name))]
        for wanted in kustomization["configMapGenerator"]:
            data = {}
            for name in wanted.get("envs", []):
                data.update(settings(os.path.join(base, name)))
            for name in wanted.get("files", []):
                with open(os.path.join(base, name), encoding="utf-8") as file:
                    data[name] = file.read()
            self.objects.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": wanted["name"]}, "data": data})

    def one(self, kind, name="dpnode"):
        found, = [o for o in self.objects if o["kind"] == kind and o["metadata"]["name"] == name]
        return found

    @property
    def set(self):
        return self.one("StatefulSet")["spec"]

    @property
    def pod(self):
        return self.set["template"]["spec"]

    @property
    def container(self):
        only, = self.pod["containers"]
        return only
