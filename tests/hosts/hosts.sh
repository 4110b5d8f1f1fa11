# hosts.sh - several hosts on one machine, for scripts that source this: namespaces, joined by a bridge.
# Invariant: all of it lives in namespaces of its own, which end with the script, however it ends; nothing is installed,
# and nothing outside of a private folder is written.
#
#   host h1: network, hostname, processes, IPC, /dev/shm and /run of its own (/run is its private disk)      eth0
#   the script itself is where mpirun is called: 10.77.0.254                                                 | | |
#   all other folders are shared, as by a cluster's file system                                             br0
# shellcheck shell=bash disable=SC2154  # work and millrace: set by the script

skip() {
    echo "not tried: several hosts: $*"
    [ "${MILLRACE_TEST_ALL:-}" != 1 ] || exit 1
    exit 77
}

# Calls this script again in namespaces, as: SCRIPT inside WORK ARGUMENTS...; returns where it is inside already.
enter_namespaces() {
    local seconds=$1 script=$2
    shift 2
    [ "${1:-}" != inside ] || return 0
    [ "$(id -u)" = 0 ] || skip "not root"
    for program in unshare nsenter ip tc mpirun; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
    alone=(unshare --net --uts --mount --ipc --pid --fork --mount-proc --kill-child)
    "${alone[@]}" sh -c 'ip link add br0 type bridge && ip link add s0 type veth peer name s1 && hostname head &&
        unshare --net --uts --mount --ipc --pid --fork true' 2>/dev/null || skip "namespaces are not permitted"
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/millrace-hosts-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    timeout -s KILL "$seconds" "${alone[@]}" "$script" inside "$work" "$@"
    exit
}

# The processes that hold the namespaces of h1 .. hN, and what mpirun calls instead of ssh.
start_hosts() {
    local count=$1 i
    hostname head
    mount -t tmpfs tmpfs /run
    mkdir /run/hosts
    ip link set lo up
    ip link add br0 type bridge
    ip link set br0 up
    ip addr add 10.77.0.254/24 dev br0
    printf '127.0.0.1 localhost\n10.77.0.254 head\n' >"$work/names"
    for ((i = 1; i <= count; i++)); do
        printf '10.77.0.%s h%s\n' "$i" "$i" >>"$work/names"
    done
    mount --bind "$work/names" /etc/hosts
    for ((i = 1; i <= count; i++)); do
        start_host "$i"
    done
    # Nothing of the caller's environment comes along, as with ssh.
    cat >"$work/agent" <<A
#!/bin/bash
host=\$1
shift
cd /
exec env -i PATH="\$PATH" HOME="$work" TMPDIR=/run LANG=C nsenter -t "\$(cat "/run/hosts/\$host")" -n -u -m -i -p -- sh -c "\$*"
A
    chmod +x "$work/agent"
}

start_host() {
    local number=$1 holder name=h$1
    unshare --net --uts --mount --ipc --pid --fork --mount-proc --kill-child sh -c "
        hostname $name && mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo ready >'$work/$name' &&
        mount -t tmpfs tmpfs /run && exec sleep 100000" </dev/null >/dev/null 2>&1 &
    until [ -s "$work/$name" ]; do
        sleep 0.02
    done
    holder=$(pgrep -P $!)
    echo "$holder" >"/run/hosts/$name"
    ip link add "to-$name" type veth peer name eth0 netns "$holder"
    ip link set "to-$name" master br0 up
    on "$name" sh -c "ip addr add 10.77.0.$number/24 dev eth0 && ip link set eth0 up"
}

# on HOST COMMAND...
on() {
    local host=$1
    shift
    nsenter -t "$(cat "/run/hosts/$host")" -n -u -m -i -p --wd="$PWD" -- "$@"
}

# link HOST up|down
link() {
    ip link set "to-$1" "$2"
}

# shape RATE, as 1gbit: every link, in both directions
shape() {
    local host limit=(rate "$1" burst 256kb latency 20ms)
    for host in /run/hosts/*; do
        host=${host##*/}
        tc qdisc replace dev "to-$host" root tbf "${limit[@]}"
        on "$host" tc qdisc replace dev eth0 root tbf "${limit[@]}"
    done
}

# gigabits RATE: as a number, 1gbit is 1
gigabits() {
    python3 -c "
import re, sys
number, unit = re.fullmatch(r'([0-9.]+)([kmg]?)bit', sys.argv[1]).groups()
print(float(number) * {'': 1e-9, 'k': 1e-6, 'm': 1e-3, 'g': 1}[unit])" "$1"
}

# every_host COUNT: a slot on each, as ranks() takes it
every_host() {
    seq -s , -f h%.0f:1 "$1"
}

# The pid here of a process NAME on HOST: the last one that was started.
process() {
    pgrep -r R,S,D,T --ns "$(cat "/run/hosts/$1")" --nslist pid -n -x "$2"
}

# ranks h1:2,h2:1 COMMAND...: as many ranks as there are slots
ranks() {
    local where=$1
    shift
    mpirun --allow-run-as-root --oversubscribe --bind-to none --mca plm rsh --mca plm_rsh_agent "$work/agent" \
        --mca plm_rsh_no_tree_spawn 1 --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24 \
        --mca btl tcp,vader,self --mca pml ob1 --mca mpi_yield_when_idle 1 --wd "$PWD" -x PATH \
        -x OPENBLAS_NUM_THREADS=1 -x ASAN_OPTIONS=detect_leaks=0 -x TSAN_OPTIONS=report_bugs=0 -H "$where" "$@"
}

fail() {
    echo "FAILED: $*"
    tail -n 30 out 2>&1 || true
    exit 1
}

# Waits at most 60 s for a command to succeed.
until_true() {
    local i
    for ((i = 0; i < 1200; i++)); do
        ! "$@" || return 0
        sleep 0.05
    done
    fail "waited in vain for: $*"
}
