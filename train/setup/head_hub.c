/* head_hub.c - classes from id2label, columns from the head's tensors.
 * Invariant: a file beside the weights may be missing or say nothing of this, but not be damaged. */
#include "train/setup/head_hub.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/path.h"
#include "base/scope.h"

enum { MAX_FILE = 16 << 20, MAX_DOCUMENT = 256 << 20 };

bool mr_hub_beside(const char *weights, const char *name, char *found, size_t size)
{
    const char *slash = strrchr(weights, '/');
    size_t len = mr_dir_is(weights) ? strlen(weights) : slash ? (size_t)(slash - weights) : 0;
    int made = snprintf(found, size, "%.*s%s%s", (int)len, weights, len || slash ? "/" : "", name);
    return made >= 0 && (size_t)made < size && access(found, F_OK) == 0;
}

/* *doc stays NULL if there is no such file. */
static mr_status read_beside(const char *weights, const char *name, json_t **doc, mr_error *err)
{
    char path[4096];
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    if (!mr_hub_beside(weights, name, path, sizeof path))
        return MR_OK;
    MR_TRY(mr_file_read_all(AT_FDCWD, path, MAX_FILE, &text, err));
    MR_TRY(mr_json_bounded(text.data, text.len, MAX_DOCUMENT, path, err));
    return mr_json_parse(text.data, text.len, path, doc, err);
}

/* {"0": "cat", "1": "dog"}, as many as the head has columns. */
static json_t *names_of(const json_t *doc, uint32_t classes)
{
    const json_t *map = json_object_get(doc, "id2label");
    MR_AUTO(json_decrefp) json_t *names = json_array();
    char number[24];
    if (!names || json_object_size(map) != classes)
        return NULL;
    for (uint32_t i = 0; i < classes; i++) {
        snprintf(number, sizeof number, "%u", i);
        json_t *name = json_object_get(map, number);
        if (!json_is_string(name) || json_array_append(names, name) != 0)
            return NULL;
    }
    return json_incref(names);
}

static mr_status list_parts(uint32_t hidden, uint32_t classes, mr_params *params, mr_error *err)
{
    const uint64_t shape[] = {hidden, classes};
    MR_TRY(mr_params_add(params, "head/kernel", 2, shape, true, NULL, err));
    return mr_params_add(params, "head/bias", 1, shape + 1, false, NULL, err);
}

mr_status mr_head_hub_read(const mr_model_hub *hub, const char *weights, uint32_t hidden, mr_checkpoint *out,
                           mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *doc = NULL;
    MR_AUTO(mr_scope_free) float *kernel = NULL;
    MR_AUTO(mr_scope_free) float *bias = NULL;
    uint32_t classes = 0;
    MR_TRY(read_beside(weights, "config.json", &doc, err));
    MR_TRY(hub->head(weights, hidden, &classes, &kernel, &bias, err));
    json_t *names = names_of(doc, classes);
    if (!names)
        return MR_END;
    out->facts = json_pack("{s:o}", "classes", names);
    if (!out->facts)
        return mr_fail_memory(err, weights);
    MR_TRY(list_parts(hidden, classes, &out->params, err));
    out->model.classes = classes;
    out->values = mr_alloc(out->params.total, sizeof *out->values);
    if (!out->values)
        return mr_fail_memory(err, weights);
    memcpy(out->values + out->params.items[0].offset, kernel, out->params.items[0].count * sizeof *kernel);
    memcpy(out->values + out->params.items[1].offset, bias, classes * sizeof *bias);
    return MR_OK;
}

static bool differ(const json_t *theirs)
{
    bool any = false;
    for (size_t i = 0; i < 3 && json_array_size(theirs) == 3; i++)
        any = any || fabs(json_number_value(json_array_get(theirs, i)) - 0.5) > 1e-4;
    return any;
}

mr_status mr_hub_check_colours(const char *weights, mr_buf *said, mr_error *err)
{
    MR_AUTO(json_decrefp) json_t *images = NULL;
    MR_AUTO(json_decrefp) json_t *config = NULL;
    MR_TRY(read_beside(weights, "preprocessor_config.json", &images, err));
    MR_TRY(read_beside(weights, "config.json", &config, err));
    const json_t *timm = json_object_get(config, "pretrained_cfg");
    if (differ(json_object_get(images, "image_mean")) || differ(json_object_get(images, "image_std")) ||
        differ(json_object_get(timm, "mean")) || differ(json_object_get(timm, "std")))
        mr_buf_printf(
            said,
            "%s was trained with another mean and standard deviation of colours than 0.5, which is used here; training "
            "adapts to it\n",
            weights);
    return mr_buf_status(said, err, "loading weights");
}
