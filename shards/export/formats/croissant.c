/* croissant.c - head, files and lists of values of a Croissant description.
 * Invariant: the text depends on the dataset alone, not on the clock, the host or a path. */
#include "shards/export/formats/croissant.h"

#include <inttypes.h>
#include <string.h>

#include "base/scope.h"
#include "base/text.h"

/* The specification's own @context: it makes the short names below those of Croissant 1.1. */
static const char context[] =
    "{\"@context\":{\"@language\":\"en\",\"@vocab\":\"https://schema.org/\",\"arrayShape\":\"cr:arrayShape\","
    "\"citeAs\":\"cr:citeAs\",\"column\":\"cr:column\",\"conformsTo\":\"dct:conformsTo\","
    "\"containedIn\":\"cr:containedIn\",\"cr\":\"http://mlcommons.org/croissant/\","
    "\"data\":{\"@id\":\"cr:data\",\"@type\":\"@json\"},\"dataType\":{\"@id\":\"cr:dataType\",\"@type\":\"@vocab\"},"
    "\"dct\":\"http://purl.org/dc/terms/\",\"description\":{\"@container\":\"@language\"},"
    "\"equivalentProperty\":\"cr:equivalentProperty\",\"examples\":{\"@id\":\"cr:examples\",\"@type\":\"@json\"},"
    "\"extract\":\"cr:extract\",\"field\":\"cr:field\",\"fileObject\":\"cr:fileObject\","
    "\"fileProperty\":\"cr:fileProperty\",\"fileSet\":\"cr:fileSet\",\"format\":\"cr:format\","
    "\"includes\":\"cr:includes\",\"isArray\":\"cr:isArray\",\"isLiveDataset\":\"cr:isLiveDataset\","
    "\"jsonPath\":\"cr:jsonPath\",\"key\":\"cr:key\",\"md5\":\"cr:md5\",\"name\":{\"@container\":\"@language\"},"
    "\"parentField\":\"cr:parentField\",\"path\":\"cr:path\",\"rai\":\"http://mlcommons.org/croissant/RAI/\","
    "\"recordSet\":\"cr:recordSet\",\"references\":\"cr:references\",\"regex\":\"cr:regex\","
    "\"repeated\":\"cr:repeated\",\"replace\":\"cr:replace\",\"samplingRate\":\"cr:samplingRate\","
    "\"sc\":\"https://schema.org/\",\"separator\":\"cr:separator\",\"source\":\"cr:source\","
    "\"subField\":\"cr:subField\",\"transform\":\"cr:transform\"},\n\"@type\":\"sc:Dataset\","
    "\"conformsTo\":\"http://mlcommons.org/croissant/1.1\"";

static bool wanted(const mr_croissant_of *of, const mr_split *split)
{
    return !of->split || strcmp(of->split, split->name) == 0;
}

static void add_description(const mr_croissant_of *of, const char *hex, mr_buf *out)
{
    const mr_manifest *m = of->manifest;
    MR_AUTO(mr_buf_free) mr_buf text = {0};
    uint64_t samples = 0;
    size_t splits = 0;
    char count[32];
    for (size_t i = 0; i < m->split_count; i++)
        if (wanted(of, &m->splits[i])) {
            samples += m->splits[i].samples;
            splits++;
        }
    mr_buf_printf(&text, "%s image%s of layout %s, in %zu split%s", mr_text_count(samples, count),
                  samples == 1 ? "" : "s", m->layout, splits, splits == 1 ? "" : "s");
    if (m->class_count)
        mr_buf_printf(&text, " and %zu class%s", m->class_count, m->class_count == 1 ? "" : "es");
    mr_buf_printf(&text, ". The bytes of each image are those of the source. Digest of the dataset: %s", hex);
    mr_buf_add_text(out, ",\n\"description\":");
    mr_json_add_string(out, mr_buf_text(&text), text.len);
    out->failed |= text.failed;
}

