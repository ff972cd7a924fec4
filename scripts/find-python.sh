#!/bin/sh
# Prints the first Python that is 3.11 or newer. A name given as argument is the only candidate.
# Each candidate is started, since a version manager may leave names on PATH that lead nowhere.

for name in ${1:-python3.13 python3.12 python3.11 python3 python}; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        command -v "$name"
        exit 0
    fi
done

if [ -n "${1:-}" ]; then
    echo "✗ $1 is not a Python of version 3.11 or newer; leave PYTHON out, or name another: make setup PYTHON=python3.12" >&2
else
    echo "✗ no Python of version 3.11 or newer is on PATH; install one, or name it: make setup PYTHON=/path/to/python3" >&2
fi
exit 1
