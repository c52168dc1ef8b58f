"""What holds of the files in this folder. `deploy/check` runs it, with everything installed that it imports and calls.

Each law is a function that notes what breaks it. Manifests are rendered by Kustomize where there is one, and then read
against the schemas of Kubernetes with unknown fields refused, in the oldest version that they are made for and the newest
that the schemas know, and as types of the Kubernetes API by the program in manifests/. What docs/kubernetes.md shows (an
overlay, a patch, a table) is taken from there and must hold too.
"""

import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import kubernetes_validate
import kubernetes_validate.utils
import promql_parser
import yaml

HERE = pathlib.Path(__file__).resolve().parent
OVERLAYS = sorted((HERE / "kubernetes/overlays").iterdir())
PAGE = (HERE / "../docs/kubernetes.md").read_text(encoding="utf-8")
DATASET = (HERE / "../docs/dataset.md").read_text(encoding="utf-8")
NAMESPACE = "agon"
# The first version in which a budget for disruptions lets pods go that are not ready.
OLDEST = "1.27"
# The secrets that the page tells to make.
SECRETS = set(re.findall(r"create secret generic (\S+)", PAGE))
# The kinds that are no part of Kubernetes, and the keys of their specs, by their own documentation.
SCALED_OBJECT = {
    "scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount", "advanced", "triggers",
}
TRIGGER = {"url", "format", "valueLocation", "targetValue"}
# What Trino's Hive connector reads each type of the dataset as. It knows no unsigned numbers: the next wider type holds them
# all, but for the upper half of u64.
TRINO = {
    "u16": "INTEGER", "u32": "BIGINT", "u64": "BIGINT", "i32": "INTEGER", "f64": "DOUBLE", "string": "VARCHAR",
    "timestamp": "TIMESTAMP(3)", "list of string": "ARRAY(VARCHAR)", "list of i32": "ARRAY(INTEGER)",
}
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


def documents_of(text):
    return [document for document in yaml.safe_load_all(text) if document]


def rendered(name, overlay):
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        if shutil.which(command[0]):
            done = run(*command, str(overlay))
            law(done.returncode == 0, f"{name}: {done.stderr.strip()}")
            return documents_of(done.stdout)
    return None


