/* xml.c - the XML of an image, found and read once.
 * Invariant: where several files could be it, none is, and the reason says so. */
#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/layout/voc/voc.h"

static void keep(mr_voc_build *b, uint32_t xml, const mr_buf *bytes)
{
    MR_AUTO(mr_buf_free) mr_buf packed = {0};
    mr_voc_state *st = b->st;
    mr_texts_keep(&st->texts, xml, bytes->data, bytes->len);
    mr_voc_annotation_pack(&b->annotation, &packed);
    if (!packed.failed)
        mr_texts_keep(&st->parsed, xml, packed.data, packed.len);
}

/* Reads an XML; `why` is empty if it is good.  `again`: an earlier sample had it, too. */
static mr_status read_xml(mr_voc_build *b, uint32_t xml, bool again, mr_buf *why)
{
    MR_AUTO(mr_buf_free) mr_buf bytes = {0};
    mr_error err;
    size_t len;
    const char *name = mr_tree_path(b->tree, xml, &len);
    mr_status status = MR_BAD_DATA;
    if (mr_source_entry(b->tree->source, xml)->size <= MR_VOC_XML_MAX) {
        MR_TRY(mr_source_read(b->tree->source, xml, &bytes, b->err));
        status = mr_voc_parse(mr_buf_text(&bytes), bytes.len, &b->annotation, &err);
    } else {
        mr_fail(&err, MR_BAD_DATA, "longer than 16 MiB, the limit for an annotation file");
    }
    if (status == MR_SYSTEM)
        return mr_fail(b->err, status, "%s", err.text);
    if (status == MR_OK && !again)
        keep(b, xml, &bytes);
    if (status != MR_OK) {
        mr_text_escape(why, name, len);
        mr_buf_printf(why, ": %s", err.text);
    }
    return mr_buf_status(why, b->err, "reading annotations");
}

/* XML files whose <filename> names another existing image: their own names decide, as in VOC's tools. */
static void compare_names(mr_voc_build *b, uint32_t entry, uint32_t xml)
{
    const mr_voc_annotation *a = &b->annotation;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t len;
    const char *name = mr_tree_path(b->tree, entry, &len), *slash = memrchr(name, '/', len);
    size_t dir = slash ? (size_t)(slash - name) + 1 : 0;
    if (!a->file_len)
        return;
    const char *said = (const char *)a->names.data + a->file_at;
    if (a->file_len == len - dir && !memcmp(said, name + dir, a->file_len))
        return;
    mr_buf_add(&path, name, dir);
    mr_buf_add(&path, said, a->file_len);
    uint32_t other = path.failed ? MR_NO_ENTRY : mr_tree_find(b->tree, (const char *)path.data, path.len);
    if (other != MR_NO_ENTRY && mr_name_is_image((const char *)path.data, path.len) && !b->swapped++)
        b->first_swapped = xml;
}

/* An image in a folder of the images whose XML is directly in the folder of the annotations, if no other image there
 * has its name; MR_NO_ENTRY. */
static mr_status find_flat(mr_voc_build *b, uint32_t entry, uint32_t *xml)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    size_t len, skip = 0;
    const char *name = mr_tree_path(b->tree, entry, &len), *slash = memrchr(name, '/', len);
    const mr_voc_spot *spot = mr_voc_spot_of(&b->st->places, name, len, &skip);
    *xml = MR_NO_ENTRY;
    if (!spot || !*spot->annotations || slash < name + skip)
        return MR_OK;
    const char *base = slash + 1, *dot = memrchr(base, '.', len - (size_t)(base - name));
    size_t base_len = len - (size_t)(base - name);
    MR_TRY(mr_image_names_list(&b->names, b->tree, b->tree->begin, b->tree->end, b->err));
    if (mr_image_names_find(&b->names, base, base_len, NULL, NULL).rival != MR_NO_ENTRY)
        return MR_OK;
    mr_buf_add(&path, spot->dir, spot->len);
    mr_buf_printf(&path, "%s%s/%.*s.xml", spot->len ? "/" : "", spot->annotations,
                  (int)(dot ? (size_t)(dot - base) : base_len), base);
    MR_TRY(mr_buf_status(&path, b->err, "reading annotations"));
    *xml = mr_tree_find(b->tree, (const char *)path.data, path.len);
    return MR_OK;
}

mr_status mr_voc_take_xml(mr_voc_build *b, uint32_t entry, uint32_t *xml, mr_buf *why)
{
    mr_voc_xmls found = mr_voc_xmls_of(b->tree, &b->st->places, entry);
    if (!found.count) {
        MR_TRY(find_flat(b, entry, &found.entries[0]));
        found.count = found.entries[0] != MR_NO_ENTRY;
    }
    *xml = found.count ? found.entries[0] : MR_NO_ENTRY;
    if (!found.count)
        return MR_OK;
    uint32_t *owner = &b->owners[*xml - b->tree->begin];
    bool again = b->plan->used[*xml] == MR_USE_TAKEN;
    for (size_t i = 0; i < found.count; i++) {
        size_t len;
        const char *path = mr_tree_path(b->tree, found.entries[i], &len);
        b->plan->used[found.entries[i]] = MR_USE_TAKEN;
        if (found.count > 1) {
            mr_buf_add_text(why, i ? ", " : "has several annotations, but only one may be kept: ");
            mr_text_escape(why, path, len);
        }
    }
    if (why->len)
        return mr_buf_status(why, b->err, "reading annotations");
    if (again && *owner != entry && !b->shared++)
        b->first_shared = *xml;
    *owner = entry;
    MR_TRY(read_xml(b, *xml, again, why));
    if (!why->len && !again)
        compare_names(b, entry, *xml);
    return MR_OK;
}
