/* test_launch.c - launchers, by the variables that they set: which start MPI, and which would start lone runs.
 * Invariant tested: where a launcher started several processes, no command does its work as if it were alone. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tests/support/support.h"

#define SERVER "PMIX_SERVER_URI2=pmix-server.1;tcp4://127.0.0.1:1"
#define ONE_STEP                                                                                                       \
    "SLURM_JOB_ID=4", "SLURM_JOBID=4", "SLURM_STEP_ID=0", "SLURM_STEPID=0", "SLURM_PROCID=1", "SLURM_NODELIST=here"

static const char apart[] = "srun: started 4 processes that cannot form one run, so each would do all the work; "
                            "use srun --mpi=pmix\n";
static char *dataset;

static int set_up(void **state)
{
    /* The suite itself may run under a launcher. */
    static const char *const known[] = {"OMPI_COMM_WORLD_SIZE",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_NTASKS",
                                        "PMIX_NAMESPACE",
                                        "PMIX_RANK",
                                        "JSM_NAMESPACE_SIZE",
                                        "PMIX_SIZE",
                                        "PMI_SIZE",
                                        "FLUX_JOB_SIZE",
                                        "MV2_COMM_WORLD_SIZE",
                                        "WORLD_SIZE"};
    for (size_t i = 0; i < MR_COUNT(known); i++)
        unsetenv(known[i]);
    char *dir = support_tmpdir(), *source = support_path("%s/source", dir);
    dataset = support_path("%s/data", dir);
    support_expect(0, "sample", source, "--layout", "imagenette", "--images", "12", "--size", "32", "-q", (char *)NULL);
    support_expect(0, "ingest", source, dataset, "-q", (char *)NULL);
    free(source);
    *state = dir;
    return 0;
}

static int tear_down(void **state)
{
    free(dataset);
    return support_tmpdir_tear_down(state);
}

