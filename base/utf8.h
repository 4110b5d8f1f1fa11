/* utf8.h - characters of UTF-8, and which of them a terminal may show.
 * Invariant: untrusted bytes reach a terminal only as characters that mr_text_printable() lets through. */
#ifndef MR_UTF8_H
#define MR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid sequence at p (1 to 4 bytes of `left`, which is not 0); 0: there is none. */
size_t mr_utf8_len(const uint8_t *p, size_t left);
bool mr_utf8_valid(const char *bytes, size_t len);
size_t mr_utf8_cut(const char *bytes, size_t len);  /* bytes (0 to 3) of an incomplete character at the end */
size_t mr_utf8_mark(const void *bytes, size_t len); /* bytes of a byte order mark at the beginning: 3, or 0 for none */

/* Whether `text` begins with U+FFFE or U+FFFF, which are not characters: XML and YAML refuse them. */
bool mr_text_is_no_character(const char *text, size_t len);
/* Length of the first character of `text` if a terminal may show it; 0: a control character (C0, DEL, C1), one that
 * changes the text's direction, not a character, or invalid UTF-8. */
size_t mr_text_printable(const char *text, size_t len);
/* The first character of `text` (len >= 1) in printable form: itself, or its first byte as \xHH.  Returns the bytes of
 * `text` that it covers. */
size_t mr_text_next(const char *text, size_t len, char shown[5]);

#endif
