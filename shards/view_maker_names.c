/* view_maker_names.c - what the names of a request for a view stand for: classes, splits, weights of datasets.
 * Invariant: a name that stands for nothing is a mistake, and is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "shards/view_maker_state.h"

/* A later name takes over what was renamed to the earlier one. */
mr_status mr_maker_add_rename(mr_view_maker *m, const char *from, const char *to, mr_error *err)
{
    mr_view_file *v = m->v;
    for (size_t i = 0; i < v->rename_count; i++) {
        if (strcmp(v->renames[i].from, from) == 0 && strcmp(v->renames[i].to, to) != 0)
            return mr_fail(err, MR_MISUSE, "--rename-class: %s is renamed to %s and to %s", from, v->renames[i].to, to);
        if (strcmp(v->renames[i].to, from) != 0)
            continue;
        free(v->renames[i].to);
        v->renames[i].to = strdup(to);
        if (!v->renames[i].to)
            return mr_fail_memory(err, m->q->out);
    }
    if (v->rename_count == MR_VIEW_RENAMES)
        return mr_fail(err, MR_MISUSE, "--rename-class: more than %d", MR_VIEW_RENAMES);
    mr_view_rename *grown = realloc(v->renames, (v->rename_count + 1) * sizeof *grown);
    if (!grown)
        return mr_fail_memory(err, m->q->out);
    v->renames = grown;
    v->renames[v->rename_count] = (mr_view_rename){strdup(from), strdup(to)};
    const mr_view_rename *added = &v->renames[v->rename_count++];
    return added->from && added->to ? MR_OK : mr_fail_memory(err, m->q->out);
}

/* What the view calls the split. */
const char *mr_maker_split_name(mr_view_maker *m, const char *name)
{
    for (size_t i = 0; i < m->q->split_count; i++) {
        const char *equals = strchr(m->q->splits[i], '=');
        if (!equals || strcmp(equals + 1, name) != 0)
            continue;
        snprintf(m->split, sizeof m->split, "%.*s", (int)(equals - m->q->splits[i]), m->q->splits[i]);
        m->renamed |= i < 64 ? UINT64_C(1) << i : 0;
        return m->split;
    }
    return name;
}

mr_status mr_maker_check_splits(const mr_view_maker *m, bool used, mr_error *err)
{
    for (size_t i = 0; i < m->q->split_count && i < 64; i++) {
        const char *text = m->q->splits[i], *equals = strchr(text, '=');
        MR_AUTO(mr_scope_free) char *to = equals ? strndup(text, (size_t)(equals - text)) : NULL;
        if (!to || !mr_split_name_ok(to))
            return mr_fail(err, MR_MISUSE, "--split %s: give the new and the old name of a split, NEW=OLD", text);
        if (used && !(m->renamed >> i & 1))
            return mr_fail(err, MR_MISUSE, "--split %s: none of the datasets has this split", text);
    }
    return MR_OK;
}

/* m->weight: the weight of what has this name, with or without its split. */
mr_status mr_maker_find_weight(mr_view_maker *m, const char *from, const char *place, mr_error *err)
{
    m->weight = NULL;
    for (size_t i = 0; i < m->q->weight_count; i++) {
        const char *text = m->q->weights[i], *equals = strrchr(text, '=');
        size_t len = equals ? (size_t)(equals - text) : 0;
        if (!len || !mr_view_weight_ok(equals + 1))
            return mr_fail(err, MR_MISUSE, "--weight %s: give a dataset and a number above 0, DATASET=W", text);
        if ((strlen(from) == len && strncmp(text, from, len) == 0) ||
            (strlen(place) == len && strncmp(text, place, len) == 0)) {
            m->weight = equals + 1;
            m->weighed |= i < 64 ? UINT64_C(1) << i : 0;
        }
    }
    return MR_OK;
}

/* A weight that nothing has is a mistake. */
mr_status mr_maker_check_weights(const mr_view_maker *m, mr_error *err)
{
    for (size_t i = 0; i < m->q->weight_count && i < 64; i++)
        if (!(m->weighed >> i & 1))
            return mr_fail(err, MR_MISUSE, "--weight %s: the view has no dataset of this name", m->q->weights[i]);
    if (m->q->balance && m->q->weight_count)
        return mr_fail(err, MR_MISUSE, "--weight and --balance exclude each other");
    return MR_OK;
}

