/* run_page.h - a training run as one HTML file: curves, where time went, what it confuses, its most confident mistakes.
 * Invariant: equal runs and datasets give equal bytes. */
#ifndef MR_REPORT_RUN_PAGE_H
#define MR_REPORT_RUN_PAGE_H

#include "train/report/run_facts.h"
#include "shards/report/thumb.h"

/* Appends the page.  `dataset`: where the run's dataset is; NULL: where the run says.  MR_MISUSE: no run at `run`;
 * MR_BAD_DATA: it is damaged. */
mr_status mr_run_page_write(const char *run, const char *dataset, uint64_t max_pixels, mr_buf *out, mr_error *err);

/* ---- sections; nothing where there is nothing to say ------------------------------------------------------------- */

/* "Classes": which are confused with which. */
mr_status mr_confusion_add(const mr_run_facts *f, mr_buf *out, mr_error *err);
/* "Classes" of samples with several labels: how well each is found. */
mr_status mr_class_scores_add(const mr_run_facts *f, mr_buf *out, mr_error *err);
/* "Mistakes": the most confident ones and those with the highest loss, with images where there is a dataset. */
mr_status mr_mistakes_add(const mr_run_facts *f, mr_thumbs *thumbs, mr_buf *out, mr_error *err);
/* "Searches": what words found. */
mr_status mr_searches_add(const mr_run_facts *f, mr_thumbs *thumbs, mr_buf *out, mr_error *err);

#endif
