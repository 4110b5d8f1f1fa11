/* fuzz_text.c - path text, names, sizes and numbers, as found in files and on command lines.
 * Promises: path text is UTF-8 without control characters and gives back the very bytes; a quoted string is JSON of
 * the same text; numbers that print can be read. */
#include "base/hash.h"
#include "base/text.h"
#include "shards/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

static void check_path_text(const char *bytes, size_t len)
{
    mr_buf text = {0}, back = {0}, quoted = {0};
    mr_text_escape(&text, bytes, len);
    FUZZ_MUST(mr_utf8_valid(mr_buf_text(&text), text.len));
    for (size_t i = 0; i < text.len; i++)
        FUZZ_MUST(text.data[i] >= 0x20 && text.data[i] != 0x7F);
    FUZZ_MUST(mr_text_unescape(&back, mr_buf_text(&text), text.len));
    FUZZ_MUST(back.len == len && (len == 0 || memcmp(back.data, bytes, len) == 0));
    mr_json_add_path(&quoted, bytes, len);
    json_t *doc = json_loadb(mr_buf_text(&quoted), quoted.len, JSON_DECODE_ANY, NULL);
    FUZZ_MUST(doc && json_string_length(doc) == text.len);
    FUZZ_MUST(memcmp(json_string_value(doc), mr_buf_text(&text), text.len) == 0);
    json_decref(doc);
    json_t *value = mr_json_path(bytes, len);
    FUZZ_MUST(value && strcmp(json_string_value(value), mr_buf_text(&text)) == 0);
    json_decref(value);
    mr_buf_clear(&back);
    mr_text_unescape(&back, bytes, len); /* any bytes as if they were path text */
    mr_buf_free(&text);
    mr_buf_free(&back);
    mr_buf_free(&quoted);
}

static void check_numbers(const char *word)
{
    char out[32];
    uint64_t number, size;
    if (mr_text_parse_u64(word, &number)) {
        FUZZ_MUST(mr_text_parse_size(word, &size) || number > (uint64_t)1 << 63);
        FUZZ_MUST(strlen(mr_text_bytes(number, out)) < sizeof out);
        FUZZ_MUST(strlen(mr_text_count(number, out)) < sizeof out);
        FUZZ_MUST(strlen(mr_text_seconds((double)number / 1000, out)) < sizeof out);
    }
    mr_text_parse_size(word, &size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"ingest", "verify", "inspect", "show", "export", "reindex", NULL};
    uint8_t bytes[32];
    char hex[65];
    mr_buf word = {0};
    mr_buf_add(&word, data, size);
    mr_buf_add(&word, "", 1);
    const char *text = mr_buf_text(&word);
    check_path_text((const char *)data, size);
    check_numbers(text);
    const char *near = mr_text_nearest(text, words);
    FUZZ_MUST(!near || strlen(near) < 8);
    if (mr_split_name_ok(text))
        FUZZ_MUST(text[0] != '.' && !strchr(text, '/') && strlen(text) < 64);
    if (mr_unhex(text, bytes, sizeof bytes)) {
        mr_hex(bytes, sizeof bytes, hex);
        FUZZ_MUST(strcasecmp(hex, text) == 0);
    }
    mr_buf_free(&word);
    return 0;
}
