#!/bin/bash
# hosts_peer.sh BUILD PYTHON|none [HOSTS [RATE [ROUNDS [IMAGE [BATCH]]]]] - training steps over shaped links between hosts,
# which are namespaces here, beside those of PyTorch's DistributedDataParallel over gloo: the same model, alternating.  PYTHON
# has torch (scripts/bench/train-peer makes build/peers/train/bin/python); none: only ours.  With pictures of 32 pixels the exchange
# of gradients is most of a step; with larger ones (IMAGE 160, BATCH 8) it can overlap with the backward pass, and
# hosts_overlap.sh says how much of it.
# Invariant: both run one rank per host with one thread; all hosts share this machine's processors.
set -eu
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=tests/hosts/hosts.sh
. "$here/../hosts/hosts.sh"
enter_namespaces 900 "$(readlink -f "$0")" "$@"

work=$2 build=$(readlink -f "$3") python=$4 hosts=${5:-2} rate=${6:-1gbit} rounds=${7:-3} image=${8:-32} batch=${9:-4}
# A link, which finds its packages by where it is.
[ "$python" = none ] || python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
cd "$work"
PATH=$build:$PATH
start_hosts "$hosts"
shape "$rate"

steps=12
model=(--patch 16 --hidden 384 --layers 6 --heads 6 --mlp 1536)
where=$(every_host "$hosts")
millrace sample source --layout imagenette --images 600 --size "$image" --quiet
millrace ingest source data --quiet

# Median milliseconds of the steps, but for the first two, and what of them the exchange took.
ours() {
    rm -f log
    ranks "$where" millrace train data --model vit --image-size "$image" "${model[@]}" --dropout 0 --batch "$batch" \
        --steps "$steps" --eval-every 0 --threads 1 --quiet --log log "$@" >out 2>&1 || fail "millrace"
    python3 -c '
import json, statistics, sys
lines = [line for line in map(json.loads, open("log")) if "images_per_sec" in line][2:]
step = int(sys.argv[1]) / statistics.median(line["images_per_sec"] for line in lines) * 1e3
exchange = statistics.median(line["exchange_ms"] for line in lines)
print(f"{step:.0f} ({exchange:.0f})")' $((batch * hosts))
}
theirs() {
    [ "$python" != none ] || return 0
    ranks "$where" env MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 GLOO_SOCKET_IFNAME=eth0 OMP_NUM_THREADS=1 "$python" \
        "$here/ddp_torch.py" "${model[@]}" --image "$image" --classes 10 --batch "$batch" --steps "$steps" >out 2>err ||
        fail "PyTorch"
    awk '/^[0-9.]+$/ { printf "%.0f", $1 * 1e3 }' out
}

printf '%s hosts, links of %s, ms a step (of them exchange):  millrace flat, buckets, bf16;  PyTorch\n' "$hosts" "$rate"
for ((round = 0; round < rounds; round++)); do
    printf '%s  %s  %s;  %s\n' "$(ours --exchange flat)" "$(ours --exchange buckets)" \
        "$(ours --exchange buckets --exchange-type bf16)" "$(theirs)"
done