/* `env VARIABLES millrace ARGS` in the test's folder; both lists end with NULL. */
static support_result run(const char *dir, const char *const *variables, const char *const *args)
{
    const char *argv[40] = {"env", "ASAN_OPTIONS=detect_leaks=0"}; /* MPI keeps memory until the end */
    size_t n = 2;
    while (*variables && n < 30)
        argv[n++] = *variables++;
    argv[n++] = support_millrace_path();
    while (*args && n < MR_COUNT(argv) - 1)
        argv[n++] = *args++;
    return support_run(argv, &(support_limits){.directory = dir});
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void expect(const char *dir, const char *const *variables, const char *const *args, int status,
                   const char *words)
{
    support_result r = run(dir, variables, args);
    support_assert_status(&r, status);
    if (words && !strstr(r.err, words))
        fail_msg("\"%s\" does not mention \"%s\"", r.err, words);
    if (words && support_occurrences(r.err, "\n") != 1)
        fail_msg("more than one sentence: %s", r.err);
    if (status != 0 && r.out_len)
        fail_msg("refused, and said: %s", r.out);
    support_result_free(&r);
}

/* Whatever the command, whether it knows of ranks or not, and before it looks at its arguments' sense. */
static void a_step_without_pmix_is_refused_by_every_command(void **state)
{
    const char *const step[] = {"SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4", ONE_STEP, NULL};
    const char *const pmi2[] = {"SLURM_STEP_NUM_TASKS=4", "PMI_SIZE=4", "PMI_RANK=0", "PMI_FD=9", NULL};
    const char *const torch[] = {"SLURM_STEP_NUM_TASKS=4", "WORLD_SIZE=4", "RANK=0", "MASTER_ADDR=h", NULL};
    const char *const commands[][6] = {
        {"ingest", "source", "new"},
        {"verify", "data"},
        {"inspect", "data"},
        {"show", "data", "train", "0"},
        {"export", "data", "out"},
        {"reindex", "data"},
        {"seek", "data"},
        {"plan", "data", "--split", "train", "--global-batch=8"},
        {"replay", "data", "--split", "train", "--batches=0"},
        {"bench", "data"},
        {"train", "data", "--output", "run"},
        {"eval", "data", "run"},
        {"predict", "data", "run"},
        {"tokenizer", "data", "--text-column", "x"},
        {"sample", "drawn", "--layout", "coco"},
    };
    for (size_t i = 0; i < MR_COUNT(commands); i++)
        expect(*state, step, commands[i], 2, apart);
    const char *const within[] = {
        "SLURM_STEP_NUM_TASKS=4", "PMIX_NAMESPACE=slurm.pmix.4.1", "PMIX_RANK=0", SERVER, ONE_STEP, NULL};
    const char *const other[] = {
        "SLURM_STEP_NUM_TASKS=4", "PMIX_NAMESPACE=slurm.pmix.3.0", "PMIX_RANK=0", SERVER, ONE_STEP, NULL};
    expect(*state, pmi2, commands[1], 2, apart);
    expect(*state, within, commands[1], 2, apart);
    expect(*state, other, commands[1], 2, apart);
    expect(*state, torch, commands[10], 2, apart);
    static const char *const made[] = {"new", "new.partial", "out", "run", "drawn"};
    for (size_t i = 0; i < MR_COUNT(made); i++) {
        char *path = support_path("%s/%s", (const char *)*state, made[i]);
        assert_false(support_exists(path));
        free(path);
    }
}

static void help_and_version_are_for_everybody(void **state)
{
    const char *const step[] = {"SLURM_STEP_NUM_TASKS=4", NULL};
    expect(*state, step, LIST("--help"), 0, NULL);
    expect(*state, step, LIST("--version"), 0, NULL);
    expect(*state, step, LIST("help"), 0, NULL);
    expect(*state, step, LIST("help", "train"), 0, NULL);
    expect(*state, step, LIST("inspect", "--help"), 0, NULL);
    expect(*state, step, LIST("train", "--usage"), 0, NULL);
}

/* A batch script and the shell of salloc have the number of a job's tasks, and are one process. */
static void what_is_one_process_goes_on(void **state)
{
    const char *const *const ones[] = {
        LIST("SLURM_NTASKS=4", "SLURM_NPROCS=4", "SLURM_PROCID=0", "SLURM_JOB_ID=4", "SLURM_TASKS_PER_NODE=4"),
        LIST("SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4", ONE_STEP),
        /* An interactive step where PMIx is the default. */
        LIST("SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=4", "PMIX_NAMESPACE=slurm.pmix.4.0", "PMIX_RANK=0", SERVER),
        LIST("SLURM_STEP_NUM_TASKS=", "SLURM_NTASKS=x"),
        LIST("SLURM_STEP_NUM_TASKS=four"),
        LIST("SLURM_STEP_NUM_TASKS=0"),
        LIST("OMPI_COMM_WORLD_SIZE=1", "PMIX_NAMESPACE=1234", "PMIX_RANK=0", SERVER),
        /* mpirun -n 1 within a step of several tasks. */
        LIST("OMPI_COMM_WORLD_SIZE=1", "SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4"),
        LIST("PMI_SIZE=1", "PMI_RANK=0"),
        LIST("FLUX_JOB_SIZE=1"),
        LIST("PMIX_NAMESPACE=left-over"),
        /* A batch script that was submitted within a step. */
        LIST("PMIX_NAMESPACE=slurm.pmix.3.0", "SLURM_JOB_ID=4", "SLURM_NTASKS=4", SERVER),
        LIST("WORLD_SIZE=4"),
        LIST("WORLD_SIZE=1", "RANK=0", "MASTER_ADDR=localhost"),
        /* A script under torchrun that has its dataset verified by one of its processes. */
        LIST("WORLD_SIZE=4", "RANK=0", "MASTER_ADDR=localhost"),
    };
    for (size_t i = 0; i < MR_COUNT(ones); i++) {
        expect(*state, ones[i], LIST("verify", "data", "--quiet"), 0, NULL);
        expect(*state, ones[i], LIST("inspect", "data"), 0, NULL);
    }
}

/* MPI is asked who is there.  Here it finds nobody, as no launcher is at work. */
static void a_rank_that_mpi_finds_alone_does_no_work(void **state)
{
    const struct {
        const char *const *variables;
        const char *words;
    } cases[] = {
        {LIST("OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1"),
         "mpirun: started 4 processes (OMPI_COMM_WORLD_SIZE), "},
        {LIST("PMI_SIZE=3", "PMI_RANK=0"), "mpiexec: started 3 processes (PMI_SIZE), "},
        {LIST("FLUX_JOB_SIZE=2"), "flux: started 2 processes (FLUX_JOB_SIZE), "},
        {LIST("MV2_COMM_WORLD_SIZE=2"), "mpirun_rsh: started 2 processes (MV2_COMM_WORLD_SIZE), "},
        {LIST("JSM_NAMESPACE_SIZE=2"), "jsrun: started 2 processes (JSM_NAMESPACE_SIZE), "},
        {LIST("PMIX_NAMESPACE=slurm.pmix.4.0", "PMIX_RANK=0", "SLURM_STEP_NUM_TASKS=4", "SLURM_NTASKS=4", ONE_STEP),
         "srun: started 4 processes (SLURM_STEP_NUM_TASKS), "},
        {LIST("PMIX_NAMESPACE=slurm.pmix.4.0", "SLURM_NTASKS=4"), "srun: started 4 processes (SLURM_NTASKS), "},
        {LIST("PMIX_NAMESPACE=n", "PMIX_RANK=0", SERVER, "SLURM_NTASKS=4"),
         "srun: started 4 processes (SLURM_NTASKS), "},
    };
    if (system("command -v mpirun >/dev/null 2>&1") != 0) {
        support_cannot("MPI without a launcher", "mpirun is not installed");
        skip();
    }
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        expect(*state, cases[i].variables, LIST("verify", "data"), 2, cases[i].words);
        expect(*state, cases[i].variables, LIST("train", "data", "--output", "run"), 2,
               "but MPI finds only this one; use the mpirun of the Open MPI that millrace was built with, or srun "
               "--mpi=pmix\n");
    }
}

static void trainings_of_a_python_launcher_are_refused(void **state)
{
    expect(*state, LIST("WORLD_SIZE=4", "RANK=0", "MASTER_ADDR=localhost", "TORCHELASTIC_RUN_ID=none"),
           LIST("train", "data", "--output", "run"), 2,
           "torchrun: started 4 processes that cannot form one run, so each would do all the work; use mpirun, "
           "or srun --mpi=pmix\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_pmix_is_refused_by_every_command),
        cmocka_unit_test(help_and_version_are_for_everybody),
        cmocka_unit_test(what_is_one_process_goes_on),
        cmocka_unit_test(a_rank_that_mpi_finds_alone_does_no_work),
        cmocka_unit_test(trainings_of_a_python_launcher_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
