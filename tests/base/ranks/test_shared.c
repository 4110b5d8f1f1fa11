/* test_shared.c - bytes that the ranks of a host have in common, under mpirun.
 * Invariant: the ranks are this program itself, started with the word "rank"; each draws the first one's bytes, and so
 * knows what it must get. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/ranks/shared.h"
#include "tests/support/support.h"

enum { BYTES = 300007 };

#define MUST(what)                                                                                                     \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "test_shared:%d: rank %u: not so: %s\n", __LINE__, mr_ranks_rank(ranks), #what);           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static uint8_t *draw(uint8_t seed)
{
    uint8_t *bytes = malloc(BYTES);
    for (size_t i = 0; bytes && i < BYTES; i++)
        bytes[i] = (uint8_t)(i * 31 + i / 255 + seed);
    return bytes;
}

/* `one`: whether the system lets the ranks have it in common. */
static void share(mr_ranks *ranks, uint8_t seed, bool one)
{
    bool first = mr_ranks_rank(ranks) == 0;
    uint8_t *bytes = draw(seed), *given = first ? draw(seed) : NULL;
    mr_shared *s = NULL;
    mr_error err;
    MUST(mr_shared_make(ranks, given, first ? BYTES : 0, &s, &err) == MR_OK);
    free(given); /* it is not lent */
    MUST(mr_shared_is_one(s) == one && mr_shared_len(s) == BYTES);
    MUST((uintptr_t)mr_shared_bytes(s) % 16 == 0 && memcmp(mr_shared_bytes(s), bytes, BYTES) == 0);
    if (first)
        mr_shared_free(s); /* the others keep it */
    MUST(mr_ranks_barrier(ranks, &err) == MR_OK);
    MUST(first || memcmp(mr_shared_bytes(s), bytes, BYTES) == 0);
    if (!first)
        mr_shared_free(s);
    free(bytes);
}

static int be_a_rank(void)
{
    mr_ranks *ranks = NULL, *host = NULL;
    mr_error err;
    struct rlimit limit, none;
    MUST(mr_ranks_begin(&ranks, &err) == MR_OK);
    MUST(mr_ranks_split(ranks, MR_RANKS_SAME_HOST, &host, &err) == MR_OK);
    share(host, 1, true);
    share(host, 2, true);
    /* The last rank can open no file: then all have copies. */
    MUST(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    if (mr_ranks_rank(host) + 1 == mr_ranks_world(host))
        MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
    share(host, 3, false);
    MUST(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    share(host, 4, true);
    if (mr_ranks_rank(ranks) == 0)
        puts("well");
    mr_ranks_end(host);
    mr_ranks_end(ranks);
    return 0;
}

static void start_ranks(unsigned count)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    support_result r = support_mpirun(count, (const char *const[]){self, "rank", NULL});
    support_assert_status(&r, 0);
    assert_non_null(strstr(r.out, "well"));
    support_result_free(&r);
}

static void test_all_ranks_get_it(void **state)
{
    (void)state;
    start_ranks(2);
    start_ranks(3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_ranks_get_it)};
    if (argc == 2 && strcmp(argv[1], "rank") == 0)
        return be_a_rank();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
