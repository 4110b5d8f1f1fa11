#!/bin/bash
# hosts_test.sh MILLRACE [all] - ranks on several hosts: the same bytes and bits as on one, and an end with a reason when
# a rank stops, a link is cut, or a disk is not shared.  Skipped (77) where namespaces are not permitted.
# Invariant: no time decides; what hangs is ended by the limit of the whole script.  `all`: also what takes longer.
set -eu
# shellcheck source=tests/hosts/hosts.sh
. "$(dirname "$(readlink -f "$0")")/hosts.sh"
seconds=500
[ "${2:-}" != all ] || seconds=1800
enter_namespaces "$seconds" "$(readlink -f "$0")" "$@"

work=$2 all=${4:-}
millrace=$(readlink -f "$3")
# shellcheck source=tests/hosts/faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"
cd "$work"
PATH=$(dirname "$millrace"):$PATH
[ "$all" != all ] || mount_disk || all=${all/all/all, without a disk}
start_hosts 3

model=(--model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 16 --batch 4 --threads 1
    --eval-every 0 --quiet)
weights() {
    sha256sum <"$1/step-$2/weights.npz"
}
millrace sample source --layout imagenette --images 60 --size 32 --quiet
millrace ingest source one --quiet

# ---- the same bytes, the same bits -----------------------------------------------------------------------------------

ranks h1:2,h2:1,h3:1 millrace ingest source several --quiet >out 2>&1 || fail "ingest"
diff -r one several >out || fail "bytes differ"
ranks h1:1,h2:2 millrace verify several --quiet >out 2>&1 || fail "verify"
echo "ok: ingest and verify on several hosts"

ranks h1:2,h2:2 millrace train one "${model[@]}" --steps 6 --output run >out 2>&1 || fail "train"
ranks h1:2,h3:2 millrace train one "${model[@]}" --steps 6 --output parts --stop-after 3 >out 2>&1 || fail "train, first part"
ranks h3:2,h2:2 millrace train one --output parts --resume --quiet >out 2>&1 || fail "train, second part"
[ "$(weights run 00000006)" = "$(weights parts 00000006)" ] || fail "a run resumed on other hosts differs"
millrace eval one run --json | grep -o '"accuracy": *[0-9.]*' >expected
ranks h1:1,h2:1,h3:1 millrace eval one run --json 2>&1 | tee out | grep -o '"accuracy": *[0-9.]*' | diff - expected ||
    fail "eval differs"
echo "ok: train, resume and eval on several hosts"

millrace predict one run >expected 2>out || fail "predict alone"
ranks h1:2,h3:1 millrace predict one run >predicted 2>out || fail "predict"
cmp expected predicted || fail "predict differs"
mpirun --allow-run-as-root --oversubscribe -x ASAN_OPTIONS=detect_leaks=0 -x TSAN_OPTIONS=report_bugs=0 -n 3 \
    millrace plan one --global-batch 12 >expected 2>out || fail "plan on one host"
ranks h1:1,h2:2 millrace plan one --global-batch 12 >planned 2>out || fail "plan"
cmp expected planned || fail "plan differs"
echo "ok: predict and plan on several hosts"

# Gradients that are sent during the backward pass have the same sums.
ranks h1:2,h2:2 millrace train one "${model[@]}" --steps 6 --exchange buckets --output early >out 2>&1 || fail "train --exchange"
[ "$(weights run 00000006)" = "$(weights early 00000006)" ] || fail "a run with --exchange buckets differs"

# Copies on each host's own disk change nothing; gradients in bf16 give other sums, the same ones on every host and run.
ranks h1:2,h3:2 millrace train one "${model[@]}" --steps 6 --local /run/copies --output staged >out 2>&1 || fail "train --local"
[ "$(weights run 00000006)" = "$(weights staged 00000006)" ] || fail "a run with copies differs"
[ -n "$(on h3 ls /run/copies)" ] || fail "no copies on h3"
for run in halves again; do
    ranks h1:2,h2:2 millrace train one "${model[@]}" --steps 6 --exchange-type bf16 --output "$run" >out 2>&1 || fail "bf16"
done
[ "$(weights halves 00000006)" = "$(weights again 00000006)" ] || fail "two runs that exchange bf16 differ"
[ "$(weights halves 00000006)" != "$(weights run 00000006)" ] || fail "nothing was exchanged in bf16"
echo "ok: gradients during the backward pass, copies on the hosts' disks, gradients in bf16"

# ---- what hosts see differently --------------------------------------------------------------------------------------

refused() {
    local code=0 expected=$1 said=$2
    shift 2
    ranks "$@" >out 2>&1 || code=$?
    [ "$code" = "$expected" ] || fail "exit code $code instead of $expected: $said"
    [ "$(grep -c "^millrace: .*$said" out)" = 1 ] || fail "not said once: $said"
}

cp "$millrace" other
echo >>other
on h2 mount --bind other "$millrace"
refused 2 "rank 1 on h2 runs a different build of millrace (" h1:1,h2:1 millrace verify one
on h2 umount "$millrace"
picture=$(find source -name '*.JPEG' | head -n 1)
: >empty
on h2 mount --bind empty "$picture"
refused 1 "rank 1 on h2: the source is not that of rank 0 on h1: .*${picture##*/} is missing here or has another size" \
    h1:1,h2:1 millrace ingest source never --quiet
