#!/bin/sh
# One line that changes when any of the given files, or any file below the given folders, does.
# Contents count and times do not, so that a checkout or a deleted file is seen for what it is; what tools keep for
# themselves is none of the project's.

export LC_ALL=C
for place in "$@"; do
    [ -e "$place" ] && find "$place" -type d \( -name __pycache__ -o -name '.*_cache' \) -prune -o -type f -print
done | sort | while IFS= read -r file; do
    printf '%s ' "$file"
    cksum <"$file"
done | cksum