void mr_croissant_add_head(const mr_croissant_of *of, mr_buf *out)
{
    const mr_manifest *m = of->manifest;
    MR_AUTO(mr_buf_free) mr_buf name = {0};
    char hex[65];
    mr_hex(of->digest, 32, hex);
    mr_buf_printf(&name, "%s-%.12s", m->layout, hex);
    mr_buf_add_text(out, context);
    mr_buf_add_text(out, ",\n\"name\":");
    mr_json_add_string(out, mr_buf_text(&name), name.len);
    out->failed |= name.failed;
    add_description(of, hex, out);
    mr_buf_printf(out, ",\n\"identifier\":\"sha256:%s\"", hex);
    if (m->licence) {
        mr_buf_add_text(out, ",\n\"license\":");
        mr_json_add_string(out, m->licence, strlen(m->licence));
    }
    mr_buf_add_text(out, ",\n\"distribution\":[");
}

void mr_croissant_add_object(const mr_croissant_object *object, mr_buf *out)
{
    const char *slash = strrchr(object->path, '/'), *name = slash ? slash + 1 : object->path;
    char hex[65];
    mr_hex(object->sha256, 32, hex);
    mr_buf_add_text(out, "{\"@type\":\"cr:FileObject\",\"@id\":");
    mr_json_add_string(out, object->path, strlen(object->path));
    mr_buf_add_text(out, ",\"name\":");
    mr_json_add_string(out, name, strlen(name));
    mr_buf_add_text(out, ",\"contentUrl\":");
    mr_json_add_string(out, object->path, strlen(object->path));
    if (object->bytes)
        mr_buf_printf(out, ",\"contentSize\":\"%" PRIu64 " B\"", object->bytes);
    mr_buf_printf(out, ",\"encodingFormat\":\"%s\",\"sha256\":\"%s\"}", object->format, hex);
}

/* ---- lists of values --------------------------------------------------------------------------------------------- */

static void add_list_head(const char *id, const char *type, const char *const fields[2][2], mr_buf *out)
{
    mr_buf_printf(out,
                  "\n{\"@type\":\"cr:RecordSet\",\"@id\":\"%s\",\"name\":\"%s\",\"dataType\":\"%s\","
                  "\"key\":{\"@id\":\"%s/%s\"},\"field\":[",
                  id, strchr(id, '/') + 1, type, id, fields[0][0]);
    for (size_t i = 0; i < 2; i++)
        mr_buf_printf(out, "%s{\"@type\":\"cr:Field\",\"@id\":\"%s/%s\",\"name\":\"%s\",\"dataType\":\"%s\"}",
                      i ? "," : "", id, fields[i][0], fields[i][0], fields[i][1]);
    mr_buf_add_text(out, "],\"data\":[");
}

static void add_classes(const mr_manifest *m, mr_buf *out)
{
    static const char *const fields[2][2] = {{"number", "sc:Integer"}, {"name", "sc:Text"}};
    add_list_head(MR_CROISSANT_CLASSES, "sc:Enumeration", fields, out);
    for (size_t i = 0; i < m->class_count; i++) {
        mr_buf_printf(out,
                      "%s\n{\"" MR_CROISSANT_CLASSES "/number\":%zu,"
                      "\"" MR_CROISSANT_CLASSES "/name\":",
                      i ? "," : "", i);
        mr_json_add_string(out, m->classes[i].name, strlen(m->classes[i].name));
        mr_buf_add_text(out, "}");
    }
    mr_buf_add_text(out, "]},");
}

void mr_croissant_add_lists(const mr_croissant_of *of, mr_buf *out)
{
    static const char *const fields[2][2] = {{"name", "sc:Text"}, {"samples", "sc:Integer"}};
    const mr_manifest *m = of->manifest;
    size_t splits = 0;
    mr_buf_add_text(out, "],\n\"recordSet\":[");
    if (m->class_count) /* a list of values may not be empty */
        add_classes(m, out);
    add_list_head(MR_CROISSANT_SPLITS, "cr:Split", fields, out);
    for (size_t i = 0; i < m->split_count; i++)
        if (wanted(of, &m->splits[i]))
            mr_buf_printf(
                out, "%s\n{\"" MR_CROISSANT_SPLITS "/name\":\"%s\",\"" MR_CROISSANT_SPLITS "/samples\":%" PRIu64 "}",
                splits++ ? "," : "", m->splits[i].name, m->splits[i].samples);
    mr_buf_add_text(out, "]}");
}

void mr_croissant_add_end(mr_buf *out)
{
    mr_buf_add_text(out, "]}\n");
}
