/* fuzz_checkpoint.c - a checkpoint's state.json, as it comes and with a seal that fits.
 * Promises: every number within its bounds, a model that its own check() takes, and what was read is written as a text
 * that reads and writes the same again; names of directories are taken only in the one form that we write. */
#include <math.h>

#include "train/checkpoint/parts.h"
#include "shards/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

static const char OPENING[] = ",\n \"seal\": \"", END[] = "\n}\n";

static void check_state(const mr_checkpoint *c)
{
    FUZZ_MUST(c->model.iface && c->model.iface->check(&c->model, NULL) == MR_OK);
    FUZZ_MUST(memchr(c->model.name, '\0', sizeof c->model.name));
    FUZZ_MUST(c->slots == mr_checkpoint_slots(c->optimizer, c->ema > 0) && c->slots >= 1 &&
              c->slots <= MR_CHECKPOINT_STATES && c->ema >= 0 && c->ema < 1);
    FUZZ_MUST(c->update <= INT64_MAX && c->best_update <= c->update);
    FUZZ_MUST(c->cursor.epoch <= INT64_MAX && c->cursor.position <= INT64_MAX);
    FUZZ_MUST(c->accuracy == -1 || (c->accuracy >= 0 && c->accuracy <= 1));
    FUZZ_MUST(c->best_accuracy == -1 || (c->best_accuracy >= 0 && c->best_accuracy <= 1));
    FUZZ_MUST(c->model.frozen <= (MR_FROZEN_IMAGES | MR_FROZEN_TEXT) && isfinite(c->model.logit_scale));
    FUZZ_MUST(json_is_object(c->facts) && !c->values && !c->state[0] && !c->state[1] && !c->params.items);
    FUZZ_MUST(!c->tokenizer.data);
}

static bool check_parse(const mr_buf *text, mr_buf *again)
{
    mr_checkpoint c = {0};
    mr_digest files[MR_FILES];
    mr_error err;
    mr_status status = mr_state_parse(text->data, text->len, "state.json", &c, files, &err);
    if (status != MR_OK) {
        FUZZ_MUST(status == MR_BAD_DATA && !c.facts);
        fuzz_refused(status, &err);
        return false;
    }
    check_state(&c);
    FUZZ_MUST(files[MR_FILE_TOKENIZER].bytes <= MR_TOKENIZER_MAX);
    FUZZ_MUST(mr_state_write(&c, files, again, &err) == MR_OK);
    mr_checkpoint_release(&c);
    return true;
}

static void check_name(const uint8_t *data, size_t size)
{
    char name[MR_STEP_NAME], again[MR_STEP_NAME];
    uint64_t update;
    size_t len = size < sizeof name - 1 ? size : sizeof name - 1;
    memcpy(name, data, len);
    name[len] = '\0';
    if (!mr_step_parse(name, &update))
        return;
    mr_step_name(update, again);
    FUZZ_MUST(strcmp(name, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { TAIL = sizeof OPENING - 1 + 32 + 4 };
    mr_buf text = {0}, again = {0}, third = {0};
    check_name(data, size);
    mr_buf_add(&text, data, size);
    if (!check_parse(&text, &again)) { /* its seal, if there is any, replaced by one that fits */
        if (size >= TAIL && memcmp(data + size - TAIL, OPENING, sizeof OPENING - 1) == 0)
            text.len = size - TAIL;
        mr_buf_add_text(&text, END);
        FUZZ_MUST(mr_manifest_seal(&text, 0, NULL) == MR_OK);
        mr_buf_clear(&again);
        (void)check_parse(&text, &again);
    }
    if (again.len)
        FUZZ_MUST(check_parse(&again, &third) && third.len == again.len &&
                  memcmp(third.data, again.data, again.len) == 0);
    mr_buf_free(&third);
    mr_buf_free(&again);
    mr_buf_free(&text);
    return 0;
}
