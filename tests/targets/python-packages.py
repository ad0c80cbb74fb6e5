# SPDX-License-Identifier: Apache-2.0
"""Which package each file in the packages directories belongs to, for src/runtimes/python/test-modules.c: FILE, NAME and
VERSION, with tabs between them. Files that two packages claim are left out; versions before 3.8 say nothing."""
import csv
import sys

try:
    from importlib import metadata
except ImportError:
    sys.exit()


def paths(package):
    # Distribution.files is slow, and also reads lists of sources, which are not of what has been installed.
    record = package.read_text("RECORD")
    if record:
        return [row[0] for row in csv.reader(record.splitlines()) if row]
    return map(str, package.files) if package.read_text("installed-files.txt") else []


def main():
    owners = {}
    for place in sys.path:
        if not place.endswith(("/site-packages", "/dist-packages")):
            continue
        for package in metadata.distributions(path=[place]):
            found = [path for path in paths(package) if path.endswith(".py") and ".." not in path]
            said = (package.metadata["Name"], package.version) if found else None
            for path in found:
                owners.setdefault(place + "/" + path, set()).add(said)
    for path, said in owners.items():
        if len(said) == 1:
            print("\t".join((path,) + said.pop()))


main()
