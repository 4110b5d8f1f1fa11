#!/bin/bash
# hosts_bench.sh BUILD [HOSTS [RATE [MB [ROUNDS]]]] - sums of gradients between hosts, which are namespaces here with
# shaped links: flat, in buckets and in bf16, beside the time that the link alone needs.  RATE: as `tc` takes it, 1gbit.
# Invariant: the bound is 2 (n - 1) / n x bytes / rate, of float32; all hosts share this machine's processors.
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
bound=$(python3 -c "print(2 * ($hosts - 1) / $hosts * $mb * 1e6 * 8 / ($(gigabits "$rate") * 1e9) * 1e3)")
printf '%s hosts, %s MB, links of %s: at least %.0f ms in float32\n' "$hosts" "$mb" "$rate" "$bound"
for type in float32 bf16; do
    ranks "$where" exchange_bench "$mb" "$rounds" 1 "$type" >out 2>&1 || fail "$type"
    sed -n 's/^median ms: flat \([0-9.]*\)  buckets \([0-9.]*\) .*/\1 \2/p' out |
        awk -v bound="$bound" -v type="$type" '{
            printf "%-8s flat %.0f ms (%.0f %% of the bound), buckets %.0f ms (%.0f %%)\n", type, $1, 100 * bound / $1,
                $2, 100 * bound / $2 }'
done
