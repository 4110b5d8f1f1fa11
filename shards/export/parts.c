/* parts.c - the words for what a format may be unable to hold. */
#include "shards/export/parts.h"

#define X(word, json, text) [MR_PART_##word] = json,
const char *const mr_export_part_words[MR_PART_COUNT] = {MR_EXPORT_PARTS(X)};
#undef X
#define X(word, json, text) [MR_PART_##word] = text,
const char *const mr_export_part_texts[MR_PART_COUNT] = {MR_EXPORT_PARTS(X)};
#undef X
