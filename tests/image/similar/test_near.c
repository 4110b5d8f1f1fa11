/* test_near.c - near-duplicates in a set: how many copies are found, that others are not, and what many pictures cost.
 * Invariant: the bounds are those that docs/verify.md states; more would be luck, less a regression.
 * Covers similar/near_hash.c, similar/near_table.c. */
#include <stdlib.h>
#include <string.h>

#include "image/similar/near.h"
#include "tests/support/images/alike.h"

enum { PHOTOS = 20 };

typedef struct set { /* pictures as grey cells; the first ones are the originals */
    mr_alike *looks;
    mr_near_picture *pictures;
    mr_near_found *found;
    size_t count, loads;
} set;

static set set_make(size_t count)
{
    set s = {calloc(count, sizeof *s.looks), calloc(count, sizeof *s.pictures), calloc(count, sizeof *s.found), count,
             0};
    assert_true(s.looks && s.pictures && s.found);
    return s;
}

static void set_free(set *s)
{
    free(s->looks);
    free(s->pictures);
    free(s->found);
}

static mr_status load(void *ctx, size_t i, unsigned worker, mr_alike *out, mr_error *err)
{
    set *s = ctx;
    (void)worker;
    (void)err;
    __atomic_add_fetch(&s->loads, 1, __ATOMIC_RELAXED);
    *out = s->looks[i];
    return MR_OK;
}

/* Consumes the file; the hash is made from the look that --check decode gives. */
static void put(set *s, size_t i, picture file, uint32_t split)
{
    mr_alike cells;
    uint32_t oddities;
    assert_int_equal(mr_image_decode_look(file.bytes, file.len, NULL, &oddities, &cells, NULL), MR_OK);
    assert_int_equal(mr_image_shrink(file.bytes, file.len, NULL, &s->looks[i], NULL), MR_OK);
    mr_near_set(&s->pictures[i], &cells);
    s->pictures[i].split = split;
    s->pictures[i].content = (uint32_t)i;
    picture_free(&file);
}

static void put_picture(set *s, size_t i, const mr_picture *photo, alike_edit edit, enum alike_codec codec,
                        uint32_t split)
{
    mr_picture copy = alike_copy(photo, edit);
    put(s, i, alike_file(&copy, codec), split);
    mr_picture_free(&copy);
}

static void put_copy(set *s, size_t i, uint64_t seed, alike_edit edit, enum alike_codec codec, uint32_t split)
{
    mr_picture photo = alike_photo(seed, 280, 210);
    put_picture(s, i, &photo, edit, codec, split);
    mr_picture_free(&photo);
}

static void search(set *s, unsigned jobs)
{
    mr_error err;
    const mr_near_search search = {.pictures = s->pictures,
                                   .count = s->count,
                                   .distance = MR_NEAR_DISTANCE_STANDARD,
                                   .jobs = jobs,
                                   .world = 1,
                                   .load = load,
                                   .ctx = s};
    memset(s->found, 0, s->count * sizeof *s->found);
    s->loads = 0;
    if (mr_near_find(&search, s->found, &err) != MR_OK)
        fail_msg("%s", err.text);
}

/* ---- recall and precision ---------------------------------------------------------------------------------------- */

