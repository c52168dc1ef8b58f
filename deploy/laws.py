"""Checks of the files in this folder. `deploy/check` installs the dependencies and runs it.

Each check is a function that records violations. Manifests are rendered by Kustomize, if installed, and validated strictly
against the schemas of the oldest supported and the newest known version of Kubernetes, and as types of the Kubernetes API by
the program in manifests/. The overlay, patch and table in docs/ops/kubernetes.md are extracted and checked too.
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
PAGE = (HERE / "../docs/ops/kubernetes.md").read_text(encoding="utf-8")
DATASET = (HERE / "../docs/reference/dataset.md").read_text(encoding="utf-8")
NAMESPACE = "agon"
# The first version in which a disruption budget ignores pods that are not ready.
OLDEST = "1.27"
# The secrets that the page creates.
SECRETS = set(re.findall(r"create secret generic (\S+)", PAGE))
# The spec of KEDA's kind, by its documentation.
SCALED_OBJECT = {
    "scaleTargetRef", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount", "advanced", "triggers",
}
TRIGGER = {"url", "format", "valueLocation", "targetValue"}
# The type of each dataset type in Trino's Hive connector. Trino has no unsigned integers: the next wider type represents them,
# except for the upper half of u64.
TRINO = {
    "u16": "INTEGER", "u32": "BIGINT", "u64": "BIGINT", "i32": "INTEGER", "f64": "DOUBLE", "string": "VARCHAR",
    "timestamp": "TIMESTAMP(3)", "list of string": "ARRAY(VARCHAR)", "list of i32": "ARRAY(INTEGER)", "list of u64": "ARRAY(BIGINT)",
}
# The minimum number of seconds that a container has beyond the grace period of its worker.
BEYOND_GRACE = 2

violations = []
notes = []
# Objects whose schema was checked.
passed = set()


def require(condition, message):
    if not condition:
        violations.append(message)


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE)


def passes(what, *command):
    """Runs a program that reports success by its exit code."""
    if not shutil.which(command[0]):
        notes.append(f"{what}: not checked, {command[0]} is not installed")
        return
    done = run(*command)
    require(done.returncode == 0, f"{what}: {(done.stderr + done.stdout).strip()}")
    notes.append(f"{what}: {' '.join(command[:2])} found no problem")


def documents_of(text):
    return [document for document in yaml.safe_load_all(text) if document]


def rendered(name, overlay):
    for command in (["kubectl", "kustomize"], ["kustomize", "build"]):
        if shutil.which(command[0]):
            done = run(*command, str(overlay))
            require(done.returncode == 0, f"{name}: {done.stderr.strip()}")
            return documents_of(done.stdout)
    return None


def blocks(language):
    """Returns the code blocks of the page in one language, without the indentation of lists."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


def overlay_of_the_page():
    """Renders the overlay of the page, with the repository next to it."""
    (text,) = [text for text in blocks("yaml") if "kind: Kustomization" in text]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "kustomization.yaml").write_text(text, encoding="utf-8")
        (folder / "agon").symlink_to(HERE.parent)
        return rendered("docs/ops/kubernetes.md", folder)


def objects():
    """Returns the objects of every overlay, or of the base if nothing renders overlays, and those of a restore."""
    found = {overlay.name: rendered(overlay.name, overlay) for overlay in OVERLAYS}
    found["docs/ops/kubernetes.md"] = overlay_of_the_page()
    if None in found.values():
        notes.append("overlays: not rendered, neither kubectl nor kustomize is installed; only the base was checked")
        files = sorted((HERE / "kubernetes/base").glob("*.yaml"))
        texts = [file.read_text(encoding="utf-8") for file in files if file.name != "kustomization.yaml"]
        found = {"base": [document for text in texts for document in documents_of(text)]}
    files = sorted((HERE / "kubernetes/restore").glob("*.yaml"))
    found["restore"] = [document for file in files for document in documents_of(file.read_text(encoding="utf-8"))]
    return found


