/* fuzz_tokenizer.c - a tokenizer.json; where the input has a NUL, a vocab.json before it and a merges.txt after it.
 * Promises: what is taken gives ids below its size for any text, the same whether cut or whole, by a new or a used
 * scratch; and it is written as a file that is taken, gives the same ids, and is written the same again. */
#include "tests/fuzz/fuzz.h"
#include "train/text/parts.h"

enum { TEXT = 512, MAX = 3 * TEXT + 2, CUT = 9 };

static void check_text(const mr_tokenizer *t, const mr_tokenizer *again, const uint8_t *data, size_t size)
{
    static int32_t ids[MAX], other[MAX];
    size_t len = size < TEXT ? size : TEXT, count, other_count;
    mr_tokenizer_scratch *s = mr_tokenizer_scratch_new();
    if (!s)
        exit(3);
    /* From the end, too: there are no brackets of JSON alone. */
    const char *text = (const char *)data + (size - len);
    FUZZ_MUST(mr_tokenizer_encode(t, s, text, len, MAX, ids, &count, NULL) == MR_OK);
    FUZZ_MUST(count >= 2 && count <= MAX && ids[0] == t->begin && ids[count - 1] == t->end);
    for (size_t i = 0; i < count; i++)
        FUZZ_MUST(ids[i] >= 0 && (uint32_t)ids[i] < mr_tokenizer_size(t));
    FUZZ_MUST(mr_tokenizer_encode(again, s, text, len, MAX, other, &other_count, NULL) == MR_OK);
    FUZZ_MUST(count == other_count && memcmp(ids, other, count * sizeof *ids) == 0);
    FUZZ_MUST(mr_tokenizer_encode(t, s, text, len, CUT, other, &other_count, NULL) == MR_OK);
    FUZZ_MUST(other_count == (count < CUT ? count : CUT) && other[other_count - 1] == t->end);
    FUZZ_MUST(memcmp(ids, other, (other_count - 1) * sizeof *ids) == 0);
    mr_tokenizer_scratch_free(s);
}

static mr_status parse(const uint8_t *data, size_t size, mr_tokenizer **out, mr_error *err)
{
    const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
    if (!end)
        return mr_tokenizer_parse(data, size, "tokenizer.json", out, err);
    const size_t len = (size_t)(end - data);
    return mr_tokenizer_parse_vocab(&(mr_vocab_file){data, len, "vocab.json"},
                                    &(mr_vocab_file){end + 1, size - len - 1, "merges.txt"}, out, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_tokenizer *t = NULL, *again = NULL;
    mr_buf json = {0}, other = {0};
    mr_error err;
    mr_status status = parse(data, size, &t, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !t);
        fuzz_refused(status, &err);
        return 0;
    }
    FUZZ_MUST(mr_tokenizer_pad(t) >= 0 && (uint32_t)mr_tokenizer_pad(t) < mr_tokenizer_size(t));
    FUZZ_MUST(mr_tokenizer_write(t, &json, &err) == MR_OK);
    FUZZ_MUST(mr_tokenizer_parse(json.data, json.len, "again", &again, &err) == MR_OK);
    FUZZ_MUST(mr_tokenizer_write(again, &other, &err) == MR_OK);
    FUZZ_MUST(json.len == other.len && memcmp(json.data, other.data, json.len) == 0);
    check_text(t, again, data, size);
    mr_tokenizer_free(t);
    mr_tokenizer_free(again);
    mr_buf_free(&json);
    mr_buf_free(&other);
    return 0;
}
