/* term.c - terminal output: colours, tables, a progress line, messages. */
#include "base/cli/term.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/text.h"

double mr_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool is_terminal(FILE *stream)
{
    const char *term = getenv("TERM");
    /* Open MPI gives rank 0 a pseudo terminal, wherever its standard output is redirected. */
    if (getenv("OMPI_COMM_WORLD_RANK"))
        return false;
    return isatty(fileno(stream)) && !(term && strcmp(term, "dumb") == 0);
}

const char *mr_sgr(FILE *stream, mr_colour colour)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[31m",
                                        "\033[32m", "\033[33m", "\033[36m"};
    return is_terminal(stream) && !mr_env("NO_COLOR") ? codes[colour] : "";
}

size_t mr_term_text(FILE *stream, const char *text)
{
    size_t printed = 0;
    char shown[5];
    while (*text) {
        size_t n = mr_text_next(text, strnlen(text, 4), shown);
        fputs(shown, stream);
        text += n;
        printed += n == 1 ? strlen(shown) : 1;
    }
    return printed;
}

#define CANNOT_WRITE "standard output: cannot write"

static _Atomic int output_failed; /* errno: a stream records only that it failed, not why */

void mr_term_flush_stream(FILE *stream)
{
    if (fflush(stream) != 0 && stream == stdout)
        output_failed = errno;
}

mr_status mr_term_flush(mr_error *err)
{
    mr_term_flush_stream(stdout);
    if (!ferror(stdout))
        return MR_OK;
    return output_failed ? mr_fail_errno(err, output_failed, CANNOT_WRITE)
                         : mr_fail(err, MR_SYSTEM, "standard output: incomplete write");
}

/* The reader of standard output chose to stop, as `head` does: the exit code is enough. */
static bool reader_left(const mr_error *err)
{
    mr_error gone;
    mr_fail_errno(&gone, EPIPE, CANNOT_WRITE);
    return strcmp(err->text, gone.text) == 0;
}

void mr_term_error(const mr_error *err)
{
    mr_term_flush_stream(stdout);
    if (reader_left(err))
        return;
    fprintf(stderr, "%smillrace:%s %s\n", mr_sgr(stderr, MR_RED), mr_sgr(stderr, MR_PLAIN), err->text);
}

void mr_term_warn(const char *text)
{
    mr_term_flush_stream(stdout);
    fprintf(stderr, "%smillrace:%s ", mr_sgr(stderr, MR_YELLOW), mr_sgr(stderr, MR_PLAIN));
    mr_term_text(stderr, text);
    fputc('\n', stderr);
}

/* ---- tables --------------------------------------------------------------------------------------------------- */

struct mr_table {
    char **cells;
    size_t columns, count, capacity;
    bool failed;
};

mr_table *mr_table_new(size_t columns)
{
    mr_table *t = mr_alloc(1, sizeof *t);
    if (t)
        t->columns = columns;
    return t;
}

void mr_table_row(mr_table *t, ...)
{
    if (!t)
        return;
    va_list args;
    va_start(args, t);
    for (size_t i = 0; i < t->columns; i++) {
        const char *cell = va_arg(args, const char *);
        if (!MR_GROW(t->cells, t->count, t->capacity) || !(t->cells[t->count] = strdup(cell)))
            t->failed = true;
        else
            t->count++;
    }
    va_end(args);
}

static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

/* *blanks are due before the next cell that has text, so no line ends in blanks. */
static void print_cell(FILE *stream, const char *cell, size_t width, bool right, size_t *blanks)
{
    size_t pad = width - width_of(cell);
    *blanks += right ? pad : 0;
    if (*cell) {
        fprintf(stream, "%*s%s", (int)*blanks, "", cell);
        *blanks = 0;
    }
    *blanks += 2 + (right ? 0 : pad);
}

