/* run_origin.c - the note below a section of a run's page.
 * Invariant: names from files are escaped. */
#include "train/report/run_origin.h"

#include "shards/report/html.h"

void mr_run_origin_add(const mr_run_facts *f, mr_buf *out)
{
    mr_buf_add_text(out, "<p class=\"note\">Of the evaluation after update ");
    mr_html_count(out, f->outcomes.step);
    mr_buf_add_text(out, ", on ");
    mr_html_string(out, f->outcomes.split);
    mr_buf_add_text(out, ".");
    if (f->no_dataset.len) {
        mr_buf_add_text(out, " ");
        mr_html_text(out, (const char *)f->no_dataset.data, f->no_dataset.len);
    }
    mr_buf_add_text(out, "</p>\n");
}
