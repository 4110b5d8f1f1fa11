/* text.h - words for people, and names that may hold any bytes.
 *
 * A source path is bytes, JSON is UTF-8.  Paths are written in "path text": valid UTF-8 as it is, every other byte and
 * every control character as \xHH, a backslash as two.  The form is one to one, so exports restore the very bytes. */
#ifndef MR_TEXT_H
#define MR_TEXT_H

#include "base/buf.h"

void mr_text_escape(mr_buf *out, const char *bytes, size_t len);  /* bytes -> path text */
bool mr_text_unescape(mr_buf *out, const char *text, size_t len); /* false: not path text */
bool mr_utf8_valid(const char *bytes, size_t len);
size_t mr_utf8_cut(const char *bytes, size_t len); /* bytes at the end, 0 to 3, of a character that goes on */

/* Bytes of the first character of `text` if a terminal shows it; 0: a control character (C0, DEL, C1), one that
 * turns the direction of what follows, or no UTF-8. */
size_t mr_text_printable(const char *text, size_t len);
/* The first character of `text` as a terminal may see it, itself or its first byte as \xNN; returns how many bytes of
 * `text`, of at least one, that stands for. */
size_t mr_text_next(const char *text, size_t len, char shown[5]);
/* Appends foreign words as people may see them: what is not printable as \xHH.  Not meant to be read back. */
void mr_text_show(mr_buf *out, const char *text, size_t len);
/* Appends JSON as people may see it: its strings' DEL and C1, which JSON lets through, as \u00XX. */
void mr_json_show(mr_buf *out, const char *json, size_t len);

/* Appends a quoted JSON string; `bytes` must be UTF-8 (see mr_text_escape). */
void mr_json_add_string(mr_buf *out, const char *bytes, size_t len);
/* The same, as mr_json_show() writes it. */
void mr_json_add_shown(mr_buf *out, const char *bytes, size_t len);
/* Appends a quoted JSON string of a path: escaped first. */
void mr_json_add_path(mr_buf *out, const char *bytes, size_t len);

/* The word of `words` (NULL-terminated) nearest to `word`, or NULL if none is near enough to suggest. */
const char *mr_text_nearest(const char *word, const char *const *words);

/* Names in bytewise order, to look one up: mr_names_have() asks for the first `len` bytes of `name`. */
void mr_names_sort(const char **names, size_t count);
bool mr_names_have(const char *const *sorted, size_t count, const char *name, size_t len);

/* "12.3 MB" (powers of 1000), "1,234,567", "2 min 5 s"; `out` of at least 32 bytes; returns out. */
char *mr_text_bytes(uint64_t bytes, char *out);
char *mr_text_count(uint64_t count, char *out);
char *mr_text_seconds(double seconds, char *out);

/* Sizes as people write them: 256MiB, 64k, 1.5GB, 1000; false if it is none.  KiB/MiB/GiB/TiB and k/m/g/t are powers of
 * 1024; KB/MB/GB/TB powers of 1000. */
bool mr_text_parse_size(const char *text, uint64_t *out);
bool mr_text_parse_u64(const char *text, uint64_t *out);

#endif
