/* github.c - what verify found as annotations of a GitHub workflow: commands in the log of a step.
 * Invariant: one problem is one line, whatever its text holds.
 * Source: GitHub's documentation, "Workflow commands for GitHub Actions". */
#include <stdio.h>
#include <string.h>

#include "shards/verify/formats.h"

enum { SHOWN = 10 }; /* a step shows this many errors, and this many warnings */

typedef struct log_lines {
    mr_buf *out;
    const char *dataset;
    size_t errors, warnings; /* all there are */
} log_lines;

/* `name`: the name of a property, in which ':' and ',' have a meaning as well. */
static void add_escaped(mr_buf *out, const char *text, bool name)
{
    for (; *text; text++)
        if (strchr("%\r\n", *text) || (name && strchr(":,", *text)))
            mr_buf_printf(out, "%%%02X", (unsigned)*text);
        else
            mr_buf_add(out, text, 1);
}

static void add_command(mr_buf *out, const char *command, const char *file, const char *title, const char *text)
{
    mr_buf_printf(out, "::%s ", command);
    if (file) {
        mr_buf_add_text(out, "file=");
        add_escaped(out, file, true);
        mr_buf_add_text(out, ",");
    }
    mr_buf_add_text(out, "title=");
    add_escaped(out, title, true);
    mr_buf_add_text(out, "::");
    add_escaped(out, text, false);
    mr_buf_add_text(out, "\n");
}

/* The last one that is shown counts the rest, where there are more. */
static void add_problem(void *context, const mr_problem *p, bool warning)
{
    log_lines *l = context;
    size_t *count = warning ? &l->warnings : &l->errors;
    mr_buf title = {0}, text = {0}, place = {0};
    if (++*count >= SHOWN)
        return;
    mr_buf_printf(&title, "millrace verify: %s", mr_problem_words[p->kind]);
    mr_problem_text(p, &text);
    mr_problem_place(p, l->dataset, &place);
    add_command(l->out, warning ? "warning" : "error", mr_buf_text(&place), mr_buf_text(&title), mr_buf_text(&text));
    l->out->failed |= title.failed || text.failed || place.failed;
    mr_buf_free(&title);
    mr_buf_free(&text);
    mr_buf_free(&place);
}

static void add_rest(mr_buf *out, const char *command, size_t count)
{
    char text[100];
    if (count < SHOWN)
        return;
    snprintf(text, sizeof text, "%zu more; 'millrace verify --json' lists all", count - (SHOWN - 1));
    add_command(out, command, NULL, "millrace verify", text);
}

mr_status mr_verify_github(const mr_verify_report *r, const char *why, const char *dataset, mr_buf *out, mr_error *err)
{
    log_lines l = {out, dataset, 0, 0};
    if (r) {
        mr_verify_each(r, add_problem, &l);
        add_rest(out, "error", l.errors);
        add_rest(out, "warning", l.warnings);
    } else {
        add_command(out, "error", NULL, "millrace verify", why);
    }
    return mr_buf_status(out, err, "writing annotations");
}
