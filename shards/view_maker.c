/* view_maker.c - a view from its datasets, or views, and the conditions.
 * Invariant: parts are in the order in which they were named, and each sees at least one sample. */
#include "shards/view_maker.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "base/text.h"
#include "shards/view_maker_state.h"

enum { LIST_MAX = 64 << 20 }; /* bytes of a file with a list */

static void free_maker(mr_view_maker **m)
{
    for (size_t i = 0; *m && (*m)->v && i < (*m)->v->source_count; i++) {
        mr_dataset_free((*m)->datasets[i]);
        free((*m)->labels[i]);
    }
    if (*m)
        mr_view_free_classes((*m)->classes, (*m)->class_count);
    mr_view_file_free(*m ? (*m)->v : NULL);
    free(*m);
}

static mr_status no_memory(const mr_view_maker *m, mr_error *err)
{
    return mr_fail_memory(err, m->q->out);
}

/* ---- its datasets ------------------------------------------------------------------------------------------------ */

/* `*number`: the dataset's number among the sources, each of which is there once. */
static mr_status add_source(mr_view_maker *m, const char *place, const uint8_t *wanted, size_t *number, mr_error *err)
{
    mr_view_file *v = m->v;
    MR_AUTO(mr_dataset_release) mr_dataset *ds = NULL;
    MR_TRY(mr_dataset_open(place, &ds, err));
    if (wanted && memcmp(mr_dataset_digest(ds), wanted, 32) != 0)
        return mr_fail(err, MR_BAD_DATA, "%s: is not the dataset that the view was made of", place);
    for (*number = 0; *number < v->source_count; ++*number)
        if (memcmp(v->sources[*number].digest, mr_dataset_digest(ds), 32) == 0)
            return MR_OK;
    if (v->source_count == MR_VIEW_DATASETS)
        return mr_fail(err, MR_MISUSE, "%s: a view has at most %d datasets", m->q->out, MR_VIEW_DATASETS);
    memcpy(v->sources[*number].digest, mr_dataset_digest(ds), 32);
    MR_TRY(mr_view_relate(m->q->out, place, &v->sources[*number].path, err));
    m->datasets[v->source_count++] = ds;
    ds = NULL;
    return MR_OK;
}

/* ---- its parts --------------------------------------------------------------------------------------------------- */

