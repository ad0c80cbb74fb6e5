#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fuzz every parser for a while: fuzz.sh BUILD SECONDS. New inputs stay in BUILD; what crashes is named, to be cut down
# and kept in tests/corpus with the fix.
set -euo pipefail
build=$1 seconds=$2
passed=0 failed=0
for program in "$build"/fuzz-*; do
	[[ -f $program && -x $program ]] || continue
	name=${program##*/fuzz-} # LAYER-NAME
	mkdir -p "$build/corpus/$name" "$build/crashes"
	log=$build/fuzz-$name.log
	if "$program" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$build/crashes/$name-" \
		"$build/corpus/$name" "tests/corpus/${name#*-}" >"$log" 2>&1 </dev/null; then
		passed=$((passed + 1))
		echo "fuzz: $name: $(grep -ao 'Done [0-9]* runs in [0-9]* second' "$log")s"
	else
		failed=$((failed + 1))
		tail -n 30 "$log"
		echo "fuzz: $name: FAILED, see above and $build/crashes"
	fi
done
echo "$passed passed, $failed failed, 0 skipped"
((failed == 0 && passed > 0))