on h2 umount "$picture"
[ -z "$(find . -maxdepth 1 -name 'never*')" ] || fail "what is refused leaves something"
echo "ok: another build, another source on a host"

# Locks that do not reach other hosts, and a kernel of each host's own.
no_locks=$(dirname "$millrace")/tests/preload_no_locks.so
apart() {
    local host=$1
    shift
    on "$host" env OPENBLAS_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 LD_PRELOAD="$no_locks" "$@"
}
owned() {
    [ -s run/.millrace-owner ]
}
# Starts a run that would take for ever on h1.
begin_apart() {
    rm -rf run
    apart h1 millrace train one "${model[@]}" --steps 9000000 --checkpoint-every 200 --output run >first 2>&1 &
    first=$!
    until_true owned
}
if [ -e "$no_locks" ]; then
    for host in h1 h2; do
        on "$host" sh -c "echo $host >/run/boot && mount --bind /run/boot /proc/sys/kernel/random/boot_id"
    done
    begin_apart
    code=0
    apart h2 millrace train one "${model[@]}" --steps 5 --output run --resume >out 2>&1 || code=$?
    [ "$code" = 2 ] || fail "exit code $code instead of 2 for a second run"
    grep -q "^millrace: run: another run is using it, process [0-9]* on h1; " out || fail "a second run"
    kill -KILL "$(process h1 millrace)"
    wait "$first" && fail "killed: exit code 0"
    mkfifo silent
    exec {silent}<>silent
    apart h1 millrace ingest - held --quiet <silent >first 2>&1 &
    first=$!
    until_true test -s held.partial.owner
    code=0
    apart h2 millrace ingest source held --quiet >out 2>&1 || code=$?
    [ "$code" = 3 ] || fail "exit code $code instead of 3 for a second ingest"
    grep -q "^millrace: held.partial: another .* process [0-9]* on h1; " out || fail "a second ingest"
    kill -KILL "$(process h1 millrace)"
    wait "$first" && fail "killed: exit code 0"
    exec {silent}>&-
    echo "ok: a second run in one folder, without locks"
else
    echo "not tried: folders without locks: $no_locks is not built"
fi

stall=1 # seconds: --stall-timeout

# ---- what ends a run -------------------------------------------------------------------------------------------------

# Starts a run that would take for ever on these hosts, and waits until it trains.
begin() {
    rm -rf run log
    ranks "$@" millrace train one "${model[@]}" --steps 9000000 --checkpoint-every 20 --log log --output run \
        --exchange buckets --stall-timeout "$stall" >out 2>&1 &
    mpirun=$!
    until_true test -s log
}

# Its exit code, and what was said.
expect_end() {
    local code=0
    wait "$mpirun" || code=$?
    [ "$code" = "$1" ] || fail "exit code $code instead of $1"
    [ "$(grep -c "^millrace: $2" out)" = 1 ] || fail "not said once: $2"
    until_true no_rank
}

no_rank() {
    local host
    for host in h1 h2 h3; do
        [ -z "$(process "$host" millrace)" ] || return 1
        [ -z "$(ls -A "/proc/$(cat "/run/hosts/$host")/root/dev/shm")" ] || return 1
    done
}

has_checkpoint() {
    [ -n "$(find run -name 'step-*' 2>/dev/null)" ]
}

whole() {
    has_checkpoint || fail "$1: no checkpoint"
    millrace eval one run >/dev/null || fail "$1: the checkpoint is damaged"
}

begin h1:1,h2:1
until_true has_checkpoint
link h2 down
until_true grep -q "^millrace: rank 1 on h2 has not been heard from for $stall s: " out
until_true no_rank
link h2 up
expect_end 3 "rank 1 on h2 has not been heard from for $stall s: it is stopped, or its host or the network is down"
whole "a link that is cut"
echo "ok: a link that is cut, all ranks on both sides of it"

# ---- what takes longer -----------------------------------------------------------------------------------------------

[ "$all" ] || exit 0
stall=2
each_phase
if [ "$all" = all ]; then
    each_disk
else
    echo "not tried: a shared disk that is full, hangs, or is gone: no loop device can be mounted"
fi

mkdir private
on h2 mount -t tmpfs tmpfs "$work/private"
refused 2 "rank 1 on h2: private/d.partial.owner: was created by rank 0 on h1, but is not visible here; " \
    h1:1,h2:1 millrace ingest source private/d --quiet
ranks h1:1,h2:1 millrace train one "${model[@]}" --steps 3 --output private/run >out 2>&1 || fail "a private --output"
grep -q "^millrace: rank 1 on h2: private/run/.*: --output is on a disk that the hosts do not share, " out ||
    fail "a private --output is not said"
on h2 umount "$work/private"
echo "ok: DATASET or --output on a disk that the hosts do not share"

