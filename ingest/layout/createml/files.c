/* files.c - which JSON files of a folder are CreateML's, and the text of an image in one of them.
 * Invariant: a file of another name is CreateML's by its first bytes alone. */
#include "ingest/layout/createml/createml.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/utf8.h"
#include "ingest/source/names.h"
#include "ingest/layout/common/roboflow_files.h"

enum { HEAD = 16384, HEADS_MAX = 64 }; /* bytes of a file; files of a folder that are read */

/* MR_SYSTEM: it could not be read. */
static mr_status looks_right(const mr_tree *t, uint32_t entry, bool *yes, mr_error *err)
{
    char head[HEAD];
    uint64_t size = mr_source_entry(t->source, entry)->size;
    size_t len = size < sizeof head ? (size_t)size : sizeof head, at = 0;
    *yes = false;
    mr_status status = len ? mr_source_pread(t->source, entry, head, len, 0, err) : MR_OK;
    if (status != MR_OK)
        return status == MR_SYSTEM ? status : MR_OK;
    at += mr_utf8_mark(head, len);
    while (at < len && head[at] && strchr(" \t\r\n", head[at]))
        at++;
    *yes = at < len && head[at] == '[' && memmem(head, len, "\"image", 6) && memmem(head, len, "\"coordinates\"", 13);
    return MR_OK;
}

mr_status mr_createml_list(const mr_tree *t, const char *dir, size_t len, mr_createml_jsons *out, mr_error *err)
{
    mr_child child = {0};
    for (int heads = 0; heads < HEADS_MAX && mr_tree_next(t, dir, len, &child);) {
        if (child.is_dir || child.name[0] == '.' || !mr_name_ends(child.name, child.name_len, ".json"))
            continue;
        bool yes =
            child.name_len == strlen(MR_RF_CREATEML_JSON) && !memcmp(child.name, MR_RF_CREATEML_JSON, child.name_len);
        heads++;
        if (!yes)
            MR_TRY(looks_right(t, child.entry, &yes, err));
        if (!yes)
            continue;
        if (!MR_GROW(out->entries, out->count, out->capacity))
            return mr_fail_memory(err, "looking for a layout");
        out->entries[out->count++] = child.entry;
    }
    return MR_OK;
}

void mr_createml_jsons_free(mr_createml_jsons *jsons)
{
    free(jsons->entries);
}

mr_status mr_createml_ref_text(const mr_source *s, const mr_createml_state *st, const mr_createml_ref *ref, mr_buf *out,
                               mr_error *err)
{
    const mr_createml_file *f = st->files[ref->file];
    const mr_createml_image *image = &f->images[ref->image];
    size_t len;
    const uint8_t *kept = mr_texts_find(&st->texts, f->entry, &len);
    if (!kept || image->at > len || image->len > len - image->at)
        return mr_createml_text(s, f, ref->image, out, err);
    mr_buf_add(out, kept + image->at, image->len);
    return mr_buf_status(out, err, "reading CreateML annotations");
}