def schema_error(document, version):
    try:
        kubernetes_validate.validate(document, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


def check_schema(name, documents, versions):
    for document in documents:
        place = f"{name}: {document['kind']} {document['metadata']['name']}"
        if document["kind"] == "ScaledObject":
            require(not document["spec"].keys() - SCALED_OBJECT, f"{place}: unknown to KEDA")
            for trigger in document["spec"]["triggers"]:
                require(trigger["type"] == "metrics-api" and trigger["metadata"].keys() == TRIGGER,
                    f"{place}: its trigger is unknown to KEDA")
            # KEDA passes this behaviour to Kubernetes.
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
            error = schema_error(document, version)
            require(error is None, f"{place}, Kubernetes {version}: {error}")
            # Test the validator itself: it must reject an unknown field.
            if template_of(document):
                altered = copy.deepcopy(document)
                template_of(altered)["spec"]["containers"][0]["imagePulPolicy"] = "Never"
                require(schema_error(altered, version), f"{place}, Kubernetes {version}: an unknown field is not rejected")


def template_of(document):
    """Returns the pod template of a document, or None."""
    if document["kind"] == "Pod":
        return document
    return document["spec"]["template"] if document["kind"] in ("StatefulSet", "Deployment") else None


def arguments_of(container):
    """Returns the flags of a container with their values."""
    return dict(re.match(r"(--[\w-]+)=?(.*)", word).groups() for word in container["args"][1:])


def check_pods(name, documents):
    """Every pod is confined, requests what it may use, and has time to terminate."""
    for document in documents:
        template = template_of(document)
        if template is None:
            continue
        place = f"{name}: {document['metadata']['name']}"
        pod = template["spec"]
        security = pod["securityContext"]
        require(security["runAsNonRoot"] and security["runAsUser"] > 0, f"{place}: may run as root")
        require(security["seccompProfile"]["type"] == "RuntimeDefault", f"{place}: no seccomp profile")
        require(pod["automountServiceAccountToken"] is False, f"{place}: mounts a service account token")
        labels = template["metadata"]["labels"]
        selector = document["spec"].get("selector", {}).get("matchLabels", {})
        require(selector.items() <= labels.items(), f"{place}: does not select its own pods")
        mounted = {volume["name"] for volume in pod["volumes"]}
        mounted |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
        for container in pod["containers"]:
            security = container["securityContext"]
            require(security["readOnlyRootFilesystem"], f"{place}: its root file system is writable")
            require(not security["allowPrivilegeEscalation"], f"{place}: may gain privileges")
            require(security["capabilities"] == {"drop": ["ALL"]}, f"{place}: has capabilities")
            require({mount["name"] for mount in container["volumeMounts"]} == mounted, f"{place}: volumes and mounts differ")
            if container["name"] == "worker":
                requests, limits = container["resources"]["requests"], container["resources"]["limits"]
                # Workers of the local overlay may share processors.
                require(requests == limits or name == "local", f"{place}: requests and limits differ")
                require(re.fullmatch(r"[1-9]\d*", limits["cpu"]), f"{place}: {limits['cpu']} is not a number of whole processors")
                grace = int(arguments_of(container)["--grace"])
                require(pod["terminationGracePeriodSeconds"] >= grace + BEYOND_GRACE, f"{place}: is killed within its grace period")
            elif container["name"] == "coordinator":
                ports = {port["name"] for port in container["ports"]}
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    require(container[probe]["httpGet"]["port"] in ports, f"{place}: {probe} uses a missing port")


def check_places(name, documents):
    """Every object is in the namespace, and everything that a pod references is defined or created by the page."""
    for document in documents:
        place = f"{name}: {document['kind']} {document['metadata']['name']}"
        # Rendering adds the namespace to the base.
        if document["kind"] != "Namespace" and name != "base":
            require(document["metadata"].get("namespace") == NAMESPACE, f"{place} is not in the namespace {NAMESPACE}")
    there = {(document["kind"], document["metadata"]["name"]) for document in documents}
    there |= {("Secret", secret) for secret in SECRETS}
    for document in documents:
        for kind, wanted in references(document):
            require((kind, wanted) in there, f"{name}: {document['metadata']['name']} needs the missing {kind} {wanted}")


def references(document):
    """Yields the kind and name of every object that a pod requires."""
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
    """The restore pod is confined like the coordinator and uses its volume."""
    by_kind = {document["kind"]: document for document in found["restore"]}
    documents = found.get("base") or found["object-store"]
    coordinator = next(document["spec"] for document in documents if document["kind"] == "StatefulSet")
    template, pod = coordinator["template"]["spec"], by_kind["Pod"]["spec"]
    require(pod["securityContext"] == template["securityContext"], "restore: the pod is not confined like the coordinator")
    claim, wanted = by_kind["PersistentVolumeClaim"], coordinator["volumeClaimTemplates"][0]
    require(claim["metadata"]["name"] == f"{wanted['metadata']['name']}-coordinator-0", "restore: the claim does not have the coordinator's name")
    require(claim["spec"] == wanted["spec"], "restore: the claim differs from the coordinator's")


def check_page(found, versions):
    """The overlay, versions, patch and table of docs/ops/kubernetes.md are correct."""
    documents = found.get("docs/ops/kubernetes.md", [])
    addresses = {d["data"]["AGON_DATA"] for d in found.get("object-store", []) + documents if d["kind"] == "ConfigMap"}
    require(not documents or len(addresses) == 2, "docs/ops/kubernetes.md: the overlay does not change the address of the dataset")
    checked = " and ".join(versions)
    require(checked in PAGE, f"docs/ops/kubernetes.md does not name the checked versions of Kubernetes, {checked}")
    check_patch(documents)
    check_table()


def check_patch(documents):
    """The patch that makes a coordinator take over applies to its StatefulSet."""
    (patch,) = re.findall(r"patch statefulset coordinator --type json --patch '(.*?)'", PAGE, re.DOTALL)
    coordinators = [document for document in documents if document["kind"] == "StatefulSet"]
    if not shutil.which("kubectl") or not coordinators:
        notes.append("docs/ops/kubernetes.md: its patch was not checked, kubectl is not installed")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({**coordinators[0], "spec": {**coordinators[0]["spec"], "replicas": 0}}, file)
        file.flush()
        done = run("kubectl", "patch", "--local", "--filename", file.name, "--type", "json", "--patch", patch, "--output", "json")
    if done.returncode:
        violations.append(f"docs/ops/kubernetes.md: the patch does not apply: {done.stderr.strip()}")
        return
    spec = json.loads(done.stdout)["spec"]
    require(spec["replicas"] == 1 and spec["template"]["spec"]["containers"][0]["args"][-1] == "--take-over",
        "docs/ops/kubernetes.md: the patch does not make the coordinator take over")


def check_table():
    """The Trino table has the columns of the dataset with matching types."""
    (columns,) = re.findall(r"CREATE TABLE \S+games \(\n(.*?)\n\) WITH", PAGE, re.DOTALL)
    shown = dict(re.findall(r'^ +"?(\w+)"? ([\w()]+),?$', columns, re.MULTILINE))
    table = re.search(r"<!-- columns of games -->(.*?)<!-- end -->", DATASET, re.DOTALL).group(1)
    types = dict(re.findall(r"^\| `(\w+)` \| ([\w ]+?) \|", table, re.MULTILINE))
    require(list(shown) == [*types, "run"], "docs/ops/kubernetes.md: the columns of the Trino table differ from the dataset")
    for column, kind in types.items():
        require(shown.get(column) == TRINO[kind], f"docs/ops/kubernetes.md: the Trino type of {column} should be {TRINO[kind]}")


def check_types(found):
    """The program in manifests/ reads every object as a type of the Kubernetes API."""
    if not shutil.which("cargo"):
        notes.append("types: not checked, cargo is not installed")
        return
    text = yaml.safe_dump_all(document for documents in found.values() for document in documents)
    command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", "manifests/Cargo.toml", "--target-dir", "../target/manifests"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, cwd=HERE)
    require(done.returncode == 0, f"types: {done.stderr.strip()}")
    notes.append(f"types: {done.stdout.strip()}")


def check_network(name, documents):
    """All traffic is denied by default, and every selector matches a pod."""
    policies = [document["spec"] for document in documents if document["kind"] == "NetworkPolicy"]
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    require(closed in policies, f"{name}: no policy denies all traffic")
    pods = [template["metadata"]["labels"] for template in map(template_of, documents) if template]
    chosen = [policy["podSelector"] for policy in policies]
    for policy in policies:
        for rule in policy.get("ingress", []) + policy.get("egress", []):
            chosen += [peer["podSelector"] for peer in rule.get("from", []) + rule.get("to", []) if "podSelector" in peer]
    for selector in chosen:
        wanted = selector.get("matchLabels", {}).items()
        require(any(wanted <= labels.items() for labels in pods), f"{name}: no pod matches {dict(wanted)}")
    for service in (document["spec"] for document in documents if document["kind"] == "Service"):
        require(any(service["selector"].items() <= labels.items() for labels in pods), f"{name}: a service matches no pod")


def check_scaling(name, documents):
    """Exactly one object sets the number of workers."""
    scaled = [document for document in documents if document["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")]
    for document in documents:
        if document["kind"] == "Deployment":
            require(("replicas" in document["spec"]) == (not scaled), f"{name}: the number of workers is set by none or by two")
        if document["kind"] == "ScaledObject":
            behavior = document["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
            require(behavior["scaleDown"] == {"selectPolicy": "Disabled"}, f"{name}: busy workers may be removed")
    for scaler in scaled:
        target = scaler["spec"]["scaleTargetRef"]["name"]
        require(any(d["kind"] == "Deployment" and d["metadata"]["name"] == target for d in documents), f"{name}: scales a missing deployment")


def check_flags(agon, calls):
    """The binary accepts every flag and environment variable in the manifests."""
    if not agon:
        notes.append("flags: not checked, no binary was given")
        return
    known = {}
    for place, words, environment in calls:
        command = " ".join(words[:2] if words[0] == "data" else words[:1])
        if command not in known:
            known[command] = subprocess.run([agon, *command.split(), "--help"], capture_output=True, text=True, check=False).stdout
            require(known[command], f"{place}: `agon {command}` does not exist")
        for word in words[1:]:
            flag = word.split("=")[0]
            if not flag.startswith("--"):
                continue
            require(re.search(rf"{flag}\b", known[command]), f"{place}: `agon {command}` has no flag {flag}")
        for variable in environment:
            require(f"{variable}" in known[command], f"{place}: `agon {command}` does not read {variable}")
    notes.append(f"flags: {len(calls)} calls of the binary have valid flags")


def check_compose():
    passes("compose.yaml", "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")
    passes("compose.yaml", "docker-compose", "config", "--quiet")
    services = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))["services"]
    for name in ("coordinator", "worker", "agon"):
        service = services[name]
        require(service["read_only"] and service["cap_drop"] == ["ALL"], f"compose.yaml: {name} is not confined")
        require(service["security_opt"] == ["no-new-privileges:true"], f"compose.yaml: {name} may gain privileges")
    for name, service in services.items():
        for port in service.get("ports", []):
            require(port.startswith("127.0.0.1:"), f"compose.yaml: {name} listens on a public address")
    grace = int(next(word for word in services["worker"]["command"] if word.startswith("--grace=")).split("=")[1])
    require(int(services["worker"]["stop_grace_period"][:-1]) >= grace + BEYOND_GRACE, "compose.yaml: workers are killed within their grace period")
    health = ("compose.yaml", ["health"], services["coordinator"]["environment"])
    worker = ("compose.yaml", services["worker"]["command"], services["worker"]["environment"])
    return [health, worker, ("compose.yaml", services["coordinator"]["command"], [])]


