/* cmd_view.c - `millrace view OUT DATASET[:SPLIT]`: names what is seen of a dataset, without copying it.
 * Invariant: a view that is written opens, and has at least one sample in each split. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/commands.h"
#include "shards/dataset/view_list.h"

enum { LIST_MAX = 64 << 20 }; /* bytes of a file with a list */

typedef struct request {
    const char *out, *from;
#define X(word, name, value, meta, prepare, help) const char *word;
    MR_CONDITIONS(X)
#undef X
    bool force;
} request;

static const mr_option options[] = {
#define X(word, option, text, meta, prepare, what)                                                                     \
    {option, 0, MR_ARG_TEXT, MR_FIELD(request, word), .value = text, .help = what},
    MR_CONDITIONS(X)
#undef X
        {"force", 0, MR_ARG_FLAG, MR_FIELD(request, force), .help = "replace OUT, if it is a view"},
    MR_OPTION_QUIET_IGNORED,
    {0},
};

static const mr_option arguments[] = {{.value = "OUT", .kind = MR_ARG_PATH, MR_FIELD(request, out)},
                                      {.value = "DATASET[:SPLIT]", .kind = MR_ARG_PATH, MR_FIELD(request, from)},
                                      {0}};

/* The dataset's path as the view's folder sees it. */
static mr_status relate(const char *out, const char *dataset, char **path, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL;
    MR_AUTO(mr_scope_free) char *name = NULL;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    MR_TRY(mr_path_split(out, &dir, &name, err));
    MR_AUTO(mr_scope_free) char *here = realpath(dir, NULL);
    MR_AUTO(mr_scope_free) char *there = mr_path_is_url(dataset) ? NULL : realpath(dataset, NULL);
    if (!here || !there) {
        *path = strdup(dataset);
        return *path ? MR_OK : mr_fail_memory(err, dataset);
    }
    size_t same = 0, i = 0;
    for (; here[i] && here[i] == there[i]; i++)
        same = here[i] == '/' ? i + 1 : same;
    if (!here[i] && there[i] == '/')
        same = i + 1;
    if (same <= strlen(here) && here[same - (same > 0)])
        for (const char *at = here + same; *at; at = strchr(at, '/') ? strchr(at, '/') + 1 : at + strlen(at))
            mr_buf_add_text(&text, "../");
    mr_buf_add_text(&text, same <= strlen(there) ? there + same : ".");
    *path = text.failed ? NULL : strdup(mr_buf_text(&text));
    return *path ? MR_OK : mr_fail_memory(err, dataset);
}

/* The argument itself, or what is in the file that it names. */
static mr_status add_condition(const mr_condition_kind *kind, const char *argument, mr_view_part *p, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (strcmp(kind->value, "FILE") == 0) {
        MR_TRY(mr_file_read_all(AT_FDCWD, argument, LIST_MAX, &text, err));
        argument = mr_buf_text(&text);
        if (strlen(argument) != text.len || !mr_utf8_valid(argument, text.len))
            return mr_fail(err, MR_MISUSE, "--%s: the file is not text in UTF-8", kind->name);
    }
    return mr_condition_make(kind->name, argument, &p->conditions[p->condition_count++], err);
}

/* A name that no sample has may be a mistake, by which a sample would stay. */
static mr_status warn_of_missed(const request *q, const mr_view_file *v, mr_error *err)
{
    mr_error text;
    const char *first = NULL;
    MR_AUTO(mr_scope_free) const mr_condition **same = mr_alloc(v->split_count, sizeof *same);
    if (!same)
        return mr_fail_memory(err, q->out);
    for (size_t i = 0; i < v->split_count; i++)
        same[i] = &v->splits[i].parts[0].conditions[0];
    size_t missed = q->drop ? mr_conditions_missed(same, v->split_count, &first) : 0;
    if (!missed)
        return MR_OK;
    mr_fail(&text, MR_OK, "%s: %zu of its lines name%s no sample of %s; the first is %.200s", q->drop, missed,
            missed == 1 ? "s" : "", q->from, first);
    mr_term_warn(text.text);
    return MR_OK;
}

static mr_status add_conditions(const request *q, mr_view_part *p, mr_error *err)
{
    const char *const arguments_given[] = {
#define X(word, name, value, meta, prepare, help) q->word,
        MR_CONDITIONS(X)
#undef X
    };
    size_t all = sizeof arguments_given / sizeof *arguments_given;
    p->conditions = mr_alloc(all, sizeof *p->conditions);
    if (!p->conditions)
        return mr_fail_memory(err, q->out);
    for (size_t i = 0; i < all; i++)
        if (arguments_given[i])
            MR_TRY(add_condition(&mr_condition_kinds[i], arguments_given[i], p, err));
    return MR_OK;
}

static mr_status check_classes(const request *q, const mr_dataset *ds, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    for (const char *at = q->class; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        bool known = false;
        mr_buf_clear(&name);
        mr_buf_add(&name, at, strcspn(at, ","));
        for (size_t i = 0; i < mr_dataset_class_count(ds); i++)
            known = known || strcmp(mr_dataset_class_name(ds, i), mr_buf_text(&name)) == 0;
        if (!known)
            return mr_fail(err, MR_MISUSE,
                           "--class %s: not a class of the dataset; `millrace inspect --classes` lists them",
                           mr_buf_text(&name));
    }
    return MR_OK;
}

