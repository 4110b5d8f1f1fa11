/* plan.c - what a layout makes of a source, as text.
 * Invariant: everything that a plan holds is in the text, so an equal text is an equal plan. */
#include "tests/support/sources/plan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ingest/layout/table/split_lists.h"
#include "shards/manifest/format.h"

typedef struct planned {
    mr_notes notes;
    mr_source *source;
    mr_choice choice;
    mr_plan plan;
    mr_error err;
    mr_buf text;
} planned;

static char *end(planned *p)
{
    if (p->choice.layout)
        mr_plan_free(p->choice.layout, &p->plan);
    mr_source_free(p->source);
    mr_notes_free(&p->notes);
    mr_buf_text(&p->text);
    return (char *)p->text.data;
}

static bool begin(planned *p, const char *source, const char *forced, const mr_layout_options *o)
{
    static const mr_layout_options none = {0};
    mr_source_options so = {.quiet = true};
    char *path = support_path("%s", source), *srcs[] = {path};
    mr_status status = mr_source_open(srcs, 1, -1, &so, &p->notes, &p->source, &p->err);
    free(path);
    if (status != MR_OK)
        fail_msg("%s", p->err.text);
    if (mr_layout_choose(p->source, forced, o ? o : &none, &p->choice, &p->err) != MR_OK) {
        mr_buf_printf(&p->text, "choose: %s\n", p->err.text);
        return false;
    }
    p->plan.notes = &p->notes;
    p->plan.used = calloc(mr_source_count(p->source) + 1, 1);
    status = mr_layout_check(p->choice.layout, o ? o : &none, &p->err);
    if (status == MR_OK)
        status = p->choice.layout->plan(&p->choice.tree, o ? o : &none, &p->plan, &p->err);
    if (status == MR_OK)
        status = mr_split_lists_apply(&p->choice.tree, o ? o : &none, &p->plan, &p->err);
    if (status == MR_OK)
        status = mr_plan_review(&p->choice.tree, &p->plan, o ? o : &none, &p->err);
    if (status != MR_OK)
        mr_buf_printf(&p->text, "plan %d: %s\n", status, p->err.text);
    return status == MR_OK;
}

static void add_head(planned *p)
{
    mr_buf_printf(&p->text, "layout %s %d: variant %s, licence %s, classes", p->choice.layout->name,
                  p->choice.bid.score, mr_plan_variant(&p->plan), p->plan.licence ? p->plan.licence : "-");
    for (size_t c = 0; c < p->plan.class_count; c++) {
        mr_buf_printf(&p->text, " %s", p->plan.classes[c].name);
        if (p->plan.classes[c].has_id)
            mr_buf_printf(&p->text, "=%lld", (long long)p->plan.classes[c].id);
    }
}

static void add_sample(planned *p, const mr_sample *s)
{
    const mr_entry *e = mr_source_entry(p->source, s->entry);
    size_t len;
    const char *path = mr_tree_path(&p->choice.tree, s->entry, &len);
    assert_true(s->split < p->plan.split_count);
    assert_true(s->label >= -1 && s->label < (int64_t)p->plan.class_count);
    assert_true((uint64_t)s->group_at + s->group_len <= e->path_len);
    assert_int_equal(p->plan.used[s->entry], 1);
    mr_buf_printf(&p->text, "%s %s %s %.*s %s%s", p->plan.splits[s->split].name, path,
                  s->label < 0 ? "-" : p->plan.classes[s->label].name, s->group_len ? (int)s->group_len : 1,
                  s->group_len ? e->path + s->group_at : "-", s->flags & MR_FLAG_MULTI_LABEL ? "M" : "",
                  s->flags & MR_FLAG_UNANNOTATED ? "U" : "");
    if (!s->flags)
        mr_buf_add_text(&p->text, "-");
    mr_buf_add_text(&p->text, " ");
    size_t before = p->text.len;
    if (p->choice.layout->meta && p->choice.layout->meta(&p->choice.tree, &p->plan, s, &p->text, &p->err) != MR_OK)
        fail_msg("%s", p->err.text);
    if (p->text.len == before)
        mr_buf_add_text(&p->text, "-");
    mr_buf_add_text(&p->text, "\n");
}

char *support_plan(const char *source, const char *forced, const mr_layout_options *o)
{
    planned p = {0};
    if (!begin(&p, source, forced, o))
        return end(&p);
    add_head(&p);
    mr_buf_add_text(&p.text, "\n");
    for (size_t i = 0; i < p.plan.sample_count; i++)
        add_sample(&p, &p.plan.samples[i]);
    for (size_t i = 0; i < p.notes.count; i++)
        mr_buf_printf(&p.text, "note %s %s: %s\n", mr_note_words[p.notes.items[i].kind], p.notes.items[i].path,
                      p.notes.items[i].detail);
    for (uint32_t e = 0; e < mr_source_count(p.source); e++)
        if (!p.plan.used[e])
            mr_buf_printf(&p.text, "unused %s\n", mr_source_entry(p.source, e)->path);
    return end(&p);
}

char *support_plan_counts(const char *source, const mr_layout_options *o)
{
    planned p = {0};
    size_t unused = 0;
    if (!begin(&p, source, NULL, o))
        return end(&p);
    add_head(&p);
    for (uint32_t s = 0; s < p.plan.split_count; s++) {
        size_t count = 0;
        for (size_t i = 0; i < p.plan.sample_count; i++)
            count += p.plan.samples[i].split == s;
        mr_buf_printf(&p.text, "%s %s %zu", s ? "," : ";", p.plan.splits[s].name, count);
    }
    for (uint32_t e = 0; e < mr_source_count(p.source); e++)
        unused += !p.plan.used[e];
    mr_buf_printf(&p.text, "; %zu notes, %zu unused\n", p.notes.count, unused);
    return end(&p);
}

void support_touch(const char *dir, const char *const *names)
{
    for (; *names; names++) {
        char *path = support_path("%s/%s", dir, *names);
        support_write_text(path, "");
        free(path);
    }
}

void support_assert_plan(const char *source, const mr_layout_options *o, const char *expected)
{
    char *text = support_plan(source, NULL, o);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- a folder of the test's own ---------------------------------------------------------------------------------- */

char *plan_dir;

int plan_set_up(void **state)
{
    (void)state;
    plan_dir = support_tmpdir();
    return 0;
}

int plan_tear_down(void **state)
{
    (void)state;
    support_tmpdir_remove(plan_dir);
    return 0;
}

void plan_file(const char *name, const char *text)
{
    support_put(plan_dir, name, text);
}

void plan_remove(const char *name)
{
    char *path = support_path("%s/%s", plan_dir, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

void plan_is(const mr_layout_options *o, const char *expected)
{
    support_assert_plan(plan_dir, o, expected);
}

void plan_says(const mr_layout_options *o, const char *forced, const char *words)
{
    char *text = support_plan(plan_dir, forced, o);
    if (!strstr(text, words))
        fail_msg("\"%s\" is not in: %s", words, text);
    free(text);
}

void plan_lacks(const char *words)
{
    char *text = support_plan(plan_dir, NULL, NULL);
    if (strstr(text, words))
        fail_msg("\"%s\" is in: %s", words, text);
    free(text);
}
