/* settings.h - every option of `millrace train`: one table row each, kept in the checkpoint, read back on resume.
 * Invariant: an option that changes what is learned is MR_FIXED: a resumed run takes it from the checkpoint, and one
 * with another value is rejected.  A new option is one row. */
#ifndef MR_SETTINGS_H
#define MR_SETTINGS_H

#include "base/cli/cli.h"
#include "shards/dataset/dataset_ranks.h"
#include "base/json/json.h"

typedef struct mr_pace { /* "500": every so many updates; "10m": minutes; "" (both 0): never */
    uint64_t updates, minutes;
} mr_pace;

typedef enum mr_setting_life {
    MR_ONCE,  /* of one call of the program; so is every file that is written: a checkpoint
               * may be foreign, and must not name a place to write to */
    MR_KEPT,  /* a resumed run takes it from the checkpoint unless it is given */
    MR_FIXED, /* the same, and nothing else may be given */
} mr_setting_life;

/* X(kind, type, field, word, argument, default, life, help, other members of mr_option) */
#define MR_SETTINGS(X)                                                                                                 \
    X(MR_ARG_TEXT, const char *, model, "model", "NAME", "ViT-B_16", MR_FIXED,                                         \
      "ViT-B_16, ViT-B_32, ViT-L_16, ViT-L_32, ViT-H_14, or vit with a shape of its own; bridgetower-large, or "       \
      "bridgetower with --config or a shape of its own: pictures and words",                                           \
      .group = "The model:")                                                                                           \
    X(MR_ARG_PATH, const char *, config, "config", "FILE", "", MR_FIXED,                                               \
      "bridgetower: its shape, the hub's config.json")                                                                 \
    X(MR_ARG_PATH, const char *, pretrained, "pretrained", "FILE", "", MR_FIXED,                                       \
      "start from these weights: vit: Google's .npz or a weights.npz of ours, with a new head; or the folder of a "    \
      "run of ours, with its head, whose classes meet by name; "                                                       \
      "bridgetower: .safetensors, its index, or a folder with them")                                                   \
    X(MR_ARG_PATH, const char *, pretrained_classes, "pretrained-classes", "FILE", "", MR_FIXED,                       \
      "vit: take the head of --pretrained's .npz as well; FILE has the name of one of its classes in each line, in "   \
      "their order, and classes meet by name")                                                                         \
    X(MR_ARG_PATH, const char *, tokenizer, "tokenizer", "FILE", "", MR_FIXED,                                         \
      "bridgetower: tokenizer.json, or vocab.json beside merges.txt (default: in the folder of --config or "           \
      "--pretrained); 'millrace tokenizer' learns one")                                                                \
    X(MR_ARG_COUNT, uint64_t, image_size, "image-size", "PIXELS", "0", MR_FIXED,                                       \
      "side of the square the model sees (0: the model's own; vit: 224)")                                              \
    X(MR_ARG_COUNT, uint64_t, patch, "patch", "PIXELS", "0", MR_FIXED, "side of a patch (0: the model's own)")         \
    X(MR_ARG_COUNT, uint64_t, hidden, "hidden", "N", "0", MR_FIXED, "width of a token (0: the model's own)")           \
    X(MR_ARG_COUNT, uint64_t, layers, "layers", "N", "0", MR_FIXED, "blocks (0: the model's own)")                     \
    X(MR_ARG_COUNT, uint64_t, heads, "heads", "N", "0", MR_FIXED, "attention heads (0: the model's own)")              \
    X(MR_ARG_COUNT, uint64_t, mlp, "mlp", "N", "0", MR_FIXED, "width inside the MLP (0: the model's own)")             \
    X(MR_ARG_COUNT, uint64_t, cross_layers, "cross-layers", "N", "0", MR_FIXED,                                        \
      "bridgetower: layers where pictures and words meet (0: the model's own)")                                        \
    X(MR_ARG_COUNT, uint64_t, embed, "embed", "N", "0", MR_FIXED,                                                      \
      "bridgetower: width of an embedding (0: the model's own)")                                                       \
    X(MR_ARG_COUNT, uint64_t, max_text, "max-text", "N", "128", MR_FIXED,                                              \
      "bridgetower: tokens of a text that are read")                                                                   \
    X(MR_ARG_TEXT, const char *, freeze, "freeze", "PART", "none", MR_FIXED,                                           \
      "what does not learn: vit: backbone (all but the head), or N: the embedding and the first N blocks; "            \
      "bridgetower: images, text or both")                                                                             \
    X(MR_ARG_TEXT, const char *, split, "split", "NAME", "train", MR_FIXED, "split to learn from",                     \
      .group = "What is seen:")                                                                                        \
    X(MR_ARG_TEXT, const char *, eval_split, "eval-split", "NAME", "", MR_FIXED,                                       \
      "split to evaluate on (default: val, otherwise test, otherwise none)")                                           \
    X(MR_ARG_TEXT, const char *, text_column, "text-column", "NAME", "", MR_FIXED,                                     \
      "bridgetower: where a picture's words are: a column, or captions (default: image_description, otherwise "        \
      "captions)")                                                                                                     \
    X(MR_ARG_TEXT, const char *, loss, "loss", NULL, "auto", MR_FIXED,                                                 \
      "vit: ce: one label per sample; bce: any number of them, also none (auto: what the dataset has)",                \
      .words = MR_WORDS("auto", "ce", "bce"))                                                                          \
    X(MR_ARG_REAL, double, label_smoothing, "label-smoothing", "SHARE", "0", MR_FIXED,                                 \
      "vit: share of a label that is spread over all classes")                                                         \
    X(MR_ARG_TEXT, const char *, class_weights, "class-weights", NULL, "none", MR_FIXED,                               \
      "vit: balanced: rare classes count as much as frequent ones", .words = MR_WORDS("none", "balanced"))             \
    X(MR_ARG_FLAG, bool, expand_captions, "expand-captions", NULL, "", MR_FIXED,                                       \
      "every pair of a picture and one of its captions is a sample (default: one of them per epoch, at random)")       \
    X(MR_ARG_REAL, double, scale_min, "scale-min", "SHARE", "0.05", MR_FIXED,                                          \
      "smallest part of a picture's area that a training crop shows")                                                  \
    X(MR_ARG_FLAG, bool, flip, "flip", NULL, "", MR_FIXED, "mirror half of the training pictures")                     \
    X(MR_ARG_TEXT, const char *, orientation, "orientation", NULL, "ignore", MR_FIXED,                                 \
      "EXIF orientation; the reference trainers ignore it", .words = MR_WORDS("ignore", "apply"))                      \
    X(MR_ARG_COUNT, uint64_t, max_bad, "max-bad", "N", "0", MR_KEPT,                                                   \
      "damaged samples, each counted once, that a rank may skip before the run ends")                                  \
    X(MR_ARG_COUNT, uint64_t, max_pixels, "max-pixels", "N", "178956970", MR_FIXED,                                    \
      "a larger picture is a damaged sample")                                                                          \
    X(MR_ARG_TEXT, const char *, on_bad, "on-bad", NULL, "replace", MR_KEPT,                                           \
      "what takes the place of such a sample: the next good one, or nothing", .words = MR_WORDS("replace", "mask"))    \
    X(MR_ARG_COUNT, uint64_t, batch, "batch", "N", "32", MR_KEPT, "samples per rank and micro-step",                   \
      .group = "How it learns:")                                                                                       \
    X(MR_ARG_COUNT, uint64_t, eval_batch, "eval-batch", "N", "0", MR_KEPT,                                             \
      "samples per rank and step of evaluations (0: as --batch); a loss of pictures and words depends on it")          \
    X(MR_ARG_TEXT, const char *, tail, "tail", NULL, "partial", MR_FIXED,                                              \
      "samples at the end of an epoch that do not fill a batch: a smaller batch, one padded with samples that do "     \
      "not count, or none",                                                                                            \
      .words = MR_WORDS("partial", "pad", "drop"))                                                                     \
    X(MR_ARG_COUNT, uint64_t, grad_accum, "grad-accum", "N", "1", MR_KEPT, "micro-steps per update")                   \
    X(MR_ARG_COUNT, uint64_t, steps, "steps", "N", "0", MR_FIXED, "updates of the whole run (default: by --epochs)")   \
    X(MR_ARG_COUNT, uint64_t, epochs, "epochs", "N", "10", MR_FIXED, "passes over the split, unless --steps is given") \
    X(MR_ARG_REAL, double, lr, "lr", "RATE", "0", MR_FIXED,                                                            \
      "learning rate (0: 0.03 for sgd, 0.001 for adamw, 0.00001 for bridgetower)")                                     \
    X(MR_ARG_TEXT, const char *, warmup, "warmup", "N", "", MR_FIXED,                                                  \
      "updates of linear warm-up (default: 500, or a tenth of a shorter run)")                                         \
    X(MR_ARG_TEXT, const char *, decay, "decay", NULL, "cosine", MR_FIXED, "of the rate, after warm-up",               \
      .words = MR_WORDS("cosine", "linear", "none"))                                                                   \
    X(MR_ARG_TEXT, const char *, optimizer, "optimizer", NULL, "sgd", MR_FIXED, "SGD with momentum, or AdamW",         \
      .words = MR_WORDS("sgd", "adamw"))                                                                               \
    X(MR_ARG_REAL, double, momentum, "momentum", "M", "0.9", MR_FIXED, "of sgd")                                       \
    X(MR_ARG_REAL, double, adam_eps, "adam-eps", "E", "1e-8", MR_FIXED, "of adamw")                                    \
    X(MR_ARG_REAL, double, weight_decay, "weight-decay", "D", "0", MR_FIXED, "pull of all parameters towards zero")    \
    X(MR_ARG_REAL, double, clip, "clip", "NORM", "1", MR_FIXED,                                                        \
      "largest norm of all gradients together, 0 for no limit")                                                        \
    X(MR_ARG_REAL, double, ema, "ema", "D", "0", MR_FIXED,                                                             \
      "keep a mean of the weights, D of the old and 1 - D of the new at each update, and make it the model that is "   \
      "evaluated and kept (0: none; 0.999, for example)")                                                              \
    X(MR_ARG_REAL, double, dropout, "dropout", "P", "0.1", MR_FIXED, "share of activations dropped, at three places")  \
    X(MR_ARG_FLAG, bool, unique_images, "unique-images", NULL, "", MR_FIXED,                                           \
      "bridgetower: equal pictures in a batch are not negatives of one another")                                       \
    X(MR_ARG_FLAG, bool, gather_negatives, "gather-negatives", NULL, "", MR_FIXED,                                     \
      "bridgetower: the negatives are the samples of all ranks, not of the rank's own batch")                          \
    X(MR_ARG_COUNT, uint64_t, seed, "seed", "N", "42", MR_FIXED, "of order, crops, dropout and start values")          \
    X(MR_ARG_TEXT, const char *, device, "device", "NAME", "cpu", MR_KEPT, "where the arithmetic is done",             \
      .own = true, .group = "How the work is done:")                                                                   \
    X(MR_ARG_TEXT, const char *, precision, "precision", NULL, "float32", MR_KEPT,                                     \
      "of activations and of what is multiplied; parameters, sums, norms and losses are float32 in any case",          \
      .words = MR_WORDS("float32", "bf16"))                                                                            \
    X(MR_ARG_COUNT, uint64_t, threads, "threads", "N", "0", MR_KEPT,                                                   \
      "threads per rank, for the model and for the loader (0: the available processors, shared by the ranks)",         \
      .own = true)                                                                                                     \
    X(MR_ARG_COUNT, uint64_t, loader_threads, "loader-threads", "N", "0", MR_KEPT,                                     \
      "threads per rank for reading and decoding (0: as --threads)", .own = true)                                      \
    X(MR_ARG_COUNT, uint64_t, prefetch, "prefetch", "N", "2", MR_KEPT, "batches prepared ahead, per rank",             \
      .own = true)                                                                                                     \
    X(MR_ARG_TEXT, const char *, decoder, "decoder", NULL, "auto", MR_KEPT,                                            \
      "of JPEGs: millrace's own where it can, or libjpeg-turbo for all; the pixels are the same",                      \
      .words = MR_WORDS("auto", "libjpeg"), .own = true)                                                               \
    X(MR_ARG_TEXT, const char *, decode_on, "decode-on", NULL, "auto", MR_KEPT,                                        \
      "where JPEGs with a seek index are decoded; auto: on the device, unless it is the CPU; the pixels are the same", \
      .words = MR_WORDS("auto", "host", "device"), .own = true)                                                        \
    X(MR_ARG_TEXT, const char *, recompute, "recompute", NULL, "no", MR_KEPT,                                          \
      "keep only the inputs of a model's blocks and compute the rest again in the backward pass: less memory, up to "  \
      "a third more work, the same results to the bit",                                                                \
      .optional = "yes", .words = MR_WORDS("no", "yes"))                                                               \
    X(MR_ARG_TEXT, const char *, exchange, "exchange", NULL, "flat", MR_KEPT,                                          \
      "gradients summed over ranks after the backward pass, or piece by piece during it",                              \
      .words = MR_WORDS("flat", "buckets"))                                                                            \
    X(MR_ARG_TEXT, const char *, exchange_type, "exchange-type", NULL, "float32", MR_KEPT,                             \
      "of gradients on their way between hosts; they are added up in float32", .words = MR_WORDS("float32", "bf16"))   \
    X(MR_ARG_PATH, const char *, local, "local", "DIR", "", MR_ONCE, MR_LOCAL_HELP, .own = true)                       \
    X(MR_ARG_SIZE, uint64_t, local_size, "local-size", "SIZE", "0", MR_ONCE, MR_LOCAL_SIZE_HELP, .own = true)          \
    X(MR_ARG_COUNT, uint64_t, eval_every, "eval-every", "N", "100", MR_KEPT,                                           \
      "evaluate, and write a checkpoint, every N updates (0: at the end only)", .group = "What is printed and kept:")  \
    X(MR_ARG_OTHER, mr_pace, checkpoint_every, "checkpoint-every", "UPDATES|MINUTESm", "", MR_KEPT,                    \
      "also write a checkpoint this often, without evaluating it, for example 500 or 10m (default: only when "         \
      "evaluating)",                                                                                                   \
      .take = mr_pace_take)                                                                                            \
    X(MR_ARG_COUNT, uint64_t, logging_steps, "logging-steps", "N", "10", MR_KEPT, "a line every N updates")            \
    X(MR_ARG_PATH, const char *, output, "output", "DIR", "", MR_ONCE,                                                 \
      "checkpoints, TensorBoard files and train_results.json go here (default: nothing is kept)")                      \
    X(MR_ARG_FLAG, bool, overwrite_output, "overwrite-output", NULL, "", MR_ONCE,                                      \
      "start over where --output holds an older run, which is removed once this one is ready to start")                \
    X(MR_ARG_COUNT, uint64_t, keep, "keep", "N", "2", MR_KEPT,                                                         \
      "checkpoints kept: the newest N, and the best (0: all)")                                                         \
    X(MR_ARG_FLAG, bool, resume, "resume", NULL, "", MR_ONCE,                                                          \
      "continue from the newest checkpoint of --output, with the options it was started with, on any number of ranks " \
      "that "                                                                                                          \
      "shares its updates evenly; where there is none, begin, if --model or --pretrained is given")                    \
    X(MR_ARG_COUNT, uint64_t, stop_after, "stop-after", "N", "0", MR_ONCE,                                             \
      "end with a checkpoint after N updates of this run, as a time limit would")                                      \
    X(MR_ARG_PATH, const char *, log, "log", "FILE", "", MR_ONCE,                                                      \
      "append one JSON line per update; give it again to a resumed run, which repeats the updates after its "          \
      "checkpoint",                                                                                                    \
      .own = true)                                                                                                     \
    X(MR_ARG_COUNT, uint64_t, throughput_warmup_steps, "throughput-warmup-steps", "N", "0", MR_KEPT,                   \
      "first updates that do not count for samples per second")                                                        \
    X(MR_ARG_FLAG, bool, profile, "profile", NULL, "", MR_ONCE,                                                        \
      "say at the end what each family of operations took, beside what this machine can do at most; operations of a "  \
      "device that queues them are waited for one by one")                                                             \
    X(MR_ARG_COUNT, uint64_t, stall_timeout, "stall-timeout", "SECONDS", "60", MR_ONCE, MR_STALL_HELP)                 \
    X(MR_ARG_TEXT, const char *, plan, "plan", NULL, "no", MR_ONCE,                                                    \
      "print parameters, FLOPs, memory and steps of the run, and do not run it", .optional = "table",                  \
      .words = MR_WORDS("no", "table", "json"))                                                                        \
    X(MR_ARG_FLAG, bool, quiet, "quiet", NULL, "", MR_ONCE, "no progress, no table", .own = true, .key = 'q')