def check_docker():
    passes("Dockerfile", "hadolint", "Dockerfile")
    passes("Dockerfile.prebuilt", "hadolint", "Dockerfile.prebuilt")
    last = [(HERE / name).read_text(encoding="utf-8").split("\nFROM scratch\n")[-1] for name in ("Dockerfile", "Dockerfile.prebuilt")]
    require(last[0] == last[1], "the last stages of Dockerfile and Dockerfile.prebuilt differ")


def check_monitoring():
    passes("prometheus.yml", "promtool", "check", "config", "--syntax-only", "monitoring/prometheus.yml")
    passes("alerts.yml", "promtool", "check", "rules", "../docs/ops/alerts.yml")
    dashboard = json.loads((HERE / "monitoring/dashboards/agon.json").read_text(encoding="utf-8"))
    # The data source is a variable, so the dashboard works with any Grafana.
    sources = {f"${{{variable['name']}}}" for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"}
    ids = [panel["id"] for panel in dashboard["panels"]]
    require(len(ids) == len(set(ids)), "agon.json: two panels have the same id")
    queries = 0
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            queries += 1
            require(target["datasource"]["uid"] in sources, f"agon.json: {panel['title']} uses a missing data source")
            check_query(f"agon.json: {panel['title']}", target["expr"].replace("$__rate_interval", "1m"))
    notes.append(f"agon.json: {queries} queries are valid PromQL")
    alerts = yaml.safe_load((HERE / "../docs/ops/alerts.yml").read_text(encoding="utf-8"))
    rules = [rule for group in alerts["groups"] for rule in group["rules"]]
    for rule in rules:
        check_query(f"alerts.yml: {rule['alert']}", rule["expr"])
    notes.append(f"alerts.yml: {len(rules)} conditions are valid PromQL")


def check_query(place, query):
    try:
        promql_parser.parse(query)
    except ValueError as error:
        violations.append(f"{place}: {error}")


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
                # The variables of the coordinator's container are for commands run in it.
                calls.append((name, container["args"], variables if container["name"] == "worker" else []))
                calls.append((name, ["health"], variables if container["name"] == "coordinator" else []))
        notes.append(f"{name}: {len(documents)} objects are valid in Kubernetes {' and '.join(versions)}")
    check_restore(found)
    check_page(found, versions)
    check_types(found)
    check_flags(agon, calls)
    check_docker()
    check_monitoring()
    for line in notes:
        print(line)
    for line in violations:
        print(f"error: {line}", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