def blocks(language):
    """What the page shows in one language, without the indentation of lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def overlay_of_the_page():
    """The overlay that the page shows, as somebody has it beside the repository."""
    (text,) = [text for text in blocks("yaml") if "kind: Kustomization" in text]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
        (folder / "agon").symlink_to(HERE.parent)
        return rendered("docs/kubernetes.md", folder)


def objects():
    """The objects of every overlay; where nothing renders them, those of the base. And those of a restore."""
    found = {overlay.name: rendered(overlay.name, overlay) for overlay in OVERLAYS}
    found["docs/kubernetes.md"] = overlay_of_the_page()
    if None in found.values():
        told.append("overlays: not rendered, there is neither kubectl nor kustomize; the base alone was read")
        files = sorted((HERE / "kubernetes/base").glob("*.yaml"))
        texts = [file.read_text(encoding="utf-8") for file in files if file.name != "kustomization.yaml"]
        found = {"base": [document for text in texts for document in documents_of(text)]}
    files = sorted((HERE / "kubernetes/restore").glob("*.yaml"))
    found["restore"] = [document for file in files for document in documents_of(file.read_text(encoding="utf-8"))]
    return found


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
            # What KEDA passes on must be what Kubernetes takes.
            behavior = document["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"}
            document = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "keda"},
                        "spec": {"scaleTargetRef": target, "maxReplicas": 1, "behavior": behavior}}
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
                template_of(spoiled)["spec"]["containers"][0]["imagePulPolicy"] = "Never"
                law(is_refused(spoiled, version), f"{place}, Kubernetes {version}: an unknown field passes")


def template_of(document):
    """What a pod is made of."""
    if document["kind"] == "Pod":
        return document
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
        selector = document["spec"].get("selector", {}).get("matchLabels", {})
        law(selector.items() <= labels.items(), f"{place}: does not select its own pods")
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
                # On one machine, to try things, they may share.
                law(requests == limits or name == "local", f"{place}: asks for something else than it may use")
                law(re.fullmatch(r"[1-9]\d*", limits["cpu"]), f"{place}: {limits['cpu']} are no whole processors")
                grace = int(arguments_of(container)["--grace"])
                law(pod["terminationGracePeriodSeconds"] >= grace + BEYOND_GRACE, f"{place}: is killed within its grace")
            elif container["name"] == "coordinator":
                ports = {port["name"] for port in container["ports"]}
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    law(container[probe]["httpGet"]["port"] in ports, f"{place}: {probe} asks a port that is not there")


def check_places(name, documents):
    """Every object is in the one namespace, and whatever a pod needs is there or is told to be made."""
    for document in documents:
        place = f"{name}: {document['kind']} {document['metadata']['name']}"
        # The base is put there when it is rendered.
        if document["kind"] != "Namespace" and name != "base":
            law(document["metadata"].get("namespace") == NAMESPACE, f"{place} is not in the namespace {NAMESPACE}")
    there = {(document["kind"], document["metadata"]["name"]) for document in documents}
    there |= {("Secret", secret) for secret in SECRETS}
    for document in documents:
        for kind, wanted in references(document):
            law((kind, wanted) in there, f"{name}: {document['metadata']['name']} needs the {kind} {wanted}, and nobody makes it")


def references(document):
    """What a pod cannot start without."""
    pod = (template_of(document) or {"spec": {"containers": []}})["spec"]
    if "serviceAccountName" in pod:
        yield "ServiceAccount", pod["serviceAccountName"]
    for volume in pod.get("volumes", []):
        if "secret" in volume and not volume["secret"].get("optional"):
            yield "Secret", volume["secret"]["secretName"]
        if "configMap" in volume and not volume["configMap"].get("optional"):
            yield "ConfigMap", volume["configMap"]["name"]
        if "persistentVolumeClaim" in volume:
            yield "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"]
    for container in pod["containers"]:
        sources = container.get("envFrom", []) + [variable.get("valueFrom", {}) for variable in container.get("env", [])]
        for source in sources:
            for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret"),
                              ("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                if key in source and not source[key].get("optional"):
                    yield kind, source[key]["name"]


def check_restore(found):
    """The pod that restores is confined as the coordinator is, and works on the volume that it has."""
    by_kind = {document["kind"]: document for document in found["restore"]}
    documents = found.get("base") or found["object-store"]
    coordinator = next(document["spec"] for document in documents if document["kind"] == "StatefulSet")
    template, pod = coordinator["template"]["spec"], by_kind["Pod"]["spec"]
    law(pod["securityContext"] == template["securityContext"], "restore: the pod is not confined as the coordinator is")
    claim, wanted = by_kind["PersistentVolumeClaim"], coordinator["volumeClaimTemplates"][0]
    law(claim["metadata"]["name"] == f"{wanted['metadata']['name']}-coordinator-0", "restore: the claim is not the coordinator's")
    law(claim["spec"] == wanted["spec"], "restore: the claim asks for another volume than the coordinator's")


def check_page(found, versions):
    """What docs/kubernetes.md shows beside commands is true of the files."""
    documents = found.get("docs/kubernetes.md", [])
    addresses = {d["data"]["AGON_DATA"] for d in found.get("object-store", []) + documents if d["kind"] == "ConfigMap"}
    law(not documents or len(addresses) == 2, "docs/kubernetes.md: the overlay does not set an address of its own")
    told_versions = " and ".join(versions)
    law(told_versions in PAGE, f"docs/kubernetes.md does not say that the manifests are checked as Kubernetes {told_versions}")
    check_patch(documents)
    check_table()


def check_patch(documents):
    """The patch by which a coordinator takes over applies to its StatefulSet."""
    (patch,) = re.findall(r"patch statefulset coordinator --type json --patch '(.*?)'", PAGE, re.DOTALL)
    coordinators = [document for document in documents if document["kind"] == "StatefulSet"]
    if not shutil.which("kubectl") or not coordinators:
        told.append("docs/kubernetes.md: its patch was not tried, there is no kubectl")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({**coordinators[0], "spec": {**coordinators[0]["spec"], "replicas": 0}}, file)
        file.flush()
        done = run("kubectl", "patch", "--local", "--filename", file.name, "--type", "json", "--patch", patch, "--output", "json")
    if done.returncode:
        wrong.append(f"docs/kubernetes.md: the patch does not apply: {done.stderr.strip()}")
        return
    spec = json.loads(done.stdout)["spec"]
    law(spec["replicas"] == 1 and spec["template"]["spec"]["containers"][0]["args"][-1] == "--take-over",
        "docs/kubernetes.md: the patch does not let the coordinator take over")


def check_table():
    """The table for Trino has the columns of the dataset, in types that hold them."""
    (columns,) = re.findall(r"CREATE TABLE \S+games \(\n(.*?)\n\) WITH", PAGE, re.DOTALL)
    shown = dict(re.findall(r'^ +"?(\w+)"? ([\w()]+),?$', columns, re.MULTILINE))
    table = re.search(r"<!-- columns of games -->(.*?)<!-- end -->", DATASET, re.DOTALL).group(1)
    types = dict(re.findall(r"^\| `(\w+)` \| ([\w ]+?) \|", table, re.MULTILINE))
    law(list(shown) == [*types, "run"], "docs/kubernetes.md: the table for Trino has other columns than the dataset")
    for column, kind in types.items():
        law(shown.get(column) == TRINO[kind], f"docs/kubernetes.md: for Trino {column} should be {TRINO[kind]}")


def check_types(found):
    """Every object is read as a type of the Kubernetes API, by the program in manifests/."""
    if not shutil.which("cargo"):
        told.append("types: not checked, there is no cargo")
        return
    text = yaml.safe_dump_all(document for documents in found.values() for document in documents)
    command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", "manifests/Cargo.toml", "--target-dir", "../target/manifests"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=HERE)
    law(done.returncode == 0, f"types: {done.stderr.strip()}")
    told.append(f"types: {done.stdout.strip()}")


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
        if document["kind"] == "ScaledObject":
            behavior = document["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
            law(behavior["scaleDown"] == {"selectPolicy": "Disabled"}, f"{name}: workers are sent away while they play")
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
        command = " ".join(words[:2] if words[0] == "data" else words[:1])
        if command not in known:
            known[command] = subprocess.run([agon, *command.split(), "--help"], capture_output=True, text=True, check=False).stdout
            law(known[command], f"{place}: there is no `agon {command}`")
        for word in words[1:]:
            flag = word.split("=")[0]
            if not flag.startswith("--"):
                continue
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
    # Whoever looks chooses the source, so that any Grafana will do.
    sources = {f"${{{variable['name']}}}" for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    law(len(ids) == len(set(ids)), "agon.json: two panels have one id")
    queries = 0
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            queries += 1
            law(target["datasource"]["uid"] in sources, f"agon.json: {panel['title']} asks a source that is not there")
            check_query(f"agon.json: {panel['title']}", target["expr"].replace("$__rate_interval", "1m"))
    told.append(f"agon.json: {queries} queries are PromQL")
    alerts = yaml.safe_load((HERE / "../docs/alerts.yml").read_text(encoding="utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    for rule in rules:
        check_query(f"alerts.yml: {rule['alert']}", rule["expr"])
    told.append(f"alerts.yml: {len(rules)} conditions are PromQL")


def check_query(place, query):
    try:
        promql_parser.parse(query)
    except ValueError as error:
        wrong.append(f"{place}: {error}")


def main():
    agon = sys.argv[1] if len(sys.argv) > 1 else ""
    known = kubernetes_validate.utils.all_versions()
    versions = [OLDEST, ".".join(known[-1].split(".")[:2])]
    calls = check_compose()
    found = objects()
    for name, documents in found.items():
        check_schema(name, documents, versions)
        check_places(name, documents)
        check_pods(name, documents)
        if name != "restore":
            check_network(name, documents)
            check_scaling(name, documents)
        for document in documents:
            for container in (template_of(document) or {"spec": {"containers": []}})["spec"]["containers"]:
                variables = [variable["name"] for variable in container.get("env", [])]
                # What the coordinator's container is given is for commands inside it.
                calls.append((name, container["args"], variables if container["name"] == "worker" else []))
                calls.append((name, ["health"], variables if container["name"] == "coordinator" else []))
        told.append(f"{name}: {len(documents)} objects pass strictly as Kubernetes {' and '.join(versions)}")
    check_restore(found)
    check_page(found, versions)
    check_types(found)
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
