/* settings.h - every option of `millrace train`: one table row each, kept in the checkpoint, read back on resume.
 * Invariant: an option that changes what is learned is MR_FIXED: a resumed run takes it from the checkpoint, and one
 * with another value is rejected.  A new option is one row. */
#ifndef MR_SETTINGS_H
#define MR_SETTINGS_H

#include "base/cli/cli.h"
#include "shards/dataset/dataset_ranks.h"
#include "base/json/json.h"

typedef struct mr_pace { /* "500": every 500 updates; "10m": every 10 minutes; "" (both 0): never */
    uint64_t updates, minutes;
} mr_pace;

typedef enum mr_setting_life {
    MR_ONCE,  /* for one call of the program, as is every file that is written: a checkpoint
               * may be foreign, and must not name a place to write to */
    MR_KEPT,  /* a resumed run takes it from the checkpoint unless it is given */
    MR_FIXED, /* the same, and nothing else may be given */
} mr_setting_life;

/* X(kind, type, field, word, argument, default, life, help, other members of mr_option) */
#define MR_SETTINGS(X)                                                                                                 \
    X(MR_ARG_TEXT, const char *, model, "model", "NAME", "ViT-B_16", MR_FIXED,                                         \
      "ViT-{B,L}_{16,32}, ViT-H_14, bridgetower[-large], vit; vit and bridgetower take their dimensions from options", \
      .group = "Model:")                                                                                               \
    X(MR_ARG_PATH, const char *, config, "config", "FILE", "", MR_FIXED,                                               \
      "dimensions, as config.json of the hub (default, without --model: that beside --pretrained)", .input = true)     \
    X(MR_ARG_PATH, const char *, pretrained, "pretrained", "FILE", "", MR_FIXED,                                       \
      "initial weights; vit: Google's .npz, a weights.npz written by millrace (the head is reinitialised), or the "    \
      "folder of a run (with its head; classes are matched by name), or .safetensors of transformers or timm; "        \
      "bridgetower: .safetensors, its index, or their folder",                                                         \
      .input = true)                                                                                                   \
    X(MR_ARG_PATH, const char *, pretrained_classes, "pretrained-classes", "FILE", "", MR_FIXED,                       \
      "vit: keep the head of --pretrained's .npz; FILE lists its classes in order, one per line; they are matched by " \
      "name",                                                                                                          \
      .rare = true, .input = true)                                                                                     \
    X(MR_ARG_PATH, const char *, tokenizer, "tokenizer", "FILE", "", MR_FIXED,                                         \
      "bridgetower: tokenizer.json, or vocab.json beside merges.txt (default: in the folder of --config or "           \
      "--pretrained)",                                                                                                 \
      .rare = true, .input = true)                                                                                     \
    X(MR_ARG_COUNT, uint64_t, image_size, "image-size", "PIXELS", "0", MR_FIXED,                                       \
      "input size in pixels; 0: the model's default (vit: 224)")                                                       \
    X(MR_ARG_COUNT, uint64_t, patch, "patch", "PIXELS", "0", MR_FIXED,                                                 \
      "patch size in pixels (0: the model's default)", .rare = true)                                                   \
    X(MR_ARG_COUNT, uint64_t, hidden, "hidden", "N", "0", MR_FIXED, "hidden size (0: the model's default)",            \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, layers, "layers", "N", "0", MR_FIXED, "transformer layers (0: the model's default)",     \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, heads, "heads", "N", "0", MR_FIXED, "attention heads (0: the model's default)",          \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, mlp, "mlp", "N", "0", MR_FIXED, "hidden size of the MLP (0: the model's default)",       \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, cross_layers, "cross-layers", "N", "0", MR_FIXED,                                        \
      "bridgetower: cross-modal layers (0: the model's default)", .rare = true)                                        \
    X(MR_ARG_COUNT, uint64_t, embed, "embed", "N", "0", MR_FIXED,                                                      \
      "bridgetower: size of an embedding (0: the model's default)", .rare = true)                                      \
    X(MR_ARG_COUNT, uint64_t, max_text, "max-text", "N", "128", MR_FIXED, "bridgetower: truncate texts to N tokens",   \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, freeze, "freeze", "PART", "none", MR_FIXED,                                           \
      "parameters to freeze; vit: backbone (all but the head), or N: the embedding and the first N blocks; "           \
      "bridgetower: images, text or both")                                                                             \
    X(MR_ARG_TEXT, const char *, split, "split", "NAME", "train", MR_FIXED, "training split", .group = "Data:")        \
    X(MR_ARG_TEXT, const char *, eval_split, "eval-split", "NAME", "", MR_FIXED,                                       \
      "evaluation split (default: val, otherwise test)")                                                               \
    X(MR_ARG_TEXT, const char *, text_column, "text-column", "NAME", "", MR_FIXED,                                     \
      "bridgetower: column with the texts, or captions (default: image_description, otherwise captions)",              \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, loss, "loss", NULL, "auto", MR_FIXED,                                                 \
      "vit: loss function; ce: exactly one label per sample; bce: any number of labels, including none; auto: as the " \
      "dataset has them",                                                                                              \
      .words = MR_WORDS("auto", "ce", "bce"))                                                                          \
    X(MR_ARG_REAL, double, label_smoothing, "label-smoothing", "P", "0", MR_FIXED, "vit: label smoothing",             \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, class_weights, "class-weights", NULL, "none", MR_FIXED,                               \
      "vit: balanced: weight classes by inverse frequency", .words = MR_WORDS("none", "balanced"), .rare = true)       \
    X(MR_ARG_FLAG, bool, expand_captions, "expand-captions", NULL, "", MR_FIXED,                                       \
      "use every image-caption pair as a sample (default: one random caption per image and epoch)", .rare = true)      \
    X(MR_ARG_REAL, double, scale_min, "scale-min", "P", "0.05", MR_FIXED,                                              \
      "minimum area of a random training crop, as a fraction of the image", .rare = true)                              \
    X(MR_ARG_FLAG, bool, flip, "flip", NULL, "", MR_FIXED, "random horizontal flips")                                  \
    X(MR_ARG_TEXT, const char *, augment, "augment", "LIST", "", MR_FIXED,                                             \
      "vit: random changes of images: brightness=X, contrast=X, saturation=X (factors from 1 - X to 1 + X), hue=X "    \
      "(up to 0.5), grey=P, erase=P, blur=P (probabilities), randaugment=N (operations) with magnitude=N (0 to 30, "   \
      "default 9), or trivial=1, separated by commas",                                                                 \
      .rare = true)                                                                                                    \
    X(MR_ARG_REAL, double, mixup, "mixup", "ALPHA", "0", MR_FIXED,                                                     \
      "vit: mix pairs of images and labels by shares from Beta(ALPHA, ALPHA), often 0.2 (0: off)", .rare = true)       \
    X(MR_ARG_REAL, double, cutmix, "cutmix", "ALPHA", "0", MR_FIXED,                                                   \
      "vit: exchange a box of pairs of images, often 1; with --mixup too, each pair gets one of them (0: off)",        \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, orientation, "orientation", NULL, "ignore", MR_FIXED,                                 \
      "EXIF orientation; the reference trainers ignore it", .words = MR_WORDS("ignore", "apply"), .rare = true)        \
    X(MR_ARG_COUNT, uint64_t, max_bad, "max-bad", "N", "0", MR_KEPT, "damaged samples that each rank may skip",        \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, max_pixels, "max-pixels", "N", "178956970", MR_FIXED,                                    \
      "treat larger images as damaged samples", .rare = true)                                                          \
    X(MR_ARG_TEXT, const char *, on_bad, "on-bad", NULL, "replace", MR_KEPT,                                           \
      "replace a damaged sample by the next good one, or mask it", .words = MR_WORDS("replace", "mask"), .rare = true) \
    X(MR_ARG_COUNT, uint64_t, batch, "batch", "N", "32", MR_KEPT, "batch size per rank and micro-step",                \
      .group = "Optimization:")                                                                                        \
    X(MR_ARG_COUNT, uint64_t, eval_batch, "eval-batch", "N", "0", MR_KEPT,                                             \
      "batch size per rank in evaluations (0: as --batch); the loss of an image-text model depends on it",             \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, tail, "tail", NULL, "partial", MR_FIXED,                                              \
      "samples at the end of an epoch that do not fill a batch: use a smaller batch, pad it with samples of weight "   \
      "0, or drop them",                                                                                               \
      .words = MR_WORDS("partial", "pad", "drop"), .rare = true)                                                       \
    X(MR_ARG_COUNT, uint64_t, grad_accum, "grad-accum", "N", "1", MR_KEPT,                                             \
      "micro-steps per update; gradient accumulation")                                                                 \
    X(MR_ARG_COUNT, uint64_t, steps, "steps", "N", "0", MR_FIXED, "updates in total; by default --epochs decides")     \
    X(MR_ARG_COUNT, uint64_t, epochs, "epochs", "N", "10", MR_FIXED, "epochs, without --steps")                        \
    X(MR_ARG_REAL, double, lr, "lr", "RATE", "0", MR_FIXED,                                                            \
      "learning rate; 0: 0.03 for sgd, 0.001 for adamw, 0.00001 for bridgetower")                                      \
    X(MR_ARG_TEXT, const char *, warmup, "warmup", "N", "", MR_FIXED,                                                  \
      "linear warm-up, in updates; default: 500, at most a tenth of the run")                                          \
    X(MR_ARG_TEXT, const char *, decay, "decay", NULL, "cosine", MR_FIXED, "learning rate schedule after warm-up",     \
      .words = MR_WORDS("cosine", "linear", "none"), .rare = true)                                                     \
    X(MR_ARG_TEXT, const char *, optimizer, "optimizer", NULL, "sgd", MR_FIXED, "SGD with momentum, or AdamW",         \
      .words = MR_WORDS("sgd", "adamw"))                                                                               \
    X(MR_ARG_REAL, double, momentum, "momentum", "M", "0.9", MR_FIXED, "momentum of SGD", .rare = true)                \
    X(MR_ARG_REAL, double, adam_eps, "adam-eps", "E", "1e-8", MR_FIXED, "epsilon of AdamW", .rare = true)              \
    X(MR_ARG_REAL, double, weight_decay, "weight-decay", "D", "0", MR_FIXED, "weight decay")                           \
    X(MR_ARG_REAL, double, clip, "clip", "NORM", "1", MR_FIXED, "clip the global gradient norm (0: off)")              \
    X(MR_ARG_REAL, double, ema, "ema", "D", "0", MR_FIXED,                                                             \
      "evaluate and save an exponential moving average of the weights; D: its decay, for "                             \
      "example 0.999 (0: off)")                                                                                        \
    X(MR_ARG_REAL, double, dropout, "dropout", "P", "0.1", MR_FIXED, "dropout rate")                                   \
    X(MR_ARG_FLAG, bool, unique_images, "unique-images", NULL, "", MR_FIXED,                                           \
      "bridgetower: identical images in a batch are not negatives of one another", .rare = true)                       \
    X(MR_ARG_FLAG, bool, gather_negatives, "gather-negatives", NULL, "", MR_FIXED,                                     \
      "bridgetower: take negatives from all ranks, not from the rank's own batch only", .rare = true)                  \
    X(MR_ARG_COUNT, uint64_t, seed, "seed", "N", "42", MR_FIXED, "random seed")                                        \
    X(MR_ARG_TEXT, const char *, device, "device", "NAME", "cpu", MR_KEPT,                                             \
      "device to compute on; 'millrace devices' lists them", .own = true, .group = "Execution:")                       \
    X(MR_ARG_TEXT, const char *, precision, "precision", "TYPE", "float32", MR_KEPT,                                   \
      "precision of activations and matrix products", .words = MR_WORDS("float32", "bf16"))                            \
    X(MR_ARG_COUNT, uint64_t, threads, "threads", "N", "0", MR_KEPT,                                                   \
      "threads per rank; 0: the available processors, shared by the ranks", .own = true)                               \
    X(MR_ARG_COUNT, uint64_t, loader_threads, "loader-threads", "N", "0", MR_KEPT,                                     \
      "threads per rank that read and decode (0: as --threads)", .own = true, .rare = true)                            \
    X(MR_ARG_COUNT, uint64_t, prefetch, "prefetch", "N", "2", MR_KEPT, "batches to prefetch per rank", .own = true,    \
      .rare = true)                                                                                                    \
    X(MR_ARG_TEXT, const char *, decoder, "decoder", NULL, "auto", MR_KEPT,                                            \
      "JPEG decoder: millrace's own where possible, or libjpeg-turbo; the pixels are identical",                       \
      .words = MR_WORDS("auto", "libjpeg"), .own = true, .rare = true)                                                 \
    X(MR_ARG_TEXT, const char *, decode_on, "decode-on", NULL, "auto", MR_KEPT,                                        \
      "where JPEGs with a seek index are decoded; auto: on the device, unless it is the CPU or four threads load; "    \
      "the pixels are identical",                                                                                      \
      .words = MR_WORDS("auto", "host", "device"), .own = true, .rare = true)                                          \
    X(MR_ARG_TEXT, const char *, recompute, "recompute", NULL, "no", MR_KEPT,                                          \
      "activation checkpointing; less memory, up to a third more work, identical results", .optional = "yes",          \
      .words = MR_WORDS("no", "yes"))                                                                                  \
    X(MR_ARG_TEXT, const char *, exchange, "exchange", NULL, "flat", MR_KEPT,                                          \
      "sum gradients over ranks after the backward pass, or in buckets during it",                                     \
      .words = MR_WORDS("flat", "buckets"), .rare = true)                                                              \
    X(MR_ARG_TEXT, const char *, exchange_type, "exchange-type", NULL, "float32", MR_KEPT,                             \
      "type of gradients sent between hosts; they are summed in float32", .words = MR_WORDS("float32", "bf16"),        \
      .rare = true)                                                                                                    \
    X(MR_ARG_PATH, const char *, local, "local", "DIR", "", MR_ONCE, MR_LOCAL_HELP, .own = true, .rare = true)         \
    X(MR_ARG_SIZE, uint64_t, local_size, "local-size", "SIZE", "0", MR_ONCE, MR_LOCAL_SIZE_HELP, .own = true,          \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, eval_every, "eval-every", "N", "100", MR_KEPT,                                           \
      "evaluate and save every N updates; 0: at the end only", .group = "Output:")                                     \
    X(MR_ARG_OTHER, mr_pace, checkpoint_every, "checkpoint-every", "N", "", MR_KEPT,                                   \
      "also save every N updates, or Nm minutes; without evaluating, for example 500 or 10m", .take = mr_pace_take)    \
    X(MR_ARG_COUNT, uint64_t, logging_steps, "logging-steps", "N", "10", MR_KEPT, "print a line every N updates",      \
      .rare = true)                                                                                                    \
    X(MR_ARG_PATH, const char *, output, "output", "DIR", "", MR_ONCE,                                                 \
      "output directory (default: none); for checkpoints, results and TensorBoard files")                              \
    X(MR_ARG_FLAG, bool, overwrite_output, "overwrite-output", NULL, "", MR_ONCE,                                      \
      "replace an older run in --output; once the new one is ready to start")                                          \
    X(MR_ARG_COUNT, uint64_t, keep, "keep", "N", "2", MR_KEPT,                                                         \
      "checkpoints to keep; the newest N and the best (0: all)")                                                       \
    X(MR_ARG_FLAG, bool, resume, "resume", NULL, "", MR_ONCE,                                                          \
      "continue from the newest checkpoint in --output; with its options, on any number of ranks that divides its "    \
      "batch; otherwise start from scratch, if --model or --pretrained is given")                                      \
    X(MR_ARG_COUNT, uint64_t, stop_after, "stop-after", "N", "0", MR_ONCE,                                             \
      "stop with a checkpoint after N updates of this run, as a time limit would", .rare = true)                       \
    X(MR_ARG_PATH, const char *, log, "log", "FILE", "", MR_ONCE,                                                      \
      "append a JSON line per update; repeat it when resuming", .own = true, .rare = true)                             \
    X(MR_ARG_COUNT, uint64_t, throughput_warmup_steps, "throughput-warmup-steps", "N", "0", MR_KEPT,                   \
      "exclude the first N updates from samples per second", .rare = true)                                             \
    X(MR_ARG_FLAG, bool, profile, "profile", NULL, "", MR_ONCE,                                                        \
      "print time per operation type next to the machine's peak; operations of a device that queues them are waited "  \
      "for one by one",                                                                                                \
      .rare = true)                                                                                                    \
    X(MR_ARG_COUNT, uint64_t, stall_timeout, "stall-timeout", "SECONDS", "60", MR_ONCE, MR_STALL_HELP, .rare = true)   \
    X(MR_ARG_TEXT, const char *, plan, "plan", "table|json", "no", MR_ONCE, "only print FLOPs, memory and steps",      \
      .optional = "table", .words = MR_WORDS("no", "table", "json"))                                                   \
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
    size_t owned_count, owned_capacity;
} mr_settings;

extern const mr_option mr_setting_rows[]; /* the options of mr_settings */
extern const size_t mr_setting_count;

mr_status mr_pace_take(void *pace, const char *text, mr_error *err);

/* All defaults. */
mr_status mr_settings_begin(mr_settings *s, mr_error *err);
void mr_settings_release(mr_settings *s);
/* One option from text (lent; NULL for flags).  MR_MISUSE: the message lists what is accepted. */
mr_status mr_settings_take(mr_settings *s, const mr_option *row, const char *text, mr_error *err);

/* Overrides a default for a kind of model, unless the user set the option; MR_MISUSE: no such option. */
mr_status mr_settings_override_default(mr_settings *s, const char *word, const char *text, mr_error *err);

/* Whether the run is only planned. */
bool mr_settings_plans(const mr_settings *s);
/* Those that a checkpoint keeps, as an object; NULL: out of memory. */
json_t *mr_settings_json(const mr_settings *s);
/* Options not given become those of `options`.  MR_MISUSE: a fixed one was given and differs. */
mr_status mr_settings_adopt(mr_settings *s, const json_t *options, mr_error *err);

/* What a word of --tail stands for. */
mr_tail mr_settings_tail(const char *word);

#endif
