/* hub_yaml.c - writes the front matter of the hub's dataset card.
 * Source: the hub's dataset card specification; Features._to_yaml_list() and SplitDict of the library datasets for
 * dataset_info.
 * Invariant: every text that is not ours goes through mr_yaml_add_string(). */
#include "shards/export/formats/hub_yaml.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"

/* UTF-8 between double quotes.  YAML takes U+0085, U+2028 and U+2029 for line breaks, and refuses other control
 * characters and noncharacters as they are. */
void mr_yaml_add_string(mr_buf *out, const char *text, size_t len)
{
    mr_buf_add_text(out, "\"");
    for (size_t i = 0; i < len; i++) {
        const uint8_t *c = (const uint8_t *)text + i;
        unsigned odd = 0; /* the character, if it must be escaped */
        size_t extra = 0;
        if (*c == '"' || *c == '\\') {
            mr_buf_printf(out, "\\%c", *c);
            continue;
        }
        if (*c < 0x20 || *c == 0x7F) {
            mr_buf_printf(out, "\\x%02X", *c);
            continue;
        }
        if (*c == 0xC2 && i + 1 < len && c[1] < 0xA0) {
            odd = c[1];
            extra = 1;
        } else if ((*c == 0xE2 || *c == 0xEF) && i + 2 < len) {
            unsigned code = (unsigned)(*c & 0x0F) << 12 | (unsigned)(c[1] & 0x3F) << 6 | (c[2] & 0x3Fu);
            bool breaks = code == 0x2028 || code == 0x2029 || code == 0xFEFF || code >= 0xFFFE;
            odd = breaks ? code : 0;
            extra = 2;
        }
        if (odd) {
            mr_buf_printf(out, "\\u%04X", odd);
            i += extra;
        } else {
            mr_buf_add(out, c, 1);
        }
    }
    mr_buf_add_text(out, "\"");
}

/* ---- licence, tasks, sizes --------------------------------------------------------------------------------------- */

/* The hub's identifiers of licences that datasets often have; its own list is longer. */
static const char *const licences[] = {"apache-2.0",
                                       "mit",
                                       "cc",
                                       "cc0-1.0",
                                       "cc-by-2.0",
                                       "cc-by-3.0",
                                       "cc-by-4.0",
                                       "cc-by-sa-3.0",
                                       "cc-by-sa-4.0",
                                       "cc-by-nc-2.0",
                                       "cc-by-nc-3.0",
                                       "cc-by-nc-4.0",
                                       "cc-by-nd-4.0",
                                       "cc-by-nc-nd-3.0",
                                       "cc-by-nc-nd-4.0",
                                       "cc-by-nc-sa-2.0",
                                       "cc-by-nc-sa-3.0",
                                       "cc-by-nc-sa-4.0",
                                       "odbl",
                                       "odc-by",
                                       "pddl",
                                       "gpl-3.0",
                                       "bsd-3-clause",
                                       "cdla-permissive-2.0"};

/* "CC BY 4.0" is cc-by-4.0; NULL: none of them. */
static const char *known_licence(const char *text)
{
    char word[32];
    size_t len = strlen(text);
    if (len >= sizeof word)
        return NULL;
    for (size_t i = 0; i <= len; i++) {
        word[i] = (char)tolower((unsigned char)text[i]);
        if (text[i] == ' ')
            word[i] = '-';
    }
    for (size_t i = 0; i < MR_COUNT(licences); i++)
        if (strcmp(licences[i], word) == 0)
            return licences[i];
    return NULL;
}

static void add_licence(const char *licence, mr_buf *out)
{
    if (!licence)
        return;
    const char *known = known_licence(licence);
    mr_buf_printf(out, "license: %s\n", known ? known : "other");
    if (known)
        return;
    mr_buf_add_text(out, "license_name: ");
    mr_yaml_add_string(out, licence, strlen(licence));
    mr_buf_add_text(out, "\n");
}

static void add_tasks(mr_export_row_kind kind, mr_buf *out)
{
    const struct {
        const char *name;
        bool fits;
    } tasks[] = {{"image-classification", kind.label || kind.labels},
                 {"object-detection", kind.objects},
                 {"image-segmentation", kind.polygons},
                 {"keypoint-detection", kind.keypoints},
                 {"image-to-text", kind.captions}};
    bool any = false;
    for (size_t i = 0; i < MR_COUNT(tasks); i++)
        if (tasks[i].fits) {
            mr_buf_printf(out, "%s- %s\n", any ? "" : "task_categories:\n", tasks[i].name);
            any = true;
        }
}

static void add_size(uint64_t samples, mr_buf *out)
{
    static const char *const names[] = {"1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"};
    uint64_t limit = 1000;
    size_t i = 0;
    for (; i + 1 < MR_COUNT(names) && samples >= limit; i++)
        limit *= 10;
    mr_buf_add_text(out, "size_categories:\n");
    if (i == 0)
        mr_buf_add_text(out, "- n<1K\n");
    else if (samples >= limit)
        mr_buf_add_text(out, "- n>1T\n");
    else
        mr_buf_printf(out, "- %s<n<%s\n", names[i - 1], names[i]);
}

/* ---- features ---------------------------------------------------------------------------------------------------- */

