/* label_list.c - several labels of one image. */
#include "ingest/layout/common/label_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "shards/manifest/format.h"

static int by_label(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

void mr_label_list_settle(mr_buf *list)
{
    size_t count = list->len / sizeof(int32_t), kept = count > 0;
    int32_t *labels = (int32_t *)(void *)list->data;
    if (count > 1)
        qsort(labels, count, sizeof *labels, by_label);
    for (size_t i = 1; i < count; i++)
        if (labels[i] != labels[i - 1])
            labels[kept++] = labels[i];
    list->len = kept * sizeof *labels;
}

void mr_label_list_judge(const mr_plan *plan, const mr_buf *list, mr_sample *s)
{
    const int32_t *labels = (const int32_t *)(const void *)list->data;
    size_t count = list->len / sizeof *labels;
    s->label = count == 1 ? labels[0] : -1;
    if (count > 1)
        s->flags = MR_FLAG_MULTI_LABEL;
    for (size_t i = 0; i < count && count > 1; i++) {
        s->labels += (uint32_t)mr_hash64(&labels[i], sizeof labels[i]);
        s->meta_bytes += 12 + strlen(plan->classes[labels[i]].name);
    }
}

void mr_label_list_write(const mr_plan *plan, const mr_buf *list, mr_buf *out)
{
    const int32_t *labels = (const int32_t *)(const void *)list->data;
    size_t count = list->len / sizeof *labels;
    mr_buf_add_text(out, ",\"labels\":[");
    for (size_t i = 0; i < count; i++)
        mr_buf_printf(out, "%s%d", i ? "," : "", (int)labels[i]);
    mr_buf_add_text(out, "],\"classes\":[");
    for (size_t i = 0; i < count; i++) {
        const char *name = plan->classes[labels[i]].name;
        mr_buf_add_text(out, i ? "," : "");
        mr_json_add_string(out, name, strlen(name));
    }
    mr_buf_add_text(out, "]");
}
