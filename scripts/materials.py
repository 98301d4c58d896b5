"""What a program is made of: the licences of all that is compiled into it, and a bill of materials (CycloneDX 1.6).

Usage: materials.py --package NAME --licences FILE --bill FILE
Reads `cargo metadata` and Cargo.lock of this folder; the texts are those that the packages bring, each once. Ends with status 1 if a package neither says
its licence nor brings a text.
"""

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--package", required=True)
parser.add_argument("--licences", type=Path, required=True)
parser.add_argument("--bill", type=Path, required=True)
options = parser.parse_args()

host = next(line.split()[1] for line in subprocess.run(["rustc", "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines() if line.startswith("host"))
command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", host]
metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
root = next(id for id, package in packages.items() if package["name"] == options.package and id in metadata["workspace_members"])

# What is compiled into it: dependencies that are neither for tests nor for building alone.
inside, left = set(), [root]
while left:
    id = left.pop()
    if id not in inside:
        inside.add(id)
        left += [dep["pkg"] for dep in nodes[id]["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])]
others = sorted((packages[id] for id in inside if packages[id]["source"]), key=lambda package: (package["name"], package["version"]))

NAMES = ("license", "licence", "copying", "notice", "unlicense")
heads, bodies, silent = [], {}, []
for package in others:
    folder = Path(package["manifest_path"]).parent
    texts = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.lower().startswith(NAMES)]
    if not package["license"] and not texts:
        silent.append(package["name"])
    name = f"{package['name']} {package['version']}"
    heads.append(f"{name}: {package['license'] or 'see below'}  {package['repository'] or ''}".rstrip())
    for path in texts:
        # The same text of many packages stands once.
        bodies.setdefault(path.read_text(encoding="utf-8", errors="replace").strip(), []).append(name)
if silent:
    sys.exit(f"no licence is known of {', '.join(silent)}")
rule = "\n\n" + "=" * 100 + "\n\n"
title = f"What is compiled into {options.package}, and under which licences.\n\n"
sections = [f"Of {', '.join(dict.fromkeys(of))}:\n\n{text}" for text, of in bodies.items()]
options.licences.write_text(title + rule.join(["\n".join(heads), *sections]) + "\n", encoding="utf-8")

locked = {(package["name"], package["version"]): package.get("checksum") for package in tomllib.loads(Path("Cargo.lock").read_text())["package"]}


def component(package, kind):
    name, version = package["name"], package["version"]
    value = {"type": kind, "bom-ref": f"pkg:cargo/{name}@{version}", "name": name, "version": version, "purl": f"pkg:cargo/{name}@{version}"}
    if package["license"]:
        value["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    if checksum := locked.get((name, version)):
        value["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return value


def reference(id):
    return f"pkg:cargo/{packages[id]['name']}@{packages[id]['version']}"


needs = {reference(id): sorted(reference(dep["pkg"]) for dep in nodes[id]["deps"] if dep["pkg"] in inside) for id in inside}
bill = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.6",
    "version": 1,
    "metadata": {"component": component(packages[root], "application")},
    "components": [component(packages[id], "library") for id in sorted(inside - {root}, key=reference)],
    "dependencies": [{"ref": ref, "dependsOn": needs[ref]} for ref in sorted(needs)],
}
options.bill.write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")
print(f"{options.package}: {len(others)} packages of others")
