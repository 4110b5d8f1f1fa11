/* test_slab.c - blocks of memory that are reused.
 * Invariant tested: aligned, never smaller than before, its first `keep` bytes kept; what an allocator gave goes back
 * to it, whatever fails. */
#include <stdlib.h>
#include <string.h>

#include "base/system/slab.h"
#include "tests/support/support.h"

typedef struct source {
    uint8_t *memory;
    size_t offset; /* from 64-byte alignment */
    unsigned given, taken;
    bool empty;
} source;

static void *give(void *ctx, size_t bytes)
{
    source *s = ctx;
    if (s->empty)
        return NULL;
    s->given++;
    s->memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    return s->memory + s->offset;
}

static void take(void *ctx, void *memory, size_t bytes)
{
    source *s = ctx;
    (void)bytes;
    s->taken++;
    free((uint8_t *)memory - s->offset);
}

static void test_it_grows_and_keeps(void **state)
{
    (void)state;
    mr_slab s = {0};
    mr_error err;
    static const size_t sizes[] = {1, 100, 5000, 100, 3 << 20, 9 << 20, 1};
    size_t capacity = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(mr_slab_reserve(&s, sizes[i], i ? 1 : 0, NULL, &err), MR_OK);
        assert_true(s.capacity >= sizes[i] && s.capacity >= capacity);
        assert_int_equal((uintptr_t)s.data % 64, 0);
        assert_true(i == 0 || s.data[0] == 77);
        memset(s.data, 77, sizes[i]);
        capacity = s.capacity;
    }
    assert_int_equal(mr_slab_reserve(&s, SIZE_MAX / 2, 0, NULL, &err), MR_SYSTEM);
    mr_slab_free(&s, NULL);
    assert_null(s.data);
    mr_slab_free(&s, NULL);
}

static void test_allocators(void **state)
{
    (void)state;
    source from = {0};
    mr_allocator allocator = {.alloc = give, .free = take, .ctx = &from};
    mr_slab s = {0};
    mr_error err;
    assert_int_equal(mr_slab_reserve(&s, 1000, 0, &allocator, &err), MR_OK);
    memcpy(s.data, "kept", 4);
    assert_int_equal(mr_slab_reserve(&s, 2000, 4, &allocator, &err), MR_OK);
    assert_memory_equal(s.data, "kept", 4);
    assert_true(from.given == 2 && from.taken == 1);
    from.empty = true;
    assert_int_equal(mr_slab_reserve(&s, 1 << 20, 4, &allocator, &err), MR_SYSTEM);
    assert_memory_equal(s.data, "kept", 4); /* the old memory is still there */
    mr_slab_free(&s, &allocator);
    assert_int_equal(from.given, from.taken);
}

static void test_memory_that_is_not_aligned_is_refused(void **state)
{
    (void)state;
    source from = {.offset = 8};
    mr_allocator allocator = {.alloc = give, .free = take, .ctx = &from};
    mr_slab s = {0};
    mr_error err;
    assert_int_equal(mr_slab_reserve(&s, 1000, 0, &allocator, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "64"));
    mr_slab_free(&s, &allocator);
    assert_true(from.given == 1 && from.taken == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_grows_and_keeps),
        cmocka_unit_test(test_allocators),
        cmocka_unit_test(test_memory_that_is_not_aligned_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
