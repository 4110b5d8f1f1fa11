/* launch.c - the launchers that millrace knows, by the variables that they set for each process.
 * Invariant: the first matching row decides, so a launcher comes before those whose variables it passes on: Open MPI's
 * mpirun runs inside a Slurm job, and Slurm's srun inside a job of torchrun.
 *
 * Sources: mpirun(1) of Open MPI; srun(1), sbatch(1) of Slurm; the PMIx standard; MPICH's Hydra (PMI_SIZE);
 * flux-environment(7); torchrun's "Environment Variables". */
#include "base/ranks/launch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

typedef struct launcher {
    const char *by;
    const char *size;    /* variable with the number of processes; NULL: there is none */
    const char *with[2]; /* variables that must be set, too */
    const char *without; /* a variable that must not be set */
    bool pmix;           /* it offers PMIx */
    const char *command; /* the only command that `apart` applies to; NULL: all */
    bool apart;          /* its processes cannot join */
    bool final;          /* matches even if it started a single process */
} launcher;

static const launcher launchers[] = {
    {.by = "mpirun", .size = "OMPI_COMM_WORLD_SIZE", .final = true},
    {.by = "srun", .size = "SLURM_STEP_NUM_TASKS", .pmix = true},
    {.by = "srun", .size = "SLURM_STEP_NUM_TASKS", .apart = true},
    /* A step that does not set its own number; a batch script, which is one process, has no PMIx. */
    {.by = "srun", .size = "SLURM_NTASKS", .pmix = true, .without = "SLURM_STEP_NUM_TASKS"},
    {.by = "jsrun", .size = "JSM_NAMESPACE_SIZE"},
    {.by = "mpiexec", .size = "PMIX_SIZE"},
    {.by = "mpiexec", .size = "PMI_SIZE"},
    {.by = "mpirun_rsh", .size = "MV2_COMM_WORLD_SIZE"},
    {.by = "flux", .size = "FLUX_JOB_SIZE"},
    {.by = "prun", .pmix = true, .with = {"PMIX_RANK"}, .without = "SLURM_STEP_NUM_TASKS"},
    /* A training script may start `millrace verify` in one of its processes. */
    {.by = "torchrun", .size = "WORLD_SIZE", .with = {"RANK", "MASTER_ADDR"}, .command = "train", .apart = true},
};

/* Every PMIx server sets a variable with its address for each protocol version that it supports. */
static bool has_server(void)
{
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "PMIX_SERVER_URI", strlen("PMIX_SERVER_URI")) == 0)
            return true;
    return false;
}

/* Whether the text at *at is the variable's value, if it is set, followed by `mark`; moves *at past the number. */
static bool is_number_of(const char *variable, const char **at, char mark)
{
    const char *value = getenv(variable);
    size_t len = strspn(*at, "0123456789");
    bool same = !value || (strlen(value) == len && strncmp(value, *at, len) == 0);
    *at += len;
    return same && **at == mark;
}

/* A step without PMIx started within one that has it inherits its variables, so the namespace must be this step's:
 * Slurm's is slurm.pmix.JOB.STEP.  A heterogeneous step has the number of only one of its jobs. */
static bool has_pmix(void)
{
    static const char slurm[] = "slurm.pmix.";
    const char *name = getenv("PMIX_NAMESPACE");
    if (!name || strncmp(name, slurm, sizeof slurm - 1) != 0 || getenv("SLURM_HET_SIZE"))
        return name != NULL;
    name += sizeof slurm - 1;
    return is_number_of("SLURM_JOB_ID", &name, '.') && name++ && is_number_of("SLURM_STEP_ID", &name, '\0');
}

static bool fits(const launcher *l, uint64_t *tasks)
{
    const char *size = l->size ? getenv(l->size) : NULL;
    *tasks = 0;
    for (size_t i = 0; i < MR_COUNT(l->with); i++)
        if (l->with[i] && !getenv(l->with[i]))
            return false;
    if ((l->without && getenv(l->without)) || (l->pmix && !has_pmix()))
        return false;
    if (!l->size)
        return has_server();
    return size && mr_text_parse_u64(size, tasks) && *tasks >= (l->final ? 1 : 2);
}

static const launcher *find(uint64_t *tasks)
{
    for (size_t i = 0; i < MR_COUNT(launchers); i++)
        if (fits(&launchers[i], tasks))
            return *tasks == 1 ? NULL : &launchers[i];
    return NULL;
}

mr_launch mr_launch_look(void)
{
    uint64_t tasks;
    const launcher *l = find(&tasks);
    if (!l)
        return (mr_launch){.tasks = 1};
    return (mr_launch){l->by, l->size, tasks, l->apart, l->pmix && !has_server()};
}

mr_status mr_launch_check(const char *command, mr_error *err)
{
    uint64_t tasks;
    const launcher *l = find(&tasks);
    if (!l || !l->apart || (l->command && strcmp(l->command, command) != 0))
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: started %llu processes that cannot form one run, so each would do all the work; %s", l->by,
                   (unsigned long long)tasks, l->command ? "use mpirun, or srun --mpi=pmix" : "use srun --mpi=pmix");
}

mr_status mr_launch_joined(const mr_launch *l, unsigned world, mr_error *err)
{
    if (world > 1 || l->tasks < 2)
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: started %llu processes (%s), but MPI finds only this one; use the mpirun of the "
                   "Open MPI that millrace was built with, or srun --mpi=pmix",
                   l->by, (unsigned long long)l->tasks, l->variable);
}
