/* manual.c - a manual page from a command's table and texts.
 * Invariant: no text of a table can become a macro: a leading '.' or '\'' and every '\\' are escaped.
 * Source: man(7) of mandoc and groff. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/cli/pages.h"

/* ---- text ------------------------------------------------------------------------------------------------------- */

static void add_escaped(mr_buf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\\')
            mr_buf_add_text(out, "\\e");
        else if (text[i] == '-')
            mr_buf_add_text(out, "\\-");
        else if (text[i] == '\'')
            mr_buf_add_text(out, "\\(aq");
        else if (text[i] == '.' && i == 0)
            mr_buf_add_text(out, "\\&.");
        else
            mr_buf_add(out, text + i, 1);
}

/* How much of `text` a line of the page takes: to the end of a sentence, or about 70 characters. */
static size_t line_length(const char *text, size_t len)
{
    size_t fits = 0;
    for (size_t end = 1; end < len; end++) {
        if (text[end] != ' ')
            continue;
        if (fits && end > 70)
            return fits;
        fits = end;
        if (text[end - 1] == '.' && text[end + 1] == ' ')
            return end;
    }
    return fits && len > 70 ? fits : len;
}

/* A paragraph: sentences begin on new lines, as man(7) asks for. */
static void add_paragraph(mr_buf *out, const char *text, size_t len)
{
    while (len) {
        size_t blanks = strspn(text, " ");
        if (blanks >= len)
            return;
        text += blanks, len -= blanks;
        size_t line = line_length(text, len);
        add_escaped(out, text, line);
        mr_buf_add_text(out, "\n");
        text += line, len -= line;
    }
}

static void add_macro(mr_buf *out, const char *macro, const char *text, size_t len)
{
    mr_buf_printf(out, ".%s \"", macro);
    add_escaped(out, text, len);
    mr_buf_add_text(out, "\"\n");
}

static void add_upper(mr_buf *out, const char *text)
{
    for (; *text; text++)
        mr_buf_add(out, (const char[]){(char)toupper((unsigned char)*text)}, 1);
}

static void add_title(mr_buf *out, const char *name)
{
    mr_buf_add_text(out, ".TH MILLRACE");
    mr_buf_add_text(out, *name ? "\\-" : "");
    add_upper(out, name);
    mr_buf_add_text(out, " 1 " MILLRACE_DATE " \"millrace " MILLRACE_VERSION "\" \"User Commands\"\n");
}

/* ---- options ---------------------------------------------------------------------------------------------------- */

static void add_value(mr_buf *out, const mr_option *row)
{
    mr_buf value = {0};
    if (!mr_option_has_value(row))
        return;
    mr_option_add_value(row, &value);
    mr_buf_add_text(out, row->optional ? "\\fR[=\\fI" : "\\fR=\\fI");
    add_escaped(out, mr_buf_text(&value), value.len);
    mr_buf_add_text(out, row->optional ? "\\fR]" : "");
    out->failed |= value.failed;
    mr_buf_free(&value);
}

static void add_name(mr_buf *out, const mr_option *row)
{
    mr_buf_add_text(out, "\\fB\\-\\-");
    add_escaped(out, row->name, strlen(row->name));
    add_value(out, row);
    mr_buf_add_text(out, "\\fR");
}

static void add_option(void *context, const mr_option *row)
{
    mr_buf *out = context;
    if (row->group)
        add_macro(out, "SS", row->group, strlen(row->group) - (row->group[strlen(row->group) - 1] == ':'));
    if (row == &mr_help_options[0])
        mr_buf_add_text(out, ".SS Help\n");
    if (row->hidden)
        return;
    mr_buf_add_text(out, ".TP\n");
    if (row->key)
        mr_buf_printf(out, "\\fB\\-%c\\fR, ", row->key);
    add_name(out, row);
    mr_buf_add_text(out, "\n");
    add_paragraph(out, row->help, strlen(row->help));
    if (row->standard && *row->standard && strcmp(row->standard, "0") != 0) {
        mr_buf_add_text(out, "(default \\fB");
        add_escaped(out, row->standard, strlen(row->standard));
        mr_buf_add_text(out, "\\fR)\n");
    }
}

/* ---- notes: paragraphs, examples, exit status ------------------------------------------------------------------- */

typedef struct notes {
    mr_buf text, examples, status;
} notes;

/* "Exit status: 0 done; 1 the data is bad; 2 usage error.", as a list; a ';' in parentheses does not separate. */
static void add_status(mr_buf *out, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        size_t number = strspn(text, "0123456789"), item = number;
        int depth = 0;
        for (; text + item < end; item++) {
            depth += (text[item] == '(') - (text[item] == ')');
            if (text[item] == ';' && !depth && text + item + 2 < end && isdigit((unsigned char)text[item + 2]))
                break;
        }
        add_macro(out, "TP\n.B", text, number);
        add_paragraph(out, text + number, item - number);
        text += item < (size_t)(end - text) ? item + 2 : item;
    }
}

