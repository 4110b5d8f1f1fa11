#!/bin/bash
# slurm_test.sh MILLRACE - the program under a real Slurm of one node: srun with PMIx and without it, a batch script, and
# what signals and scancel leave behind.  Skipped (77) where Slurm is not installed or namespaces are not permitted.
# Invariant: all of it lives in namespaces of its own - network, processes, mounts - which end with this script, however
# it ends; nothing is installed, and nothing outside of a private folder is written.
set -eu
seconds=150     # then the kernel ends the namespace and all in it

skip() {
    echo "not tried: Slurm: $*"
    [ "${MILLRACE_TEST_ALL:-}" != 1 ] || exit 1
    exit 77
}

# ---- outside: a folder, and namespaces in which this script calls itself ---------------------------------------------

if [ "${2:-}" != inside ]; then
    millrace=$(readlink -f "$1")
    [ "$(id -u)" = 0 ] || skip "not root"
    for program in unshare ip slurmctld slurmd srun sbatch scancel munged mpirun; do
        command -v "$program" >/dev/null || skip "$program is not installed"
    done
    alone=(unshare --net --uts --mount --ipc --pid --fork --mount-proc --kill-child)
    "${alone[@]}" sh -c 'hostname solo && ip link add s0 type veth peer name s1' 2>/dev/null ||
        skip "namespaces are not permitted"
    work=$(mktemp -d "${TMPDIR:-/tmp}/millrace-slurm-XXXXXX")
    trap 'rm -rf "$work"' EXIT
    timeout -s KILL "$seconds" "${alone[@]}" "$0" "$millrace" inside "$work"
    exit
fi

# ---- inside: a Slurm -------------------------------------------------------------------------------------------------

millrace=$1 work=$3
cd "$work"
hostname solo
ip link set lo up
ip link add s0 type veth peer name s1       # names are looked up only where there is more than a loopback
ip addr add 10.0.0.1/24 dev s0
ip link set s0 up
ip link set s1 up
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev/shm
printf '127.0.0.1 localhost\n10.0.0.1 solo\n' >hosts
mount --bind hosts /etc/hosts
mkdir /run/slurmd state
head -c 1024 /dev/urandom >/run/key
chmod 400 /run/key
cat >slurm.conf <<C
ClusterName=solo
SlurmctldHost=solo(10.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/munge.sock
CryptoType=crypto/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmdSpoolDir=/run/slurmd
SlurmdParameters=config_overrides
StateSaveLocation=$work/state
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
SchedulerParameters=batch_sched_delay=0,sched_interval=1
NodeName=solo NodeAddr=10.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=solo Default=YES State=UP
C
echo "CgroupAutomount=no" >cgroup.conf
export SLURM_CONF=$work/slurm.conf
{
    munged --force -S /run/munge.sock --key-file=/run/key --pid-file=/run/munged.pid --log-file=/run/munged.log \
        --seed-file=/run/munged.seed
    slurmctld -c
    slurmd
} </dev/null >daemons 2>&1

fail() {
    echo "FAILED: $*"
    tail -n 20 daemons slurmctld.log slurmd.log out 2>&1 || true
    exit 1
}

# Waits at most 60 s for a function to succeed.
until_true() {
    for ((i = 0; i < 600; i++)); do
        ! "$1" || return 0
        sleep 0.1
    done
    fail "waited in vain for: $1"
}

idle() { [ "$(sinfo -h -o %T 2>/dev/null)" = idle ]; }
until_true idle
srun --mpi=list 2>&1 | grep -q pmix || skip "srun has no PMIx"

# ---- the program in it -----------------------------------------------------------------------------------------------

export OPENBLAS_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=report_bugs=0     # MPI keeps memory until the process ends
model=(--model vit --image-size 24 --patch 8 --hidden 16 --layers 1 --heads 2 --mlp 16 --threads 1 --eval-every 0 --quiet)
"$millrace" sample source --layout imagenette --images 60 --size 32 --quiet
"$millrace" ingest source data --quiet

srun --mpi=pmix -n 2 "$millrace" train data "${model[@]}" --steps 5 --output by-srun || fail "srun --mpi=pmix"
mpirun --oversubscribe -n 2 "$millrace" train data "${model[@]}" --steps 5 --output by-mpirun || fail "mpirun"
cmp by-srun/step-00000005/weights.npz by-mpirun/step-00000005/weights.npz || fail "srun and mpirun differ"
grep -q '"world": *2\b' by-srun/step-00000005/state.json || fail "srun started lone runs"
echo "ok: ranks of srun --mpi=pmix are those of mpirun, to the bit"

srun -n 2 "$millrace" verify data >out 2>&1 && fail "tasks without PMIx did their work alone"
[ "$(grep -c '^millrace: srun: started 2 processes .*; use srun --mpi=pmix$' out)" = 2 ] || fail "srun without PMIx"
srun -n 1 "$millrace" verify data --quiet || fail "one task is not refused"
echo "ok: several tasks without PMIx are refused, one is not"

printf '#!/bin/sh\n"%s" verify data --quiet\n' "$millrace" >verify.sh
sbatch --wait -n 2 -o out verify.sh >/dev/null || fail "a batch script is one process"
echo "ok: a batch script of a job of two tasks"

learns() { [ -s run.jsonl ]; }
over() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }

