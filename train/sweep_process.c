/* sweep_process.c - command lines of the runs of a sweep, for the system and for people.
 * Invariant: the command that people copy is the one that was measured, without what made it a short run. */
#include "train/sweep_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "base/scope.h"

enum { MOST_WORDS = 200, OUTPUT_MAX = 1 << 16 };

uint64_t mr_sweep_ranks(const mr_sweep_way *w)
{
    return strtoull(w->value[MR_SWEEP_RANKS], NULL, 10);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

typedef struct words {
    const char *argv[MOST_WORDS + 1];
    size_t count;
    mr_buf texts; /* of words made here; not to grow once pointed into */
} words;

static void words_free(words *w)
{
    mr_buf_free(&w->texts);
}

static void add_word(words *w, const char *word)
{
    if (w->count < MOST_WORDS)
        w->argv[w->count++] = word;
}

/* "mpirun --bind-to none -n 2": for several ranks. */
static void add_launcher(const mr_sweep *s, const mr_sweep_way *way, words *w)
{
    if (mr_sweep_ranks(way) < 2)
        return;
    size_t at = w->texts.len;
    for (const char *from = s->launcher; *from; from += strspn(from, " ")) {
        size_t len = strcspn(from, " ");
        mr_buf_add(&w->texts, from, len);
        mr_buf_add(&w->texts, "", 1);
        from += len;
    }
    for (const char *word = (const char *)w->texts.data + at; word && word < (const char *)w->texts.data + w->texts.len;
         word += strlen(word) + 1)
        add_word(w, word);
    add_word(w, "-n");
    add_word(w, way->value[MR_SWEEP_RANKS]);
}

static const char *const option_words[MR_SWEEP_AXES] = {
    [MR_SWEEP_THREADS] = "--threads",     [MR_SWEEP_BATCH] = "--batch",       [MR_SWEEP_DECODER] = "--decoder",
    [MR_SWEEP_DECODE_ON] = "--decode-on", [MR_SWEEP_EXCHANGE] = "--exchange", [MR_SWEEP_RECOMPUTE] = "--recompute",
    [MR_SWEEP_PRECISION] = "--precision"};

/* What `train` does without the option. */
static const char *const usual_values[MR_SWEEP_AXES] = {[MR_SWEEP_DECODER] = "auto",
                                                        [MR_SWEEP_DECODE_ON] = "auto",
                                                        [MR_SWEEP_EXCHANGE] = "flat",
                                                        [MR_SWEEP_RECOMPUTE] = "no",
                                                        [MR_SWEEP_PRECISION] = "float32"};

static void add_options(const mr_sweep *s, const mr_sweep_way *way, words *w)
{
    add_word(w, "train");
    add_word(w, s->dataset);
    for (size_t i = 0; i < s->option_count; i++)
        add_word(w, s->options[i]);
    for (int a = MR_SWEEP_THREADS; a < MR_SWEEP_AXES; a++) {
        if (usual_values[a] && strcmp(way->value[a], usual_values[a]) == 0)
            continue;
        if (a != MR_SWEEP_RECOMPUTE) {
            add_word(w, option_words[a]);
            add_word(w, way->value[a]);
        } else {
            add_word(w, "--recompute"); /* its value is optional */
        }
    }
}

void mr_sweep_command(const mr_sweep *s, const mr_sweep_way *way, mr_buf *out)
{
    MR_AUTO(words_free) words w = {.count = 0};
    add_launcher(s, way, &w);
    add_word(&w, "millrace");
    add_options(s, way, &w);
    for (size_t i = 0; i < w.count; i++) {
        bool plain = *w.argv[i] && strspn(w.argv[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                                     "-_./=,:+@%") == strlen(w.argv[i]);
        mr_buf_add_text(out, i ? " " : "");
        for (const char *at = plain ? w.argv[i] : ""; *at; at++)
            mr_buf_add(out, at, 1);
        if (plain)
            continue;
        mr_buf_add_text(out, "'");
        for (const char *at = w.argv[i]; *at; at++)
            mr_buf_add_text(out, *at == '\'' ? "'\\''" : (const char[]){*at, '\0'});
        mr_buf_add_text(out, "'");
    }
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static mr_status run_program(const char *const *argv, mr_buf *out, mr_error *err)
{
    char bytes[4096];
    mr_program *p = NULL;
    MR_AUTO(mr_scope_close) int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    MR_TRY(mr_program_start(argv, none, &p, err));
    ssize_t n;
    while ((n = read(mr_program_output(p), bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && out->len < OUTPUT_MAX)
            mr_buf_add(out, bytes, (size_t)n);
    return mr_program_end(p, mr_buf_status(out, err, "running train"), "train", err);
}

mr_status mr_sweep_process(const mr_sweep *s, const mr_sweep_way *way, bool launched, const char *const *more,
                           mr_buf *out, mr_error *err)
{
    char self[4096];
    MR_AUTO(words_free) words w = {.count = 0};
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return mr_fail_errno(err, errno, "/proc/self/exe: cannot be read");
    self[n] = '\0';
    if (launched)
        add_launcher(s, way, &w);
    add_word(&w, self);
    add_options(s, way, &w);
    while (*more)
        add_word(&w, *more++);
    MR_TRY(mr_buf_status(&w.texts, err, "running train"));
    if (w.count == MOST_WORDS)
        return mr_fail(err, MR_MISUSE, "%d words are too many for a command line", MOST_WORDS);
    return run_program(w.argv, out, err);
}