static void take_line(notes *n, const char *text, size_t len)
{
    static const char status[] = "Exit status: ", heading[] = "Examples:";
    if (len == 0 || (len == sizeof heading - 1 && memcmp(text, heading, len) == 0))
        return;
    if (*text == ' ') {
        if (len > 2 && strncmp(text, "  ", 2) == 0 && text[2] != ' ')
            text += 2, len -= 2;
        add_escaped(&n->examples, text, len);
        mr_buf_add_text(&n->examples, "\n");
    } else if (len > sizeof status && memcmp(text, status, sizeof status - 1) == 0) {
        add_status(&n->status, text + sizeof status - 1, len - (sizeof status - 1));
    } else {
        mr_buf_add_text(&n->text, ".PP\n");
        add_paragraph(&n->text, text, len);
    }
}

static void take_notes(notes *n, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        take_line(n, text, len);
        text += len + (text[len] == '\n');
    }
}

/* ---- pages ------------------------------------------------------------------------------------------------------ */

static void add_see_also(mr_buf *out, const mr_command *const *all, const mr_command *but)
{
    mr_buf_add_text(out, ".SH SEE ALSO\n.nh\n");
    if (but)
        mr_buf_add_text(out, ".BR millrace (1),\n");
    size_t left = 0;
    for (size_t i = 0; all[i]; i++)
        left += all[i] != but;
    for (size_t i = 0; all[i]; i++)
        if (all[i] != but)
            mr_buf_printf(out, ".BR millrace\\-%s (1)%s\n", all[i]->name, --left ? "," : "");
}

static void add_lower(mr_buf *out, const char *title)
{
    mr_buf_add(out, (const char[]){(char)tolower((unsigned char)*title)}, 1);
    add_escaped(out, title + 1, strlen(title + 1));
}

static void add_synopsis(mr_buf *out, const mr_command *c)
{
    mr_buf_printf(out, ".SH SYNOPSIS\n.B millrace %s\n[\\fIOPTION\\fR...]", c->name);
    if (*c->usage) {
        mr_buf_add_text(out, " ");
        add_escaped(out, c->usage, strlen(c->usage));
    }
    mr_buf_add_text(out, "\n");
}

static void add_command_page(mr_buf *out, const mr_command *const *all, const mr_command *c)
{
    notes n = {{0}, {0}, {0}};
    take_notes(&n, c->notes);
    if (c->more)
        take_notes(&n, c->more);
    add_title(out, c->name);
    mr_buf_printf(out, ".SH NAME\nmillrace\\-%s \\- ", c->name);
    add_lower(out, c->title);
    mr_buf_add_text(out, "\n");
    add_synopsis(out, c);
    mr_buf_add_text(out, ".SH DESCRIPTION\n");
    add_paragraph(out, c->summary, strlen(c->summary));
    mr_buf_add(out, mr_buf_text(&n.text), n.text.len);
    mr_buf_add_text(out, ".SH OPTIONS\n");
    mr_each_option(c, add_option, out);
    if (n.status.len)
        mr_buf_printf(out, ".SH EXIT STATUS\n%s", mr_buf_text(&n.status));
    if (n.examples.len)
        mr_buf_printf(out, ".SH EXAMPLES\n.EX\n%s.EE\n", mr_buf_text(&n.examples));
    add_see_also(out, all, c);
    out->failed |= n.text.failed || n.examples.failed || n.status.failed;
    mr_buf_free(&n.text);
    mr_buf_free(&n.examples);
    mr_buf_free(&n.status);
}

static void add_program_page(mr_buf *out, const mr_command *const *all)
{
    add_title(out, "");
    mr_buf_add_text(out, ".SH NAME\nmillrace \\- image datasets as shards that can be trusted\n"
                         ".SH SYNOPSIS\n.B millrace\n\\fICOMMAND\\fR [\\fIOPTION\\fR...] ...\n"
                         ".br\n.B millrace help\n\\fICOMMAND\\fR\n"
                         ".SH DESCRIPTION\n"
                         "Turns image datasets into LMDB shards of the untouched encoded bytes,\n"
                         "proves that they are intact, and streams them to training.\n"
                         ".SH COMMANDS\n");
    for (size_t i = 0; all[i]; i++) {
        mr_buf_printf(out, ".TP\n.BR millrace\\-%s (1)\n", all[i]->name);
        add_escaped(out, all[i]->title, strlen(all[i]->title));
        mr_buf_add_text(out, "\n");
    }
    mr_buf_add_text(out, ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe data is bad\n.TP\n.B 2\nusage error\n"
                         ".TP\n.B 3\nsystem error\n"
                         ".SH EXAMPLES\nTo try it without a download:\n.PP\n.EX\n"
                         "millrace sample pictures \\-\\-layout imagenette\n"
                         "millrace ingest pictures dataset\n"
                         "millrace verify dataset\n.EE\n");
    add_see_also(out, all, NULL);
}

void mr_manual_page(const mr_command *const *all, const mr_command *command, mr_buf *out)
{
    if (command)
        add_command_page(out, all, command);
    else
        add_program_page(out, all);
}
