/* window.c - making, finding and watching the memory that the ranks of a host share.
 * Invariant: the memory has no name in the file system: it ends with the last process that maps it. */
#include "train/exchange/window.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"

enum { PAGE = 4096, HUGE = 2 << 20 };

/* Where the others find the first rank's memory. */
typedef struct mr_window_offer {
    int64_t pid, file;
    uint64_t bytes, token;
} mr_window_offer;

/* Moves *at past `count` elements of `size` and to a multiple of `align`; false when that wraps. */
static bool add_up(uint64_t *at, uint64_t count, uint64_t size, uint64_t align)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || __builtin_add_overflow(bytes, align - 1, &bytes) ||
        __builtin_add_overflow(*at, bytes, at))
        return false;
    *at -= *at % align;
    return true;
}

/* Places everything for w->locals and w->world from `memory` on (NULL: only sets w->bytes).  A rank's gradients
 * begin on a new huge page where they fill one, so that no page belongs to two ranks. */
static bool lay_out(mr_window *w, uint64_t count, void *memory)
{
    uint64_t align = count >= HUGE / sizeof(float) ? HUGE : PAGE, stride = 0, at = 0, place[4];
    char *base = memory;
    bool good = add_up(&at, 1, sizeof(mr_window_head), 64);
    place[0] = at;
    good = good && add_up(&at, w->locals, sizeof(mr_window_line), 64);
    place[1] = at;
    good = good && add_up(&at, 2 * (uint64_t)w->world, sizeof(mr_window_entry), 64);
    place[2] = at;
    good = good && add_up(&at, 2 * ((uint64_t)w->locals + 1), sizeof(mr_window_text), align);
    place[3] = at;
    good = good && add_up(&stride, count ? count : 1, sizeof(float), align);
    good = good && add_up(&at, w->locals == 1 ? 1 : (uint64_t)w->locals + 1, stride, align) && at <= PTRDIFF_MAX - HUGE;
    w->bytes = at;
    w->stride = stride / sizeof(float);
    if (!good || !memory)
        return good;
    w->memory = memory;
    w->head = memory;
    w->lines = (mr_window_line *)(void *)(base + place[0]);
    w->entries = (mr_window_entry *)(void *)(base + place[1]);
    w->texts = (mr_window_text *)(void *)(base + place[2]);
    w->gradients = (float *)(void *)(base + place[3]);
    return true;
}

/* file -1: private memory.  The memory starts at a multiple of HUGE, or the kernel cannot use huge pages; the addresses
 * reserved for that are *reserved. */
static void *map(uint64_t bytes, int file, void **reserved)
{
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    char *all = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    void *start = (void *)(((uintptr_t)all + HUGE - 1) / HUGE * HUGE);
    void *memory = mmap(start, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, file, 0);
    if (memory == MAP_FAILED) {
        munmap(all, bytes + HUGE);
        return NULL;
    }
    if (bytes >= HUGE)
        madvise(memory, bytes, MADV_HUGEPAGE); /* best effort */
    *reserved = all;
    return memory;
}

static bool lock(int file, unsigned local)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = local, .l_len = 1};
    return fcntl(file, F_SETLK, &l) == 0;
}

static int make_file(mr_window *w, uint64_t count)
{
    int file = memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0)
        return -1;
    /* Sealed: a peer that made it shorter would raise SIGBUS here. */
    void *memory = NULL;
    if (ftruncate(file, (off_t)w->bytes) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
        memory = map(w->bytes, file, &w->reserved);
    if (!memory) {
        close(file);
        return -1;
    }
    lay_out(w, count, memory);
    return file;
}

/* In another pid namespace the pid may be another process: the token tells. */
static int open_file(mr_window *w, uint64_t count, const mr_window_offer *offer)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)offer->pid, (long long)offer->file);
    /* The name may belong to something else, such as a pipe or a terminal: opening it must do no harm. */
    int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return -1;
    void *memory = NULL;
    if (fstat(file, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == w->bytes)
        memory = map(w->bytes, file, &w->reserved);
    if (!memory || ((mr_window_head *)memory)->token != offer->token) {
        if (memory)
            munmap(w->reserved, w->bytes + HUGE);
        close(file);
        return -1;
    }
    lay_out(w, count, memory);
    return file;
}