# A run that would take for ever, its script's last word in `out`.
submit() {
    rm -rf run run.jsonl
    printf '#!/bin/bash\nsrun --mpi=pmix -n 2 "%s" train data %s --steps 9000000 --log run.jsonl --output run\n' \
        "$millrace" "${model[*]}" >train.sh
    echo 'echo "exit code $?"' >>train.sh
    job=$(sbatch --parsable -n 2 -o out train.sh)
    until_true learns
}

# The only checkpoint is that of the end.
expect_end() {
    until_true over
    [ "$(find run -name 'step-*' | wc -l)" = 1 ] || fail "$1: no checkpoint"
    [ -s run/train_results.json ] || fail "$1: no train_results.json"
    "$millrace" eval data run >/dev/null || fail "$1: the checkpoint is not readable"
    echo "ok: a checkpoint after $1"
}

submit
scancel --signal=USR1 "$job"
expect_end "scancel --signal=USR1"
grep -q '^exit code 3$' out || fail "SIGUSR1: no exit code 3"
submit
scancel "$job"
expect_end "scancel"

# ---- a job that Slurm runs again, and an array -----------------------------------------------------------------------

restarted() { scontrol update JobId="$job" StartTime=now 2>/dev/null; grep -q '^begun again' out; }
has_ended() { [ "$(grep -c '^exit code' out)" = "$1" ]; }
ended_once() { has_ended 1; }

rm -rf run run.jsonl
cat >again.sh <<S
#!/bin/bash
[ "\${SLURM_RESTART_COUNT:-0}" = 0 ] || echo "begun again"
srun --mpi=pmix -n 2 "$millrace" train data ${model[*]} --log run.jsonl --output run --resume \
    \$([ "\${SLURM_RESTART_COUNT:-0}" = 0 ] && echo --steps 9000000 || echo --stop-after 5)
echo "exit code \$?"
S
job=$(sbatch --parsable --requeue --open-mode=append -n 2 -o out.again again.sh)
until_true learns
ln -sf out.again out
scontrol requeue "$job"
until_true restarted
until_true ended_once
until_true over
before=$(find run -name 'step-*' | sort | head -n 1) after=$(find run -name 'step-*' | sort | tail -n 1)
[ "$((10#${after##*-} - 10#${before##*-}))" = 5 ] || fail "requeue: $before, $after"
"$millrace" eval data run >/dev/null || fail "requeue: the checkpoint is not readable"
echo "ok: a job that is requeued goes on from its checkpoint"

cat >array.sh <<S
#!/bin/bash
srun --mpi=pmix -n 2 "$millrace" train data ${model[*]} --steps 5 --seed \$SLURM_ARRAY_TASK_ID --local copies \
    --output seed-\$SLURM_ARRAY_TASK_ID
S
sbatch --wait --array=0-1 -n 2 -o array-%a array.sh >/dev/null || fail "an array: $(cat array-*)"
[ -n "$(ls copies)" ] || fail "an array: no copies"
cmp -s seed-0/step-00000005/weights.npz seed-1/step-00000005/weights.npz && fail "an array: the same seed twice"
[ -s seed-1/step-00000005/weights.npz ] || fail "an array: no weights"
echo "ok: an array of two runs that share copies"

# The time limit is looked at twice a minute.
[ "${MILLRACE_TEST_ALL:-}" = 1 ] || exit 0
rm -rf run run.jsonl
job=$(sbatch --parsable --time=1 --signal=USR1@55 -n 2 -o out.limit train.sh)
until_true learns
ln -sf out.limit out
expect_end "a signal before the time limit"
grep -q '^exit code 3$' out || fail "a signal before the time limit: no exit code 3"
