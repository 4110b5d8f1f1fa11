/* plan.c - what a layout fills in: splits, classes, samples.
 * Invariant: a split's name is valid as a file name, and a sample's split and label are numbers that exist. */
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/layout/folder_names.h"
#include "ingest/layout/layout.h"

static bool same(const char *text, const char *bytes, size_t len)
{
    return strlen(text) == len && !memcmp(text, bytes, len);
}

/* ---- splits --------------------------------------------------------------------------------------------------- */

static const mr_split_map *map_of(const mr_layout_options *o, const char *name, size_t len)
{
    for (size_t i = 0; o && i < o->map_count; i++)
        if (same(o->maps[i].from, name, len))
            return &o->maps[i];
    return NULL;
}

/* The names that a dataset's own val may have, also as TO of --split-map. */
static bool is_val(const char *name, size_t len)
{
    return same("val", name, len) || same("valid", name, len) || same("validation", name, len);
}

const mr_split_map *mr_split_map_find(const mr_layout_options *o, const char *name, size_t len)
{
    /* The folder's own name first, then the name that it is stored under: val=dev also applies to a folder "valid". */
    const mr_split_map *map = map_of(o, name, len);
    const char *word = map ? NULL : mr_split_word(name, len);
    return word ? map_of(o, word, strlen(word)) : map;
}

static mr_status split_add(mr_plan *plan, const char *name, size_t len, uint32_t *split, mr_error *err)
{
    for (size_t i = 0; i < plan->split_count; i++)
        if (same(plan->splits[i].name, name, len)) {
            *split = (uint32_t)i;
            return MR_OK;
        }
    if (plan->split_count == MR_SPLITS_MAX)
        return mr_fail(err, MR_BAD_DATA, "%.*s: the source has more than %d splits, the limit for a dataset", (int)len,
                       name, MR_SPLITS_MAX);
    if (!MR_GROW(plan->splits, plan->split_count, plan->split_capacity))
        return mr_fail_memory(err, "listing the splits");
    mr_plan_split *s = &plan->splits[plan->split_count];
    *s = (mr_plan_split){0};
    memcpy(s->name, name, len);
    *split = (uint32_t)plan->split_count++;
    return MR_OK;
}

static bool name_fits(const char *name, size_t len)
{
    char copy[sizeof((mr_plan_split *)0)->name] = "";
    if (len >= sizeof copy || memchr(name, '\0', len))
        return false;
    memcpy(copy, name, len);
    return mr_split_name_ok(copy);
}

static mr_status no_split_name(const mr_split_map *map, const char *name, size_t len, mr_error *err)
{
    if (map)
        return mr_fail(err, MR_MISUSE,
                       "--split-map %s=%s: a split name has at most 63 letters, digits, "
                       "'_', '-' and '.', and does not start with '.'",
                       map->from, map->to);
    mr_buf text = {0};
    mr_text_escape(&text, name, len);
    mr_fail(err, MR_BAD_DATA, "%s: not a valid split name: store it under another name by --split-map NAME=train",
            mr_buf_text(&text));
    mr_buf_free(&text);
    return MR_BAD_DATA;
}

/* Keeps the name for the report. False: known already, or the list is full. */
static bool add_alias(mr_plan_split *s, const char *name, size_t len, bool mapped)
{
    for (size_t i = 0; i < s->alias_count; i++)
        if (s->aliases[i].len == len && !memcmp(s->aliases[i].name, name, len))
            return false;
    if (s->alias_count == MR_SPLIT_ALIASES)
        return false;
    s->aliases[s->alias_count++] = (mr_split_alias){name, len, mapped};
    return true;
}

/* Whether two names of the source are one split only by usage: val, valid and validation mean the same, but dev and
 * eval may be two splits. */
static mr_status check_alias(const mr_plan_split *s, const char *name, size_t len, mr_error *err)
{
    const mr_split_alias *other = s->aliases;
    while (other->mapped) /* the current name, the last, is not */
        other++;
    if (other == &s->aliases[s->alias_count - 1] || (is_val(name, len) && is_val(other->name, other->len)))
        return MR_OK;
    return mr_fail(err, MR_BAD_DATA,
                   "%.*s and %.*s would both be stored as split %s: --split-map %.*s=OTHER stores the "
                   "second one as OTHER, --split-map %.*s= leaves it out, --split-map %.*s=%s puts both into one split",
                   (int)other->len, other->name, (int)len, name, s->name, (int)len, name, (int)len, name, (int)len,
                   name, s->name);
}

