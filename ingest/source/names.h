/* names.h - what the name of a file says.
 * Invariant: names are bytes of `len`, not NUL-terminated. */
#ifndef MR_NAMES_H
#define MR_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* By its ending: jpg jpeg jif png webp, and the kinds that are rejected by name (gif bmp tif tiff ...). */
bool mr_name_is_image(const char *name, size_t len);
/* A WordNet id, as ImageNet names its classes: n and 8 digits. */
bool mr_name_is_synset(const char *name, size_t len);
bool mr_name_ends(const char *name, size_t len, const char *suffix); /* ASCII case ignored */
/* In any of them; the list ends with NULL. */
bool mr_name_ends_in(const char *name, size_t len, const char *const *suffixes);
/* Whether two names differ in the case of ASCII letters alone, or in how they write accented letters: as one character
 * (NFC) or, as macOS does, as a letter and a mark (NFD).  False for equal names. */
bool mr_name_alike(const char *a, size_t a_len, const char *b, size_t b_len);
/* Whether a combining mark of U+0300 to U+036F, of 2 bytes, begins at `at`. */
bool mr_name_is_mark(const char *name, size_t len, size_t at);
#define MR_NAME_ALIKE "in the case of letters, or in the form of accented ones (NFC, NFD)"
bool mr_path_is_hidden(const char *path, size_t len); /* it, or a folder above it, has a name that begins with a dot */

#endif
