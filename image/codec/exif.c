/* exif.c - the orientation, the only number of an EXIF block that affects pixels.
 * Invariant: only the first directory is read, each of its entries once and inside the block; only the offset of that
 * directory is followed, so nothing can loop.
 *
 *   0  "II*\0" little-endian, "MM\0*" big-endian      4  u32 offset of the directory (IFD0)
 *   IFD0: u16 entries, then 12 bytes each: u16 tag, u16 type, u32 count, u32 value (or its offset) */
#include <string.h>

#include "image/codec/codec.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4, ENTRY = 12, MAX_ENTRIES = 1000 };

typedef uint32_t (*reader)(const uint8_t *p);

/* The value of the orientation's entry; 0 if it is not a single number. */
static uint32_t value_of(const uint8_t *entry, reader u16, reader u32)
{
    if (u32(entry + 4) != 1)
        return 0;
    switch (u16(entry + 2)) {
    case TYPE_BYTE:
        return entry[8];
    case TYPE_SHORT:
        return u16(entry + 8);
    case TYPE_LONG:
        return u32(entry + 8);
    default:
        return 0;
    }
}

uint8_t mr_exif_orientation(const uint8_t *tiff, size_t len)
{
    if (len >= 6 && !memcmp(tiff, "Exif\0\0", 6)) {
        tiff += 6;
        len -= 6;
    }
    bool big = len >= 8 && !memcmp(tiff, "MM\0*", 4);
    if (!big && (len < 8 || memcmp(tiff, "II*\0", 4)))
        return 1;
    reader u16 = big ? mr_be16 : mr_le16, u32 = big ? mr_be32 : mr_le32;
    uint32_t at = u32(tiff + 4);
    if (at > len - 2)
        return 1;
    size_t entries = u16(tiff + at), whole = (len - at - 2) / ENTRY;
    if (entries > MAX_ENTRIES)
        return 1;
    /* Complete entries of a truncated directory still count. */
    for (size_t i = 0; i < entries && i < whole; i++) {
        const uint8_t *entry = tiff + at + 2 + i * ENTRY;
        if (u16(entry) != TAG_ORIENTATION)
            continue;
        uint32_t value = value_of(entry, u16, u32);
        return value >= 1 && value <= 8 ? (uint8_t)value : 1;
    }
    return 1;
}
