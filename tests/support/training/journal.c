/* journal.c - a run's journal under test, with updates whose numbers are known. */
#include "tests/support/training/journal.h"

#include <stdlib.h>

support_journal support_journal_begin(void)
{
    support_journal p = {.dir = support_tmpdir()};
    p.log = support_path("%s/logs/run.jsonl", p.dir);
    p.events = support_path("%s/out/tensorboard", p.dir);
    p.results = support_path("%s/results/train_results.json", p.dir);
    return p;
}

void support_journal_end(support_journal *p)
{
    support_tmpdir_remove(p->dir);
    free(p->log);
    free(p->events);
    free(p->results);
    free(p->said);
}

mr_journal *support_journal_open(const mr_journal_options *o)
{
    mr_journal *j = NULL;
    mr_error err;
    if (mr_journal_open(o, &j, &err) != MR_OK)
        fail_msg("%s", err.text);
    return j;
}

mr_journal_update support_journal_update(uint64_t k)
{
    mr_journal_update u = {.update = k,
                           .loss = 1.0 / (double)k,
                           .lr = 0.06 / (double)k,
                           .grad_norm = 2 + (double)k,
                           .samples = 64,
                           .seconds = 0.5,
                           .wait = 0.1,
                           .exchange = 0.05};
    return u;
}

void support_journal_updates(mr_journal *j, uint64_t from, uint64_t to)
{
    mr_error err;
    for (uint64_t k = from; k <= to; k++) {
        mr_journal_update u = support_journal_update(k);
        if (mr_journal_update_done(j, &u, &err) != MR_OK)
            fail_msg("%s", err.text);
    }
}

void support_journal_evaluate(mr_journal *j, uint64_t update, double loss, double accuracy)
{
    mr_journal_evaluation e = {.update = update, .loss = loss, .accuracy = accuracy, .samples = 123, .seconds = 2.5};
    mr_error err;
    if (mr_journal_evaluated(j, &e, &err) != MR_OK)
        fail_msg("%s", err.text);
}

void support_journal_finish(mr_journal *j, const mr_journal_end *end)
{
    const mr_journal_end never = {.best_accuracy = -1};
    mr_error err;
    if (mr_journal_finish(j, end ? end : &never, &err) != MR_OK)
        fail_msg("%s", err.text);
    mr_journal_free(j);
}
