/* notes.c - what a plan of ImageNet leaves out or lacks, in a few notes.
 * Invariant: a note is about a split or a table as a whole: ImageNet has a thousand classes and half a million
 * tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/ilsvrc/ilsvrc.h"

enum { NAMED = 4 }; /* classes or images that a note names */

/* One note for a split: a part of ImageNet lacks hundreds of classes. */
static void note_split(mr_plan *plan, const mr_ilsvrc_counts *counts, size_t split)
{
    mr_buf names = {0};
    const char *name = plan->splits[split].name;
    size_t missing = 0;
    for (size_t c = 0; c < plan->class_count; c++)
        if (!counts->labeled[split * plan->class_count + c] && missing++ < NAMED)
            mr_buf_printf(&names, "%s%s", missing > 1 ? ", " : "", plan->classes[c].name);
    if (missing && missing < plan->class_count)
        mr_note_add(plan->notes, MR_NOTE_CLASS, name, strlen(name), 0,
                    "classes without an image in it: %zu of %zu (%s%s)", missing, plan->class_count,
                    mr_buf_text(&names), missing > NAMED ? " ..." : "");
    if (counts->unlabeled[split])
        mr_note_add(plan->notes, MR_NOTE_INFO, name, strlen(name), 0, "images without labels, as published: %" PRIu64,
                    counts->unlabeled[split]);
    plan->notes->failed = plan->notes->failed || names.failed;
    mr_buf_free(&names);
}

static void note_missing(mr_plan *plan, const uint8_t *taken)
{
    mr_buf some = {0};
    size_t missing = 0;
    const mr_ilsvrc_state *st = plan->state;
    for (size_t i = 0; i < st->row_count; i++) {
        if (taken[i] || missing++ >= NAMED)
            continue;
        mr_buf_add_text(&some, missing > 1 ? ", " : "");
        mr_text_escape(&some, st->rows[i].key, st->rows[i].key_len);
    }
    if (missing)
        mr_note_add(plan->notes, MR_NOTE_MISSING, "", 0, 0, "%zu of %zu images that tables list are not samples: %s%s",
                    missing, st->row_count, mr_buf_text(&some), missing > NAMED ? " ..." : "");
    plan->notes->failed = plan->notes->failed || some.failed;
    mr_buf_free(&some);
}

/* Half a million XML files of boxes, where Kaggle's tables have them as well, and lists of names. */
static void note_rest(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan)
{
    static const char *const prefixes[] = {"ILSVRC/Annotations/", "ILSVRC/ImageSets/", "Annotations/", "ImageSets/"};
    static const char *const lists[] = {"wnids.txt", "LOC_sample_submission.csv"};
    bool train = mr_ilsvrc_find(t, p, "LOC_train_solution.csv") != MR_NO_ENTRY;
    bool val = mr_ilsvrc_find(t, p, "LOC_val_solution.csv") != MR_NO_ENTRY;
    uint64_t count = 0;
    for (uint32_t e = t->begin; e < t->end; e++) {
        size_t len;
        const char *path = mr_tree_path(t, e, &len);
        bool told = !mr_name_ends(path, len, ".xml") || (strstr(path, "/val/") ? val : train);
        for (size_t i = 0; i < MR_COUNT(prefixes) && told; i++)
            if (len > strlen(prefixes[i]) && !memcmp(path, prefixes[i], strlen(prefixes[i])) &&
                (mr_name_ends(path, len, ".xml") || mr_name_ends(path, len, ".txt")) && !plan->used[e]) {
                plan->used[e] = MR_USE_TAKEN;
                count++;
            }
    }
    if (count)
        mr_note_add(plan->notes, MR_NOTE_INFO, "Annotations", strlen("Annotations"), 0,
                    "left out, with ImageSets: %" PRIu64 " files; boxes come from LOC_train_solution.csv and "
                    "LOC_val_solution.csv",
                    count);
    for (size_t i = 0; i < MR_COUNT(lists); i++) {
        uint32_t entry = mr_ilsvrc_find(t, p, lists[i]);
        if (entry != MR_NO_ENTRY)
            plan->used[entry] = MR_USE_TAKEN;
    }
}

mr_status mr_ilsvrc_notes(const mr_tree *t, const mr_ilsvrc_places *p, mr_plan *plan, const mr_ilsvrc_counts *counts,
                          mr_error *err)
{
    const mr_ilsvrc_state *st = plan->state;
    MR_AUTO(mr_scope_free) uint8_t *taken = mr_alloc(st->row_count, 1);
    if (!taken)
        return mr_fail_memory(err, "listing the samples");
    for (size_t i = 0; i < plan->sample_count; i++)
        if (plan->samples[i].aux)
            taken[plan->samples[i].aux - 1] = 1;
    for (size_t s = 0; s < plan->split_count; s++)
        note_split(plan, counts, s);
    note_missing(plan, taken);
    note_rest(t, p, plan);
    return MR_OK;
}
