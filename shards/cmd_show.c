/* cmd_show.c - `millrace show DATASET SPLIT N`: one sample as the trainer will see it.
 * Invariant: the image and meta shown have matched their hashes, and the meta's numbers are shown as the source wrote
 * them: its text is reformatted, never parsed into numbers. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "shards/dataset/dataset.h"
#include "shards/manifest/json_lay_out.h"
#include "shards/manifest/manifest.h"
#include "shards/format/meta.h"
#include "shards/commands.h"

typedef unsigned long long ull;

typedef struct request {
    const char *dir, *split, *image;
    uint64_t sample;
    bool json, force;
    mr_dataset *ds;
    mr_sample_view view;
} request;

static const mr_option options[] = {
    {"image", 0, MR_ARG_PATH, MR_FIELD(request, image), .value = "FILE",
     .help = "write the encoded image to FILE (-: standard output) and print nothing else"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, force), .help = "replace FILE of --image, if it is an image"},
    {"json", 0, MR_ARG_FLAG, MR_FIELD(request, json), .own = true, .help = "print one JSON object"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {
    {.value = "DATASET", .kind = MR_ARG_PATH, MR_FIELD(request, dir)},
    {.value = "SPLIT", .kind = MR_ARG_TEXT, MR_FIELD(request, split)},
    {.value = "N", .kind = MR_ARG_COUNT, MR_FIELD(request, sample)},
    {0},
};

static mr_status check(void *ctx, mr_error *err)
{
    const request *q = ctx;
    if (q->image && q->json)
        return mr_fail(err, MR_MISUSE, "--image and --json exclude each other");
    return MR_OK;
}

/* ---- facts ---------------------------------------------------------------------------------------------------- */

static const struct {
    uint32_t flag;
    const char *word;
} flag_words[] = {
    {MR_FLAG_SAME_BYTES, "same-bytes"},   {MR_FLAG_MULTI_LABEL, "multi-label"}, {MR_FLAG_UNANNOTATED, "unannotated"},
    {MR_FLAG_PROGRESSIVE, "progressive"}, {MR_FLAG_ANIMATED, "animated"},       {MR_FLAG_ALPHA, "alpha"},
    {MR_FLAG_PALETTE, "palette"},         {MR_FLAG_ARITHMETIC, "arithmetic"},
};

static const char *shard_name(const mr_manifest *m, const request *q)
{
    return mr_dataset_shard(mr_manifest_split(m, q->split), q->sample)->name;
}

static const char *class_name(const mr_manifest *m, int32_t label)
{
    return label >= 0 && (size_t)label < m->class_count ? m->classes[label].name : NULL;
}

static void add_text(mr_buf *out, const char *key, const char *text)
{
    mr_buf_printf(out, ",\"%s\":", key);
    if (text)
        mr_json_add_string(out, text, strlen(text));
    else
        mr_buf_add_text(out, "null");
}

static void write_json(const request *q, const mr_manifest *m, const mr_sample_view *v, mr_buf *source, mr_buf *out)
{
    const mr_codec *codec = mr_codec_by_id(v->codec);
    mr_buf_add_text(out, "{\"split\":");
    mr_json_add_string(out, q->split, strlen(q->split));
    mr_buf_printf(out, ",\"sample\":%llu", (ull)q->sample);
    add_text(out, "shard", shard_name(m, q));
    add_text(out, "source", mr_buf_text(source));
    mr_buf_printf(out, ",\"bytes\":%zu,\"xxh3_64\":\"%016llx\"", v->image_len, (ull)mr_hash64(v->image, v->image_len));
    add_text(out, "codec", codec ? codec->name : NULL);
    mr_buf_printf(out, ",\"width\":%u,\"height\":%u,\"components\":%u,\"bits\":%u,\"orientation\":%u,\"label\":%d",
                  v->width, v->height, v->components, v->bits, v->orientation, (int)v->label);
    add_text(out, "class", class_name(m, v->label));
    mr_buf_add_text(out, ",\"flags\":[");
    const char *comma = "";
    for (size_t i = 0; i < MR_COUNT(flag_words); i++) {
        if (!(v->flags & flag_words[i].flag))
            continue;
        mr_buf_printf(out, "%s\"%s\"", comma, flag_words[i].word);
        comma = ",";
    }
    mr_buf_add_text(out, "],\"meta\":");
    mr_buf_add(out, v->meta, v->meta_len);
    mr_buf_add_text(out, "}\n");
}

static void line(mr_buf *out, const char *word)
{
    mr_buf_printf(out, "  %s%-11s%s ", mr_sgr(stdout, MR_DIM), word, mr_sgr(stdout, MR_PLAIN));
}

static void write_label(const mr_manifest *m, const mr_sample_view *v, mr_buf *out)
{
    const char *name = class_name(m, v->label);
    line(out, "label");
    if (v->flags & MR_FLAG_MULTI_LABEL)
        mr_buf_add_text(out, "a list, see \"labels\" below");
    else if (v->label < 0)
        mr_buf_add_text(out, "none");
    else
        mr_buf_printf(out, "%d", (int)v->label);
    if (name && !(v->flags & MR_FLAG_MULTI_LABEL)) {
        mr_buf_add_text(out, " (");
        mr_text_show(out, name, strlen(name));
        mr_buf_add_text(out, ")");
    }
    mr_buf_add_text(out, "\n");
}

