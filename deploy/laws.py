"""What holds of the files in this folder. `deploy/check` runs it, with everything installed that it imports and calls.

Each law is a function that notes what breaks it. Manifests are rendered by Kustomize where there is one, and then read
against the schemas of Kubernetes with unknown fields refused, in the oldest and the newest version that the schemas know.
"""

import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import kubernetes_validate.utils
import promql_parser
import yaml

HERE = pathlib.Path(__file__).resolve().parent
OVERLAYS = sorted((HERE / "kubernetes/overlays").iterdir())
# The kinds that are no part of Kubernetes, and the keys of their specs, by their own documentation.
SCALED_OBJECT = {
    "scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount", "advanced", "triggers",
}
TRIGGER = {"url", "format", "valueLocation", "targetValue"}
# Seconds that a container has beyond the grace of its worker, at least.
BEYOND_GRACE = 2

wrong = []
told = []
# Objects whose schema was checked.
passed = set()


def law(holds, otherwise):
    if not holds:
        wrong.append(otherwise)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)


def passes(what, *command):
    """A program that judges by its exit code."""
    if not shutil.which(command[0]):
        told.append(f"{what}: not checked, there is no {command[0]}")
        return
    done = run(*command)
    law(done.returncode == 0, f"{what}: {(done.stderr + done.stdout).strip()}")
    told.append(f"{what}: {' '.join(command[:2])} has nothing to say")


def rendered(overlay):
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        if shutil.which(command[0]):
            done = run(*command, str(overlay))
            law(done.returncode == 0, f"{overlay.name}: {done.stderr.strip()}")
            return [document for document in yaml.safe_load_all(done.stdout) if document]
    return None


def objects():
    """The objects of every overlay; where nothing renders them, those of the base."""
    found = {overlay.name: rendered(overlay) for overlay in OVERLAYS}
    if None not in found.values():
        return found
    told.append("overlays: not rendered, there is neither kubectl nor kustomize; the base alone was read")
    files = sorted((HERE / "kubernetes/base").glob("*.yaml"))
    texts = [file.read_text(encoding="utf-8") for file in files if file.name != "kustomization.yaml"]
    return {"base": [document for text in texts for document in yaml.safe_load_all(text)]}


