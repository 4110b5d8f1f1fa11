/* cli_help.c - what --help and --usage print, from a command's table of options.
 * Invariant: no line is wider than the terminal, or 79 columns without one, except examples, which can be pasted, and
 * words that do not fit. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cli/cli_line.h"
#include "base/scope.h"
#include "base/cli/term.h"

enum { WIDTH = 79, MIN_WIDTH = 50, MAX_WIDTH = 110, HELP_COLUMN = 29, USAGE_COLUMN = 12 };

/* For commands without rare options. */
static const mr_option plain_help = {"help", '?', MR_ARG_FLAG, .help = "print this help"};

typedef struct page {
    mr_buf text;
    size_t column, width;
    bool all;          /* rows marked `rare`, too */
    const char *group; /* printed before its first row that is shown */
} page;

static size_t terminal_width(void)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < MIN_WIDTH)
        return WIDTH;
    return size.ws_col > MAX_WIDTH ? MAX_WIDTH : size.ws_col - 1u;
}

static void end_line(page *p)
{
    mr_buf_add_text(&p->text, "\n");
    p->column = 0;
}

static void indent(page *p, size_t column)
{
    if (p->column < column)
        mr_buf_printf(&p->text, "%*s", (int)(column - p->column), "");
    p->column = p->column < column ? column : p->column;
}

/* One word after `blanks`, or at `margin` of a new line where it does not fit. */
static void add_word(page *p, const char *word, size_t len, size_t blanks, size_t margin)
{
    if (p->column > margin && p->column + blanks + len > p->width) {
        end_line(p);
        blanks = 0;
    }
    indent(p, margin);
    mr_buf_printf(&p->text, "%*s%.*s", (int)blanks, "", (int)len, word);
    p->column += blanks + len;
}

/* A paragraph, rewrapped; blanks between words are kept. */
static void add_paragraph(page *p, const char *text, size_t len, size_t margin)
{
    const char *end = text + len;
    while (text < end) {
        size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " \n");
        add_word(p, text + blanks, word, blanks, margin);
        text += blanks + word;
    }
}

static void add_notes(page *p, const char *text)
{
    for (size_t len; *text; text += len + (text[len] == '\n')) {
        len = strcspn(text, "\n");
        if (*text == ' ')
            mr_buf_add(&p->text, text, len);
        else
            add_paragraph(p, text, len, 0);
        end_line(p);
    }
}

/* "=N", "[=N]", "" */
static void add_value(const mr_option *row, mr_buf *out)
{
    if (!mr_option_has_value(row))
        return;
    mr_buf_add_text(out, row->optional ? "[=" : "=");
    mr_option_add_value(row, out);
    mr_buf_add_text(out, row->optional ? "]" : "");
}

static bool shows_default(const mr_option *row)
{
    return row->standard && *row->standard && strcmp(row->standard, "0") != 0;
}

/* Up to the first ';' that is not in parentheses. */
static size_t first_clause(const char *text)
{
    size_t len = 0;
    for (int depth = 0; text[len] && (text[len] != ';' || depth); len++)
        depth += (text[len] == '(') - (text[len] == ')');
    return len;
}

static void add_option(page *p, const mr_option *row)
{
    MR_AUTO(mr_buf_free) mr_buf help = {0};
    mr_buf *out = &p->text;
    p->group = row->group ? row->group : p->group;
    if (row->hidden || (row->rare && !p->all))
        return;
    if (p->group)
        mr_buf_printf(out, "\n%s%s%s\n", mr_sgr(stdout, MR_BOLD), p->group, mr_sgr(stdout, MR_PLAIN));
    p->group = NULL;
    size_t begin = out->len;
    if (row->key)
        mr_buf_printf(out, "  -%c, ", row->key);
    mr_buf_printf(out, "%s--%s", row->key ? "" : "      ", row->name);
    add_value(row, out);
    p->column = out->len - begin;
    if (p->column + 2 > HELP_COLUMN)
        end_line(p);
    indent(p, HELP_COLUMN);
    mr_buf_add(&help, row->help, p->all ? strlen(row->help) : first_clause(row->help));
    if (shows_default(row))
        mr_buf_printf(&help, " (default %s)", row->standard);
    add_paragraph(p, mr_buf_text(&help), help.len, HELP_COLUMN);
    end_line(p);
}

