# faults.sh - for hosts_test.sh: a rank that is stopped and a link that is cut in each phase of a run, and a shared disk
# that is full, hangs, or is gone.
# Invariant: whatever happens, all ranks end by themselves, and what is left under a checkpoint's name is whole.
# shellcheck shell=bash disable=SC2154  # set by the script that sources this

# ---- phases ----------------------------------------------------------------------------------------------------------

# Options that spend the time of a run in one phase.
in_phase() {
    case $1 in
    start | training) echo --steps 9000000 --checkpoint-every 20 ;;
    checkpoint) echo --steps 9000000 --checkpoint-every 1 ;;
    evaluation) echo --steps 9000000 --eval-every 1 ;;
    end) echo --steps 400 --checkpoint-every 20 ;;
    esac
}

reached() {
    case $1 in
    start) [ -n "$(process h2 millrace)" ] ;;
    end) grep -qs '"step": 390,' log ;;
    *) has_checkpoint ;;
    esac
}

ended() {
    ! kill -0 "$mpirun" 2>/dev/null
}

reached_or_ended() {
    reached "$1" || ended
}

# phase PHASE stopped|cut: prints a line of the table
phase() {
    local options code=0 stopped='' words
    read -ra options <<<"$(in_phase "$1")"
    rm -rf run log
    ranks h1:1,h2:1 millrace train one "${model[@]}" --stall-timeout "$stall" --log log --output run "${options[@]}" \
        >out 2>&1 &
    mpirun=$!
    until_true reached_or_ended "$1"
    if [ "$2" = cut ]; then
        link h2 down
    else
        stopped=$(process h2 millrace) || true # it may have ended
        [ -z "$stopped" ] || kill -STOP "$stopped" 2>/dev/null || true
    fi
    until_true said_or_over "$1"
    # Stopped when its work was done, it keeps nobody waiting but mpirun.
    [ -z "$stopped" ] || said || kill -CONT "$stopped" 2>/dev/null || true
    link h2 up
    wait "$mpirun" || code=$?
    until_true no_rank
    words=$(grep '^millrace: ' out | tail -n 1 | cut -d: -f 2 | cut -c 2-80)
    case $code in
    0) [ "$1" = end ] || fail "$1, $2: exit code 0" ;;
    3) [ -n "$words" ] || fail "$1, $2: nothing was said" ;;
    *) grep -q '^millrace: ' out || fail "$1, $2: exit code $code and nothing was said" ;;
    esac
    if has_checkpoint; then
        millrace eval one run >/dev/null || fail "$1, $2: the checkpoint is damaged"
    fi
    printf '    %-11s %-8s %3d  %s\n' "$1" "$2" "$code" "${words:-it had ended before}"
}

said() {
    grep -Eq "^millrace: .* for ($stall|$((stall + 30))) s" out
}

said_or_ended() {
    said || ended
}

said_or_over() {
    said_or_ended || { [ "$1" = end ] && [ -z "$(process h1 millrace)" ]; }
}

each_phase() {
    local name
    echo "    phase       fault   exit  what was said"
    for name in start training checkpoint evaluation end; do
        phase "$name" stopped
        phase "$name" cut
    done
    echo "ok: a rank that is stopped, a link that is cut, in each phase"
}

# ---- a shared disk ---------------------------------------------------------------------------------------------------

# Before the hosts are started, so that all of them see it.
mount_disk() {
    mkdir disk
    truncate -s 24M disk.image
    mkfs.ext4 -q disk.image 2>/dev/null && mount -o loop disk.image disk 2>/dev/null
}

begin_on_disk() {
    ranks h1:1,h2:1 millrace train one "${model[@]}" --steps 9000000 --checkpoint-every 20 --output disk/run \
        --stall-timeout "$stall" >out 2>&1 &
    mpirun=$!
    until_true on_disk
}

on_disk() {
    [ -n "$(find disk/run -name 'step-*' 2>/dev/null)" ]
}

# expect_disk NAME SENTENCE
expect_disk() {
    local code=0
    wait "$mpirun" || code=$?
    [ "$code" = 3 ] || fail "$1: exit code $code instead of 3"
    [ "$(grep -c '^millrace: ' out)" = 1 ] || fail "$1: not one sentence"
    grep -q "^millrace: rank 0 on h1$2" out || fail "$1: not said: $2"
    until_true no_rank
}

each_disk() {
    local host
    begin_on_disk
    dd if=/dev/zero of=disk/filler bs=64k 2>/dev/null || true
    expect_disk "a full disk" ": disk/run/.*: No space left on device"
    rm disk/filler
    millrace eval one disk/run >/dev/null || fail "a full disk: the checkpoint is damaged"
    echo "ok: a shared disk that is full"

    rm -r disk/run
    begin_on_disk
    fsfreeze -f disk
    until_true said_or_ended
    fsfreeze -u disk # what waits in the kernel cannot end before
    expect_disk "a disk that hangs" " has made no progress for $stall s and is not waiting for another rank: "
    millrace eval one disk/run >/dev/null || fail "a disk that hangs: the checkpoint is damaged"
    echo "ok: a shared disk that hangs"

    rm -r disk/run
    begin_on_disk
    for host in h1 h2; do
        on "$host" umount -l "$work/disk"
    done
    expect_disk "a disk that is gone" ": disk/run: was moved, removed or replaced during the run"
    millrace eval one disk/run >/dev/null || fail "a disk that is gone: the checkpoint is damaged"
    umount disk
    echo "ok: a shared disk that is gone"
}
