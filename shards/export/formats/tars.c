/* tars.c - the exports `webdataset`, and `tar` with --shard-size: OUT is a folder of tars of one split each.
 *
 *      train-000000.tar  train-000001.tar  val-000000.tar     00000000.jpg, 00000000.json, 00000000.cls ...
 *      __millrace__/dataset.json                              the split names and classes
 *      __millrace__/train.jsonl  val.jsonl                    label, captions, objects: a line for each image
 *      croissant.json  README.md                              describe all of them
 *
 * Invariant: a line of SPLIT.jsonl says nothing that the sample's .json does not say. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/text.h"
#include "image/codec/image.h"
#include "shards/export/formats/description.h"
#include "shards/export/formats/hub_card.h"
#include "shards/export/formats/tar.h"

enum { STANDARD = 1000000000 }; /* bytes of a tar without --shard-size, as users of WebDataset choose it */

typedef struct tars {
    mr_tar tar; /* the current one; archive NULL: none */
    mr_export_result entries;
    char name[120];
    uint32_t count; /* tars of the split, including the current one */
    uint64_t bytes; /* bytes of images in the current one */
    uint64_t most;  /* the most of them per tar */
    mr_export_row_kind kind;
    char rows_name[120];
    mr_out_text rows; /* SPLIT.jsonl; closed before the split's first sample */
    mr_description description;
    mr_hub_card card;
} tars;

static const mr_tar closed = {.fd = -1};

static mr_status begin(mr_export_run *run, mr_error *err)
{
    tars *s = mr_alloc(1, sizeof *s);
    if (!s)
        return mr_fail_memory(err, "exporting");
    s->tar = closed;
    s->most = run->options->shard_size ? run->options->shard_size : STANDARD;
    run->state = s;
    s->kind = mr_export_row_kind_of(run);
    s->kind.numbers = true;
    MR_TRY(mr_hub_card_open(run, true, &s->card, err));
    return mr_description_open(run, &s->description, err);
}

static void name_tar(const mr_split *split, uint32_t number, char name[120])
{
    snprintf(name, 120, "%s-%06" PRIu32 ".tar", split->name, number);
}

static void drop_tar(tars *s, mr_status status)
{
    mr_tar_free(&s->tar, status);
    if (s->tar.fd >= 0)
        close(s->tar.fd);
    s->tar = closed;
}

static mr_status open_next(mr_export_run *run, tars *s, const mr_split *split, mr_error *err)
{
    name_tar(split, s->count++, s->name);
    s->tar = (mr_tar){.name = s->name, .result = &s->entries, .fd = -1, .shard = true};
    s->bytes = 0;
    MR_TRY(mr_out_create(&run->out, s->name, &s->tar.fd, err));
    return mr_tar_open(&s->tar, err);
}

static mr_status close_tar(mr_export_run *run, tars *s, const mr_split *split, mr_error *err)
{
    struct stat st;
    mr_status status = mr_tar_close(&s->tar, err);
    if (status == MR_OK && fstat(s->tar.fd, &st) != 0)
        status = mr_fail_errno(err, errno, "%s", s->name);
    drop_tar(s, status);
    MR_TRY(status);
    run->out.bytes += (uint64_t)st.st_size;
    mr_hub_card_split(run, &s->card, split)->file_bytes += (uint64_t)st.st_size;
    return mr_description_file(run, &s->description, s->name, "application/x-tar", err);
}

static mr_status begin_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    tars *s = run->state;
    s->count = 0;
    if (!split->samples)
        return MR_OK;
    snprintf(s->rows_name, sizeof s->rows_name, MR_TAR_FOLDER "/%s.jsonl", split->name);
    return mr_out_text_open(&run->out, s->rows_name, &s->rows, err);
}

static mr_status add_row(mr_export_run *run, tars *s, const mr_export_sample *sample, mr_error *err)
{
    const mr_codec *codec = mr_codec_by_id(sample->view->codec);
    mr_buf *out = &s->rows.text;
    char name[MR_TAR_NAME];
    mr_tar_name(&s->tar, sample, codec ? codec->suffix : "", name);
    mr_buf_printf(out, "{\"file_name\":\"%s\"", name);
    mr_export_row_add(run, sample, s->kind, out);
    mr_buf_add_text(out, "}\n");
    mr_hub_card_take(run, &s->card, sample, s->kind, strlen(name));
    return mr_out_text_push(&s->rows, err);
}

static mr_status sample(mr_export_run *run, const mr_export_sample *sample, mr_error *err)
{
    tars *s = run->state;
    if (s->tar.archive && s->bytes && s->bytes + sample->view->image_len > s->most)
        MR_TRY(close_tar(run, s, sample->split, err));
    if (!s->tar.archive)
        MR_TRY(open_next(run, s, sample->split, err));
    s->bytes += sample->view->image_len;
    MR_TRY(mr_tar_sample(&s->tar, sample, err));
    return add_row(run, s, sample, err);
}

/* The split's tars for the card, their images as one set of files. */
static mr_status add_set(mr_export_run *run, tars *s, const mr_split *split, mr_error *err)
{
    mr_hub_split *card = mr_hub_card_split(run, &s->card, split);
    if (asprintf(&card->files, "%s-??????.tar", split->name) < 0) {
        card->files = NULL;
        return mr_fail_memory(err, "exporting");
    }
    mr_buf *out = mr_description_item(&s->description);
    mr_buf_printf(out,
                  "{\"@type\":\"cr:FileSet\",\"@id\":\"%s/files\",\"name\":\"%s\","
                  "\"encodingFormat\":[\"image/jpeg\",\"image/png\",\"image/webp\"],"
                  "\"includes\":[\"*.jpg\",\"*.png\",\"*.webp\"],\"containedIn\":[",
                  split->name, split->name);
    for (uint32_t i = 0; i < s->count; i++) {
        char name[120];
        name_tar(split, i, name);
        mr_buf_printf(out, "%s{\"@id\":\"%s\"}", i ? "," : "", name);
        MR_TRY(mr_out_text_push(&s->description.files, err));
    }
    mr_buf_add_text(out, "]}");
    return mr_out_text_push(&s->description.files, err);
}

static mr_status end_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    tars *s = run->state;
    if (!split->samples)
        return MR_OK;
    if (s->tar.archive)
        MR_TRY(close_tar(run, s, split, err));
    MR_TRY(mr_out_text_close(&s->rows, err));
    MR_TRY(mr_description_file(run, &s->description, s->rows_name, "application/jsonlines", err));
    return add_set(run, s, split, err);
}

static mr_status end(mr_export_run *run, mr_error *err)
{
    tars *s = run->state;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    mr_tar_facts(run->manifest, run->options, &text);
    MR_TRY(mr_buf_status(&text, err, "exporting"));
    MR_TRY(mr_out_file(&run->out, MR_TAR_FACTS, text.data, text.len, err));
    MR_TRY(mr_description_close(run, &s->description, s->kind, true, err));
    return mr_hub_card_write(run, &s->card, s->kind, err);
}

static void free_state(void *state)
{
    tars *s = state;
    drop_tar(s, MR_SYSTEM); /* no end marker after a tar that is incomplete */
    mr_out_text_free(&s->rows);
    mr_description_free(&s->description);
    mr_hub_card_free(&s->card);
    free(s);
}

const mr_export_format mr_export_format_tar = {
    .name = "tar",
    .alias = "webdataset",
    .lossless = true,
    .surveyed = true,
    .sharded = true,
    .begin = begin,
    .begin_split = begin_split,
    .sample = sample,
    .end_split = end_split,
    .end = end,
    .free_state = free_state,
};
