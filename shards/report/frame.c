/* frame.c - head, style, navigation and script of a page.
 * Invariant: every link leads to an existing section. */
#include "shards/report/frame.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "shards/report/html.h"

/* Enter or a click makes an image large, and small again. */
static const char script[] = "<script>\n"
                             "const turn = f => f && f.classList.toggle('zoomed');\n"
                             "document.addEventListener('click', e => turn(e.target.closest('figure')));\n"
                             "document.addEventListener('keydown', e => {\n"
                             "  const open = document.querySelector('.zoomed');\n"
                             "  if (e.key === 'Escape') turn(open);\n"
                             "  else if (e.key === 'Enter') turn(open || document.activeElement.closest('figure'));\n"
                             "});\n"
                             "</script>\n";

void mr_frame_name(mr_buf *out, const char *path)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    const char *slash = len > 1 ? memrchr(path, '/', len) : NULL, *name = slash ? slash + 1 : path;
    mr_text_show(out, name, (size_t)(path + len - name));
}

void mr_frame_begin(mr_buf *out, const char *name, const char *kind)
{
    mr_buf_add_text(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                         "<meta name=\"generator\" content=\"millrace " MILLRACE_VERSION "\">\n<title>");
    mr_html_string(out, name);
    mr_buf_printf(out, " - %s</title>\n<style>\n", kind);
    mr_buf_add_text(out, mr_page_css);
    mr_buf_add_text(out, "</style>\n</head>\n<body>\n<header>\n<h1>");
    mr_html_string(out, name);
    mr_buf_add_text(out, "</h1>\n");
}

void mr_frame_end(mr_buf *out, const mr_frame_section *sections, size_t count, const mr_buf *body)
{
    mr_buf_add_text(out, "<nav aria-label=\"Sections\"><ul>\n");
    for (size_t i = 0; i < count; i++) {
        char id[40];
        int len = snprintf(id, sizeof id, "<section id=\"%s\"", sections[i].id);
        if (body->len && memmem(body->data, body->len, id, (size_t)len))
            mr_buf_printf(out, "<li><a href=\"#%s\">%s</a></li>\n", sections[i].id, sections[i].title);
    }
    mr_buf_add_text(out, "</ul></nav>\n</header>\n<main>\n");
    mr_buf_add(out, body->data, body->len);
    mr_buf_add_text(out, "</main>\n");
    mr_buf_add_text(out, script);
    mr_buf_add_text(out, "</body>\n</html>\n");
}

void mr_frame_fact(mr_buf *out, const char *term, const char *text)
{
    mr_buf_printf(out, "<dt>%s</dt><dd>", term);
    mr_html_string(out, text);
    mr_buf_add_text(out, "</dd>\n");
}
