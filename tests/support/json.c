/* json.c - annotation files and layouts under test. */
#include "tests/support/json.h"

#include <stdlib.h>
#include <string.h>

/* ---- one COCO file -------------------------------------------------------------------------------------------- */

support_coco support_coco_parse(const void *bytes, size_t len)
{
    support_coco o = {.dir = support_tmpdir(), .ids = calloc(1, sizeof *o.ids)};
    char *path = support_path("%s/a.json", o.dir);
    mr_source_options options = {.quiet = true};
    support_write(path, bytes, len);
    free(path);
    assert_int_equal(mr_source_open(&o.dir, 1, -1, &options, &o.notes, &o.source, &o.err), MR_OK);
    o.status = mr_coco_parse(o.source, 0, o.ids, &o.file, &o.err);
    return o;
}

support_coco support_coco_text(const char *text)
{
    return support_coco_parse(text, strlen(text));
}

void support_coco_done(support_coco *o)
{
    mr_coco_free(o->file);
    mr_coco_ids_free(o->ids);
    free(o->ids);
    mr_source_free(o->source);
    mr_notes_free(&o->notes);
    support_tmpdir_remove(o->dir);
}

/* ---- a layout over a folder ----------------------------------------------------------------------------------- */

support_plan support_plan_at(const mr_layout *layout, char *dir, const char *root, const mr_layout_options *options)
{
    static const mr_layout_options none;
    support_plan p = {.layout = layout};
    mr_source_options how = {.quiet = true};
    assert_int_equal(mr_source_open(&dir, 1, -1, &how, &p.notes, &p.source, &p.err), MR_OK);
    p.tree = mr_tree_at(p.source, root, strlen(root));
    p.plan.used = calloc(mr_source_count(p.source) + 1, 1);
    assert_non_null(p.plan.used);
    assert_int_equal(layout->bid(&p.tree, &(mr_layout_options){0}, &p.bid, &p.err), MR_OK);
    /* The notes move with the returned struct: they are lent to the plan only while it is made. */
    p.plan.notes = &p.notes;
    p.status = mr_layout_check(layout, options ? options : &none, &p.err);
    if (p.status == MR_OK)
        p.status = layout->plan(&p.tree, options ? options : &none, &p.plan, &p.err);
    if (p.status == MR_OK)
        p.status = mr_plan_review(&p.tree, &p.plan, options ? options : &none, &p.err);
    p.plan.notes = NULL;
    assert_false(p.notes.failed);
    return p;
}

support_plan support_plan_ok(const mr_layout *layout, char *dir, const mr_layout_options *options)
{
    support_plan p = support_plan_at(layout, dir, "", options);
    if (p.status != MR_OK)
        fail_msg("plan failed with %d: %s", p.status, p.err.text);
    return p;
}

void support_plan_fails(const mr_layout *layout, char *dir, const mr_layout_options *options, mr_status status,
                        const char *why)
{
    support_plan p = support_plan_at(layout, dir, "", options);
    if (p.status != status || !strstr(p.err.text, why))
        fail_msg("expected %d, \"%s\"; got %d: %s", status, why, p.status, p.status == MR_OK ? "" : p.err.text);
    support_plan_done(&p);
}

void support_plan_done(support_plan *p)
{
    mr_plan_free(p->layout, &p->plan);
    mr_source_free(p->source);
    mr_notes_free(&p->notes);
}

size_t support_notes(const support_plan *p, mr_note_kind kind)
{
    return p->notes.counts[kind];
}

bool support_has_note(const support_plan *p, mr_note_kind kind, const char *path, const char *detail)
{
    for (size_t i = 0; i < p->notes.count; i++) {
        const mr_note *note = &p->notes.items[i];
        if (note->kind == kind && !strcmp(note->path, path) && strstr(note->detail, detail))
            return true;
    }
    return false;
}

void support_assert_samples(const support_plan *p, const char *expected)
{
    mr_buf text = {0};
    for (size_t i = 0; i < p->plan.sample_count; i++) {
        const mr_sample *s = &p->plan.samples[i];
        size_t len;
        const char *path = mr_tree_path(&p->tree, s->entry, &len);
        assert_true(s->split < p->plan.split_count);
        assert_true(p->plan.used[s->entry]);
        mr_buf_printf(&text, "%s %s %d %u\n", p->plan.splits[s->split].name, path, s->label, s->flags);
    }
    assert_string_equal(mr_buf_text(&text), expected);
    mr_buf_free(&text);
}

char *support_plan_meta(const support_plan *p, size_t sample)
{
    mr_buf text = {0};
    mr_error err;
    assert_true(sample < p->plan.sample_count);
    if (p->layout->meta(&p->tree, &p->plan, &p->plan.samples[sample], &text, &err) != MR_OK)
        fail_msg("meta failed: %s", err.text);
    mr_buf_text(&text);
    return (char *)text.data;
}

void support_assert_meta(const support_plan *p, size_t sample, const char *expected)
{
    char *text = support_plan_meta(p, sample);
    assert_string_equal(text, expected);
    free(text);
}
