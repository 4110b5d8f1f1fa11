/* static_archive.c - stands in for two functions that a static libarchive asks for (MILLRACE_STATIC_ARCHIVE, in
 * wheels). Invariant: neither is called by what millrace does with archives; they keep libxml2 and ICU (14 MB) and the
 * need of glibc 2.36 out of the wheel. */
#include <archive.h>
#include <stdlib.h>
#include <unistd.h>

/* The writer of xar archives; millrace writes tar and zip. */
int archive_write_set_format_xar(struct archive *a)
{
    (void)a;
    return ARCHIVE_FATAL;
}

/* For the encryption of zip entries; as in glibc 2.36, it cannot fail. */
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