static void add_options(page *p, const mr_option *rows)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        if (row->kind == MR_ARG_TABLE)
            add_options(p, row->rows);
        else
            add_option(p, row);
}

static size_t count_rare(const mr_option *rows)
{
    size_t count = 0;
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        count += row->kind == MR_ARG_TABLE ? count_rare(row->rows) : row->rare && !row->hidden;
    return count;
}

static void add_help(page *p, const mr_command *c)
{
    size_t rare = count_rare(c->options);
    p->all = p->all || !rare;
    mr_buf_printf(&p->text, "Usage: millrace %s [OPTION...]%s%s\n", c->name, *c->usage ? " " : "", c->usage);
    add_paragraph(p, c->summary, strlen(c->summary), 0);
    end_line(p);
    const mr_option *first = c->options;
    while (first->kind == MR_ARG_TABLE)
        first = first->rows;
    if (!first->group)
        end_line(p);
    add_options(p, c->options);
    end_line(p);
    add_option(p, rare ? &mr_help_options[0] : &plain_help);
    add_options(p, &mr_help_options[1]);
    if (mr_cli_takes_file(c))
        add_options(p, mr_file_options);
    end_line(p);
    add_notes(p, c->notes);
    if (p->all && c->more)
        add_notes(p, c->more);
    if (!p->all)
        mr_buf_printf(&p->text, "\n'millrace %s --help=all' shows %zu more options.\n", c->name, rare);
}

/* ---- --usage ---------------------------------------------------------------------------------------------------- */

static void add_flags(mr_buf *flags, const mr_option *rows)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        if (row->kind == MR_ARG_TABLE)
            add_flags(flags, row->rows);
        else if (row->key && !row->hidden && !mr_option_has_value(row))
            mr_buf_add(flags, &row->key, 1);
}

static void add_usage(page *p, const mr_option *row)
{
    MR_AUTO(mr_buf_free) mr_buf word = {0};
    mr_buf_printf(&word, "[--%s", row->name);
    add_value(row, &word);
    mr_buf_add_text(&word, "]");
    add_word(p, mr_buf_text(&word), word.len, 1, USAGE_COLUMN);
}

static void add_usages(page *p, const mr_option *rows)
{
    for (const mr_option *row = rows; row->name || row->kind == MR_ARG_TABLE; row++)
        if (row->kind == MR_ARG_TABLE)
            add_usages(p, row->rows);
        else if (!row->hidden)
            add_usage(p, row);
}

static void add_short_usage(page *p, const mr_command *c)
{
    MR_AUTO(mr_buf_free) mr_buf flags = {0};
    add_flags(&flags, c->options);
    mr_buf_printf(&p->text, "Usage: millrace %s [-%s?]", c->name, mr_buf_text(&flags));
    p->column = p->text.len;
    add_usages(p, c->options);
    add_usages(p, mr_help_options);
    if (mr_cli_takes_file(c))
        add_usages(p, mr_file_options);
    add_word(p, c->usage, strlen(c->usage), 1, USAGE_COLUMN);
    end_line(p);
}

mr_status mr_cli_help(const mr_command *command, mr_help which, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    page p = {.width = terminal_width(), .all = which == MR_HELP_ALL};
    (which == MR_HELP_USAGE ? add_short_usage : add_help)(&p, command);
    text = p.text;
    MR_TRY(mr_buf_status(&text, err, "writing help"));
    for (size_t at = 0, len; at < text.len; at += len) {
        const uint8_t *end = memchr(text.data + at, '\n', text.len - at);
        len = (size_t)(end + 1 - (text.data + at)); /* every line ends with a newline */
        fwrite(text.data + at, 1, len, stdout);
        mr_term_flush_stream(stdout); /* per line: keeps the errno of a failed write, which a full buffer would lose */
    }
    return MR_OK;
}
