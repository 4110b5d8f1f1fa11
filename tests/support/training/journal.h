/* journal.h - a run's journal under test, with updates whose numbers are known.
 * Invariant: all that it writes is in a private folder; a call that fails, fails the running test. */
#ifndef MR_SUPPORT_JOURNAL_H
#define MR_SUPPORT_JOURNAL_H

#include "train/journal/journal.h"
#include "tests/support/support.h"

typedef struct support_journal {
    char *dir, *log, *events, *results; /* the folder, and paths in it whose parents are not there yet */
    char *said;                         /* on the stream; of what is closed */
    size_t said_len;
} support_journal;

support_journal support_journal_begin(void);
void support_journal_end(support_journal *p);

mr_journal *support_journal_open(const mr_journal_options *o);
/* Update k: loss 1/k, lr 0.06/k, norm 2 + k, 64 samples in half a second, of it 0.1 s for data and 0.05 s for other
 * ranks. */
mr_journal_update support_journal_update(uint64_t k);
void support_journal_updates(mr_journal *j, uint64_t from, uint64_t to);
void support_journal_evaluate(mr_journal *j, uint64_t update, double loss, double accuracy); /* 123 samples, 2.5 s */
/* Finishes and frees; end NULL: never evaluated, shares not known. */
void support_journal_finish(mr_journal *j, const mr_journal_end *end);

#endif