static mr_status find_split(mr_view_maker *m, const char *name, mr_view_split **out, mr_error *err)
{
    mr_view_file *v = m->v;
    for (size_t i = 0; i < v->split_count; i++) {
        *out = &v->splits[i];
        if (strcmp(v->splits[i].name, name) == 0)
            return MR_OK;
    }
    mr_view_split *grown = realloc(v->splits, (v->split_count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(m, err);
    v->splits = grown;
    *out = &v->splits[v->split_count];
    **out = (mr_view_split){.name = strdup(name), .repeat = 1};
    if (!(*out)->name)
        return no_memory(m, err);
    v->split_count++;
    return MR_OK;
}

/* Numbers, a line each or several, as one list. */
static void join_lines(char *text)
{
    size_t len = strlen(text);
    while (len && (text[len - 1] == '\n' || text[len - 1] == ','))
        text[--len] = 0;
    for (char *at = text; (at = strchr(at, '\n')); at++)
        *at = ',';
}

/* The argument itself, or what is in the file that it names. */
static mr_status add_condition(const char *kind, const char *argument, bool from_file, mr_view_part *p, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (from_file) {
        if (access(argument, F_OK) != 0)
            return mr_fail(err, MR_MISUSE, "--%s %s: no such file", kind, argument);
        MR_TRY(mr_file_read_all(AT_FDCWD, argument, LIST_MAX, &text, err));
        argument = mr_buf_text(&text);
        if (strlen(argument) != text.len || !mr_utf8_valid(argument, text.len))
            return mr_fail(err, MR_MISUSE, "--%s: the file is not text in UTF-8", kind);
        if (strcmp(kind, "samples") == 0)
            join_lines((char *)text.data);
    }
    MR_TRY(mr_condition_make(kind, argument, &p->conditions[p->condition_count], err));
    p->condition_count++;
    return MR_OK;
}

/* The weight of what is being added, times the one that a view gave it. */
static mr_status weigh(const mr_view_maker *m, const char *inner, char **out, mr_error *err)
{
    char text[32];
    const char *weight = m->weight ? m->weight : inner;
    if (m->weight && inner) {
        snprintf(text, sizeof text, "%.6f", strtod(m->weight, NULL) * strtod(inner, NULL));
        weight = text;
        if (!mr_view_weight_ok(text))
            return mr_fail(err, MR_MISUSE, "--weight: %s times %s of the view is out of range", m->weight, inner);
    }
    *out = weight ? strdup(weight) : NULL;
    return weight && !*out ? no_memory(m, err) : MR_OK;
}

/* Starts with the conditions of `of`, a part of a view (NULL: all of the split); those of the request are added to
 * them. */
static mr_status add_part(mr_view_maker *m, size_t dataset, const char *split, const char *as, const mr_view_part *of,
                          mr_error *err)
{
    mr_view_split *s = NULL;
    size_t earlier = of ? of->condition_count : 0;
    MR_TRY(find_split(m, mr_maker_split_name(m, as), &s, err));
    mr_view_part *grown = realloc(s->parts, (s->part_count + 1) * sizeof *grown);
    if (!grown)
        return no_memory(m, err);
    s->parts = grown;
    mr_view_part *p = &s->parts[s->part_count++];
    *p = (mr_view_part){.dataset = dataset, .split = strdup(split)};
    MR_TRY(weigh(m, of ? of->weight : NULL, &p->weight, err));
    p->conditions = mr_alloc(earlier + m->asked, sizeof *p->conditions);
    if (!p->split || !p->conditions)
        return no_memory(m, err);
    for (size_t i = 0; i < earlier; i++)
        MR_TRY(add_condition(of->conditions[i].kind->name, of->conditions[i].argument, false, p, err));
    return MR_OK;
}

/* ---- what is named ----------------------------------------------------------------------------------------------- */

static mr_status add_dataset(mr_view_maker *m, const char *place, const char *only, mr_error *err)
{
    size_t number;
    MR_TRY(add_source(m, place, NULL, &number, err));
    const mr_manifest *from = mr_dataset_manifest(m->datasets[number]);
    if (only)
        MR_TRY(mr_manifest_find_split(from, place, only, NULL, err));
    for (size_t i = 0; i < from->split_count; i++)
        if (!only || strcmp(only, from->splits[i].name) == 0)
            MR_TRY(add_part(m, number, from->splits[i].name, from->splits[i].name, NULL, err));
    return MR_OK;
}

/* By --at, or as the view says. */
static char *place_of(const mr_view_maker *m, const char *path, const mr_view_source *source)
{
    char digest[65];
    mr_hex(source->digest, sizeof source->digest, digest);
    for (size_t i = 0; i < m->q->place_count; i++) {
        const char *text = m->q->places[i], *equals = strchr(text, '=');
        if (equals && equals - text >= 8 && strncmp(text, digest, (size_t)(equals - text)) == 0)
            return strdup(equals + 1);
    }
    return mr_view_place(path, source);
}

static mr_status add_view(mr_view_maker *m, const char *path, const char *only, mr_error *err)
{
    MR_AUTO(mr_view_file_release) mr_view_file *of = NULL;
    MR_AUTO(mr_scope_free) size_t *numbers = NULL;
    bool found = false;
    MR_TRY(mr_view_read(path, &of, err));
    numbers = mr_alloc(of->source_count, sizeof *numbers);
    if (!numbers)
        return no_memory(m, err);
    for (size_t i = 0; i < of->source_count; i++) {
        MR_AUTO(mr_scope_free) char *place = place_of(m, path, &of->sources[i]);
        if (!place)
            return no_memory(m, err);
        MR_TRY(add_source(m, place, of->sources[i].digest, &numbers[i], err));
    }
    for (size_t i = 0; i < of->rename_count; i++)
        MR_TRY(mr_maker_add_rename(m, of->renames[i].from, of->renames[i].to, err));
    for (size_t i = 0; i < of->split_count; i++) {
        const mr_view_split *s = &of->splits[i];
        if (only && strcmp(only, s->name) != 0)
            continue;
        found = true;
        if (s->balance || s->repeat > 1)
            return mr_fail(err, MR_MISUSE,
                           "%s: is balanced or repeated, and cannot be part of another view; name its "
                           "datasets",
                           path);
        for (size_t k = 0; k < s->part_count; k++)
            MR_TRY(add_part(m, numbers[s->parts[k].dataset], s->parts[k].split, s->name, &s->parts[k], err));
    }
    return found ? MR_OK : mr_fail(err, MR_MISUSE, "split \"%s\": %s has no such split", only, path);
}

static const char *argument_of(const mr_view_maker *m, const char *condition)
{
    size_t i = 0;
    while (strcmp(mr_condition_kinds[i].name, condition) != 0)
        i++;
    return m->q->arguments[i];
}

static mr_status add_from(mr_view_maker *m, const char *from, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *place = strdup(from);
    char *colon = place ? strrchr(place, ':') : NULL, *only = colon && !strchr(colon, '/') ? colon + 1 : NULL;
    if (!place)
        return no_memory(m, err);
    if (only)
        *colon = 0;
    MR_TRY(mr_maker_find_weight(m, from, place, err));
    if (!mr_view_is_at(place))
        return add_dataset(m, place, only, err);
    if (argument_of(m, "samples"))
        return mr_fail(err, MR_MISUSE, "--samples: %s is a view, and has no numbers of its own; name its dataset",
                       place);
    return add_view(m, place, only, err);
}

/* ---- what is seen ------------------------------------------------------------------------------------------------ */

static mr_status add_asked(const mr_view_maker *m, mr_view_part *p, mr_error *err)
{
    for (size_t i = 0; mr_condition_kinds[i].name; i++) {
        const mr_condition_kind *kind = &mr_condition_kinds[i];
        MR_AUTO(mr_buf_free) mr_buf classes = {0};
        const char *argument = m->q->arguments[i];
        if (argument && strcmp(kind->name, "class") == 0) {
            MR_TRY(mr_maker_own_names(m, argument, &classes, err));
            argument = mr_buf_text(&classes);
        }
        bool numbers = argument && argument[0] == '@' && strcmp(kind->name, "samples") == 0;
        bool file = numbers || strcmp(kind->value, "FILE") == 0;
        if (argument)
            MR_TRY(add_condition(kind->name, argument + numbers, file, p, err));
    }
    return MR_OK;
}

static mr_status list_part(const mr_view_maker *m, mr_view_part *p, mr_error *err)
{
    MR_AUTO(mr_view_list_free) mr_view_list list = {0};
    MR_TRY(mr_view_list_make(m->datasets[p->dataset], p, m->labels[p->dataset] != NULL, &list, err));
    p->samples = list.samples;
    memcpy(p->list, list.hash, sizeof list.hash);
    return MR_OK;
}

/* A name that no sample has may be a mistake, by which a sample would stay. */
static mr_status warn_of_missed(const mr_view_maker *m, const char *kind, mr_error *err)
{
    size_t count = 0, parts = 0;
    const char *file = argument_of(m, kind), *first = NULL;
    mr_error text;
    for (size_t i = 0; i < m->v->split_count; i++)
        parts += m->v->splits[i].part_count;
    MR_AUTO(mr_scope_free) const mr_condition **lists = mr_alloc(parts, sizeof *lists);
    if (!lists)
        return no_memory(m, err);
    for (size_t i = 0; file && i < m->v->split_count; i++)
        for (size_t k = 0; k < m->v->splits[i].part_count; k++) {
            const mr_view_part *p = &m->v->splits[i].parts[k];
            size_t at = p->condition_count; /* what is asked now comes last */
            while (strcmp(p->conditions[--at].kind->name, kind) != 0)
                ;
            lists[count++] = &p->conditions[at];
        }
    size_t missed = count ? mr_conditions_missed(lists, count, &first) : 0;
    if (!missed)
        return MR_OK;
    mr_fail(&text, MR_OK, "%s: %zu of its lines name%s no sample; the first is %.200s", file, missed,
            missed == 1 ? "s" : "", first);
    mr_term_warn(text.text);
    return MR_OK;
}

static mr_status list_parts(mr_view_maker *m, mr_error *err)
{
    for (size_t i = 0; i < m->v->split_count; i++)
        for (size_t k = 0; k < m->v->splits[i].part_count; k++) {
            MR_TRY(add_asked(m, &m->v->splits[i].parts[k], err));
            MR_TRY(list_part(m, &m->v->splits[i].parts[k], err));
        }
    MR_TRY(warn_of_missed(m, "drop", err));
    return warn_of_missed(m, "sample-list", err);
}

/* Parts that see nothing are left out; a split of such parts is a mistake. */
static mr_status keep_parts(const mr_view_maker *m, mr_view_split *s, mr_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->part_count; i++) {
        const mr_view_part p = s->parts[i];
        s->parts[i] = s->parts[kept];
        s->parts[kept] = p;
        kept += p.samples > 0;
    }
    if (!kept)
        return mr_fail(err, MR_MISUSE,
                       "%s: no sample of the split %s meets the conditions; name another split, DATASET:SPLIT, or drop "
                       "a condition",
                       m->q->from_count == 1 ? m->q->from[0] : m->q->out, s->name);
    for (size_t i = kept; i < s->part_count; i++)
        mr_view_part_free(&s->parts[i]);
    s->part_count = kept;
    return MR_OK;
}

mr_status mr_view_make(const mr_view_request *q, mr_view_file **out, mr_error *err)
{
    MR_AUTO(free_maker) mr_view_maker *m = mr_alloc(1, sizeof *m);
    if (!m)
        return mr_fail_memory(err, q->out);
    m->q = q;
    for (size_t i = 0; mr_condition_kinds[i].name; i++)
        m->asked += q->arguments[i] != NULL;
    m->v = mr_alloc(1, sizeof *m->v);
    if (!m->v)
        return no_memory(m, err);
    m->v->sources = mr_alloc(MR_VIEW_DATASETS, sizeof *m->v->sources);
    if (!m->v->sources)
        return no_memory(m, err);
    MR_TRY(mr_maker_check_splits(m, false, err));
    for (size_t i = 0; i < q->from_count; i++)
        MR_TRY(add_from(m, q->from[i], err));
    MR_TRY(mr_maker_check_splits(m, true, err));
    MR_TRY(mr_maker_check_weights(m, err));
    MR_TRY(mr_maker_rename_classes(m, err));
    MR_TRY(mr_view_join_classes(m->datasets, m->v->source_count, m->v, &m->classes, &m->class_count, m->labels, err));
    MR_TRY(list_parts(m, err));
    for (size_t i = 0; i < m->v->split_count; i++)
        MR_TRY(keep_parts(m, &m->v->splits[i], err));
    for (size_t i = 0; i < m->v->split_count; i++) {
        m->v->splits[i].repeat = q->repeat ? q->repeat : 1;
        m->v->splits[i].balance = q->balance;
    }
    *out = m->v;
    for (size_t i = 0; i < m->v->source_count; i++) {
        mr_dataset_free(m->datasets[i]);
        free(m->labels[i]);
    }
    m->v = NULL;
    return MR_OK;
}
