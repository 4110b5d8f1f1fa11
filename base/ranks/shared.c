/* shared.c - a sealed memfd, offered by the first rank of a host and mapped by all.
 *
 *      | bytes | token, 8 bytes |      the token tells this file from one that has its pid and number elsewhere
 *
 * Invariant: either all ranks of the host map the file, or all have copies. */
#include "base/ranks/shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/scope.h"

enum { TOKEN = 8, SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

struct mr_shared {
    uint8_t *bytes;
    uint64_t len;
    bool mapped; /* else from malloc() */
};

typedef struct offer {
    int64_t pid, file; /* file -1: there is none */
    uint64_t len;
    uint8_t token[TOKEN];
} offer;

/* A file with the bytes, which cannot be changed any more; -1: the system does not give it. */
static int make_file(const void *bytes, offer *o)
{
    MR_AUTO(mr_scope_close) int file = memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0 || getrandom(o->token, TOKEN, GRND_NONBLOCK) != TOKEN ||
        mr_file_write(file, bytes, o->len, "shared memory", NULL) != MR_OK ||
        mr_file_write(file, o->token, TOKEN, "shared memory", NULL) != MR_OK || fcntl(file, F_ADD_SEALS, SEALS) != 0)
        return -1;
    int made = file;
    file = -1;
    return made;
}

/* The name may belong to something else, such as a pipe or a terminal: opening it must do no harm. */
static int open_file(const offer *o)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)o->pid, (long long)o->file);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static uint8_t *map_file(int file, const offer *o)
{
    struct stat st;
    uint8_t token[TOKEN];
    int seals = file < 0 ? -1 : fcntl(file, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(file, &st) != 0 || (uint64_t)st.st_size != o->len + TOKEN ||
        mr_file_pread(file, token, TOKEN, o->len, "shared memory", NULL) != MR_OK ||
        memcmp(token, o->token, TOKEN) != 0)
        return NULL;
    void *memory = mmap(NULL, o->len + TOKEN, PROT_READ, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* The first rank's offer, on all. */
static mr_status share_offer(mr_ranks *host, offer *o, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf message = {0};
    mr_buf_add(&message, o, sizeof *o);
    MR_TRY(mr_ranks_agree(host, mr_buf_status(&message, err, "sharing"), err));
    MR_TRY(mr_ranks_share(host, &message, err));
    memcpy(o, message.data, sizeof *o);
    return MR_OK;
}

static mr_status copy(mr_ranks *host, const void *bytes, uint64_t len, mr_shared *s, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf message = {0};
    mr_buf_add(&message, bytes, len);
    MR_TRY(mr_ranks_agree(host, mr_buf_status(&message, err, "sharing"), err));
    MR_TRY(mr_ranks_share(host, &message, err));
    s->bytes = message.data;
    s->len = message.len;
    message = (mr_buf){0};
    return MR_OK;
}

static mr_status make(mr_ranks *host, const void *bytes, uint64_t len, mr_shared *s, mr_error *err)
{
    bool first = mr_ranks_rank(host) == 0;
    offer o = {.pid = getpid(), .file = -1, .len = len};
    MR_AUTO(mr_scope_close) int file = first ? make_file(bytes, &o) : -1;
    o.file = file;
    MR_TRY(share_offer(host, &o, err));
    if (!first && o.file >= 0)
        file = open_file(&o);
    uint8_t *memory = map_file(file, &o);
    uint64_t missing = memory == NULL;
    mr_status status = mr_ranks_reduce(host, MR_RANKS_OR, &missing, 1, err); /* until then the first keeps it open */
    if (status == MR_OK && !missing) {
        *s = (mr_shared){.bytes = memory, .len = o.len, .mapped = true};
        return MR_OK;
    }
    if (memory)
        munmap(memory, o.len + TOKEN);
    MR_TRY(status);
    return copy(host, bytes, len, s, err);
}

mr_status mr_shared_make(mr_ranks *host, const void *bytes, uint64_t len, mr_shared **out, mr_error *err)
{
    MR_AUTO(mr_scope_free) mr_shared *s = mr_alloc(1, sizeof *s);
    MR_TRY(mr_ranks_agree(host, s ? MR_OK : mr_fail_memory(err, "sharing"), err));
    MR_TRY(make(host, bytes, len, s, err));
    *out = s;
    s = NULL;
    return MR_OK;
}

const void *mr_shared_bytes(const mr_shared *s)
{
    return s->bytes;
}

uint64_t mr_shared_len(const mr_shared *s)
{
    return s->len;
}

bool mr_shared_is_one(const mr_shared *s)
{
    return s->mapped;
}

void mr_shared_free(mr_shared *s)
{
    if (!s)
        return;
    if (s->mapped)
        munmap(s->bytes, s->len + TOKEN);
    else
        free(s->bytes);
    free(s);
}
