/* cmd_eval.c - `millrace eval DATASET RUN`: loss and accuracy of a trained model on a split, every sample once. */
#include <errno.h>
#include <stdio.h>

#include "cli.h"
#include "commands.h"
#include "term.h"
#include "text.h"
#include "trained.h"

typedef unsigned long long ull;

enum { OPT_JSON = 256 };

typedef struct request {
    mr_trained_request trained;
    bool json;
} request;

static const struct argp_option options[] = {
    MR_TRAINED_OPTIONS,
    {"json", OPT_JSON, NULL, 0, "Print one JSON object", 2},
    {"quiet", 'q', NULL, OPTION_HIDDEN, NULL, 2},
    {0},
};

static const char help[] =
    "Judges a trained model on a whole split, every sample once; under mpirun the ranks share it, and the result is the "
    "same.  RUN is the --output of millrace train, or one step-NNNNNNNN in it.  Classes meet by name."
    "\vExamples:\n"
    "  millrace eval flowers run\n"
    "  millrace eval flowers run --split test --best --json\n"
    "  mpirun -n 4 millrace eval flowers run/step-00000200\n\n"
    "Exit status: 0 done; 1 the data or the checkpoint is bad; 2 wrong use; 3 the system failed.";

static error_t parse(int key, char *arg, struct argp_state *state)
{
    request *q = state->input;
    if (mr_trained_option(key, arg, state, &q->trained))
        return 0;
    switch (key) {
    case OPT_JSON: q->json = true; break;
    case 'q': break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static mr_status print(const request *q, const mr_trained *t, const mr_evaluation *r, mr_error *err)
{
    const char *split = t->evaluator.loader.split;
    if (q->json) {
        json_t *doc = json_pack("{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:f}", "dataset", q->trained.dataset, "checkpoint",
                                t->path, "split", split, "update", (json_int_t)t->checkpoint.update, "samples",
                                (json_int_t)r->samples, "loss", r->loss, "accuracy", r->accuracy, "seconds", r->seconds);
        mr_status status = doc ? mr_json_print(doc, err) : mr_fail_memory(err, "printing");
        json_decref(doc);
        return status;
    }
    char number[40];
    printf("%s, %s of %s: accuracy %s%.5f%s (%llu of %s), loss %.5f\n", t->path, split, q->trained.dataset,
           mr_sgr(stdout, MR_BOLD), r->accuracy, mr_sgr(stdout, MR_PLAIN), (ull)r->right,
           mr_text_count(r->samples, number), r->loss);
    return MR_OK;
}

int cmd_eval(int argc, char **argv)
{
    static const struct argp argp = {options, parse, "DATASET RUN", help, NULL, NULL, NULL};
    request q = {.json = false};
    mr_ranks *ranks = NULL;
    mr_trained t = {.path = NULL};
    mr_evaluation result;
    mr_error err = {0};
    mr_cli_parse(&argp, argc, argv, &q);
    mr_status status = mr_ranks_begin(&ranks, &err);
    bool speaks = !ranks || mr_ranks_rank(ranks) == 0;
    if (status == MR_OK)
        status = mr_ranks_agree(ranks, mr_trained_open(&q.trained, ranks, &t, &err), &err);
    if (status == MR_OK)
        status = mr_evaluate(&t.evaluator, t.values, &result, &err);
    if (status == MR_OK && speaks)
        status = print(&q, &t, &result, &err);
    if (status == MR_OK && fflush(stdout) != 0)
        status = mr_fail_errno(&err, errno, "standard output: cannot write");
    if (status != MR_OK && speaks)
        mr_term_error(&err);
    mr_trained_close(&t);
    mr_ranks_end(ranks);
    return mr_exit_code(status);
}
