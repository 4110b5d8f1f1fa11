/* static_archive.c - replaces two functions that a static libarchive links to (MILLRACE_STATIC_ARCHIVE, in wheels).
 * Invariant: nothing that millrace does with archives calls them; they keep libxml2 and ICU (14 MB) and a dependency on
 * glibc 2.36 out of the wheel. */
#include <archive.h>
#include <stdlib.h>
#include <unistd.h>

/* Writes xar archives; millrace writes tar and zip. */
int archive_write_set_format_xar(struct archive *a)
{
    (void)a;
    return ARCHIVE_FATAL;
}

/* Encrypts zip entries; as in glibc 2.36, it cannot fail. */
void arc4random_buf(void *bytes, size_t count)
{
    for (unsigned char *at = bytes; count;) {
        size_t piece = count < 256 ? count : 256; /* getentropy()'s limit */
        if (getentropy(at, piece) != 0)
            abort();
        at += piece;
        count -= piece;
    }
}
