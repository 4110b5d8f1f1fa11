#!/bin/bash
# install_test.sh BUILD SOURCE [PREFIX] - installs into a private prefix, or as root into one that the dynamic linker searches, as
# /usr/local; builds the C programs of docs/library.md outside of the tree by pkg-config, the first by CMake's package,
# too; runs it, stops in the middle, resumes, and compares what it saw.
set -eu
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-install-XXXXXX")
trap 'rm -rf "$work"' EXIT

prefix=${3:-$work/prefix}
cmake --install "$build" --prefix "$prefix" >/dev/null 2>"$work/left"
for page in man/man1/millrace.1 man/man1/millrace-train.1 bash-completion/completions/millrace \
    zsh/site-functions/_millrace fish/vendor_completions.d/millrace.fish; do
    test -s "$prefix/share/$page"
done
pc=$(find "$prefix" -name millrace.pc)
awk -v to="$work/" '/^```c$/ {on = 1; next} /^```$/ {on = 0} on && /^\/\* [a-z]+\.c - / {file = to $2}
                    on {print >file}' \
    "$source/docs/library.md"
grep -q mr_loader_next "$work/epochs.c"

cd "$work"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$pc")
# shellcheck disable=SC2046 # flags are words
cc -std=c11 -Wall -Wextra -Werror epochs.c -o by-pkg-config $(pkg-config --cflags --libs millrace)
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror metas.c -o metas $(pkg-config --cflags --libs millrace)
# What is left to do, as the installation said at its end.
libdir=$(dirname "$(dirname "$pc")")
if grep -q '^Run ldconfig as root' "$work/left"; then
    ldconfig
else
    grep -qx "  LD_LIBRARY_PATH=$libdir PKG_CONFIG_PATH=$libdir/pkgconfig" "$work/left"
    export LD_LIBRARY_PATH=$libdir
fi

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(millrace 0.1 REQUIRED)
add_executable(by-cmake epochs.c)
target_link_libraries(by-cmake PRIVATE millrace::millrace)
CMAKE
cmake -S . -B out -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build out >/dev/null

millrace=$prefix/bin/millrace
"$millrace" sample drawn --layout imagenette --images 120 --quiet
"$millrace" ingest drawn dataset --quiet
./by-pkg-config dataset >whole
out/by-cmake dataset >again
cmp whole again
test "$(wc -l <whole)" -ge 8
# The third line says where the fourth begins; the resumed run must see the rest of that epoch, and one epoch more.
read -r epoch position < <(sed -n '3s/.*next //p' whole)
./by-pkg-config dataset "$epoch" "$position" >resumed
sed -n '4,$p' whole >rest
head -n "$(wc -l <rest)" resumed | cmp - rest
# One line a training sample, as `show` knows it.
./metas dataset >metas.txt
"$millrace" inspect dataset --json | grep -q "\"samples\": *$(wc -l <metas.txt)\b"
grep -q '^3 [0-9]*x[0-9]* {.*"source":"train/' metas.txt
echo "1 passed, 0 failed"