mr_status mr_table_print(mr_table *t, FILE *stream, mr_error *err)
{
    size_t columns = t ? t->columns : 0;
    size_t *widths = mr_alloc(columns, sizeof *widths);
    bool *right = mr_alloc(columns, sizeof *right), good = t && !t->failed && widths && right;
    for (size_t i = 0; good && i < t->count; i++) {
        size_t column = i % columns;
        if (i < columns && t->cells[i][0] == '>') {
            right[column] = true;
            memmove(t->cells[i], t->cells[i] + 1, strlen(t->cells[i]));
        }
        if (width_of(t->cells[i]) > widths[column])
            widths[column] = width_of(t->cells[i]);
    }
    size_t blanks = 0;
    for (size_t i = 0; good && i < t->count; i++) {
        size_t column = i % columns;
        if (column == 0) {
            fprintf(stream, "  %s", i == 0 ? mr_sgr(stream, MR_BOLD) : "");
            blanks = 0;
        }
        print_cell(stream, t->cells[i], widths[column], right[column], &blanks);
        if (column + 1 == columns)
            fprintf(stream, "%s\n", i < columns ? mr_sgr(stream, MR_PLAIN) : "");
    }
    for (size_t i = 0; t && i < t->count; i++)
        free(t->cells[i]);
    free(t ? t->cells : NULL);
    free(t);
    free(widths);
    free(right);
    return good ? MR_OK : mr_fail_memory(err, "printing");
}

/* ---- progress ------------------------------------------------------------------------------------------------- */

/* Bytes of the whole words that fit, as half a number is another number; if the first word does not fit, of what
 * does. */
static int words_within(const char *line, int most)
{
    if (strlen(line) <= (size_t)most)
        return most;
    int fit = most;
    while (fit > 0 && line[fit] != ' ')
        fit--;
    while (fit > 0 && line[fit - 1] == ' ')
        fit--;
    return fit ? fit : most;
}

bool mr_term_redraw(FILE *stream, const char *line)
{
    struct winsize size = {0};
    if (!is_terminal(stream))
        return false;
    ioctl(fileno(stream), TIOCGWINSZ, &size);
    fprintf(stream, "\r\033[K%.*s", words_within(line, size.ws_col > 1 ? size.ws_col - 1 : 79), line);
    mr_term_flush_stream(stream);
    return true;
}

struct mr_progress {
    pthread_mutex_t lock;
    const char *what;
    uint64_t total, done, bytes;
    double started, drawn;
    int fd; /* for JSON; 0: none */
};

mr_progress *mr_progress_begin(const char *what, uint64_t total, int to)
{
    if (to == MR_PROGRESS_QUIET || (to == MR_PROGRESS_LINE && !is_terminal(stderr)))
        return NULL;
    mr_progress *p = mr_alloc(1, sizeof *p);
    if (!p)
        return NULL;
    pthread_mutex_init(&p->lock, NULL);
    p->what = what;
    p->total = total;
    p->fd = to;
    p->started = mr_seconds();
    return p;
}

static void report(const mr_progress *p)
{
    char line[256];
    int len =
        snprintf(line, sizeof line, "{\"step\": \"%s\", \"done\": %llu, \"total\": %llu, \"bytes\": %llu}\n", p->what,
                 (unsigned long long)p->done, (unsigned long long)p->total, (unsigned long long)p->bytes);
    ssize_t written = write(p->fd, line, (size_t)len); /* shorter than PIPE_BUF: whole or not at all */
    (void)written;
}

static void draw(const mr_progress *p, double now)
{
    if (p->fd) {
        report(p);
        return;
    }
    char done[32], total[32], rate[32], left[32], line[256];
    double spent = now - p->started;
    mr_text_bytes(spent > 0 ? (uint64_t)((double)p->bytes / spent) : 0, rate);
    int n = snprintf(line, sizeof line, "%s  %s", p->what, mr_text_count(p->done, done));
    if (p->total)
        n += snprintf(line + n, sizeof line - (size_t)n, " / %s (%llu %%)", mr_text_count(p->total, total),
                      (unsigned long long)(p->done * 100 / p->total));
    if (p->bytes)
        n += snprintf(line + n, sizeof line - (size_t)n, "  %s/s", rate);
    if (p->done && p->done < p->total)
        snprintf(line + n, sizeof line - (size_t)n, "  %s left",
                 mr_text_seconds(spent * (double)(p->total - p->done) / (double)p->done, left));
    mr_term_redraw(stderr, line);
}

void mr_progress_add(mr_progress *p, uint64_t items, uint64_t bytes)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->done += items;
    p->bytes += bytes;
    double now = mr_seconds();
    if (now - p->drawn > 0.1) {
        p->drawn = now;
        draw(p, now);
    }
    pthread_mutex_unlock(&p->lock);
}

void mr_progress_end(mr_progress *p)
{
    if (!p)
        return;
    draw(p, mr_seconds()); /* the final state, for logs that keep every line */
    if (!p->fd)
        mr_term_redraw(stderr, "");
    pthread_mutex_destroy(&p->lock);
    free(p);
}
