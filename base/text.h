/* text.h - human-readable text, and names that may hold any bytes.
 *
 * A source path is bytes, JSON is UTF-8.  Paths are written as "path text": valid UTF-8 unchanged, every other byte and
 * every control character as \xHH, a backslash doubled.
 * Invariant: path text is reversible, so exports restore the exact bytes. */
#ifndef MR_TEXT_H
#define MR_TEXT_H

#include "base/buf.h"
#include "base/utf8.h"

void mr_text_escape(mr_buf *out, const char *bytes, size_t len);  /* bytes -> path text */
bool mr_text_unescape(mr_buf *out, const char *text, size_t len); /* false: not path text */

/* Appends untrusted text in printable form: unprintable bytes as \xHH.  Not reversible. */
void mr_text_show(mr_buf *out, const char *text, size_t len);
/* Appends JSON in printable form: DEL and C1 in strings, which JSON allows, as \u00XX. */
void mr_json_show(mr_buf *out, const char *json, size_t len);

/* Appends text for XML and HTML, between tags or in a quoted attribute: & < > " ' become references. */
void mr_text_add_markup(mr_buf *out, const char *text, size_t len);

/* Appends a quoted JSON string; `bytes` must be UTF-8 (see mr_text_escape). */
void mr_json_add_string(mr_buf *out, const char *bytes, size_t len);
/* The same, in the printable form of mr_json_show(). */
void mr_json_add_shown(mr_buf *out, const char *bytes, size_t len);
/* Appends a quoted JSON string of a path: escaped first. */
void mr_json_add_path(mr_buf *out, const char *bytes, size_t len);

/* Takes any of `blanks` away from both ends of the text. */
void mr_text_trim(const char **text, size_t *len, const char *blanks);

/* Whether a file begins as the small text that git leaves where it has not fetched a large file.  Source: "Git LFS
 * Specification", docs/spec.md of git-lfs. */
bool mr_text_is_lfs_pointer(const void *bytes, size_t len);

/* The word of `words` (NULL-terminated) nearest to `word`; NULL if none is near enough to suggest. */
const char *mr_text_nearest(const char *word, const char *const *words);

/* Names in bytewise order; mr_names_have() looks up the first `len` bytes of `name`. */
void mr_names_sort(const char **names, size_t count);
bool mr_names_have(const char *const *sorted, size_t count, const char *name, size_t len);

/* "12.3 MB" (powers of 1000), "1,234,567", "2 min 5 s"; `out` holds at least 32 bytes and is returned. */
char *mr_text_bytes(uint64_t bytes, char *out);
char *mr_text_count(uint64_t count, char *out);
char *mr_text_seconds(double seconds, char *out);

/* A size such as 256MiB, 64k, 1.5GB, 1000; false: not a size.  KiB/MiB/GiB/TiB and k/m/g/t are powers of 1024,
 * KB/MB/GB/TB powers of 1000. */
bool mr_text_parse_size(const char *text, uint64_t *out);
bool mr_text_parse_u64(const char *text, uint64_t *out);

#endif
