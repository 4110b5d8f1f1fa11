/* folder_names.c - the tables of usual folder names; see folder_names.h.
 * Invariant: names are compared as lower-case ASCII words; bytes beyond ASCII separate nothing and match nothing.
 *
 *      seg_train     seg | train       an addition and a split's word: the split train
 *      TestImages    test | images     the same
 *      trainset      trainset          one word: the split's word with an addition at its end
 *      train_clean   train | clean     a word is left over: it only looks like a split                               */
#include "ingest/layout/folder_names.h"

#include <string.h>

#include "base/buf.h"

enum { WORD_MAX = 24, WORDS_MAX = 8 };

typedef struct words { /* the words of a name, in lower case */
    char text[WORDS_MAX][WORD_MAX];
    size_t count;
    bool overflow; /* too many or too long for a usual name */
} words;

static const struct split_word {
    const char *word, *split;
} split_words[] = {
    {"train", "train"},    {"training", "train"}, {"trn", "train"}, {"val", "val"},      {"valid", "val"},
    {"validation", "val"}, {"validate", "val"},   {"dev", "val"},   {"devel", "val"},    {"development", "val"},
    {"eval", "val"},       {"evaluation", "val"}, {"test", "test"}, {"testing", "test"}, {"tst", "test"},
    {"holdout", "test"},   {"heldout", "test"},
};

/* Additions to a split's word that change nothing. */
static const char *const additions[] = {
    "set",  "sets",   "data",    "dataset",  "images", "image",  "imgs", "img", "pictures",
    "pics", "photos", "samples", "examples", "split",  "folder", "dir",  "seg",
};

/* Containers of images, and those of something else that belongs to images. */
static const char *const sure_images[] = {
    "images", "image", "imgs", "img",  "jpegimages", "jpegs",  "jpeg",  "jpgs",
    "jpg",    "pngs",  "png",  "data", "dataset",    "inputs", "files", "samples",
};
static const char *const sure_others[] = {
    "masks",
    "labels",
    "annotations",
    "annotation",
    "annot",
    "annots",
    "groundtruth",
    "groundtruths",
    "segmentation",
    "segmentations",
    "segmentationclass",
    "segmentationobject",
    "segmentationmasks",
    "trimaps",
    "bbox",
    "bboxes",
    "targets",
    "thumbnails",
    "thumbs",
};
static const char *const perhaps_images[] = {
    "photos", "photo", "pictures", "picture", "pics", "pic", "drawings", "sketches", "input",
};
static const char *const perhaps_others[] = {"mask", "label", "gt", "depth", "edges", "target"};

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_part(char c)
{
    return is_letter(c) || is_digit(c) || (unsigned char)c >= 0x80;
}

/* Whether a word begins with this character: after a separator, a capital after a small letter, a digit after a
 * letter? */
static bool begins_word(char before, char here)
{
    if (!is_part(before) || is_digit(here) != is_digit(before))
        return true;
    return is_upper(here) && is_letter(before) && !is_upper(before);
}

static void split_name(const char *name, size_t len, words *out)
{
    size_t used = 0;
    *out = (words){0};
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        if (!is_part(c))
            continue;
        if (i == 0 || begins_word(name[i - 1], c)) {
            out->overflow = out->overflow || out->count == WORDS_MAX;
            if (out->overflow)
                return;
            out->count++;
            used = 0;
        }
        out->overflow = out->overflow || used == WORD_MAX - 1;
        if (out->overflow)
            return;
        if (is_upper(c))
            c = (char)(c + 'a' - 'A');
        out->text[out->count - 1][used++] = c;
    }
}

static bool is_one_of(const char *word, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(word, list[i]) == 0)
            return true;
    return false;
}

#define IS_ONE_OF(word, list) is_one_of(word, list, MR_COUNT(list))

static const char *exact_split(const char *word)
{
    for (size_t i = 0; i < MR_COUNT(split_words); i++)
        if (strcmp(word, split_words[i].word) == 0)
            return split_words[i].split;
    return NULL;
}

/* "trainset", "testimages", "imgtrain": a split's word, and an addition as its other end. */
static const char *glued_split(const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < MR_COUNT(split_words); i++) {
        size_t n = strlen(split_words[i].word);
        if (len <= n)
            continue;
        if (strncmp(word, split_words[i].word, n) == 0 && IS_ONE_OF(word + n, additions))
            return split_words[i].split;
        if (strcmp(word + len - n, split_words[i].word) == 0) {
            char head[WORD_MAX] = "";
            memcpy(head, word, len - n);
            if (IS_ONE_OF(head, additions))
                return split_words[i].split;
        }
    }
    return NULL;
}