static void test_copies_are_found_and_others_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        alike_edit edit;
        enum alike_codec codec;
        unsigned least; /* of PHOTOS */
    } copies[] = {
        {"encoded again", {0}, ALIKE_PNG, 20},
        {"at low quality", {0}, ALIKE_ROUGH_JPEG, 20},
        {"as WebP", {0}, ALIKE_WEBP, 20},
        {"brighter", {.gain = 1.3, .offset = 10}, ALIKE_JPEG, 20},
        {"darker", {.gain = 0.6}, ALIKE_JPEG, 20},
        {"mirrored", {.mirror = true}, ALIKE_JPEG, 20},
        {"turned by 90 degrees", {.quarters = 1}, ALIKE_JPEG, 20},
        {"rotated by 1 degree", {.degrees = 1}, ALIKE_JPEG, 19},
        {"rotated by -3 degrees", {.degrees = -3}, ALIKE_JPEG, 14},
        {"cropped to 95 %", {.zoom = 0.05}, ALIKE_JPEG, 19},
        {"cropped to 90 %", {.zoom = 0.10}, ALIKE_JPEG, 17},
    };
    mr_picture photos[PHOTOS];
    set s = set_make(2 * PHOTOS);
    for (unsigned i = 0; i < PHOTOS; i++) {
        photos[i] = alike_photo(1000 + i, 280, 210);
        put_picture(&s, i, &photos[i], (alike_edit){0}, ALIKE_JPEG, 0);
    }
    for (size_t c = 0; c < MR_COUNT(copies); c++) {
        unsigned found = 0;
        for (unsigned i = 0; i < PHOTOS; i++)
            put_picture(&s, PHOTOS + i, &photos[i], copies[c].edit, copies[c].codec, 1);
        search(&s, 2);
        for (unsigned i = 0; i < PHOTOS; i++) {
            const mr_near_found *copy = &s.found[PHOTOS + i];
            if (s.found[i].kind != MR_NEAR_UNIQUE || (copy->kind != MR_NEAR_UNIQUE && copy->other != i))
                fail_msg("%s: photograph %u is taken for another", copies[c].what, i);
            found += copy->kind == MR_NEAR_LEAK;
        }
        if (getenv("MILLRACE_TEST_SHOW"))
            printf("%-24s %u of %d\n", copies[c].what, found, PHOTOS);
        if (found < copies[c].least)
            fail_msg("%s: %u of %d copies are found, fewer than %u", copies[c].what, found, PHOTOS, copies[c].least);
    }
    for (unsigned i = 0; i < PHOTOS; i++)
        mr_picture_free(&photos[i]);
    set_free(&s);
}

static void test_turned_hashes(void **state)
{
    (void)state;
    mr_picture photo = alike_photo(5, 300, 300);
    set s = set_make(8);
    for (unsigned i = 0; i < 8; i++) {
        mr_picture copy = alike_copy(&photo, (alike_edit){.quarters = i % 4, .mirror = i / 4});
        put(&s, i, alike_file(&copy, ALIKE_PNG), 0);
        mr_picture_free(&copy);
    }
    for (unsigned i = 0; i < 8; i++) {
        int nearest = 64;
        for (unsigned way = 0; way < 8; way++) {
            int d = __builtin_popcountll(mr_near_turned(s.pictures[i].hash.windows[0], way) ^
                                         s.pictures[0].hash.windows[0]);
            nearest = d < nearest ? d : nearest;
        }
        assert_true(nearest <= 2);
    }
    mr_picture_free(&photo);
    set_free(&s);
}

/* A picture is a leak or a duplicate, never both, and equal contents are neither. */
static void test_kinds(void **state)
{
    (void)state;
    set s = set_make(6);
    mr_picture white = alike_tone(255, 255, 255);
    put_copy(&s, 0, 1, (alike_edit){0}, ALIKE_JPEG, 0);
    put_copy(&s, 1, 1, (alike_edit){.gain = 0.9}, ALIKE_JPEG, 0);
    put_copy(&s, 2, 2, (alike_edit){0}, ALIKE_JPEG, 0);
    put_copy(&s, 3, 1, (alike_edit){.gain = 0.8}, ALIKE_PNG, 1);
    put_copy(&s, 4, 2, (alike_edit){0}, ALIKE_JPEG, 1);
    s.pictures[4].content = 2;
    put(&s, 5, alike_file(&white, ALIKE_PNG), 1);
    search(&s, 1);
    static const uint8_t kinds[] = {MR_NEAR_UNIQUE, MR_NEAR_DUPLICATE, MR_NEAR_UNIQUE,
                                    MR_NEAR_LEAK,   MR_NEAR_UNIQUE,    MR_NEAR_UNIQUE};
    for (size_t i = 0; i < s.count; i++)
        assert_int_equal(s.found[i].kind, kinds[i]);
    assert_int_equal(s.found[1].other, 0);
    assert_int_equal(s.pictures[5].state, MR_NEAR_PLAIN);
    mr_picture_free(&white);
    set_free(&s);
}

