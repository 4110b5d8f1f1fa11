/* html.c - pieces of a page.
 * Invariant: bars are drawings that say nothing which the numbers beside them do not, so screen readers skip them. */
#include "shards/report/html.h"

#include <string.h>

#include "base/text.h"

void mr_html_text(mr_buf *out, const char *text, size_t len)
{
    mr_buf shown = {0};
    mr_text_show(&shown, text, len);
    mr_text_add_markup(out, (const char *)shown.data, shown.len);
    out->failed |= shown.failed;
    mr_buf_free(&shown);
}

void mr_html_string(mr_buf *out, const char *text)
{
    mr_html_text(out, text, strlen(text));
}

void mr_html_count(mr_buf *out, uint64_t count)
{
    char text[32];
    mr_buf_add_text(out, mr_text_count(count, text));
}

void mr_html_section(mr_buf *out, const char *id, const char *title)
{
    mr_buf_printf(out, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">", id, id, id);
    mr_html_string(out, title);
    mr_buf_add_text(out, "</h2>\n");
}

void mr_html_stack(mr_buf *out, const uint64_t *counts, size_t parts, uint64_t most)
{
    double at = 0;
    mr_buf_add_text(out,
                    "<svg class=\"bar\" viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for (size_t i = 0; i < parts; i++) {
        double width = most ? (double)counts[i] * 100 / (double)most : 0;
        if (width > 0)
            mr_buf_printf(out, "<rect class=\"s%zu\" x=\"%.2f\" width=\"%.2f\" height=\"10\"/>", i % 6, at, width);
        at += width;
    }
    mr_buf_add_text(out, "</svg>");
}

void mr_html_bars(mr_buf *out, const char *title, const char *const *names, const uint64_t *counts)
{
    size_t first = 0, end = 0;
    uint64_t most = 0;
    for (size_t i = 0; names[i]; i++) {
        most = counts[i] > most ? counts[i] : most;
        end = counts[i] ? i + 1 : end;
    }
    while (first < end && !counts[first])
        first++;
    if (!most)
        return;
    mr_buf_add_text(out, "<table class=\"bars\"><caption>");
    mr_html_string(out, title);
    mr_buf_add_text(out, "</caption>\n");
    for (size_t i = first; i < end; i++) {
        mr_buf_add_text(out, "<tr><th scope=\"row\">");
        mr_html_string(out, names[i]);
        mr_buf_add_text(out, "</th><td class=\"n\">");
        mr_html_count(out, counts[i]);
        mr_buf_add_text(out, "</td><td class=\"b\">");
        mr_html_stack(out, &counts[i], 1, most);
        mr_buf_add_text(out, "</td></tr>\n");
    }
    mr_buf_add_text(out, "</table>\n");
}
