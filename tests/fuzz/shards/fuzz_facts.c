/* fuzz_facts.c - the facts in a stranger's state.json, as a run that goes on and as eval and predict believe them.
 * Promises: options that are taken over are in their range and are written as what gives the same again; a class is
 * one of the model's; pictures are shown in the size that the model has. */
#include "tests/fuzz/fuzz.h"
#include "train/setup/settings.h"
#include "train/run/model_session.h"

static void refused(mr_status status, const mr_error *err)
{
    FUZZ_MUST(status == MR_BAD_DATA || status == MR_MISUSE);
    fuzz_refused(status, err);
}

/* By a run without options, and by one that was given all of them. */
static void check_options(const json_t *options)
{
    mr_settings s, again;
    mr_error err;
    FUZZ_MUST(mr_settings_begin(&s, &err) == MR_OK && mr_settings_begin(&again, &err) == MR_OK);
    mr_status status = mr_settings_adopt(&s, options, &err);
    if (status == MR_OK) {
        FUZZ_MUST(s.lr >= 0 && s.steps <= INT64_MAX);
        json_t *kept = mr_settings_json(&s), *other;
        FUZZ_MUST(kept && mr_settings_adopt(&again, kept, &err) == MR_OK);
        FUZZ_MUST((other = mr_settings_json(&again)) && json_equal(kept, other));
        json_decref(kept);
        json_decref(other);
    } else {
        refused(status, &err);
    }
    mr_settings_release(&s);
    mr_settings_release(&again);
    FUZZ_MUST(mr_settings_begin(&s, &err) == MR_OK);
    for (size_t i = 0; i < mr_setting_count; i++)
        FUZZ_MUST(mr_settings_take(&s, &mr_setting_rows[i], mr_setting_rows[i].standard, &err) == MR_OK);
    status = mr_settings_adopt(&s, options, &err);
    if (status != MR_OK)
        refused(status, &err);
    mr_settings_release(&s);
}

static void check_classes(mr_session *t, uint32_t known, bool no_labels)
{
    char plain[] = "a", accented[] = "caf\xC3\xA9";
    mr_class classes[] = {{.name = plain}, {.name = accented}};
    const mr_manifest m = {.classes = classes, .class_count = MR_COUNT(classes)};
    const mr_session_request q = {.dataset = "set", .no_labels = no_labels};
    mr_error err;
    t->checkpoint.model.classes = known;
    mr_status status = mr_session_map(&q, &m, t, &err);
    if (status != MR_OK)
        refused(status, &err);
    for (size_t i = 0; status == MR_OK && i < m.class_count; i++) {
        FUZZ_MUST(t->classes[i] >= (no_labels ? -1 : 0) && t->classes[i] < (int64_t)known);
        FUZZ_MUST(t->classes[i] < 0 || strcmp(mr_session_class(t, t->classes[i]), m.classes[i].name) == 0);
    }
    free(t->classes);
    t->classes = NULL;
}

static void check_trained(json_t *facts, const char *model)
{
    char path[] = "run";
    mr_session t = {.path = path, .checkpoint = {.facts = facts}};
    mr_transform shown;
    mr_error err;
    FUZZ_MUST(mr_model_find(model, &t.checkpoint.model, &err) == MR_OK);
    mr_status status = mr_session_transform(&t, &shown, &err);
    if (status != MR_OK)
        refused(status, &err);
    else
        FUZZ_MUST(shown.size == t.checkpoint.model.image);
    size_t named = json_array_size(json_object_get(facts, "classes"));
    check_classes(&t, (uint32_t)named, true);
    check_classes(&t, (uint32_t)named, false);
    check_classes(&t, 2, true);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *facts = NULL;
    mr_error err;
    if (mr_json_parse(data, size, "state.json", &facts, &err) != MR_OK)
        return 0;
    check_options(json_object_get(facts, "options"));
    check_trained(facts, "ViT-B_16");
    check_trained(facts, "bridgetower-large");
    json_decref(facts);
    return 0;
}
