"""Whether the launcher's template is an indexed Job, as Kubernetes reads YAML.

Usage: kubernetes.py TEMPLATE
Ends with status 0 if each pod has a place of its own, is tried again by itself, and mounts no volume that there isn't.
"""

import sys
from pathlib import Path

import yaml

(job,) = yaml.safe_load_all(Path(sys.argv[1]).read_text(encoding="utf-8"))
assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
spec = job["spec"]
assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] > 0 < spec["backoffLimitPerIndex"]
pod = spec["template"]["spec"]
# Retries of an index need pods that are not started again where they are.
assert pod["restartPolicy"] == "Never"
(container,) = pod["containers"]
assert len({of["name"] for of in container["env"]}) == len(container["env"]) and all(isinstance(of["value"], str) for of in container["env"])
(script,) = container["args"]
assert container["command"] == ["/bin/sh", "-ec"] and all(f"${of['name']}" in script for of in container["env"])
assert {of["name"] for of in container["volumeMounts"]} == {of["name"] for of in pod["volumes"]}
