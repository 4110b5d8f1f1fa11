/* gitlab.c - what verify found as a Code Quality report, which GitLab shows in merge requests.
 * Invariant: a problem has the same fingerprint in every run.
 * Source: GitLab's documentation, "Code Quality report format". */
#include <stdio.h>
#include <stdlib.h>

#include "shards/verify/formats.h"

typedef struct list {
    json_t *array;
    const char *dataset;
    size_t left_out;
    bool failed;
} list;

static void add(list *l, const char *check, const char *severity, const char *place, uint64_t print, const char *text)
{
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)print);
    json_t *one =
        json_pack("{s:s,s:s,s:s,s:s,s:{s:s,s:{s:i}}}", "description", text, "check_name", check, "fingerprint",
                  fingerprint, "severity", severity, "location", "path", place, "lines", "begin", 1);
    l->failed |= json_array_append_new(l->array, one) != 0;
}

static void add_problem(void *context, const mr_problem *p, bool warning)
{
    list *l = context;
    mr_buf text = {0}, place = {0};
    if (json_array_size(l->array) >= MR_FORMAT_MOST) {
        l->left_out++;
        return;
    }
    mr_problem_text(p, &text);
    mr_problem_place(p, l->dataset, &place);
    add(l, mr_problem_words[p->kind], warning ? "minor" : "critical", mr_buf_text(&place), mr_problem_fingerprint(p),
        mr_buf_text(&text));
    l->failed |= text.failed || place.failed;
    mr_buf_free(&text);
    mr_buf_free(&place);
}

mr_status mr_verify_gitlab(const mr_verify_report *r, const char *why, const char *dataset, mr_buf *out, mr_error *err)
{
    list l = {.array = json_array(), .dataset = dataset};
    if (r)
        mr_verify_each(r, add_problem, &l);
    else
        add_problem(&l, &(mr_problem){.kind = MR_PROBLEM_UNREADABLE, .sample = MR_NO_SAMPLE, .detail = (char *)why},
                    false);
    if (l.left_out) {
        char text[100];
        snprintf(text, sizeof text, "%zu more problems; 'millrace verify --json' lists all", l.left_out);
        add(&l, "more", "critical", dataset, l.left_out, text);
    }
    char *json = l.failed ? NULL : json_dumps(l.array, JSON_INDENT(1));
    json_decref(l.array);
    if (!json)
        return mr_fail_memory(err, "writing a Code Quality report");
    mr_buf_add_text(out, json);
    mr_buf_add_text(out, "\n");
    free(json);
    return mr_buf_status(out, err, "writing a Code Quality report");
}
