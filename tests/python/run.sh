#!/bin/bash
# run.sh FILE - runs a test file of the Python package by pytest, in the virtual environment of scripts/venv python or with
# the Python that MILLRACE_PYTHON names.  Exit code 77, with a reason, where there is none.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${MILLRACE_PYTHON:-$root/build/python-venv/bin/python}
if ! "$python" -c 'import numpy, pytest' 2>/dev/null; then
    echo "skipped: $python with pytest and numpy is missing; scripts/venv python makes it"
    exit 77
fi
export PYTHONPATH=$MILLRACE_PACKAGE PYTHONDONTWRITEBYTECODE=1
words=(-m pytest -q -p no:cacheprovider -rs --rootdir="$root/tests/python" --confcutdir="$root/tests/python" "$1")
fixed=()
if [ "${MILLRACE_PRELOAD:-}" = none ]; then
    echo "skipped: the sanitizer's runtime of this compiler cannot be loaded before Python; gcc's can"
    exit 77
elif [ -n "${MILLRACE_PRELOAD:-}" ]; then
    # TSan wants its addresses where they are without randomness.
    if setarch -R true 2>/dev/null; then fixed=(setarch -R); fi
    # Leaks are counted by test_loader_held.py: the interpreter itself frees little at its end.  Its own allocator would hide
    # from a sanitizer what is freed too early.
    export LD_PRELOAD=$MILLRACE_PRELOAD ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc
    export TSAN_OPTIONS=report_signal_unsafe=0:die_after_fork=0
fi
status=0
"${fixed[@]}" "$python" "${words[@]}" || status=$?
[ "$status" -ne 5 ] || status=77 # all of the file was skipped, for the reason printed
exit "$status"
