#!/bin/bash
# hosts_overlap.sh BUILD [HOSTS [RATE [ARGUMENTS...]]] - how much of the exchange between hosts, which are namespaces here
# with shaped links, takes place during the backward pass, beside what the link allows (overlap_bench.c, which takes the
# rest of the arguments).  RATE: as `tc` takes it, 1gbit.
# Invariant: one rank per host with one thread; all hosts share this machine's processors.
set -eu
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/hosts/hosts.sh
. "$here/../hosts/hosts.sh"
enter_namespaces 900 "$(readlink -f "$0")" "$@"

work=$2 build=$(readlink -f "$3") hosts=${4:-2} rate=${5:-1gbit}
shift $(($# < 5 ? $# : 5))
cd "$work"
PATH=$build:$PATH
start_hosts "$hosts"
shape "$rate"
ranks "$(every_host "$hosts")" overlap_bench "$(gigabits "$rate")" "$@" >out 2>&1 || fail "overlap_bench"
cat out
