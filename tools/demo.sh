#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Profile this machine for ten seconds: demo.sh CAIRN PAGE.
set -euo pipefail
cairn=$1 page=$2
as_root=()
if ((EUID)) && command -v sudo >/dev/null; then
	as_root=(sudo)
fi
echo "demo: ${as_root[*]:+${as_root[*]} }$cairn record -a -d 10 -o $page"
"${as_root[@]}" "$cairn" record -a -d 10 -o "$page"
echo
echo "The flame graph is in $(realpath "$page"): open it in a browser. It needs no network."
