/* masks.c - masks of a sample, which annotate every pixel, in its meta:
 *
 *      "masks":{"SegmentationClass":{"source":"SegmentationClass/1.png","png":"iVBORw0KGgo..."}}      PNG in base64
 *
 * Invariant: a mask in a meta is a PNG whose header and structure are sound; others are left out and counted. */
#include "base/base64.h"
#include "base/scope.h"
#include "base/text.h"
#include "ingest/pipeline/build_parts.h"

enum { MASK_MAX = 64 << 20 }; /* bytes of a file */

static void count_odd(mr_build *b, mr_object_oddity kind, uint64_t sample)
{
    if (!b->tally.odd[kind].pictures++)
        b->tally.odd[kind].first = sample;
    b->tally.odd[kind].objects++;
}

/* A mask of an image that EXIF turns may be of the turned one. */
static bool same_size(const mr_image_facts *mask, const mr_image_facts *picture)
{
    return (mask->width == picture->width && mask->height == picture->height) ||
           (picture->orientation > 4 && mask->width == picture->height && mask->height == picture->width);
}

static mr_status add_mask(mr_build *b, const mr_mask *mask, const mr_image_facts *picture, uint64_t sample, bool first,
                          mr_error *err)
{
    const mr_ingest *in = b->in;
    mr_image_facts facts;
    mr_error why;
    size_t len;
    mr_status status = MR_BAD_SAMPLE;
    if (mr_source_entry(in->source, mask->entry)->size <= MASK_MAX) {
        MR_TRY(mr_source_read(in->source, mask->entry, &b->other, err));
        status = mr_image_examine(b->other.data, b->other.len, &in->options->limits, &facts, &why);
    }
    if (status == MR_SYSTEM)
        return mr_fail(err, status, "%s", why.text);
    if (status != MR_OK || facts.codec != MR_CODEC_PNG) {
        count_odd(b, MR_OBJECT_MASK_UNREADABLE, sample);
        return MR_OK;
    }
    if (!same_size(&facts, picture))
        count_odd(b, MR_OBJECT_MASK_RESIZED, sample);
    const char *path = mr_tree_path(&in->choice.tree, mask->entry, &len);
    mr_buf_add_text(&b->meta, first ? ",\"masks\":{" : ",");
    mr_buf_printf(&b->meta, "\"%s\":{\"source\":", mask->name);
    mr_json_add_path(&b->meta, path, len);
    mr_buf_add_text(&b->meta, ",\"png\":\"");
    mr_base64_add(&b->meta, b->other.data, b->other.len);
    mr_buf_add_text(&b->meta, "\"}");
    b->tally.masks++;
    return mr_buf_status(&b->meta, err, "writing a sample's masks");
}

mr_status mr_build_masks(mr_build *b, const mr_sample *s, const mr_image_facts *picture, uint64_t number, mr_error *err)
{
    const mr_ingest *in = b->in;
    mr_mask masks[MR_MASKS_MAX];
    size_t count = in->choice.layout->masks(&in->choice.tree, &in->plan, s, masks);
    uint64_t before = b->tally.masks;
    for (size_t i = 0; i < count; i++)
        MR_TRY(add_mask(b, &masks[i], picture, number, b->tally.masks == before, err));
    if (b->tally.masks > before)
        mr_buf_add_text(&b->meta, "}");
    return MR_OK;
}
