/* objects_report.c - what ingest says about the objects that it wrote into metas.
 * Invariant: shards are added in their order, so the example of a remark is the same on any number of threads and
 * ranks. */
#include "base/text.h"
#include "ingest/pipeline/ingest_state.h"

mr_object_tally mr_ingest_objects(const mr_ingest *in)
{
    mr_object_tally all = {0};
    for (size_t i = 0; in->tallies && i < in->cut_count; i++)
        mr_object_tally_add(&all, &in->tallies[i]);
    return all;
}

void mr_ingest_note_objects(mr_ingest *in)
{
    const mr_object_tally all = mr_ingest_objects(in);
    for (int k = 0; k < MR_OBJECT_ODDITY_COUNT; k++) {
        if (!all.odd[k].pictures)
            continue;
        char objects[32], pictures[32];
        size_t len;
        const char *path = mr_tree_path(&in->choice.tree, in->plan.samples[all.odd[k].first].entry, &len);
        mr_note_add(&in->notes, MR_NOTE_INFO, path, len, 0, "%s: %s in %s image%s, of which this is the first",
                    mr_object_texts[k], mr_text_count(all.odd[k].objects, objects),
                    mr_text_count(all.odd[k].pictures, pictures), all.odd[k].pictures == 1 ? "" : "s");
    }
}

json_t *mr_ingest_objects_json(const mr_object_tally *t)
{
    json_t *doc = json_pack("{sI sI sI sI sI sI sI sI sI}", "pictures", (json_int_t)t->pictures, "pictures_without",
                            (json_int_t)t->without, "objects", (json_int_t)t->objects, "boxes", (json_int_t)t->boxes,
                            "polygons", (json_int_t)t->polygons, "oriented_boxes", (json_int_t)t->oriented, "keypoints",
                            (json_int_t)t->keypoints, "crowds", (json_int_t)t->crowds, "masks", (json_int_t)t->masks);
    for (int k = 0; doc && k < MR_OBJECT_ODDITY_COUNT; k++)
        json_object_set_new(doc, mr_object_words[k], json_integer((json_int_t)t->odd[k].objects));
    return doc;
}
