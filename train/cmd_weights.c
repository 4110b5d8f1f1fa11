/* cmd_weights.c - `millrace weights RUN FOLDER`: a trained model as a folder of the hub.
 * Invariant: model.safetensors comes last, so a folder that has it has everything. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cli/cli.h"
#include "base/cli/term.h"
#include "base/files/file.h"
#include "base/scope.h"
#include "train/checkpoint/checkpoint.h"
#include "train/commands.h"
#include "train/model/hub.h"

typedef struct request {
    const char *run, *folder;
    bool best, force, quiet;
} request;

static const mr_option options[] = {
    {"best", 0, MR_ARG_FLAG, MR_FIELD(request, best),
     .help = "the checkpoint with the best evaluation, not the newest one"},
    {"force", 0, MR_ARG_FLAG, MR_FIELD(request, force), .help = "replace the model in FOLDER"},
    {"quiet", 'q', MR_ARG_FLAG, MR_FIELD(request, quiet), .help = "print nothing but errors"},
    {0},
};

static const mr_option arguments[] = {{.value = "RUN", .kind = MR_ARG_PATH, MR_FIELD(request, run)},
                                      {.value = "FOLDER", .kind = MR_ARG_PATH, MR_FIELD(request, folder)},
                                      {0}};

static mr_status publish(int dir, const char *name, const mr_buf *text, mr_error *err)
{
    return mr_file_publish(dir, name, text->data, text->len, err);
}

static mr_status write_weights(int dir, const mr_checkpoint *c, mr_error *err)
{
    mr_output o;
    MR_TRY(mr_output_open(dir, "model.safetensors", &o, err));
    return mr_output_close(&o, c->model.iface->hub->write(&c->params, c->values, o.fd, "model.safetensors", err), err);
}

static mr_status write_folder(const request *q, const mr_checkpoint *c, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf config = {0}, images = {0};
    MR_AUTO(mr_scope_close) int dir = -1;
    MR_TRY(c->model.iface->hub->describe(&c->model, c->facts, &config, &images, err));
    MR_TRY(mr_dir_make(q->folder, err));
    dir = open(q->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return mr_fail_errno(err, errno, "%s: cannot open the folder", q->folder);
    if (!q->force && faccessat(dir, "model.safetensors", F_OK, 0) == 0)
        return mr_fail(err, MR_MISUSE, "%s: holds a model already; --force replaces it", q->folder);
    MR_TRY(publish(dir, "config.json", &config, err));
    MR_TRY(publish(dir, "preprocessor_config.json", &images, err));
    return write_weights(dir, c, err);
}

static mr_status run(const request *q, mr_error *err)
{
    MR_AUTO(mr_checkpoint_release) mr_checkpoint c = {0};
    MR_AUTO(mr_scope_free) char *found = NULL;
    MR_TRY(mr_checkpoint_read(q->run, q->best, false, &c, &found, err));
    if (!c.model.iface->hub)
        return mr_fail(err, MR_MISUSE, "%s: is a model of %s, whose checkpoints are in the hub's format already", found,
                       c.model.iface->name);
    MR_TRY(write_folder(q, &c, err));
    if (!q->quiet)
        printf("%s: %s after update %llu, for ViTForImageClassification.from_pretrained()\n", q->folder, c.model.name,
               (unsigned long long)c.update);
    return MR_OK;
}

static int start(int argc, char **argv)
{
    request q = {.best = false};
    MR_AUTO(mr_cli_release) mr_cli cli = {0};
    mr_error err = {0};
    if (!mr_cli_parse(&cli, &mr_cmd_weights, argc, argv, &q))
        return cli.code;
    return mr_cli_end(NULL, run(&q, &err), &err);
}

const mr_command mr_cmd_weights = {
    .name = "weights",
    .title = "write a trained model as a folder that transformers loads",
    .usage = "RUN FOLDER",
    .example = "millrace weights run vit-flowers",
    .summary =
        "Writes the weights of a run of vit, or of one of its checkpoints, as model.safetensors, config.json and "
        "preprocessor_config.json, which ViTForImageClassification.from_pretrained(FOLDER) of Hugging Face's "
        "transformers loads.  millrace train --pretrained FOLDER starts from it again.",
    .notes = "Examples:\n"
             "  millrace weights run vit-flowers\n"
             "  millrace weights --best --force run vit-flowers\n"
             "\n"
             "Exit status: 0 done; 1 the checkpoint is damaged; 2 usage error; 3 system error.",
    .options = options,
    .arguments = arguments,
    .run = start,
};