mr_status mr_plan_split_get(mr_plan *plan, const mr_layout_options *o, const char *name, size_t len, uint32_t *split,
                            mr_error *err)
{
    const mr_split_map *map = mr_split_map_find(o, name, len);
    if (map)
        plan->maps_used |= (uint64_t)1 << (map - o->maps) % 64;
    if (map && !*map->to) {
        *split = MR_NO_ENTRY;
        return MR_OK;
    }
    const char *word = map ? (is_val(map->to, strlen(map->to)) ? "val" : map->to) : mr_split_word(name, len);
    const char *stored = word ? word : name;
    size_t stored_len = word ? strlen(word) : len;
    if (!name_fits(stored, stored_len))
        return no_split_name(map, name, len, err);
    MR_TRY(split_add(plan, stored, stored_len, split, err));
    mr_plan_split *s = &plan->splits[*split];
    return add_alias(s, name, len, map != NULL) && !map ? check_alias(s, name, len, err) : MR_OK;
}

mr_status mr_plan_split_named(mr_plan *plan, const char *name, const char *called, uint32_t *split, mr_error *err)
{
    MR_TRY(split_add(plan, name, strlen(name), split, err));
    if (called)
        add_alias(&plan->splits[*split], called, strlen(called), true);
    return MR_OK;
}

/* ---- the whole plan -------------------------------------------------------------------------------------------- */

/* Otherwise a misspelled split would go unnoticed. */
static mr_status check_maps(const mr_plan *plan, const mr_layout_options *o, mr_error *err)
{
    mr_buf there = {0};
    for (size_t i = 0; i < plan->split_count; i++)
        mr_buf_printf(&there, "%s%s", i ? ", " : "", plan->splits[i].name);
    mr_status status = MR_OK;
    for (size_t i = 0; i < o->map_count && status == MR_OK; i++)
        if (!(plan->maps_used >> i & 1))
            status =
                mr_fail(err, MR_MISUSE, "--split-map %s=%s: the source has no split '%s'; the stored splits are: %s",
                        o->maps[i].from, o->maps[i].to, o->maps[i].from, mr_buf_text(&there));
    mr_buf_free(&there);
    return status;
}

/* Counts the samples of a split by the folders of its aliases.  False: not all are in one, as where lists name them. */
static bool count_by_alias(const mr_tree *t, const mr_plan *plan, size_t split, size_t counts[MR_SPLIT_ALIASES])
{
    const mr_plan_split *s = &plan->splits[split];
    size_t others = 0;
    for (size_t i = 0; i < plan->sample_count; i++) {
        size_t len, k = 0;
        if (plan->samples[i].split != split)
            continue;
        const char *path = mr_tree_path(t, plan->samples[i].entry, &len);
        while (k < s->alias_count && !(len > s->aliases[k].len && path[s->aliases[k].len] == '/' &&
                                       !memcmp(path, s->aliases[k].name, s->aliases[k].len)))
            k++;
        if (k < s->alias_count)
            counts[k]++;
        else
            others++;
    }
    return others == 0;
}

/* "valid (364 samples) and test (182 samples)"; *mapped: some by --split-map. */
static void list_merged(const mr_tree *t, const mr_plan *plan, size_t split, mr_buf *names, bool *mapped)
{
    const mr_plan_split *s = &plan->splits[split];
    size_t counts[MR_SPLIT_ALIASES] = {0};
    bool counted = count_by_alias(t, plan, split, counts);
    char number[32];
    for (size_t k = 0; k < s->alias_count; k++) {
        mr_buf_add_text(names, k == 0 ? "" : k + 1 < s->alias_count ? ", " : " and ");
        mr_text_escape(names, s->aliases[k].name, s->aliases[k].len);
        if (counted)
            mr_buf_printf(names, " (%s sample%s)", mr_text_count(counts[k], number), counts[k] == 1 ? "" : "s");
        *mapped = *mapped || s->aliases[k].mapped;
    }
}

