#!/bin/bash
# ci_test.sh MILLRACE SOURCE - runs what CI services run: the last step of action.yml, the script of templates/verify.yml and
# the hook of .pre-commit-hooks.yaml, on a dataset that is whole and on one that is not.
# shellcheck disable=SC2317 # functions are called by expect
set -eu
millrace=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-ci-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$millrace" "$work/bin/millrace"
export PATH="$work/bin:$PATH"
cd "$work"
millrace sample drawn --layout imagenette --images 12 --quiet
millrace ingest drawn dataset --quiet
digest=$(sha256sum dataset/manifest.json | cut -d ' ' -f 1)
failed=0

# expect STATUS WORDS COMMAND...: the exit status, and words that must be in what is printed.
expect() {
    local status=0
    "${@:3}" >out 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || { [ -n "$2" ] && ! grep -qF -- "$2" out; }; then
        echo "expected $1 and '$2', got $status:" && cat out
        failed=1
    fi
}

# The one line of `run:`; GitHub runs it by bash with these variables.
sed -n "s/^      run: '\(.*\)'$/\1/p" "$source/action.yml" >action
test "$(wc -l <action)" = 1
action() {
    GITHUB_ACTION_PATH=$source GITHUB_ACTIONS=true GITHUB_OUTPUT=$work/output DATASET=dataset JUNIT=verify.xml \
        MILLRACE_VERIFIED=$1 EXPECT=$2 OPTIONS=$3 bash --noprofile --norc -eo pipefail action
}
# The line after `script:`.
sed -n '/^  script:/{n;s/^    - //p}' "$source/templates/verify.yml" >gitlab
test "$(wc -l <gitlab)" = 1
gitlab() {
    DATASET=dataset EXPECT=$1 bash -e gitlab
}
hook() {
    # shellcheck disable=SC2046 # words of a command
    $(sed -n 's/^  entry: //p' "$source/.pre-commit-hooks.yaml") "$@"
}

expect 0 "dataset: intact" action "" "$digest" "--deep"
grep -qx "digest=$digest" output
grep -q 'failures="0"' verify.xml
expect 0 "checked digests, indexes and every record in" action "$work/known" "" ""
expect 0 "checked sizes and indexes" action "$work/known" "" ""
expect 0 "and every pixel" action "$work/known" "" "--decode" # more than what was verified
expect 0 "checked sizes and indexes" action "$work/known" "" "--decode"
touch dataset/val-00000.mdb
expect 0 "checked digests, indexes and every record in" action "$work/known" "" ""

# The cache that the documents recommend: actions/cache takes ~ for the home folder, and nothing else expands it.
mkdir home
# shellcheck disable=SC2088
HOME=$work/home expect 0 "checked digests, indexes and every record in" action "~/.cache/verified" "$digest" ""
test -f "home/.cache/verified/$digest" && test ! -e '~'
# shellcheck disable=SC2088
HOME=$work/home expect 0 "checked sizes and indexes" action "~/.cache/verified" "$digest" ""

# The same through links: of the dataset's folder, and of a file in it.
linked() {
    MILLRACE_VERIFIED=$work/known "$source/scripts/ci-verify" "$1"
}
flip() { # FILE: another byte, of the same size and time of modification
    local byte time
    time=$(stat -c %y "$1")
    byte=$(od -An -tu1 -j 60000 -N 1 "$1")
    printf '%b' "\\x$(printf %x $((byte ^ 1)))" | dd of="$1" bs=1 seek=60000 conv=notrunc status=none
    touch -d "$time" "$1"
}
ln -s dataset link
rm -rf known
expect 0 "checked digests, indexes and every record in" linked link
grep -q '^manifest.json ' "known/$digest"
expect 0 "checked sizes and indexes" linked link
expect 0 "checked sizes and indexes" linked dataset
mkdir elsewhere
mv dataset/train-00000.mdb elsewhere/
ln -s ../elsewhere/train-00000.mdb dataset/train-00000.mdb
expect 0 "checked digests, indexes and every record in" linked link # moved: another time of change
expect 0 "checked sizes and indexes" linked link
flip elsewhere/train-00000.mdb
expect 1 "train-00000.mdb" linked link
expect 1 "train-00000.mdb" linked link # not remembered
flip elsewhere/train-00000.mdb
expect 0 "checked digests, indexes and every record in" linked link
cp -p elsewhere/train-00000.mdb elsewhere/copy
flip elsewhere/copy
mv elsewhere/copy elsewhere/train-00000.mdb # of the same name, size and time of modification
expect 1 "train-00000.mdb" linked link
flip elsewhere/train-00000.mdb
expect 0 "checked digests, indexes and every record in" linked link
expect 0 "checked sizes and indexes" linked link

# A list that cannot be made is not remembered.
rm -rf known
printf '#!/bin/sh\nexit 1\n' >bin/find && chmod +x bin/find
expect 0 "checked digests, indexes and every record in" linked dataset
printf '#!/bin/sh\nexit 0\n' >bin/find
expect 0 "checked digests, indexes and every record in" linked dataset
expect 0 "checked digests, indexes and every record in" linked dataset
test ! -e known
rm bin/find
rm dataset/train-00000.mdb
mv elsewhere/train-00000.mdb dataset/

expect 1 "::error file=dataset/manifest.json,title=millrace verify%3A expect::" action "$work/known" "${digest//[0-9]/0}" ""
expect 2 "::error title=millrace verify::" env DATASET=nowhere GITHUB_ACTIONS=true "$source/scripts/ci-verify" nowhere
expect 2 "give the dataset first" "$source/scripts/ci-verify" --deep
expect 0 "" gitlab "$digest"
test "$(cat gl-code-quality-report.json)" = "[]"
expect 0 "dataset: intact as far as checked" hook dataset --expect "$digest"
expect 1 "not the expected dataset" hook dataset --expect "${digest//[0-9]/0}"

printf XXXX | dd of=dataset/train-00000.mdb bs=1 seek=60000 conv=notrunc status=none
expect 1 "::error file=dataset/train-00000.mdb,title=millrace verify%3A digest::" action "$work/known" "" ""
expect 1 "::error file=dataset/train-00000.mdb,title=millrace verify%3A digest::" action "$work/known" "" "" # not remembered
grep -q 'failures="1"' verify.xml
expect 1 "" gitlab ""
grep -q '"check_name": "digest"' gl-code-quality-report.json
echo "$((1 - failed)) passed, $failed failed"
exit "$failed"