const char *mr_split_word(const char *name, size_t len)
{
    words w;
    char rest[WORDS_MAX * WORD_MAX] = ""; /* what is not an addition, joined: "hold" and "out" */
    split_name(name, len, &w);
    if (w.overflow)
        return NULL;
    for (size_t i = 0; i < w.count; i++)
        if (!IS_ONE_OF(w.text[i], additions))
            strcat(rest, w.text[i]);
    const char *split = exact_split(rest);
    return split || strlen(rest) >= WORD_MAX ? split : glued_split(rest);
}

size_t mr_split_rank(const char *split)
{
    static const char *const first[] = {"train", "val", "test"};
    size_t rank = 0;
    while (rank < MR_COUNT(first) && (!split || strcmp(first[rank], split) != 0))
        rank++;
    return rank;
}

bool mr_split_like(const char *name, size_t len)
{
    words w;
    split_name(name, len, &w);
    for (size_t i = 0; i < w.count; i++)
        if (exact_split(w.text[i]) || glued_split(w.text[i]) || strcmp(w.text[i], "trainval") == 0)
            return true;
    return mr_split_word(name, len) != NULL;
}

/* The split of one word, in any case; NULL: none. */
static const char *split_of(const char *word, size_t len)
{
    char text[WORD_MAX] = "";
    if (len >= WORD_MAX)
        return NULL;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(is_upper(word[i]) ? word[i] + 'a' - 'A' : word[i]);
    const char *split = exact_split(text);
    return split ? split : glued_split(text);
}

mr_split_token mr_split_token_of(const char *name, size_t len)
{
    mr_split_token token = {.split = NULL};
    for (size_t at = 0, end; at < len; at = end) {
        for (end = at + 1; end < len && is_part(name[end]) && !begins_word(name[end - 1], name[end]);)
            end++;
        const char *split = split_of(name + at, end - at);
        if (split && !token.split)
            token = (mr_split_token){split, at, end - at, false};
        token.several = token.several || (split && split != token.split && strcmp(split, token.split) != 0);
    }
    return token;
}

/* The words of a name, joined; false: too many or too long for a usual name. */
static bool join_words(const char *name, size_t len, char whole[WORDS_MAX * WORD_MAX])
{
    words w;
    split_name(name, len, &w);
    *whole = '\0';
    for (size_t i = 0; i < w.count; i++)
        strcat(whole, w.text[i]);
    return !w.overflow;
}

mr_container mr_folder_container(const char *name, size_t len)
{
    char whole[WORDS_MAX * WORD_MAX];
    if (!join_words(name, len, whole))
        return MR_CONTAINER_NONE;
    if (IS_ONE_OF(whole, sure_images) || IS_ONE_OF(whole, sure_others))
        return MR_CONTAINER_SURE;
    return IS_ONE_OF(whole, perhaps_images) || IS_ONE_OF(whole, perhaps_others) ? MR_CONTAINER_PERHAPS
                                                                                : MR_CONTAINER_NONE;
}

bool mr_folder_of_others(const char *name, size_t len)
{
    char whole[WORDS_MAX * WORD_MAX];
    if (!join_words(name, len, whole))
        return false;
    for (size_t i = 0; i < MR_COUNT(split_words); i++) {
        size_t n = strlen(split_words[i].word);
        if (!strncmp(whole, split_words[i].word, n) && IS_ONE_OF(whole + n, sure_others))
            return true;
    }
    return IS_ONE_OF(whole, sure_others);
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

const char *mr_split_of_path(const char *path, size_t len)
{
    const char *word = NULL, *slash;
    for (const char *part = path; !word && (slash = memchr(part, '/', len - (size_t)(part - path))); part = slash + 1)
        word = mr_split_word(part, (size_t)(slash - part));
    return word;
}

mr_split_token mr_split_token_of_path(const char *path, size_t len, const char **folder, size_t *folder_len)
{
    mr_split_token token = {.split = NULL};
    const char *slash;
    for (const char *part = path; !token.split && (slash = memchr(part, '/', len - (size_t)(part - path)));
         part = slash + 1) {
        *folder = part;
        *folder_len = (size_t)(slash - part);
        token = mr_split_token_of(part, *folder_len);
        token.split = token.several ? NULL : token.split;
    }
    return token;
}
