#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Build the viewer of UI in WORK, so that nothing is written into the source tree, and copy it to PAGE.
# DEPFILE then lists what it was made from. Packages are installed again only when the lock file changes.
set -eu
ui=$1 work=$2 page=$3 depfile=$4

copy=$work/ui
log=$work/build.log
mkdir -p "$copy"
find "$copy" -mindepth 1 -maxdepth 1 ! -name node_modules -exec rm -rf {} +
tar -C "$ui" --exclude=./node_modules --exclude=./dist --exclude=./build --exclude=./tests --exclude=./bench -cf - . |
	tar -C "$copy" -xf -

build() (
	cd "$copy"
	if ! cmp -s package-lock.json node_modules/.installed-lock; then
		npm ci --no-audit --no-fund --no-progress
		cp package-lock.json node_modules/.installed-lock
	fi
	npm run build
)
# An "if" around it would switch -e off inside.
set +e
(set -e; build) >"$log" 2>&1
status=$?
set -e
if [ $status -ne 0 ]; then
	cat "$log" >&2
	echo "The flame graph viewer in ui/ could not be built: see above." >&2
	exit 1
fi
cp "$copy/dist/viewer.html" "$page"

# Folders are listed too: a new file changes its folder's time.
{
	printf '%s: ' "$page"
	find "$ui" \( -path "$ui/node_modules" -o -path "$ui/dist" -o -path "$ui/build" -o -path "$ui/tests" \
		-o -path "$ui/bench" \) -prune -o -print | sed 's/[ #]/\\&/g' | tr '\n' ' '
	echo
} >"$depfile"
