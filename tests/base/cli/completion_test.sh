#!/bin/bash
# completion_test.sh MILLRACE - completes by TAB, as bash, zsh and fish do it, every option that `--usage` of a command
# names; and checks every manual page with mandoc.  What is not installed is named and passed over.
set -eu
millrace=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-completion-XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0

fail() {
    echo "$*"
    failed=1
}

has() {
    command -v "$1" >/dev/null || { echo "not tried: $1: not installed" && return 1; }
}

"$millrace" manual --output "$work/man"
for shell in bash zsh fish; do
    "$millrace" completion "$shell" >"$work/$shell"
done
mapfile -t commands < <("$millrace" --help | sed -n 's/^  \([a-z]\+\) .*/\1/p' | grep -v '^millrace$')
((${#commands[@]} >= 18)) || fail "too few commands: ${commands[*]}"

# shellcheck disable=SC1091 # it is made by the program
. "$work/bash"

# What bash offers after these words, sorted, one per line.
offered() {
    COMP_WORDS=(millrace "$@")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _millrace
    printf '%s\n' "${COMPREPLY[@]}" | sort
}

options() {
    "$millrace" "$1" --usage | grep -o -- '--[a-z][a-z0-9-]*' | sort -u
}

for command in "${commands[@]}"; do
    options "$command" >"$work/options"
    offered "$command" -- | sed 's/=$//' | sort | cmp - "$work/options" || fail "bash: options of $command"
    test "$(offered "$command")" = "$command" || fail "bash: $command itself"
    test -s "$work/man/millrace-$command.1" || fail "no manual page of $command"
    sed -n 's/\\-/-/g; s/\\f[RI]/ /g; s/\\fB/\n/gp' "$work/man/millrace-$command.1" | grep -o '^--[a-z0-9-]*' | sort -u |
        cmp - "$work/options" || fail "manual page: options of $command"
done
test "$(offered verify --quick --js)" = --json || fail "bash: a flag"
test "$(offered verify --junit = "$work/fi")" = "$work/fish" || fail "bash: a path after '='"
test "$(offered verify --junit "$work/fi")" = "$work/fish" || fail "bash: a path"
test "$(offered train --decay = li)" = linear || fail "bash: a word after '='"
test "$(offered train --decay li)" = linear || fail "bash: a word"
test -z "$(offered train --batch '')" || fail "bash: a number"
test "$(offered completion f)" = fish || fail "bash: an argument"

if has fish; then
    for command in "${commands[@]}"; do
        fish -c "source $work/fish; complete -C 'millrace $command --'" | cut -f 1 | sed 's/=$//' | sort -u >"$work/offered"
        options "$command" | cmp - "$work/offered" || fail "fish: options of $command"
    done
    test "$(fish -c "source $work/fish; complete -C 'millrace train --decay li'" | cut -f 1)" = linear || fail "fish: a word"
fi
if has zsh; then
    zsh -n "$work/zsh" || fail "zsh: not a script"
    for command in "${commands[@]}"; do
        sed -n "/^        $command)/,/;;/p" "$work/zsh" | grep -o "'\*\?--[a-z0-9-]*" | tr -d "'*" | sort |
            cmp - <(options "$command") || fail "zsh: options of $command"
    done
fi
if has mandoc; then
    mandoc -Tlint -W style "$work"/man/*.1 || fail "mandoc complains"
fi
echo "$((1 - failed)) passed, $failed failed"
exit "$failed"