/* Notes splits of the source that are stored as one. */
static void note_merged(const mr_tree *t, const mr_plan *plan, const mr_layout_options *o)
{
    for (size_t i = 0; i < plan->split_count; i++) {
        MR_AUTO(mr_buf_free) mr_buf names = {0};
        bool mapped = false;
        if (plan->splits[i].alias_count < 2)
            continue;
        list_merged(t, plan, i, &names, &mapped);
        mr_note_add(plan->notes, MR_NOTE_INFO, plan->splits[i].name, strlen(plan->splits[i].name), 0,
                    "%s are stored as this one split%s", mr_buf_text(&names),
                    o->list_count ? ", because of --split-list"
                    : mapped      ? ", because of --split-map"
                                  : "; --split-map keeps them apart or leaves one out");
        plan->notes->failed = plan->notes->failed || names.failed;
    }
}

static bool any_label(const mr_plan *plan)
{
    for (size_t i = 0; i < plan->sample_count; i++)
        if (plan->samples[i].label >= 0)
            return true;
    return false;
}

mr_status mr_plan_review(const mr_tree *t, const mr_plan *plan, const mr_layout_options *o, mr_error *err)
{
    MR_TRY(check_maps(plan, o, err));
    if (o->label_column && plan->sample_count && !any_label(plan))
        return mr_fail(err, MR_MISUSE,
                       "--label-column %s: no sample has a label there: the column is empty, or its "
                       "rows name none of the images",
                       o->label_column);
    note_merged(t, plan, o);
    return mr_plan_classes_note(plan, err);
}

mr_status mr_plan_variant_set(mr_plan *plan, mr_buf *name, mr_error *err)
{
    mr_buf_text(name);
    mr_status status = mr_buf_status(name, err, "naming the variant");
    if (status == MR_OK) {
        free(plan->variant_text);
        plan->variant_text = (char *)name->data;
        *name = (mr_buf){0};
    }
    mr_buf_free(name);
    return status;
}

const char *mr_plan_variant(const mr_plan *plan)
{
    return plan->variant_text ? plan->variant_text : plan->variant;
}

/* ---- samples -------------------------------------------------------------------------------------------------- */

uint64_t mr_plan_mask(mr_plan *plan, const mr_tree *t, const mr_mask *mask)
{
    const mr_entry *e = mr_source_entry(t->source, mask->entry);
    plan->used[mask->entry] = MR_USE_MASK;
    return e->size + e->size / 3 + e->path_len + 48;
}

mr_status mr_plan_add(mr_plan *plan, const mr_sample *sample, mr_error *err)
{
    if (!MR_GROW(plan->samples, plan->sample_count, plan->sample_capacity))
        return mr_fail_memory(err, "listing the samples");
    plan->samples[plan->sample_count++] = *sample;
    plan->used[sample->entry] = MR_USE_TAKEN;
    return MR_OK;
}

void mr_plan_leave_out(mr_plan *plan, const mr_source *s, const char *name, size_t len, uint32_t begin, uint32_t end)
{
    uint64_t bytes = 0;
    for (uint32_t e = begin; e < end; e++) {
        plan->used[e] = MR_USE_LEFT_OUT;
        bytes += mr_source_entry(s, e)->size;
    }
    mr_note_add(plan->notes, MR_NOTE_INFO, name, len, bytes, "left out by --split-map: %u file%s", end - begin,
                end - begin == 1 ? "" : "s");
}

mr_status mr_plan_check(const mr_plan *plan, const mr_layout_options *o, const mr_layout *layout, const char *source,
                        mr_error *err)
{
    bool left_out = false;
    for (size_t i = 0; i < o->map_count; i++)
        left_out |= !*o->maps[i].to && plan->maps_used >> i & 1;
    if (plan->sample_count == 0)
        return mr_fail(err, MR_BAD_DATA, "%s: holds no image for layout %s%s", source, layout->name,
                       left_out ? " but in splits that --split-map leaves out" : "");
    if (plan->sample_count >= UINT32_MAX)
        return mr_fail(err, MR_BAD_DATA, "more than %u samples", UINT32_MAX - 1);
    return MR_OK;
}

void mr_plan_free(const mr_layout *layout, mr_plan *plan)
{
    if (plan->state && layout && layout->free_state)
        layout->free_state(plan->state);
    for (size_t i = 0; i < plan->class_count; i++)
        free(plan->classes[i].name);
    free(plan->classes);
    free(plan->places);
    free(plan->splits);
    free(plan->samples);
    free(plan->used);
    free(plan->licence);
    free(plan->variant_text);
    mr_notes *notes = plan->notes;
    *plan = (mr_plan){.notes = notes};
}