static mr_window_offer make_offer(const mr_window *w)
{
    mr_window_offer offer = {.pid = getpid(), .file = w->file, .bytes = w->bytes};
    if (getrandom(&offer.token, sizeof offer.token, GRND_NONBLOCK) != sizeof offer.token)
        offer.token = (uint64_t)(uintptr_t)w->memory ^ (uint64_t)offer.pid << 48 ^ w->bytes;
    return offer;
}

bool mr_window_share(mr_ranks *host, unsigned world, uint64_t count, mr_window *w)
{
    mr_window mine = {.file = -1, .local = mr_ranks_rank(host), .locals = mr_ranks_world(host), .world = world};
    mr_window_offer offer = {.file = -1};
    MR_AUTO(mr_buf_free) mr_buf message = {0};
    bool first = mine.local == 0, fits = lay_out(&mine, count, NULL);
    if (first && fits)
        mine.file = make_file(&mine, count);
    if (first && mine.file >= 0) {
        offer = make_offer(&mine);
        mine.head->token = offer.token; /* NOLINT: make_file() has laid it out, as lay_out() said it fits */
    }
    mr_buf_add(&message, &offer, sizeof offer);
    mr_status status = mr_ranks_agree(host, mr_buf_status(&message, NULL, ""), NULL);
    if (status == MR_OK)
        status = mr_ranks_share(host, &message, NULL);
    if (status == MR_OK)
        memcpy(&offer, message.data, sizeof offer);
    if (status == MR_OK && !first && fits && offer.file >= 0 && offer.bytes == mine.bytes)
        mine.file = open_file(&mine, count, &offer);
    uint64_t missing = mine.file < 0 || !lock(mine.file, mine.local);
    if (status == MR_OK) /* also: no lock is checked before it is taken */
        status = mr_ranks_reduce(host, MR_RANKS_OR, &missing, 1, NULL);
    if (status == MR_OK && !missing)
        *w = mine;
    else
        mr_window_close(&mine, false);
    return status == MR_OK && !missing;
}

mr_status mr_window_alone(unsigned world, uint64_t count, mr_window *w, mr_error *err)
{
    mr_window mine = {.file = -1, .locals = 1, .world = world};
    void *memory = lay_out(&mine, count, NULL) ? map(mine.bytes, -1, &mine.reserved) : NULL;
    if (!memory)
        return mr_fail_memory(err, "allocating gradients");
    lay_out(&mine, count, memory);
    *w = mine;
    return MR_OK;
}

void mr_window_close(mr_window *w, bool keep)
{
    if (w->memory)
        atomic_store(&w->lines[w->local].left, 1);
    if (w->memory && !keep)
        munmap(w->reserved, w->bytes + HUGE);
    if (w->file >= 0)
        close(w->file); /* releases the lock */
    *w = (mr_window){.file = -1};
}

float *mr_window_gradients(const mr_window *w, unsigned local)
{
    return w->gradients + local * w->stride;
}

float *mr_window_sum(const mr_window *w)
{
    return mr_window_gradients(w, w->locals == 1 ? 0 : w->locals);
}

void mr_window_ring(mr_window *w)
{
    atomic_fetch_add(&w->head->bell, 1);
    if (w->locals > 1 || w->threaded)
        syscall(SYS_futex, &w->head->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

uint32_t mr_window_bell(const mr_window *w)
{
    return atomic_load(&w->head->bell);
}

void mr_window_sleep(mr_window *w, uint32_t bell, long ns)
{
    struct timespec nap = {.tv_nsec = ns};
    syscall(SYS_futex, &w->head->bell, FUTEX_WAIT, bell, ns ? &nap : NULL, NULL, 0);
}

static bool is_gone(const mr_window *w, unsigned local)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = local, .l_len = 1};
    return local != w->local && fcntl(w->file, F_GETLK, &l) == 0 && l.l_type == F_UNLCK;
}

int mr_window_gone(const mr_window *w, int only)
{
    uint32_t claimed = w->file >= 0 ? atomic_load(&w->head->gone) : 0;
    if (claimed && (only < 0 || claimed - 1 == (unsigned)only))
        return (int)claimed - 1;
    for (unsigned i = 0; w->file >= 0 && i < w->locals; i++)
        if ((only < 0 || i == (unsigned)only) && is_gone(w, i))
            return (int)i;
    return -1;
}

bool mr_window_left(const mr_window *w, int local)
{
    return atomic_load(&w->lines[local].left);
}

bool mr_window_claim(mr_window *w, int local)
{
    uint32_t none = 0;
    return atomic_compare_exchange_strong(&w->head->gone, &none, (uint32_t)local + 1);
}
