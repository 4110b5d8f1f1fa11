/* configs.c - the configs of the New Yorker corpus: folders of train.jsonl, val.jsonl and test.jsonl.
 * Invariant: if there are several configs, only one that was asked for is chosen. */
#include "ingest/layout/newyorker/newyorker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const mr_newyorker_stems[MR_NEWYORKER_FILES] = {"train", "val", "validation", "test"};

static mr_status add_config(const mr_tree *t, const char *dir, size_t len, mr_newyorker_configs *list, mr_error *err)
{
    mr_newyorker_config c = {.name = "default"};
    bool any = false;
    char path[sizeof c.name + 32];
    if (len >= sizeof c.name)
        return MR_OK;
    if (len)
        snprintf(c.name, sizeof c.name, "%.*s", (int)len, dir);
    for (size_t i = 0; i < MR_NEWYORKER_FILES; i++) {
        int n = snprintf(path, sizeof path, "%s%s%s.jsonl", len ? c.name : "", len ? "/" : "", mr_newyorker_stems[i]);
        c.files[i] = mr_tree_find(t, path, (size_t)n);
        any = any || c.files[i] != MR_NO_ENTRY;
    }
    if (!any)
        return MR_OK;
    if (!MR_GROW(list->items, list->count, list->capacity))
        return mr_fail_memory(err, "listing the configs");
    list->items[list->count++] = c;
    return MR_OK;
}

mr_status mr_newyorker_list_configs(const mr_tree *t, mr_newyorker_configs *list, mr_error *err)
{
    mr_child child = {0};
    mr_status status = add_config(t, "", 0, list, err);
    while (status == MR_OK && list->count < 1000 && mr_tree_next(t, "", 0, &child))
        if (child.is_dir)
            status = add_config(t, child.name, child.name_len, list, err);
    return status;
}

void mr_newyorker_list_names(const mr_newyorker_configs *list, mr_buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        mr_buf_add_text(out, i ? ", " : "");
        mr_text_escape(out, list->items[i].name, strlen(list->items[i].name));
    }
}

mr_status mr_newyorker_choose(const mr_tree *t, const char *wanted, mr_newyorker_config *out, mr_error *err)
{
    mr_newyorker_configs list = {0};
    mr_buf names = {0};
    const mr_newyorker_config *found = NULL;
    mr_status status = mr_newyorker_list_configs(t, &list, err);
    mr_newyorker_list_names(&list, &names);
    for (size_t i = 0; i < list.count; i++)
        if (wanted ? !strcmp(list.items[i].name, wanted) : list.count == 1)
            found = &list.items[i];
    if (status == MR_OK && !list.count)
        status = mr_fail(err, MR_BAD_DATA, "no train.jsonl, val.jsonl or test.jsonl: needs " MR_NEWYORKER_NEEDS);
    else if (status == MR_OK && !found && wanted)
        status = mr_fail(err, MR_MISUSE, "--config %s does not exist; choose one of: %s", wanted, mr_buf_text(&names));
    else if (status == MR_OK && !found)
        status = mr_fail(err, MR_MISUSE, "the source holds %zu configs; choose one with --config: %s", list.count,
                         mr_buf_text(&names));
    if (status == MR_OK)
        *out = *found;
    mr_buf_free(&names);
    free(list.items);
    return status;
}
