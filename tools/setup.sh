#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install what is missing of tools/packages.txt: tools/setup.sh [build] [test]. Asks nothing, says what it installs, and
# does nothing where everything is there. Elsewhere than on Debian and its relatives it only lists what is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
parts=${*:-build test}

packages() {
	local part name reason
	while read -r part name reason; do
		[[ $part == \#* || -z $part ]] && continue
		[[ " $parts " == *" $part "* ]] && echo "$name"
	done <tools/packages.txt
	return 0
}

# A node of one's own, from nvm or a vendor's package, is as good as Debian's, and its npm fits it better.
node_is_there() {
	local version
	version=$(node --version 2>/dev/null) || return 1
	version=${version#v}
	((${version%%.*} >= 18)) && npm --version >/dev/null 2>&1
}

# The same for compilers that are only run as programs.
program_is_there() {
	case $1 in
	nodejs | npm) node_is_there ;;
	golang-go) command -v go >/dev/null && go version >/dev/null 2>&1 ;;
	rustc) command -v rustc >/dev/null && rustc --version >/dev/null 2>&1 ;;
	*) return 1 ;;
	esac
}

is_installed() {
	[[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]] || program_is_there "$1"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	echo "setup: no apt-get here; what is needed, by Debian's names:" $(packages)
	exit 0
fi

missing=()
for name in $(packages); do
	is_installed "$name" || missing+=("$name")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID)); then
	as_root=(sudo -n)
	[[ -t 0 ]] && as_root=(sudo) # somebody is there who can type a password
	if ! "${as_root[@]}" true 2>/dev/null; then
		echo "setup: as root, run: apt-get install -y ${missing[*]}" >&2
		exit 1
	fi
fi
echo "setup: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Another apt, such as the nightly one, may hold the lock: wait for it.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
if ! { "${apt[@]}" update && "${apt[@]}" install --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
	tail -n 40 "$log" >&2
	echo "setup: apt-get failed, see above" >&2
	exit 1
fi
