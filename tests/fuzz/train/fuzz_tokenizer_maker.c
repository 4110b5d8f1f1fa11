/* fuzz_tokenizer_maker.c - a tokenizer learned from foreign texts: the input's, with a NUL between two.
 * Promises: the order of the texts does not matter; it has no more ids than were asked for and gives no others; it is
 * written as a file that is taken and written the same again. */
#include "tests/fuzz/fuzz.h"
#include "train/text/learn.h"

enum { TEXTS = 64, MORE = 100, IDS = 512 };

static mr_tokenizer *learn(const uint8_t *data, size_t size, bool backward, uint32_t most)
{
    mr_tokenizer_maker *m = mr_tokenizer_maker_new();
    mr_tokenizer *t = NULL;
    size_t at[TEXTS], len[TEXTS], count = 0;
    mr_error err;
    FUZZ_MUST(m);
    for (size_t from = 0; from <= size && count < TEXTS; from += len[count++] + 1) {
        at[count] = from;
        len[count] = count + 1 < TEXTS ? strnlen((const char *)data + from, size - from) : size - from;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = backward ? count - 1 - i : i;
        FUZZ_MUST(mr_tokenizer_maker_add(m, (const char *)data + at[k], len[k], &err) == MR_OK);
    }
    FUZZ_MUST(mr_tokenizer_maker_finish(m, most, &t, &err) == MR_OK);
    mr_tokenizer_maker_free(m);
    return t;
}

static void write_json(const mr_tokenizer *t, mr_buf *out)
{
    mr_error err;
    mr_buf_clear(out);
    FUZZ_MUST(mr_tokenizer_write(t, out, &err) == MR_OK);
}

static bool same(const mr_buf *a, const mr_buf *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static void check_ids(const mr_tokenizer *t, const uint8_t *data, size_t size)
{
    int32_t ids[IDS];
    size_t count;
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    FUZZ_MUST(s && mr_tokenizer_encode(t, s, (const char *)data, size, IDS, ids, &count, NULL) == MR_OK);
    FUZZ_MUST(count >= 2 && count <= IDS);
    for (size_t i = 0; i < count; i++)
        FUZZ_MUST(ids[i] >= 0 && (uint32_t)ids[i] < mr_tokenizer_size(t));
    mr_tokenizer_scratch_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t most = MR_LEARN_MIN + (uint32_t)(size % MORE);
    mr_tokenizer *t = learn(data, size, false, most), *backward = learn(data, size, true, most), *read = NULL;
    mr_buf json = {0}, other = {0};
    mr_error err;
    FUZZ_MUST(mr_tokenizer_size(t) >= MR_LEARN_MIN && mr_tokenizer_size(t) <= most);
    write_json(t, &json);
    write_json(backward, &other);
    FUZZ_MUST(same(&json, &other));
    FUZZ_MUST(mr_tokenizer_parse(json.data, json.len, "again", &read, &err) == MR_OK);
    write_json(read, &other);
    FUZZ_MUST(same(&json, &other));
    check_ids(read, data, size);
    mr_tokenizer_free(t);
    mr_tokenizer_free(backward);
    mr_tokenizer_free(read);
    mr_buf_free(&json);
    mr_buf_free(&other);
    return 0;
}
