/* cmd_session.c - the options that eval and predict share. */
#include "train/cmd_session.h"

#include <string.h>

#include "base/scope.h"
#include "base/cli/term.h"
#include "image/codec/image.h"
#include "shards/dataset/dataset.h"
#include "shards/dataset/dataset_ranks.h"

enum { MAX_BATCH = 1 << 20 };

const mr_option mr_cmd_session_options[] = {
    {"split", 0, MR_ARG_TEXT, MR_FIELD(mr_session_request, split), .value = "NAME",
     .help = "split to evaluate on (default: val, otherwise test)"},
    {"best", 0, MR_ARG_FLAG, MR_FIELD(mr_session_request, best),
     .help = "use the checkpoint with the best accuracy, not the newest"},
    {"text-column", 0, MR_ARG_TEXT, MR_FIELD(mr_session_request, text_column), .value = "NAME",
     .help = "image-text models: column with the texts (default: as in training)"},
    {"threshold", 0, MR_ARG_REAL, MR_FIELD(mr_session_request, threshold), .value = "P", .low = 0, .above = true,
     .high = 1,
     .help =
         "multi-label models: probability threshold of a class (default: the model's, chosen on its evaluation split)"},
    {"batch", 0, MR_ARG_COUNT, MR_FIELD(mr_session_request, batch), .value = "N", .low = 1, .high = MAX_BATCH,
     .standard = "32", .help = "batch size per rank"},
    {"threads", 0, MR_ARG_COUNT, MR_FIELD(mr_session_request, threads), .value = "N", .high = MAX_BATCH, .own = true,
     .help = "threads per rank; default: the available processors, shared by the ranks"},
    {"device", 0, MR_ARG_TEXT, MR_FIELD(mr_session_request, device), .value = "NAME", .standard = "cpu", .own = true,
     .help = "device to compute on; 'millrace devices' lists them"},
    {"precision", 0, MR_ARG_TEXT, MR_FIELD(mr_session_request, precision), .value = "TYPE",
     .words = MR_WORDS("float32", "bf16"), .help = "precision of activations (default: as in training)", .rare = true},
    {"local", 0, MR_ARG_PATH, MR_FIELD(mr_session_request, local), .value = "DIR", .own = true, .help = MR_LOCAL_HELP,
     .rare = true},
    {"local-size", 0, MR_ARG_SIZE, MR_FIELD(mr_session_request, local_size), .value = "SIZE", .low = 1,
     .high = INT64_MAX, .own = true, .help = MR_LOCAL_SIZE_HELP, .rare = true},
    {"max-bad", 0, MR_ARG_COUNT, MR_FIELD(mr_session_request, max_bad), .value = "N", .high = MAX_BATCH,
     .help = "damaged samples that each rank may skip (default 0)"},
    {"max-pixels", 0, MR_ARG_COUNT, MR_FIELD(mr_session_request, max_pixels), .value = "N", .low = 1,
     .help = "treat larger images as damaged samples (default " MR_TEXT_OF(MR_DEFAULT_MAX_PIXELS) ")", .rare = true},
    MR_OPTION_STALL(mr_session_request, stall),
    {0},
};

mr_status mr_cmd_session_note(const mr_session *t, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    const char *trained = mr_session_trained_on(t), *own = mr_dataset_sha256(t->ds);
    if (trained && strcmp(trained, own) != 0)
        mr_buf_printf(&text, "note: %s was trained on another dataset (digest %.16s...; this one's is %.16s...)",
                      t->path, trained, own);
    if (strcmp(t->checkpoint.version, MILLRACE_VERSION) != 0)
        mr_buf_printf(&text, "%s by millrace %s; this is %s", text.len ? "," : "note: the model was trained",
                      t->checkpoint.version, MILLRACE_VERSION);
    MR_TRY(mr_buf_status(&text, err, "printing"));
    if (text.len)
        mr_term_warn(mr_buf_text(&text));
    return MR_OK;
}
