/* sarif.c - what verify found as SARIF 2.1.0, which code scanning services read.
 * Invariant: every result names a rule of the tool, and a file by a URI.
 * Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shards/verify/formats.h"

typedef struct results {
    json_t *array;
    const char *dataset;
    size_t left_out;
    bool failed;
} results;

/* RFC 3986: unreserved characters, and '/', are kept. */
static void add_uri(mr_buf *out, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    if (*path == '/')
        mr_buf_add_text(out, "file://");
    for (; *path; path++)
        if (strchr(plain, *path))
            mr_buf_add(out, path, 1);
        else
            mr_buf_printf(out, "%%%02X", (unsigned)(unsigned char)*path);
}

static void add_result(results *l, const mr_problem *p, const char *level, const char *text)
{
    char print[17];
    mr_buf place = {0}, uri = {0};
    mr_problem_place(p, l->dataset, &place);
    add_uri(&uri, mr_buf_text(&place));
    snprintf(print, sizeof print, "%016llx", (unsigned long long)mr_problem_fingerprint(p));
    json_t *one =
        json_pack("{s:s,s:i,s:s,s:{s:s},s:[{s:{s:{s:s}}}],s:{s:s}}", "ruleId", mr_problem_words[p->kind], "ruleIndex",
                  (int)p->kind, "level", level, "message", "text", text, "locations", "physicalLocation",
                  "artifactLocation", "uri", mr_buf_text(&uri), "partialFingerprints", "millrace/v1", print);
    l->failed |= json_array_append_new(l->array, one) != 0 || place.failed || uri.failed;
    mr_buf_free(&place);
    mr_buf_free(&uri);
}

static void add_problem(void *context, const mr_problem *p, bool warning)
{
    results *l = context;
    mr_buf text = {0};
    if (json_array_size(l->array) >= MR_FORMAT_MOST) {
        l->left_out++;
        return;
    }
    mr_problem_text(p, &text);
    add_result(l, p, warning ? "warning" : "error", mr_buf_text(&text));
    l->failed |= text.failed;
    mr_buf_free(&text);
}

static json_t *rules(void)
{
    json_t *array = json_array();
    for (size_t i = 0; i < MR_PROBLEM_KIND_COUNT; i++)
        json_array_append_new(array, json_pack("{s:s,s:{s:s}}", "id", mr_problem_words[i], "shortDescription", "text",
                                               mr_problem_meanings[i]));
    return array;
}

/* A missing report is not a finding: the run failed. */
static json_t *invocation(bool successful, const char *notice)
{
    if (!notice)
        return json_pack("{s:b}", "executionSuccessful", successful);
    return json_pack("{s:b,s:[{s:s,s:{s:s}}]}", "executionSuccessful", successful, "toolExecutionNotifications",
                     "level", successful ? "note" : "error", "message", "text", notice);
}

mr_status mr_verify_sarif(const mr_verify_report *r, const char *why, const char *dataset, mr_buf *out, mr_error *err)
{
    results l = {.array = json_array(), .dataset = dataset};
    if (r)
        mr_verify_each(r, add_problem, &l);
    char more[100];
    if (l.left_out) {
        snprintf(more, sizeof more, "%zu more problems; 'millrace verify --json' lists all", l.left_out);
        why = more;
    }
    json_t *doc = json_pack("{s:s,s:s,s:[{s:{s:{s:s,s:s,s:o}},s:o,s:[o]}]}", "$schema",
                            "https://json.schemastore.org/sarif-2.1.0.json", "version", "2.1.0", "runs", "tool",
                            "driver", "name", "millrace", "version", MILLRACE_VERSION, "rules", rules(), "results",
                            l.array, "invocations", invocation(r != NULL, why));
    char *json = l.failed || !doc ? NULL : json_dumps(doc, JSON_INDENT(1));
    json_decref(doc);
    if (!json)
        return mr_fail_memory(err, "writing SARIF");
    mr_buf_add_text(out, json);
    mr_buf_add_text(out, "\n");
    free(json);
    return mr_buf_status(out, err, "writing SARIF");
}
