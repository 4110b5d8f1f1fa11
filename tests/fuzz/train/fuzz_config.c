/* fuzz_config.c - a stranger's config.json, as in a BridgeTower model's folder from the hub.
 * Promises: what is taken passes the model's own check and has parameters that can be laid out; described in a
 * config.json of ours it is taken again as the same model. */
#include <stdio.h>
#include <unistd.h>

#include "train/model/bridgetower/parts.h"
#include "tests/fuzz/fuzz.h"

static mr_status configure(const void *bytes, size_t size, mr_model_config *c, mr_error *err)
{
    char path[40];
    int fd = fuzz_file(bytes, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    mr_status status = mr_bt_configure(path, c, err);
    close(fd);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mr_model_config c = {.name = "untouched"}, again = {.name = ""};
    mr_buf text = {0}, twice = {0};
    mr_error err;
    mr_status status = configure(data, size, &c, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && strcmp(c.name, "untouched") == 0);
        fuzz_refused(status, &err);
        return 0;
    }
    FUZZ_MUST(memchr(c.name, '\0', sizeof c.name) && mr_bt_check(&c, &err) == MR_OK);
    FUZZ_MUST(mr_bt_describe(&c, &text, &err) == MR_OK);
    FUZZ_MUST(configure(text.data, text.len, &again, &err) == MR_OK);
    FUZZ_MUST(mr_bt_describe(&again, &twice, &err) == MR_OK);
    FUZZ_MUST(text.len == twice.len && memcmp(text.data, twice.data, text.len) == 0);
    if (c.layers <= 8) { /* thousands of layers would take its time */
        mr_params params = {0};
        status = mr_bt_params(&c, &params, &err);
        FUZZ_MUST(status == MR_OK || status == MR_MISUSE || status == MR_BAD_DATA);
        mr_params_release(&params);
    }
    mr_buf_free(&text);
    mr_buf_free(&twice);
    return 0;
}
