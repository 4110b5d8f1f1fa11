/* companions.c - files that come with a dataset without being part of it, by their names.
 * Invariant: nothing that a layout may need is a companion by its name: no image, no table, no label file. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "ingest/pipeline/ledger.h"
#include "ingest/source/names.h"

const char *const mr_fate_words[MR_FATE_COUNT] = {
#define X(word, json) [MR_FATE_##word] = json,
    MR_FATES(X)
#undef X
};

const char *const mr_companion_words[MR_COMPANION_COUNT] = {
#define X(word, json, name) [MR_COMPANION_##word] = json,
    MR_COMPANIONS(X)
#undef X
};

const char *const mr_companion_names[MR_COMPANION_COUNT] = {
#define X(word, json, name) [MR_COMPANION_##word] = name,
    MR_COMPANIONS(X)
#undef X
};

/* One of the words, alone or before a dot or a dash: README.roboflow.txt, LICENSE-CC0. */
static bool begins_with_any(const char *name, size_t len, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (len >= n && strncasecmp(name, *words, n) == 0 && (len == n || name[n] == '.' || name[n] == '-'))
            return true;
    }
    return false;
}

static bool is_system(const char *path, size_t len, const char *name, size_t name_len)
{
    static const char *const names[] = {"Thumbs.db", "ehthumbs.db", "desktop.ini", "Icon\r", NULL};
    if (mr_path_is_hidden(path, len) || memmem(path, len, "__MACOSX/", 9))
        return true;
    for (size_t i = 0; names[i]; i++)
        if (name_len == strlen(names[i]) && strncasecmp(name, names[i], name_len) == 0)
            return true;
    return false;
}

mr_companion mr_companion_by_name(const char *path, size_t len)
{
    static const char *const documents[] = {"readme",   "license", "licence",   "copying",        "notice",
                                            "citation", "authors", "changelog", "croissant.json", NULL};
    static const char *const document_ends[] = {".md", ".rst", ".pdf", ".html", ".htm", ".bib", ".cff", ".docx", NULL};
    static const char *const sums[] = {"md5sum", "md5sums", "sha1sums", "sha256sums", "sha512sums", "checksums", NULL};
    static const char *const sum_ends[] = {".md5", ".sha1", ".sha256", ".sha512", ".md5sum", ".sha256sum", NULL};
    static const char *const scripts[] = {".py", ".ipynb", ".sh", ".m", ".r", ".c", ".cpp", ".js", ".lua", ".pl", NULL};
    const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
    size_t name_len = len - (size_t)(name - path);
    if (is_system(path, len, name, name_len))
        return MR_COMPANION_SYSTEM;
    if (mr_name_is_image(name, name_len))
        return MR_COMPANION_COUNT;
    if (begins_with_any(name, name_len, sums) || mr_name_ends_in(name, name_len, sum_ends))
        return MR_COMPANION_CHECKSUM;
    if (begins_with_any(name, name_len, documents) || mr_name_ends_in(name, name_len, document_ends))
        return MR_COMPANION_DOCUMENT;
    return mr_name_ends_in(name, name_len, scripts) ? MR_COMPANION_SCRIPT : MR_COMPANION_COUNT;
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* A folder of masks: one of the words in its name, or a name that is one of `whole`. */
static bool is_mask_folder(const char *name, size_t len)
{
    static const char *const words[] = {"mask", "trimap", "segment", "matte", "annotation", "semantic", "panoptic"};
    static const char *const whole[] = {"seg", "gt", "label", "labels", "groundtruth", "ground_truth", "alpha"};
    char low[256];
    snprintf(low, sizeof low, "%.*s", (int)(len < sizeof low ? len : sizeof low - 1), name);
    for (char *at = low; *at; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at + ('a' - 'A') : *at);
    for (size_t i = 0; i < MR_COUNT(words); i++)
        if (strstr(low, words[i]))
            return true;
    for (size_t i = 0; i < MR_COUNT(whole); i++)
        if (strcmp(low, whole[i]) == 0)
            return true;
    return false;
}

/* Whether the file's folder, or the one above that, is one of masks. */
static bool is_below_masks(const char *path, const char *name)
{
    const char *end = name > path ? name - 1 : NULL;
    for (int level = 0; level < 2 && end; level++) {
        const char *slash = memrchr(path, '/', (size_t)(end - path)), *at = slash ? slash + 1 : path;
        if (is_mask_folder(at, (size_t)(end - at)))
            return true;
        end = slash;
    }
    return false;
}

const char *mr_mask_name(const char *path, size_t len, size_t *base)
{
    static const char *const suffixes[] = {"_mask", "-mask",  ".mask",   "_masks", "_seg",    "_segmentation",
                                           "_gt",   "_label", "_trimap", "_matte", "_mask_1", "_gtFine_labelIds",
                                           "_L"};
    size_t stem_len;
    const char *stem = mr_stem(path, len, &stem_len);
    for (size_t i = 0; i < MR_COUNT(suffixes); i++) {
        size_t n = strlen(suffixes[i]);
        if (stem_len > n && !memcmp(stem + stem_len - n, suffixes[i], n)) {
            *base = stem_len - n;
            return stem;
        }
    }
    return NULL;
}

bool mr_companion_is_mask(const char *path, size_t len, const mr_stems *stems)
{
    size_t stem_len, base;
    const char *stem = mr_stem(path, len, &stem_len);
    if (is_below_masks(path, stem) && mr_stems_have(stems, stem, stem_len))
        return true;
    return mr_mask_name(path, len, &base) && mr_stems_have(stems, stem, base);
}
