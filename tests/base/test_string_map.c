/* test_string_map.c - tables by a hash: texts and pairs of ids that a stranger chose to stand in one place of them.
 * Invariant tested: a text is found by its number and looked for in a few places, however the others were chosen.  What
 * is counted are looks and neighbours, not time. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/support/support.h"
#include "train/text/learn.h"
#include "train/text/parts.h"

/* Where as many texts come into a table with twice the room, the longest run of neighbours is around 60 if chance puts
 * them there. */
enum { MANY = 2048, ROOM = 2 * MANY, TEXT = 8, RUN_MAX = 512 };

typedef struct texts {
    char items[MANY][TEXT + 1];
    size_t looks;
} texts;

static const void *text_at(const void *list, size_t number, size_t *len)
{
    texts *t = (texts *)(uintptr_t)list;
    t->looks++;
    *len = strlen(t->items[number]);
    return t->items[number];
}

/* Texts whose hashes, without a seed, have the same low bits, as many as choose the place. */
static texts *make_collisions(void)
{
    texts *t = calloc(1, sizeof *t);
    char text[TEXT + 1];
    uint64_t first = 0;
    assert_non_null(t);
    for (size_t count = 0, i = 0; count < MANY; i++) {
        snprintf(text, sizeof text, "%08zx", i);
        uint64_t place = mr_hash64(text, TEXT) % ROOM;
        first = i ? first : place;
        if (place == first)
            memcpy(t->items[count++], text, sizeof text);
    }
    return t;
}

/* ---- the finder -------------------------------------------------------------------------------------------------- */

static void test_finds_what_is_there(void **state)
{
    static const char *const words[] = {"", "a", "ab", "b"};
    texts *t = calloc(1, sizeof *t);
    mr_string_map f = {0};
    (void)state;
    assert_non_null(t);
    assert_int_equal(mr_string_map_find(&f, text_at, t, "a", 1), SIZE_MAX);
    for (size_t i = 0; i < MANY; i++) {
        if (i < MR_COUNT(words))
            strcpy(t->items[i], words[i]);
        else
            snprintf(t->items[i], sizeof t->items[i], "t%zu", i);
        size_t len = strlen(t->items[i]);
        assert_int_equal(mr_string_map_find(&f, text_at, t, t->items[i], len), SIZE_MAX);
        assert_true(mr_string_map_add(&f, text_at, t, t->items[i], len));
    }
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(mr_string_map_find(&f, text_at, t, t->items[i], strlen(t->items[i])), i);
    assert_int_equal(mr_string_map_find(&f, text_at, t, "t", 1), SIZE_MAX);
    assert_int_equal(mr_string_map_find(&f, text_at, t, "ab", 1), 1);
    mr_string_map_release(&f);
    assert_int_equal(mr_string_map_find(&f, text_at, t, "a", 1), SIZE_MAX);
    free(t);
}

