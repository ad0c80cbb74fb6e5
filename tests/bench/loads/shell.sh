#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Starts as many short processes as it can, each a program of its own.
while :; do
	/usr/bin/expr 12345 '*' 6789
	echo "a line of text" | /usr/bin/sed 's/line/row/; s/a/the/g'
	/usr/bin/date '+%Y-%m-%d %H:%M:%S'
	/usr/bin/sort /etc/passwd | /usr/bin/cut -d: -f1
	/usr/bin/awk 'BEGIN { for (i = 0; i < 100; i++) sum += i; print sum }'
	/usr/bin/dirname /usr/share/doc
done >/dev/null