static bool is_class(const mr_view_maker *m, const char *name)
{
    for (size_t i = 0; i < m->class_count; i++)
        if (strcmp(m->classes[i].name, name) == 0)
            return true;
    return false;
}

static void add_name(mr_buf *list, const char *name)
{
    mr_buf_add_text(list, list->len ? "," : "");
    for (; *name; name++) {
        mr_buf_add_text(list, *name == ',' ? "\\" : "");
        mr_buf_add(list, name, 1);
    }
}

/* Replaces out's contents by a name of the list, without the backslashes of its commas. */
static void take_name(const char *at, size_t len, mr_buf *out)
{
    mr_buf_clear(out);
    for (size_t i = 0; i < len; i++)
        if (at[i] != '\\' || i + 1 == len || at[i + 1] != ',')
            mr_buf_add(out, at + i, 1);
}

/* A class that begins with what was taken for a name, up to a comma; NULL: there is none. */
static const char *class_with_comma(const mr_view_maker *m, const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < m->class_count; i++)
        if (!strncmp(m->classes[i].name, name, len) && m->classes[i].name[len] == ',')
            return m->classes[i].name;
    return NULL;
}

static mr_status no_class(const mr_view_maker *m, const char *name, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf whole = {0};
    const char *longer = class_with_comma(m, name);
    if (longer)
        add_name(&whole, longer);
    if (longer && !whole.failed)
        return mr_fail(err, MR_MISUSE, "--class %s: not a class of the dataset; commas in names are written \\,: '%s'",
                       name, mr_buf_text(&whole));
    return mr_fail(err, MR_MISUSE, "--class %s: not a class of the dataset; `millrace inspect --classes` lists them",
                   name);
}

/* The names that the datasets have for these classes of the view, so that the condition stays the same when the view is
 * part of another, which renames them. */
mr_status mr_maker_own_names(const mr_view_maker *m, const char *names, mr_buf *out, mr_error *err)
{
    const mr_view_file *v = m->v;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    for (const char *at = names, *end = NULL; !end || *end; at = end + 1) {
        end = at + mr_condition_name_end(at);
        take_name(at, (size_t)(end - at), &name);
        if (!is_class(m, mr_buf_text(&name)))
            return no_class(m, mr_buf_text(&name), err);
        bool moved = false;
        for (size_t i = 0; i < v->rename_count; i++) {
            moved = moved || strcmp(v->renames[i].from, mr_buf_text(&name)) == 0;
            if (strcmp(v->renames[i].to, mr_buf_text(&name)) == 0)
                add_name(out, v->renames[i].from);
        }
        if (!moved)
            add_name(out, mr_buf_text(&name));
    }
    return mr_buf_status(out, err, m->q->out);
}

mr_status mr_maker_rename_classes(mr_view_maker *m, mr_error *err)
{
    for (size_t i = 0; i < m->q->rename_count; i++) {
        MR_AUTO(mr_scope_free) char *from = strdup(m->q->renames[i]);
        char *equals = from ? strchr(from, '=') : NULL;
        if (!from)
            return mr_fail_memory(err, m->q->out);
        if (!equals || equals == from || !equals[1])
            return mr_fail(err, MR_MISUSE, "--rename-class %s: give the old and the new name, OLD=NEW", from);
        *equals = 0;
        bool known = false;
        for (size_t k = 0; k < m->v->rename_count; k++)
            known = known || strcmp(m->v->renames[k].to, from) == 0;
        for (size_t k = 0; !known && k < m->v->source_count; k++)
            for (size_t c = 0; c < mr_dataset_class_count(m->datasets[k]); c++)
                known = known || strcmp(mr_dataset_class_name(m->datasets[k], c), from) == 0;
        if (!known)
            return mr_fail(err, MR_MISUSE, "--rename-class %s: none of the datasets has a class of this name", from);
        MR_TRY(mr_maker_add_rename(m, from, equals + 1, err));
    }
    return MR_OK;
}