taken_over() {
    grep -q '^millrace: .* is not responding; taking over$' out
}
if [ -e "$no_locks" ]; then
    begin_apart
    until_true has_checkpoint
    kill -KILL "$(process h1 millrace)"
    wait "$first" && fail "killed: exit code 0"
    apart h2 millrace train one "${model[@]}" --output run --resume --stop-after 5 >out 2>&1 || fail "a dead owner's run"
    taken_over || fail "a dead owner: nothing is said"
    apart h2 millrace ingest source held --quiet >out 2>&1 || fail "a dead owner's ingest"
    taken_over || fail "a dead owner of an ingest: nothing is said"
    millrace verify held --quiet || fail "an ingest that has taken over"
    [ ! -e held.partial.owner ] || fail "an ingest that has taken over leaves its owner file"
    begin_apart
    stopped=$(process h1 millrace)
    kill -STOP "$stopped"
    apart h2 millrace train one "${model[@]}" --steps 9000000 --checkpoint-every 200 --output run \
        --overwrite-output >out 2>&1 &
    second=$!
    until_true taken_over
    kill -CONT "$stopped" "$(ps -o ppid= -p "$stopped" | tr -d ' ')"
    code=0
    wait "$first" || code=$?
    [ "$code" = 3 ] || fail "exit code $code instead of 3 for a run that has lost its folder"
    grep -q '^millrace: run: process [0-9]* on h2 has taken it, ' first || fail "a run that has lost its folder: $(cat first)"
    until_true has_checkpoint
    kill -TERM "$(process h2 millrace)"
    wait "$second" && fail "SIGTERM: exit code 0"
    whole "a run that has taken over"
    begin_apart
    stopped=$(process h1 millrace)
    kill -STOP "$stopped"
    apart h2 millrace train one "${model[@]}" --steps 5 --output run --overwrite-output >out 2>&1 || fail "a short run"
    kill -CONT "$stopped" "$(ps -o ppid= -p "$stopped" | tr -d ' ')"
    code=0
    wait "$first" || code=$?
    [ "$code" = 3 ] || fail "exit code $code instead of 3 for a run whose folder another had"
    grep -q "^millrace: run: lost ownership of this folder: its lock file .millrace-owner was removed" first || fail "a run whose folder another had"
    echo "ok: a dead owner's folder is taken over, one that only slept ends"
fi

begin h1:1,h2:1
until_true has_checkpoint
kill -STOP "$(process h2 millrace)"
expect_end 3 "rank 1 on h2 has not been heard from for $stall s: it is stopped"
whole "a stopped rank"
echo "ok: a rank that is stopped"

# Each of two hosts sends every one of 4 x 2 x 1,000,003 floats once.
sent() {
    on "$1" ip -s -o link show eth0 | awk '{ for (i = 1; i <= NF; i++) if ($i == "TX:") { print $(i + 8); exit } }'
}
before=$(sent h1)
ranks h1:1,h2:1 exchange_rank sums 1000003:1:0 >out 2>&1 || fail "sums"
bytes=$(($(sent h1) - before))
if [ "$bytes" -lt 32000000 ] || [ "$bytes" -gt 40000000 ]; then
    fail "the sums of two hosts took $bytes bytes of one of them"
fi
echo "ok: sums between two hosts send each number once"

begin h1:1,h2:1,h3:1
for _ in 1 2 3; do
    link h2 down
    sleep 1
    link h2 up
    sleep 2
done
kill -USR1 "$(process h3 millrace)"
wait "$mpirun" && fail "USR1: exit code 0"
grep -q "^millrace: .* for $stall s: " out && fail "a link that was back in time"
whole "a link that was back in time"
echo "ok: a link that is back in time"

begin h1:2,h2:1
kill -KILL "$(process h2 millrace)"
wait "$mpirun" && fail "a killed rank: exit code 0"
until_true no_rank
echo "ok: a rank that is killed"

# The same for every command, as soon as its ranks have met.
millrace sample many --layout imagenette --images 12000 --size 96 --quiet
millrace ingest many more --quiet
millrace train one "${model[@]}" --steps 2 --output judged >/dev/null
said_or_no_rank() {
    said_or_ended || no_rank
}
cut_off() {
    local name=$1 side=$2
    shift 2
    ranks h1:1,h2:1,h3:1 "$@" --stall-timeout "$stall" >out 2>&1 &
    mpirun=$!
    until_true process h2 millrace >/dev/null
    until_true process h3 millrace >/dev/null
    sleep "0.$((RANDOM % 5 + 4))" # MPI has started
    link "$side" down
    # Where all ranks had ended before, mpirun waits for its daemon on the other side.
    until_true said_or_no_rank
    until_true no_rank
    link "$side" up
    wait "$mpirun" && echo "ok: $name had ended before the cut" && return
    echo "ok: $name with $side cut off: $(grep -m 1 '^millrace: ' out | cut -c1-60)"
}
for side in h1 h2 h3; do
    cut_off ingest "$side" millrace ingest many "of-$side" --quiet --jobs 1
    cut_off verify "$side" millrace verify more --quiet --decode
    cut_off eval "$side" millrace eval more judged --batch 4 --threads 1
    cut_off predict "$side" millrace predict more judged --batch 4 --threads 1
done