static void write_flags(const mr_sample_view *v, mr_buf *out)
{
    bool first = true;
    for (size_t i = 0; i < MR_COUNT(flag_words); i++) {
        if (!(v->flags & flag_words[i].flag))
            continue;
        if (first)
            line(out, "flags");
        mr_buf_printf(out, "%s%s", first ? "" : ", ", flag_words[i].word);
        first = false;
    }
    if (v->flags)
        mr_buf_add_text(out, "\n");
}

static void write_human(const request *q, const mr_manifest *m, const mr_sample_view *v, mr_buf *source, mr_buf *out)
{
    static const char *const channels[] = {"", "gray", "gray + alpha", "3 colours", "4 channels"};
    const mr_codec *codec = mr_codec_by_id(v->codec);
    char count[32];
    mr_buf_printf(out, "%s%s %llu%s of %s\n", mr_sgr(stdout, MR_BOLD), q->split, (ull)q->sample,
                  mr_sgr(stdout, MR_PLAIN), q->dir);
    line(out, "source");
    mr_text_show(out, mr_buf_text(source), source->len);
    mr_buf_add_text(out, "\n");
    line(out, "shard");
    mr_buf_printf(out, "%s\n", shard_name(m, q));
    line(out, "image");
    mr_buf_printf(out, "%s, %u x %u, %s, %u bits, %s bytes\n", codec ? codec->name : "?", v->width, v->height,
                  channels[v->components < MR_COUNT(channels) ? v->components : 0], v->bits,
                  mr_text_count(v->image_len, count));
    line(out, "orientation");
    mr_buf_printf(out, "%u%s\n", v->orientation, v->orientation > 1 ? " (EXIF: rotate or flip before use)" : "");
    write_label(m, v, out);
    write_flags(v, out);
    line(out, "hash");
    mr_buf_printf(out, "%016llx (XXH3-64, matches)\n", (ull)mr_hash64(v->image, v->image_len));
    mr_buf_printf(out, "  %smeta%s\n    ", mr_sgr(stdout, MR_DIM), mr_sgr(stdout, MR_PLAIN));
    mr_json_lay_out(out, v->meta, v->meta_len, 2);
    mr_buf_add_text(out, "\n");
}

/* ---- output --------------------------------------------------------------------------------------------------- */

/* --force replaces an image, but nothing else that happens to have the name. */
static mr_status check_replaced(const char *path, mr_error *err)
{
    uint8_t begin[64];
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return MR_OK; /* writing reports anything else that is wrong with it */
    MR_AUTO(mr_scope_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, begin, sizeof begin);
    if (got < 0)
        return mr_fail_errno(err, errno, "%s", path);
    if (mr_codec_find(begin, (size_t)got, NULL))
        return MR_OK;
    return mr_fail(err, MR_MISUSE,
                   "%s: is not an image, and --force replaces nothing else; choose another name, or "
                   "remove it yourself",
                   path);
}

static mr_status write_image(const request *q, const mr_sample_view *v, mr_error *err)
{
    struct stat st;
    if (strcmp(q->image, "-") == 0) {
        if (isatty(STDOUT_FILENO))
            return mr_fail(err, MR_MISUSE, "standard output: is a terminal; send the image to a file or a pipe");
        return mr_file_write(STDOUT_FILENO, v->image, v->image_len, "standard output", err);
    }
    MR_TRY(mr_path_keep_out(q->image, q->dir, err));
    if (!q->force && lstat(q->image, &st) == 0)
        return mr_fail(err, MR_MISUSE, "%s: exists already; --force replaces it", q->image);
    MR_TRY(check_replaced(q->image, err));
    return mr_file_publish(AT_FDCWD, q->image, v->image, v->image_len, err);
}

static mr_status print(const request *q, const mr_manifest *m, const mr_sample_view *v, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf source = {0}, doc = {0}, out = {0};
    mr_meta_facts facts;
    MR_TRY(mr_meta_scan(v->meta, v->meta_len, &facts, &source, err));
    if (q->json) {
        write_json(q, m, v, &source, &doc);
        mr_json_show(&out, (const char *)doc.data, doc.len);
        out.failed |= doc.failed;
    } else {
        write_human(q, m, v, &source, &out);
    }
    MR_TRY(mr_buf_status(&out, err, "writing"));
    fwrite(out.data, 1, out.len, stdout);
    return MR_OK;
}

static mr_status show(request *q, mr_error *err)
{
    MR_TRY(mr_dataset_open(q->dir, &q->ds, err));
    const mr_manifest *m = mr_dataset_manifest(q->ds);
    MR_TRY(mr_manifest_find_split(m, q->dir, q->split, NULL, err));
    MR_TRY(mr_dataset_read(q->ds, q->split, q->sample, &q->view, err));
    return q->image ? write_image(q, &q->view, err) : print(q, m, &q->view, err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_show, argc, argv, &q))
        return cli.code;
    mr_status status = show(&q, &err);
    mr_sample_view_free(&q.view);
    mr_dataset_free(q.ds);
    return mr_cli_end(NULL, status, &err);
}

const mr_command mr_cmd_show = {
    .name = "show",
    .title = "show a sample, or extract its image",
    .usage = "DATASET SPLIT N",
    .example = "millrace show imagenette train 17",
    .summary = "Shows one sample: its properties, and its metadata as in the source.  N counts from 0 within "
               "SPLIT.",
    .notes = "Examples:\n"
             "  millrace show imagenette train 17\n"
             "  millrace show imagenette val 0 --image first.jpg\n"
             "  millrace show --json coco val 3 | jq .meta.annotations\n"
             "\n"
             "Exit status: 0 done; 1 the sample is damaged; 2 usage error or no such sample; 3 system error"
             ".",
    .options = options,
    .arguments = arguments,
    .check = check,
    .run = start,
};