static void test_chosen_texts(void **state)
{
    texts *t = make_collisions();
    mr_string_map f = {0};
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        assert_true(mr_string_map_add(&f, text_at, t, t->items[i], TEXT));
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(mr_string_map_find(&f, text_at, t, t->items[i], TEXT), i);
    /* Each is put there, put again as often as the table grows, and found: a handful of looks.  In one place they
     * would be MANY / 2 for each time. */
    assert_in_range(t->looks, MANY, 32 * MANY);
    mr_string_map_release(&f);
    free(t);
}

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* The longest run of places that are taken. */
static size_t longest_run(bool (*taken)(const void *table, size_t i), const void *table, size_t size)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < 2 * size && run <= size; i++) {
        run = taken(table, i % size) ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static bool number_taken(const void *table, size_t i)
{
    return ((const uint32_t *)table)[i] != 0;
}

static bool pair_taken(const void *table, size_t i)
{
    return ((const mr_merge_slot *)table)[i].pair != UINT64_MAX;
}

static void add_token(mr_tokenizer *t, const char *text, int64_t id)
{
    mr_error err;
    if (mr_token_add(t, text, strlen(text), id, "t", &err) != MR_OK)
        fail_msg("%s", err.text);
}

static mr_tokenizer *begin_tokenizer(void)
{
    mr_tokenizer *t;
    assert_int_equal(mr_tokenizer_new(&t, NULL), MR_OK);
    add_token(t, "<s>", 0);
    add_token(t, "<pad>", 1);
    add_token(t, "</s>", 2);
    return t;
}

static void test_chosen_tokens(void **state)
{
    texts *chosen = make_collisions();
    mr_tokenizer *t = begin_tokenizer();
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    (void)state;
    for (size_t i = 0; i < MANY - 3; i++)
        add_token(t, chosen->items[i], 3 + (int64_t)i);
    assert_int_equal(t->by_text.size, ROOM);
    assert_in_range(longest_run(number_taken, t->by_text.slots, t->by_text.size), 1, RUN_MAX);
    assert_int_equal(mr_token_find(t, chosen->items[MANY - 4], TEXT), MANY - 1);
    mr_tokenizer_free(t);
    /* Captions that one is learned from are a stranger's, too; a word begins with a letter, all of them come once. */
    assert_non_null(m);
    for (uint64_t i = 0, count = 0; count < MANY - 1; i++) {
        char word[TEXT + 1];
        for (int at = 0; at < TEXT; at++)
            word[at] = (char)('a' + (i >> 4 * at & 15));
        word[TEXT] = '\0';
        if (mr_hash64(word, TEXT) % ROOM != 0)
            continue;
        assert_int_equal(mr_tokenizer_maker_add(m, word, TEXT, NULL), MR_OK);
        count++;
    }
    assert_int_equal(m->word_count, MANY - 1);
    assert_in_range(longest_run(number_taken, m->table, m->table_size), 1, RUN_MAX);
    mr_tokenizer_maker_free(m);
    free(chosen);
}

static uint64_t unseeded(uint64_t pair)
{
    return mr_hash64(&pair, sizeof pair);
}

static uint64_t by_golden_ratio(uint64_t pair) /* Knuth, TAOCP 3, section 6.4 */
{
    pair *= 0x9E3779B97F4A7C15u;
    return pair ^ pair >> 32;
}

/* Ids may be any: those of the right halves of merges are chosen so that the pairs hash to one place. */
static void test_chosen_ids(void **state)
{
    enum { LEFT = 3, FIRST = 4, JOINED = MR_ID_MAX - MANY };
    static uint64_t (*const hashes[])(uint64_t) = {unseeded, by_golden_ratio};
    (void)state;
    for (size_t h = 0; h < MR_COUNT(hashes); h++) {
        mr_tokenizer *t = begin_tokenizer();
        mr_error err;
        uint64_t last = 0;
        add_token(t, "a", LEFT);
        for (uint64_t id = FIRST, count = 0; count < MANY; id++) {
            char right[16], joined[32];
            if (hashes[h]((uint64_t)LEFT << 32 | id) % ROOM != 0)
                continue;
            assert_in_range(id, FIRST, JOINED - 1);
            int len = snprintf(right, sizeof right, "r%zu", (size_t)id);
            snprintf(joined, sizeof joined, "a%s", right);
            add_token(t, right, (int64_t)id);
            add_token(t, joined, JOINED + (int64_t)count++);
            assert_int_equal(mr_merge_add(t, "a", 1, right, (size_t)len, "t", &err), MR_OK);
            last = id;
        }
        if (mr_tokenizer_seal(t, "t", &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(t->table_mask, ROOM - 1);
        assert_in_range(longest_run(pair_taken, t->table, ROOM), 1, RUN_MAX);
        const mr_merge_slot *merge = mr_merge_of(t, LEFT, (int32_t)last);
        assert_true(merge && merge->merged == JOINED + MANY - 1 && merge->rank == MANY - 1);
        assert_null(mr_merge_of(t, (int32_t)last, LEFT));
        mr_tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_finds_what_is_there),
        cmocka_unit_test(test_chosen_texts),
        cmocka_unit_test(test_chosen_tokens),
        cmocka_unit_test(test_chosen_ids),
    };
    return cmocka_run_group_tests_name("finder", tests, NULL, NULL);
}
