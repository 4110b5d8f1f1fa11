#!/bin/bash
# build.sh [TARGET...] - builds the fuzz targets of tests/fuzz as OSS-Fuzz wants them: $OUT/fuzz_NAME, its corpus
# fuzz_NAME_seed_corpus.zip from seeds and past findings, and fuzz_NAME.options.  TARGET is the NAME of a
# tests/fuzz/MODULE/fuzz_NAME.c; default all.  OSS-Fuzz sets SRC, WORK, OUT, CC, CXX, CFLAGS, CXXFLAGS and LIB_FUZZING_ENGINE.
# Shared libraries go to $OUT/lib, where the targets look for them: they run in an image that has none.
set -eu
cd "$SRC/millrace"
build=${WORK:-/tmp}/millrace-oss-fuzz

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in tests/fuzz/*/fuzz_*.c; do
        name=${source##*/fuzz_}
        targets+=("${name%.c}")
    done
fi

# No build type: optimisation and sanitizers are what CFLAGS say.
# shellcheck disable=SC2016 # $ORIGIN is the loader's
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE= -DMILLRACE_FUZZING_ENGINE="$LIB_FUZZING_ENGINE" \
    -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags
cmake --build "$build" --parallel "$(nproc)" --target fuzz_seeds "${targets[@]/#/fuzz_}"

# The program that makes the seeds is sanitized, too; leaks in libraries must not stop it.
MILLRACE_BIN="$build/millrace" ASAN_OPTIONS=detect_leaks=0 "$build/fuzz_seeds" "$build/seeds"

mkdir -p "$OUT/lib"
for target in "${targets[@]}"; do
    cp "$build/fuzz_$target" "$OUT/"
    # The limits of scripts/fuzz: liblzma reserves the dictionary that a header asks for, and touches only what it decodes.
    max_len=8192 malloc_limit=1024
    case $target in walk | archive) max_len=65536 ;; layouts | coco_json) max_len=32768 ;; esac
    case $target in archive) malloc_limit=6144 ;; esac
    printf '[libfuzzer]\nmax_len = %d\nmalloc_limit_mb = %d\n' "$max_len" "$malloc_limit" >"$OUT/fuzz_$target.options"
    mkdir -p "$build/corpus/$target"
    for from in "$build/seeds/$target" "tests/fuzz/findings/$target"; do
        [ ! -d "$from" ] || cp -r "$from/." "$build/corpus/$target/"
    done
    rm -f "$OUT/fuzz_${target}_seed_corpus.zip"
    (cd "$build/corpus/$target" && zip -q -r "$OUT/fuzz_${target}_seed_corpus.zip" .)
    # Not the C library's own, which every image has.
    ldd "$OUT/fuzz_$target" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so/ { print $3 }' |
        xargs -r cp -L -t "$OUT/lib"
done