/* ---- many pictures ----------------------------------------------------------------------------------------------- */

/* Hashes at random, and each tenth picture 0 to 10 bits from an earlier one: the tables find all of those. */
static void test_every_distance_is_found(void **state)
{
    (void)state;
    enum { COUNT = 5000 };
    set s = set_make(COUNT);
    mr_random rnd = support_random();
    mr_picture photo = alike_photo(1, 100, 80);
    put(&s, 0, alike_file(&photo, ALIKE_PNG), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        s.looks[i] = s.looks[0];
        s.pictures[i] = s.pictures[0];
        s.pictures[i].content = i;
        for (unsigned w = 0; w < MR_NEAR_WINDOWS; w++)
            s.pictures[i].hash.windows[w] = mr_random_u64(&rnd) & ~(uint64_t)1;
        if (i % 10 != 9)
            continue;
        uint64_t *hash = &s.pictures[i].hash.windows[0];
        *hash = s.pictures[i / 2].hash.windows[0];
        for (unsigned bits = i / 10 % (MR_NEAR_DISTANCE_STANDARD + 1); bits; bits--)
            *hash ^= (uint64_t)1 << (1 + mr_random_u64(&rnd) % 63);
    }
    search(&s, 2);
    for (uint32_t i = 9; i < COUNT; i += 10)
        if (s.found[i].kind == MR_NEAR_UNIQUE || s.found[i].distance > MR_NEAR_DISTANCE_STANDARD)
            fail_msg("picture %u is not found", i);
    mr_picture_free(&photo);
    set_free(&s);
}

/* One picture again and again: each is compared with a few, not with all before it. */
static void test_many_equal_pictures(void **state)
{
    (void)state;
    enum { COUNT = 2000 };
    set s = set_make(COUNT);
    mr_picture photo = alike_photo(1, 100, 80);
    put(&s, 0, alike_file(&photo, ALIKE_PNG), 0);
    for (uint32_t i = 1; i < COUNT; i++) {
        s.looks[i] = s.looks[0];
        s.pictures[i] = s.pictures[0];
        s.pictures[i].content = i;
    }
    search(&s, 2);
    for (uint32_t i = 1; i < COUNT; i++)
        assert_int_equal(s.found[i].kind, MR_NEAR_DUPLICATE);
    assert_true(s.loads <= 2 * COUNT);
    mr_picture_free(&photo);
    set_free(&s);
}

static void test_threads_and_ranks_agree(void **state)
{
    (void)state;
    enum { COUNT = 60, WORLD = 3 };
    set s = set_make(COUNT), parts = set_make(COUNT);
    for (unsigned i = 0; i < COUNT; i++)
        put_copy(&s, i, i / 3, (alike_edit){.gain = 1 - 0.1 * (i % 3)}, ALIKE_JPEG, i >= COUNT / 2);
    search(&s, 1);
    for (unsigned rank = 0; rank < WORLD; rank++) {
        const mr_near_search part = {.pictures = s.pictures,
                                     .count = COUNT,
                                     .distance = MR_NEAR_DISTANCE_STANDARD,
                                     .jobs = 4,
                                     .rank = rank,
                                     .world = WORLD,
                                     .load = load,
                                     .ctx = &s};
        assert_int_equal(mr_near_find(&part, parts.found, NULL), MR_OK);
    }
    assert_memory_equal(s.found, parts.found, COUNT * sizeof *s.found);
    set_free(&s);
    set_free(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_are_found_and_others_are_not),
        cmocka_unit_test(test_turned_hashes),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_every_distance_is_found),
        cmocka_unit_test(test_many_equal_pictures),
        cmocka_unit_test(test_threads_and_ranks_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
