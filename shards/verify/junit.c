/* junit.c - what verify found as JUnit XML: a test case per shard.
 * Invariant: XML gets no character that XML 1.0 forbids. */
#include <string.h>

#include "base/text.h"
#include "shards/verify/formats.h"

enum { JUNIT_LINES = 200 }; /* per test case; they are read in a web page */

static bool forbidden(const char *at)
{
    return ((unsigned char)*at < 0x20 && *at != '\n' && *at != '\t') || mr_text_is_no_character(at, strnlen(at, 3));
}

static void add_xml(mr_buf *out, const char *text)
{
    for (; *text; text++) {
        if (!forbidden(text)) {
            mr_text_add_markup(out, text, 1);
        } else {
            text += (unsigned char)*text < 0x20 ? 0 : 2;
            mr_buf_add_text(out, "?");
        }
    }
}

static void add_line(mr_buf *out, const mr_problem *p)
{
    mr_buf text = {0};
    mr_problem_text(p, &text);
    mr_buf_printf(out, "%s%s", mr_problem_words[p->kind], p->sample == MR_NO_SAMPLE && !p->source ? ": " : " ");
    add_xml(out, mr_buf_text(&text));
    mr_buf_add_text(out, "\n");
    out->failed |= text.failed;
    mr_buf_free(&text);
}

static void begin_case(mr_buf *out, const char *dataset, const char *name, double seconds)
{
    mr_buf_add_text(out, "  <testcase classname=\"");
    add_xml(out, dataset);
    mr_buf_add_text(out, "\" name=\"");
    add_xml(out, name);
    mr_buf_printf(out, "\" time=\"%.3f\"", seconds);
}

static void add_case(mr_buf *out, const char *dataset, const char *name, double seconds, const mr_problems *problems)
{
    begin_case(out, dataset, name, seconds);
    if (!problems->count) {
        mr_buf_add_text(out, "/>\n");
        return;
    }
    mr_buf_printf(out, ">\n    <failure type=\"%s\" message=\"", mr_problem_words[problems->items[0].kind]);
    add_xml(out, problems->items[0].detail);
    mr_buf_add_text(out, "\">");
    for (size_t i = 0; i < problems->count && i < JUNIT_LINES; i++)
        add_line(out, &problems->items[i]);
    if (problems->count > JUNIT_LINES)
        mr_buf_printf(out, "... and %zu more (verify --json lists all)\n", problems->count - JUNIT_LINES);
    mr_buf_add_text(out, "</failure>\n  </testcase>\n");
}

static void begin_suite(mr_buf *out, const char *dataset, size_t tests, size_t failures, size_t errors, double seconds)
{
    mr_buf_add_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                         " <testsuite name=\"millrace verify ");
    add_xml(out, dataset);
    mr_buf_printf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"0\" time=\"%.3f\">\n", tests,
                  failures, errors, seconds);
}

static void add_report(mr_buf *out, const mr_verify_report *r, const char *dataset)
{
    bool whole = r->problems.count > 0;
    size_t tests = r->shard_count + whole, failures = whole;
    for (size_t i = 0; i < r->shard_count; i++)
        failures += r->shards[i].problems.count > 0;
    begin_suite(out, dataset, tests, failures, 0, r->seconds);
    if (whole)
        add_case(out, dataset, "dataset", 0, &r->problems);
    for (size_t i = 0; i < r->shard_count; i++)
        add_case(out, dataset, r->shards[i].name, r->shards[i].seconds, &r->shards[i].problems);
}

static void add_error(mr_buf *out, const char *why, const char *dataset)
{
    begin_suite(out, dataset, 1, 0, 1, 0);
    begin_case(out, dataset, "dataset", 0);
    mr_buf_add_text(out, ">\n    <error message=\"");
    add_xml(out, why);
    mr_buf_add_text(out, "\"/>\n  </testcase>\n");
}

mr_status mr_verify_junit(const mr_verify_report *r, const char *why, const char *dataset, mr_buf *out, mr_error *err)
{
    mr_buf name = {0};
    mr_text_escape(&name, dataset, strlen(dataset));
    if (r)
        add_report(out, r, mr_buf_text(&name));
    else
        add_error(out, why, mr_buf_text(&name));
    mr_buf_add_text(out, " </testsuite>\n</testsuites>\n");
    out->failed |= name.failed;
    mr_buf_free(&name);
    return mr_buf_status(out, err, "writing JUnit XML");
}