typedef struct mr_settings {
    const char *dataset;
#define X(kind, type, field, ...) type field;
    MR_SETTINGS(X)
#undef X
    struct {
#define X(kind, type, field, ...) bool field;
        MR_SETTINGS(X)
#undef X
    } given;
    char **owned; /* texts adopted from a checkpoint */
    size_t owned_count, owned_room;
} mr_settings;

extern const mr_option mr_setting_rows[]; /* of mr_settings */
extern const size_t mr_setting_count;

mr_status mr_pace_take(void *pace, const char *text, mr_error *err);

/* All defaults. */
mr_status mr_settings_begin(mr_settings *s, mr_error *err);
void mr_settings_release(mr_settings *s);
/* One option from text (lent; NULL for flags).  MR_MISUSE: the message lists what is accepted. */
mr_status mr_settings_take(mr_settings *s, const mr_option *row, const char *text, mr_error *err);

/* Another default than the table's, for a kind of model; MR_MISUSE: no such option.  What was given stays. */
mr_status mr_settings_suit(mr_settings *s, const char *word, const char *text, mr_error *err);

/* Whether the run is only planned. */
bool mr_settings_plans(const mr_settings *s);
/* Those that a checkpoint keeps, as an object; NULL: out of memory. */
json_t *mr_settings_json(const mr_settings *s);
/* Options not given become those of `options`.  MR_MISUSE: a fixed one was given and differs. */
mr_status mr_settings_adopt(mr_settings *s, const json_t *options, mr_error *err);

#endif
