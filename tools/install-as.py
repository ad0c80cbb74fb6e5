#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Install a built file under another name: install-as.py FILE DESTINATION, below DESTDIR if that is set."""
import os
import shutil
import sys

file, destination = sys.argv[1:]
root = os.environ.get("DESTDIR", "")
target = root + destination if root else destination
os.makedirs(os.path.dirname(target), exist_ok=True)
shutil.copyfile(file, target)
os.chmod(target, 0o644)