static void add_class_label(const mr_class_names *names, const char *indent, mr_buf *out)
{
    if (!names->count) {
        mr_buf_add_text(out, " int64\n");
        return;
    }
    mr_buf_printf(out, "\n%sclass_label:\n%s  names:\n", indent, indent);
    for (size_t i = 0; i < names->count; i++) {
        size_t len;
        const char *name = mr_class_name(names, i, &len);
        mr_buf_printf(out, "%s    '%zu': ", indent, i);
        mr_yaml_add_string(out, name, len);
        mr_buf_add_text(out, "\n");
    }
}

static void add_objects(const mr_class_names *names, mr_export_row_kind kind, mr_buf *out)
{
    mr_buf_add_text(out, "  - name: objects\n    struct:\n"
                         "    - name: bbox\n      list:\n        list: float64\n"
                         "    - name: categories\n      list:");
    if (names->count)
        mr_buf_add_text(out, "\n        dtype:");
    add_class_label(names, "          ", out);
    if (kind.polygons)
        mr_buf_add_text(out, "    - name: polygons\n      list:\n        list:\n          list: float64\n");
    if (kind.oriented)
        mr_buf_add_text(out, "    - name: oriented\n      list:\n        list: float64\n");
    if (kind.keypoints)
        mr_buf_add_text(out, "    - name: keypoints\n      list:\n        list: float64\n");
    mr_buf_add_text(out, "    - name: crowd\n      list: bool\n");
}

static void add_features(const mr_class_names *names, mr_export_row_kind kind, mr_buf *out)
{
    mr_buf_add_text(out, "  features:\n  - name: image\n    dtype: image\n");
    if (kind.label) {
        mr_buf_add_text(out, "  - name: label\n    dtype:");
        add_class_label(names, "      ", out);
    }
    if (kind.labels) {
        mr_buf_add_text(out, "  - name: labels\n    list:");
        if (names->count)
            mr_buf_add_text(out, "\n      dtype:");
        add_class_label(names, "        ", out);
    }
    if (kind.captions)
        mr_buf_add_text(out, "  - name: captions\n    list: string\n");
    if (kind.columns)
        mr_buf_add_text(out, "  - name: columns\n    dtype: string\n");
    if (kind.objects)
        add_objects(names, kind, out);
}

/* ---- splits ------------------------------------------------------------------------------------------------------ */

typedef struct split_name {
    char text[80];
} split_name;

static bool taken(const split_name *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i].text, name) == 0)
            return true;
    return false;
}

/* The library datasets accepts words that are joined by single dots, and reserves "all". */
static void name_splits(const mr_export_run *run, split_name *names)
{
    const mr_manifest *m = run->manifest;
    for (size_t i = 0; i < m->split_count; i++) {
        const char *from = m->splits[i].name;
        char word[sizeof m->splits[i].name];
        size_t len = strlen(from);
        for (size_t k = 0; k <= len; k++) {
            bool lone = k == 0 || k + 1 == len || from[k - 1] == '.';
            word[k] = from[k];
            if (from[k] == '-' || (from[k] == '.' && lone))
                word[k] = '_';
        }
        snprintf(names[i].text, sizeof names[i].text, "%s%s", word, strcmp(word, "all") == 0 ? "_" : "");
        for (unsigned n = 2; taken(names, i, names[i].text); n++)
            snprintf(names[i].text, sizeof names[i].text, "%s_%u", word, n);
    }
}

static void add_splits(const mr_export_run *run, const mr_hub_card *c, const split_name *names, mr_buf *out)
{
    const mr_manifest *m = run->manifest;
    uint64_t bytes = 0, files = 0;
    mr_buf_add_text(out, "  splits:\n");
    for (size_t i = 0; i < m->split_count; i++) {
        const mr_hub_split *s = &c->splits[i];
        if (!s->files)
            continue;
        mr_buf_printf(out, "  - name: \"%s\"\n    num_bytes: %" PRIu64 "\n    num_examples: %" PRIu64 "\n",
                      names[i].text, s->bytes, m->splits[i].samples);
        bytes += s->bytes;
        files += s->file_bytes;
    }
    mr_buf_printf(out, "  download_size: %" PRIu64 "\n  dataset_size: %" PRIu64 "\n", files, bytes);
}

static void add_files(const mr_export_run *run, const mr_hub_card *c, const split_name *names, mr_buf *out)
{
    const mr_manifest *m = run->manifest;
    mr_buf_add_text(out, "configs:\n- config_name: default\n  data_files:\n");
    for (size_t i = 0; i < m->split_count; i++)
        if (c->splits[i].files)
            mr_buf_printf(out, "  - split: \"%s\"\n    path: \"%s\"\n", names[i].text, c->splits[i].files);
}

void mr_hub_yaml_add(const mr_export_run *run, const mr_hub_card *c, mr_export_row_kind kind, mr_buf *out)
{
    MR_AUTO(mr_scope_free) split_name *names = mr_alloc(run->manifest->split_count + 1, sizeof *names);
    if (!names) {
        out->failed = true;
        return;
    }
    name_splits(run, names);
    mr_buf_add_text(out, "---\n");
    add_licence(run->manifest->licence, out);
    add_tasks(kind, out);
    add_size(run->result->samples, out);
    if (run->result->samples && !c->tar) {
        mr_buf_add_text(out, "dataset_info:\n");
        add_features(&c->names, kind, out);
        add_splits(run, c, names, out);
    }
    if (run->result->samples)
        add_files(run, c, names, out);
    mr_buf_add_text(out, "---\n");
}