static mr_status fill(const request *q, const mr_dataset *ds, const char *only, mr_view_file *v, mr_error *err)
{
    const mr_manifest *m = mr_dataset_manifest(ds);
    memcpy(v->sources[0].digest, mr_dataset_digest(ds), sizeof v->sources[0].digest);
    for (size_t i = 0; i < m->split_count; i++) {
        if (only && strcmp(only, m->splits[i].name) != 0)
            continue;
        MR_AUTO(mr_view_list_free) mr_view_list list = {0};
        mr_view_split *s = &v->splits[v->split_count++];
        s->name = strdup(m->splits[i].name);
        s->parts = mr_alloc(1, sizeof *s->parts);
        if (!s->name || !s->parts)
            return mr_fail_memory(err, q->out);
        s->part_count = 1;
        s->parts[0].split = strdup(s->name);
        if (!s->parts[0].split)
            return mr_fail_memory(err, q->out);
        MR_TRY(add_conditions(q, &s->parts[0], err));
        MR_TRY(mr_view_list_make(ds, &s->parts[0], &list, err));
        if (!list.samples)
            return mr_fail(err, MR_MISUSE,
                           "%s: no sample of the split %s meets the conditions; name another split, "
                           "DATASET:SPLIT, or ask for less",
                           q->from, s->name);
        s->parts[0].samples = list.samples;
        memcpy(s->parts[0].list, list.hash, sizeof list.hash);
    }
    return MR_OK;
}

static mr_status make(const request *q, mr_view_file *v, mr_error *err)
{
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    MR_AUTO(mr_scope_free) char *from = strdup(q->from);
    char *colon = from ? strrchr(from, ':') : NULL, *only = colon && !strchr(colon, '/') ? colon + 1 : NULL;
    if (!from)
        return mr_fail_memory(err, q->out);
    if (only)
        *colon = 0;
    if (mr_view_is_at(from))
        return mr_fail(err, MR_MISUSE, "%s: is a view itself; name the dataset that it is of", from);
    MR_TRY(mr_dataset_open(from, &ds, err));
    MR_TRY(check_classes(q, ds, err));
    if (only)
        MR_TRY(mr_manifest_find_split(mr_dataset_manifest(ds), from, only, NULL, err));
    v->sources = mr_alloc(1, sizeof *v->sources);
    v->splits = mr_alloc(mr_dataset_split_count(ds), sizeof *v->splits);
    if (!v->sources || !v->splits)
        return mr_fail_memory(err, q->out);
    v->source_count = 1;
    MR_TRY(relate(q->out, from, &v->sources[0].path, err));
    return fill(q, ds, only, v, err);
}

/* A run may be pinned to the view that is there; another file is never replaced, such as where OUT and DATASET were
 * given in the wrong order. */
static mr_status check_replaced(const request *q, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *old = NULL;
    mr_error why;
    if (!mr_view_is_at(q->out))
        return MR_OK; /* writing reports anything else that is wrong with it */
    if (mr_view_read(q->out, &old, &why) != MR_OK)
        return mr_fail(err, MR_MISUSE, "%s: exists and is not a view; choose another name", q->out);
    return q->force ? MR_OK : mr_fail(err, MR_MISUSE, "%s: exists already; --force replaces it", q->out);
}

static mr_status write_view(const request *q, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *v = mr_alloc(1, sizeof *v);
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    char digest[65], count[32];
    if (!v)
        return mr_fail_memory(err, q->out);
    MR_TRY(check_replaced(q, err));
    MR_TRY(mr_output_check(q->out, err));
    MR_TRY(make(q, v, err));
    MR_TRY(warn_of_missed(q, v, err));
    MR_TRY(mr_view_write(v, &bytes, err));
    MR_TRY(mr_file_publish(AT_FDCWD, q->out, bytes.data, bytes.len, err));
    for (size_t i = 0; i < v->split_count; i++)
        printf("%s  %s samples\n", v->splits[i].name, mr_text_count(v->splits[i].parts[0].samples, count));
    mr_hex(v->digest, sizeof v->digest, digest);
    printf("digest %s\n", digest);
    return mr_term_flush(err);
}

static int start(int argc, char **argv)
{
    request q = {0};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_view, argc, argv, &q))
        return cli.code;
    return mr_cli_end(NULL, write_view(&q, &err), &err);
}

const mr_command mr_cmd_view = {
    .name = "view",
    .title = "name a part of a dataset, without copying it",
    .usage = "OUT DATASET[:SPLIT]",
    .example = "millrace view small.view flowers --first 100",
    .summary =
        "Writes a small file that says which samples of a dataset are seen: those that meet all conditions.  "
        "inspect, show, verify, diff, plan, replay, bench, train, eval, predict and export take it in place of the "
        "dataset, and Python and C open it.  Its digest pins the dataset and the samples.",
    .notes = "Examples:\n"
             "  millrace view small.view flowers:train --class rose,tulip --first 100\n"
             "  millrace view fold1.view flowers:train --fold -1/5\n"
             "\n"
             "Exit status: 0 written; 1 the dataset is damaged; 2 usage error, or no sample is left; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