def is_refused(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


def check_schema(name, documents, versions):
    for document in documents:
        place = f"{name}: {document['kind']} {document['metadata']['name']}"
        if document["kind"] == "ScaledObject":
            law(not document["spec"].keys() - SCALED_OBJECT, f"{place}: a field that KEDA does not know")
            for trigger in document["spec"]["triggers"]:
                law(trigger["type"] == "metrics-api" and trigger["metadata"].keys() == TRIGGER,
                    f"{place}: a trigger that KEDA does not know")
            continue
        # Most objects are the same in all overlays, and reading a schema takes a while.
        text = json.dumps(document, sort_keys=True)
        if text in passed:
            continue
        passed.add(text)
        for version in versions:
            refused = is_refused(document, version)
            law(refused is None, f"{place}, Kubernetes {version}: {refused}")
            # The validator is worth something only if it refuses what it must.
            if template_of(document):
                spoiled = copy.deepcopy(document)
                spoiled["spec"]["template"]["spec"]["containers"][0]["imagePulPolicy"] = "Never"
                law(is_refused(spoiled, version), f"{place}, Kubernetes {version}: an unknown field passes")


def template_of(document):
    return document["spec"]["template"] if document["kind"] in ("StatefulSet", "Deployment") else None


def arguments_of(container):
    """The flags that a container gives its binary, with their values."""
    return dict(re.match(r"(--[\w-]+)=?(.*)", word).groups() for word in container["args"][1:])


def check_pods(name, documents):
    """Every pod is confined, asks for what it may use, and has time to end."""
    for document in documents:
        template = template_of(document)
        if template is None:
            continue
        place = f"{name}: {document['metadata']['name']}"
        pod = template["spec"]
        security = pod["securityContext"]
        law(security["runAsNonRoot"] and security["runAsUser"] > 0, f"{place}: may be root")
        law(security["seccompProfile"]["type"] == "RuntimeDefault", f"{place}: no seccomp profile")
        law(pod["automountServiceAccountToken"] is False, f"{place}: is given a token of its service account")
        labels = template["metadata"]["labels"]
        law(document["spec"]["selector"]["matchLabels"].items() <= labels.items(), f"{place}: does not select its own pods")
        mounted = {volume["name"] for volume in pod["volumes"]}
        mounted |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
        for container in pod["containers"]:
            security = container["securityContext"]
            law(security["readOnlyRootFilesystem"], f"{place}: its root can be written")
            law(not security["allowPrivilegeEscalation"], f"{place}: may gain privileges")
            law(security["capabilities"] == {"drop": ["ALL"]}, f"{place}: has capabilities")
            law({mount["name"] for mount in container["volumeMounts"]} == mounted, f"{place}: volumes and mounts differ")
            if container["name"] == "worker":
                requests, limits = container["resources"]["requests"], container["resources"]["limits"]
                law(requests == limits, f"{place}: asks for something else than it may use")
                law(re.fullmatch(r"[1-9]\d*", limits["cpu"]), f"{place}: {limits['cpu']} are no whole processors")
                grace = int(arguments_of(container)["--grace"])
                law(pod["terminationGracePeriodSeconds"] >= grace + BEYOND_GRACE, f"{place}: is killed within its grace")
            else:
                ports = {port["name"] for port in container["ports"]}
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    law(container[probe]["httpGet"]["port"] in ports, f"{place}: {probe} asks a port that is not there")


def check_network(name, documents):
    """Everything is denied, and whoever is let in or out is somebody."""
    policies = [document["spec"] for document in documents if document["kind"] == "NetworkPolicy"]
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    law(closed in policies, f"{name}: not everything is denied first")
    pods = [template["metadata"]["labels"] for template in map(template_of, documents) if template]
    chosen = [policy["podSelector"] for policy in policies]
    for policy in policies:
        for rule in policy.get("ingress", []) + policy.get("egress", []):
            chosen += [peer["podSelector"] for peer in rule.get("from", []) + rule.get("to", []) if "podSelector" in peer]
    for selector in chosen:
        wanted = selector.get("matchLabels", {}).items()
        law(any(wanted <= labels.items() for labels in pods), f"{name}: nobody is {dict(wanted)}")
    for service in (document["spec"] for document in documents if document["kind"] == "Service"):
        law(any(service["selector"].items() <= labels.items() for labels in pods), f"{name}: a service of nobody")


def check_scaling(name, documents):
    """Whoever scales the workers is alone in saying how many there are."""
    scaled = [document for document in documents if document["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")]
    for document in documents:
        if document["kind"] == "Deployment":
            law(("replicas" in document["spec"]) == (not scaled), f"{name}: two say how many workers there are")
    for scaler in scaled:
        target = scaler["spec"]["scaleTargetRef"]["name"]
        law(any(d["kind"] == "Deployment" and d["metadata"]["name"] == target for d in documents), f"{name}: scales nobody")


def check_flags(agon, calls):
    """Every flag that a manifest gives the binary, and every variable that it sets for it, is one that it knows."""
    if not agon:
        told.append("flags: not checked, no binary was given")
        return
    known = {}
    for place, words, environment in calls:
        command = words[0]
        if command not in known:
            known[command] = subprocess.run([agon, command, "--help"], capture_output=True, text=True, check=True).stdout
        for word in words[1:]:
            flag = word.split("=")[0]
            law(re.search(rf"{flag}\b", known[command]), f"{place}: `agon {command}` does not know {flag}")
        for variable in environment:
            law(f"{variable}" in known[command], f"{place}: `agon {command}` does not read {variable}")
    told.append(f"flags: {len(calls)} calls of the binary are understood by it")


def check_compose():
    passes("compose.yaml", "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")
    passes("compose.yaml", "docker-compose", "config", "--quiet")
    services = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("coordinator", "worker", "agon"):
        service = services[name]
        law(service["read_only"] and service["cap_drop"] == ["ALL"], f"compose.yaml: {name} is not confined")
        law(service["security_opt"] == ["no-new-privileges:true"], f"compose.yaml: {name} may gain privileges")
    for name, service in services.items():
        for port in service.get("ports", []):
            law(port.startswith("127.0.0.1:"), f"compose.yaml: {name} can be reached from other machines")
    grace = int(next(word for word in services["worker"]["command"] if word.startswith("--grace=")).split("=")[1])
    law(int(services["worker"]["stop_grace_period"][:-1]) >= grace + BEYOND_GRACE, "compose.yaml: workers are killed within their grace")
    health = ("compose.yaml", ["health"], services["coordinator"]["environment"])
    worker = ("compose.yaml", services["worker"]["command"], services["worker"]["environment"])
    return [health, worker, ("compose.yaml", services["coordinator"]["command"], [])]


def check_docker():
    passes("Dockerfile", "hadolint", "Dockerfile")
    passes("Dockerfile.prebuilt", "hadolint", "Dockerfile.prebuilt")
    last = [(HERE / name).read_text(encoding="utf-8").split("\nFROM scratch\n")[-1] for name in ("Dockerfile", "Dockerfile.prebuilt")]
    law(last[0] == last[1], "the last stages of Dockerfile and Dockerfile.prebuilt differ")


def check_monitoring():
    passes("prometheus.yml", "promtool", "check", "config", "--syntax-only", "monitoring/prometheus.yml")
    passes("alerts.yml", "promtool", "check", "rules", "../docs/alerts.yml")
    dashboard = json.loads((HERE / "monitoring/dashboards/agon.json").read_text(encoding="utf-8"))
    source = yaml.safe_load((HERE / "monitoring/grafana/datasources.yaml").read_text(encoding="utf-8"))["datasources"][0]["uid"]
    ids = [panel["id"] for panel in dashboard["panels"]]
    law(len(ids) == len(set(ids)), "agon.json: two panels have one id")
    queries = 0
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            queries += 1
            law(target["datasource"]["uid"] == source, f"agon.json: {panel['title']} asks a source that is not there")
            try:
                promql_parser.parse(target["expr"].replace("$__rate_interval", "1m"))
            except ValueError as error:
                wrong.append(f"agon.json: {panel['title']}: {error}")
    told.append(f"agon.json: {queries} queries are PromQL")


def main():
    agon = sys.argv[1] if len(sys.argv) > 1 else ""
    known = kubernetes_validate.utils.all_versions()
    versions = [".".join(version.split(".")[:2]) for version in (known[0], known[-1])]
    calls = check_compose()
    for name, documents in objects().items():
        check_schema(name, documents, versions)
        check_pods(name, documents)
        check_network(name, documents)
        check_scaling(name, documents)
        for document in documents:
            for container in (template_of(document) or {"spec": {"containers": []}})["spec"]["containers"]:
                variables = [variable["name"] for variable in container["env"]]
                # What the coordinator's container is given is for commands inside it.
                calls.append((name, container["args"], variables if container["name"] == "worker" else []))
                calls.append((name, ["health"], variables if container["name"] == "coordinator" else []))
        told.append(f"{name}: {len(documents)} objects pass strictly as Kubernetes {' and '.join(versions)}")
    check_flags(agon, calls)
    check_docker()
    check_monitoring()
    for line in told:
        print(line)
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
