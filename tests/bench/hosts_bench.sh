#!/bin/bash
# hosts_bench.sh BUILD [HOSTS [RATE [MB [ROUNDS]]]] - sums of gradients between hosts, which are namespaces here with
# shaped links: flat, in buckets and in bf16, beside the time that the link alone needs.  RATE: as `tc` takes it, 1gbit.
# Invariant: the link needs 2 (n - 1) / n x bytes / rate in float32.  All hosts share this machine's processors, so the time of
# a plain copy of as many bytes from each host to the next (ring_copy.py) stands beside it.
set -eu
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/hosts/hosts.sh
. "$here/../hosts/hosts.sh"
enter_namespaces 900 "$(readlink -f "$0")" "$@"

work=$2 build=$(readlink -f "$3") hosts=${4:-2} rate=${5:-1gbit} mb=${6:-25} rounds=${7:-5}
cd "$work"
PATH=$build:$PATH
start_hosts "$hosts"
shape "$rate"

where=$(every_host "$hosts")
bytes=$(python3 -c "print(round(2 * ($hosts - 1) / $hosts * $mb * 1e6))")
others=()
for ((i = 2; i <= hosts; i++)); do
    on "h$i" python3 "$here/ring_copy.py" "$i" "$hosts" "$bytes" "$rounds" &
    others+=($!)
done
tcp=$(on h1 python3 "$here/ring_copy.py" 1 "$hosts" "$bytes" "$rounds")
wait "${others[@]}"
link=$(python3 -c "print($bytes * 8 / ($(gigabits "$rate") * 1e9) * 1e3)")
printf '%s hosts, %s MB, links of %s: in float32 at least %.0f ms; copying as much by TCP takes %.0f here\n' "$hosts" "$mb" \
    "$rate" "$link" "$tcp"
for type in float32 bf16; do
    ranks "$where" exchange_bench "$mb" "$rounds" 1 "$type" >out 2>&1 || fail "$type"
    sed -n 's/^median ms: flat \([0-9.]*\)  buckets \([0-9.]*\) .*/flat \1\nbuckets \2/p' out |
        awk -v link="$link" -v tcp="$tcp" -v type="$type" '{
            printf "%-8s %-8s %5.0f ms: %3.0f %% of the link, %3.0f %% of the copy\n", type, $1, $2, 100 * link / $2,
                100 * tcp / $2 }'
done
