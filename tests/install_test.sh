#!/bin/bash
# install_test.sh BUILD SOURCE - installs into a private prefix and builds README's C program outside of the tree, once by
# pkg-config and once by CMake's package; runs it, stops in the middle, resumes, and compares what it saw.
set -eu
build=$1
source=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-install-XXXXXX")
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
pc=$(find "$work/prefix" -name millrace.pc)
sed -i "s|^prefix=.*|prefix=$work/prefix|" "$pc"
awk '/^```c$/ {on = 1; next} /^```$/ {on = 0} on' "$source/README.md" >"$work/epochs.c"
grep -q mr_loader_next "$work/epochs.c"

cd "$work"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$pc")
# shellcheck disable=SC2046 # flags are words
cc -std=c11 -Wall -Wextra -Werror epochs.c -o by-pkg-config $(pkg-config --cflags --libs millrace)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir millrace)
export LD_LIBRARY_PATH

cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(outside LANGUAGES C)
find_package(millrace REQUIRED)
add_executable(by-cmake epochs.c)
target_link_libraries(by-cmake PRIVATE millrace::millrace)
CMAKE
cmake -S . -B out -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build out >/dev/null

millrace=$work/prefix/bin/millrace
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
echo "1 passed, 0 failed"
