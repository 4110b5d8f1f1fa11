/* zip_directory.h - a zip's directory, compared with the header before each entry's data.
 * Invariant: in an archive that passes, both copies of each name, kind and method agree, so damage to either is found.
 * (libarchive compares sizes and CRC-32, with each other and with the data.) */
#ifndef MR_ZIP_DIRECTORY_H
#define MR_ZIP_DIRECTORY_H

#include "base/error.h"

#include <stdint.h>

typedef struct zip_directory {
    uint64_t entries;             /* in the directory */
    uint64_t links, full_folders; /* how many of these are symbolic links, or folders (by name) that have bytes */
} zip_directory;

/* Reads the directory of the zip of `size` bytes at `base` of `fd`, and the header of each entry in it.  The CRC-32 of
 * a symbolic link's target, which libarchive does not compare, is compared here.  MR_BAD_DATA: there is no directory,
 * or it contradicts itself or the headers; names the archive (`name`) and the entry. */
mr_status mr_zip_directory_check(int fd, uint64_t base, uint64_t size, const char *name, zip_directory *out,
                                 mr_error *err);

#endif
