/* journal.c - what a run reports, and where.
 * Invariant: files are written first, and a failure to write one is returned; the stream for the user comes last, and a
 * closed terminal does not end the run. */
#include "train/journal/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"
#include "base/cli/term.h"

static double since_epoch(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* j->text as permanent lines, in place of the one that is redrawn. */
static void print_text(mr_journal *j)
{
    FILE *stream = j->options.stream;
    if (!stream || j->text.failed)
        return;
    if (j->drawn > 0)
        mr_term_redraw(stream, "");
    j->drawn = 0;
    fputs(mr_buf_text(&j->text), stream);
    mr_term_flush_stream(stream);
}

static mr_status write_log(mr_journal *j, mr_error *err)
{
    mr_status status = mr_buf_status(&j->text, err, "writing the log");
    if (status == MR_OK && j->log >= 0)
        status = mr_file_write(j->log, j->text.data, j->text.len, j->log_path, err);
    mr_buf_clear(&j->text);
    return status;
}

static mr_status add_events(mr_journal *j, uint64_t step, const mr_scalar *scalars, size_t count, mr_error *err)
{
    return j->events ? mr_events_add(j->events, since_epoch(), step, scalars, count, err) : MR_OK;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

/* A copy of the path of a file in *out; folders that are missing are created. */
static mr_status own_path(const char *path, char **out, mr_error *err)
{
    MR_AUTO(mr_scope_free) char *dir = NULL, *name = NULL;
    if (!path)
        return MR_OK;
    MR_TRY(mr_path_split(path, &dir, &name, err));
    *out = strdup(path);
    return *out ? mr_dir_make(dir, err) : mr_fail_memory(err, path);
}

/* The log first: a run whose log cannot be written leaves no events. */
static mr_status open_files(mr_journal *j, mr_error *err)
{
    const mr_journal_options *o = &j->options;
    bool resume = o->resume || o->first > 0;
    MR_TRY(own_path(o->log, &j->log_path, err));
    MR_TRY(own_path(o->results, &j->results_path, err));
    if (o->log)
        MR_TRY(mr_log_open(j->log_path, resume, &j->log, err));
    if (o->events)
        MR_TRY(mr_events_open(o->events, &j->events, err));
    return j->events && resume ? mr_events_restart(j->events, since_epoch(), o->first + 1, err) : MR_OK;
}

mr_status mr_journal_open(const mr_journal_options *options, mr_journal **out, mr_error *err)
{
    mr_journal *j = mr_alloc(1, sizeof *j);
    if (!j)
        return mr_fail_memory(err, "opening the log");
    j->options = *options;
    j->options.logging_steps = options->logging_steps ? options->logging_steps : 10;
    j->last = options->first;
    j->log = -1;
    mr_status status = open_files(j, err);
    if (status == MR_OK)
        *out = j;
    else
        mr_journal_free(j);
    return status;
}

/* On a network file system a write may fail as late as in close(). */
static mr_status close_files(mr_journal *j, mr_error *err)
{
    mr_status status = mr_events_close(j->events, err);
    if (j->log >= 0 && close(j->log) != 0 && status == MR_OK)
        status = mr_fail_errno(err, errno, "%s: cannot close the log", j->log_path);
    j->events = NULL;
    j->log = -1;
    return status;
}

void mr_journal_free(mr_journal *j)
{
    if (!j)
        return;
    mr_buf_clear(&j->text);
    print_text(j); /* clears the line that is redrawn */
    close_files(j, NULL);
    mr_buf_free(&j->text);
    mr_rank_uses_release(&j->uses);
    free(j->log_path);
    free(j->results_path);
    free(j);
}

/* ---- reporting -------------------------------------------------------------------------------------------------- */

static void add_to(mr_journal_sums *sums, const mr_journal_update *u)
{
    sums->updates++;
    sums->samples += u->samples;
    sums->seconds += u->seconds;
    sums->wait += u->wait;
    sums->exchange += u->exchange;
}

/* A permanent line every logging_steps and at the end; in between one that is redrawn at most ten times a second. */
static void show_update(mr_journal *j, const mr_journal_update *u)
{
    FILE *stream = j->options.stream;
    bool permanent = mr_line_stays(j, u);
    double now = mr_seconds();
    if (!stream || (!permanent && now - j->drawn < 0.1))
        return;
    mr_line_training(&j->text, j, u);
    if (permanent) {
        mr_buf_add_text(&j->text, "\n");
        print_text(j);
        j->line = (mr_journal_sums){0};
    } else if (mr_term_redraw(stream, mr_buf_text(&j->text))) {
        j->drawn = now;
    }
    mr_buf_clear(&j->text);
}

void mr_journal_doing(mr_journal *j, const char *what)
{
    if (j && j->options.stream && mr_term_redraw(j->options.stream, what))
        j->drawn = mr_seconds();
}

/* Where the shares of the next permanent line begin. */
static mr_status keep_uses(mr_journal *j, const mr_journal_update *u, mr_error *err)
{
    if (!u->uses.world || !mr_line_stays(j, u))
        return MR_OK;
    if (!j->uses.each)
        j->uses.each = mr_alloc(u->uses.world, sizeof *j->uses.each);
    if (!j->uses.each)
        return mr_fail_memory(err, "writing the log");
    j->uses.world = u->uses.world;
    memcpy(j->uses.each, u->uses.each, u->uses.world * sizeof *j->uses.each);
    return MR_OK;
}

mr_status mr_journal_update_done(mr_journal *j, const mr_journal_update *u, mr_error *err)
{
    if (!j)
        return MR_OK;
    const mr_scalar scalars[] = {
        {"train/loss", (float)u->loss},
        {"train/lr", (float)u->lr},
        {"train/images_per_sec", (float)mr_per_second((double)u->samples, u->seconds)},
        {"train/wait_ms", (float)(u->wait * 1e3)},
    };
    add_to(&j->all, u);
    add_to(&j->line, u);
    if (j->all.updates <= j->options.warmup_steps)
        add_to(&j->warmup, u);
    j->losses += u->loss;
    j->last = u->update;
    mr_line_update_json(&j->text, j, u);
    mr_status status = write_log(j, err);
    if (status == MR_OK)
        status = add_events(j, u->update, scalars, MR_COUNT(scalars), err);
    show_update(j, u);
    return status == MR_OK ? keep_uses(j, u, err) : status;
}

mr_status mr_journal_evaluated(mr_journal *j, const mr_journal_evaluation *e, mr_error *err)
{
    if (!j)
        return MR_OK;
    const double *images = e->recall.text_to_image, *texts = e->recall.image_to_text;
    const mr_scalar scalars[] = {
        {"test/loss", (float)e->loss},
        {e->pairs     ? "test/recall_at_1"
         : e->several ? "test/mean_average_precision"
                      : "test/accuracy",
         (float)e->accuracy},
        {"test/text_to_image_recall_at_1", (float)images[0]},
        {"test/text_to_image_recall_at_5", (float)images[1]},
        {"test/text_to_image_recall_at_10", (float)images[2]},
        {"test/image_to_text_recall_at_1", (float)texts[0]},
        {"test/image_to_text_recall_at_5", (float)texts[1]},
        {"test/image_to_text_recall_at_10", (float)texts[2]},
    };
    j->evaluation = *e;
    j->evaluating += e->seconds;
    mr_line_evaluation_json(&j->text, e);
    mr_status status = write_log(j, err);
    if (status == MR_OK)
        status = add_events(j, e->update, scalars, e->pairs ? MR_COUNT(scalars) : 2, err);
    mr_line_validation(&j->text, e);
    mr_buf_add_text(&j->text, "\n");
    print_text(j);
    mr_buf_clear(&j->text);
    return status;
}

/* A resumed run that had nothing left to do keeps the results of the run that did the work, unless that one was killed
 * before it wrote them. */
static mr_status publish_results(mr_journal *j, const mr_journal_end *end, const mr_journal_results *r, mr_error *err)
{
    if (!j->results_path)
        return MR_OK;
    if (!j->all.updates && !j->evaluation.update && access(j->results_path, F_OK) == 0) {
        mr_file_forget(AT_FDCWD, j->results_path);
        return MR_OK;
    }
    mr_results_json(&j->text, j, end, r);
    mr_status status = mr_buf_status(&j->text, err, j->results_path);
    if (status == MR_OK)
        status = mr_file_publish(AT_FDCWD, j->results_path, j->text.data, j->text.len, err);
    mr_buf_clear(&j->text);
    return status;
}

mr_status mr_journal_finish(mr_journal *j, const mr_journal_end *end, mr_error *err)
{
    mr_journal_results r;
    if (!j)
        return MR_OK;
    mr_results_make(j, end, &r);
    mr_status status = publish_results(j, end, &r, err);
    mr_status closed = close_files(j, status == MR_OK ? err : NULL);
    mr_results_lines(&j->text, j, end, &r);
    print_text(j);
    mr_buf_clear(&j->text);
    return status == MR_OK ? closed : status;
}
