/* tokenizer.c - opens a tokenizer's files, tokenizer.json or vocab.json with merges.txt, and writes a tokenizer.json.
 * Invariant: mr_tokenizer_parse() of what mr_tokenizer_write() writes gives the same ids for every text, and writes the
 * same bytes. */
#include "train/text/tokenizer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "train/text/parts.h"

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static mr_status open_json(const char *path, mr_tokenizer **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MR_FILE_MAX, &bytes, err));
    return mr_tokenizer_parse(mr_buf_text(&bytes), bytes.len, path, out, err);
}

/* `dir` has `dir_len` bytes, and ends with a slash or is empty. */
static mr_status open_vocab(const char *dir, size_t dir_len, mr_tokenizer **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf vocab_path = {0}, merges_path = {0}, vocab = {0}, merges = {0};
    mr_buf_printf(&vocab_path, "%.*svocab.json", (int)dir_len, dir);
    mr_buf_printf(&merges_path, "%.*smerges.txt", (int)dir_len, dir);
    const char *vocab_name = mr_buf_text(&vocab_path), *merges_name = mr_buf_text(&merges_path);
    MR_TRY(mr_buf_status(&vocab_path, err, "opening a tokenizer"));
    MR_TRY(mr_buf_status(&merges_path, err, "opening a tokenizer"));
    MR_TRY(mr_file_read_all(AT_FDCWD, vocab_name, MR_FILE_MAX, &vocab, err));
    MR_TRY(mr_file_read_all(AT_FDCWD, merges_name, MR_FILE_MAX, &merges, err));
    return mr_tokenizer_parse_vocab(&(mr_vocab_file){mr_buf_text(&vocab), vocab.len, vocab_name},
                                    &(mr_vocab_file){mr_buf_text(&merges), merges.len, merges_name}, out, err);
}

static bool is_missing(const char *path)
{
    struct stat st;
    return stat(path, &st) != 0 && errno == ENOENT;
}

static mr_status open_directory(const char *path, mr_tokenizer **out, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf json = {0}, vocab = {0};
    mr_buf_printf(&json, "%s/tokenizer.json", path);
    mr_buf_printf(&vocab, "%s/vocab.json", path);
    const char *json_path = mr_buf_text(&json), *vocab_path = mr_buf_text(&vocab);
    if (json.failed || vocab.failed)
        return mr_fail_memory(err, "opening a tokenizer");
    if (!is_missing(json_path))
        return open_json(json_path, out, err);
    if (is_missing(vocab_path))
        return mr_fail(err, MR_BAD_DATA, "%s: holds neither tokenizer.json nor vocab.json with merges.txt", path);
    return open_vocab(vocab_path, strlen(path) + 1, out, err);
}

mr_status mr_tokenizer_open(const char *path, mr_tokenizer **out, mr_error *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    if (mr_dir_is(path))
        return open_directory(path, out, err);
    return strcmp(base, "vocab.json") == 0 ? open_vocab(path, (size_t)(base - path), out, err)
                                           : open_json(path, out, err);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void add_text(mr_buf *out, const mr_tokenizer *t, size_t at, size_t len)
{
    mr_json_add_string(out, len ? (const char *)t->text.data + at : "", len);
}

static const char *word(bool flag)
{
    return flag ? "true" : "false";
}

static void add_added(mr_buf *out, const mr_tokenizer *t)
{
    for (size_t i = 0; i < t->added_count; i++) {
        const mr_added *a = &t->added[i];
        mr_buf_printf(out, "%s{\"id\":%d,\"content\":", i ? "," : "", a->id);
        add_text(out, t, a->at, a->len);
        mr_buf_printf(out, ",\"single_word\":%s,\"lstrip\":%s,\"rstrip\":%s,\"normalized\":%s,\"special\":%s}",
                      word(a->single_word), word(a->lstrip), word(a->rstrip), word(a->normalized), word(a->special));
    }
}

static const mr_token *token_of(const mr_tokenizer *t, const mr_token *sorted, int32_t id)
{
    const mr_token wanted = {.id = id};
    return bsearch(&wanted, sorted, t->token_count, sizeof *sorted, mr_token_by_id);
}

static void add_model(mr_buf *out, const mr_tokenizer *t, const mr_token *sorted)
{
    const mr_token *unk = t->unk < 0 ? NULL : token_of(t, sorted, t->unk);
    mr_buf_add_text(out, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    if (unk)
        add_text(out, t, unk->at, unk->len);
    else
        mr_buf_add_text(out, "null");
    mr_buf_printf(out,
                  ",\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\",\"fuse_unk\":%s,"
                  "\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{",
                  word(t->fuse_unk));
    for (size_t i = 0; i < t->token_count; i++) {
        mr_buf_add_text(out, i ? "," : "");
        add_text(out, t, sorted[i].at, sorted[i].len);
        mr_buf_printf(out, ":%d", sorted[i].id);
    }
    mr_buf_add_text(out, "},\"merges\":[");
    for (size_t i = 0; i < t->merge_count; i++) {
        const mr_token *left = &t->tokens[t->merges[i].left], *right = &t->tokens[t->merges[i].right];
        mr_buf_add_text(out, i ? ",[" : "[");
        add_text(out, t, left->at, left->len);
        mr_buf_add_text(out, ",");
        add_text(out, t, right->at, right->len);
        mr_buf_add_text(out, "]");
    }
    mr_buf_add_text(out, "]}");
}

mr_status mr_tokenizer_write(const mr_tokenizer *t, mr_buf *out, mr_error *err)
{
    MR_AUTO(mr_scope_free) mr_token *sorted = mr_alloc(t->token_count, sizeof *sorted);
    if (!sorted)
        return mr_fail_memory(err, "writing a tokenizer");
    if (t->token_count) {
        memcpy(sorted, t->tokens, t->token_count * sizeof *sorted);
        qsort(sorted, t->token_count, sizeof *sorted, mr_token_by_id);
    }
    mr_buf_add_text(out, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    add_added(out, t);
    mr_buf_add_text(out, "],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
                         "\"trim_offsets\":true,\"use_regex\":true},");
    mr_buf_printf(out,
                  "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",%d],\"cls\":[\"<s>\",%d],"
                  "\"trim_offsets\":true,\"add_prefix_space\":false},",
                  t->end, t->begin);
    mr_buf_add_text(out, "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                         "\"use_regex\":true},");
    add_model(out, t, sorted);
    mr_buf_add_text(out, "}\n");
    return mr_buf_status(out, err, "writing a tokenizer");
}
