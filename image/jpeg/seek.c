/* seek.c - a pass over the whole scan that checks it and records entries; see seek.h, region.h.
 * Invariant: nothing is appended unless the scan was found sound to its end.
 *
 *      file        ... SOS | 3A FF 00 91 ... | FF D0 | 7C ...         an entry: bits from here ^ on, all bytes counted
 *      unstuffed             3A FF 91 ...      then    7C ...         where the stream is, in a segment */
#include "image/jpeg/seek.h"

#include <string.h>

#include "image/jpeg/decoder.h"

typedef struct passing {
    mr_jpeg_decoder *d;
    mr_jpeg_scan scan;
    size_t segment, counted, stuffed; /* unstuffed bytes of this segment counted so far; stuffed ones before them */
} passing;

static bool begin(passing *p, mr_jpeg_decoder *d, const uint8_t *bytes, size_t len)
{
    *p = (passing){.d = d};
    if (!mr_jpeg_open_scan(d, &p->scan, bytes, len))
        return false;
    mr_jpeg_scan_begin(&p->scan);
    return true;
}

/* The position of the next bit, as in an entry. */
static uint64_t place(passing *p)
{
    const mr_jpeg_scan *s = &p->scan;
    uint64_t taken = (uint64_t)(s->stream.next - s->unstuffed) * 8 - s->stream.bits;
    size_t bytes = (size_t)(taken / 8), ahead;
    if (p->segment != s->from) {
        p->segment = s->from;
        p->counted = p->stuffed = 0;
    }
    for (const uint8_t *ff; (ahead = bytes - p->counted) && (ff = memchr(s->unstuffed + p->counted, 0xFF, ahead));) {
        p->counted = (size_t)(ff - s->unstuffed) + 1;
        p->stuffed++;
    }
    p->counted = bytes;
    return (uint64_t)(s->from - p->d->header.scan + bytes + p->stuffed) * 8 + taken % 8;
}

static bool note(passing *p, mr_jpeg_entry *e, mr_jpeg_entry_kind kind)
{
    *e = (mr_jpeg_entry){.kind = (uint16_t)kind};
    for (unsigned c = 0; c < MR_JPEG_COMPONENTS; c++)
        e->dc[c] = (int16_t)p->scan.stream.dc[c];
    if (kind == MR_JPEG_BEGUN && !mr_jpeg_scan_pass_marker(&p->scan))
        return false;
    e->at = place(p);
    return true;
}

static bool collect(passing *p, const mr_jpeg_grid *g, mr_jpeg_entry *entries)
{
    for (size_t i = 0; i < g->count; i++) {
        uint32_t mcu = mr_jpeg_grid_mcu(g, i), next = i + 1 < g->count ? mr_jpeg_grid_mcu(g, i + 1) : g->wide * g->high;
        if (!note(p, &entries[i], mr_jpeg_grid_kind(g, i)) || !mr_jpeg_scan_skip(&p->scan, next - mcu))
            return false;
    }
    return mr_jpeg_scan_complete(&p->scan) && note(p, &entries[g->count], MR_JPEG_ENDED);
}

/* Entries longer than the file are rejected: its MCUs have fewer bits than an entry. */
mr_jpeg_outcome mr_jpeg_seek_make(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, unsigned every, mr_buf *out)
{
    passing p;
    size_t before = out->len;
    if (!mr_jpeg_open(d, bytes, len))
        return MR_JPEG_LEFT;
    mr_jpeg_grid g = mr_jpeg_grid_make(&d->header, every);
    if (g.count >= len)
        return MR_JPEG_LEFT;
    mr_jpeg_entry *entries = mr_jpeg_reserve(&d->entries, (g.count + 1) * sizeof *entries);
    if (!entries || !begin(&p, d, bytes, len)) {
        out->failed = true; /* out of memory must not look like a file without entries */
        return MR_JPEG_LEFT;
    }
    if (!collect(&p, &g, entries))
        return MR_JPEG_LEFT;
    mr_jpeg_entries_pack(&g, entries, out);
    if (out->len - before <= len)
        return MR_JPEG_DONE;
    out->len = before;
    return MR_JPEG_LEFT;
}

mr_jpeg_outcome mr_jpeg_check(mr_jpeg_decoder *d, const uint8_t *bytes, size_t len, uint64_t max_pixels)
{
    passing p;
    if (!mr_jpeg_open(d, bytes, len) || (uint64_t)d->header.width * d->header.height > max_pixels ||
        !begin(&p, d, bytes, len))
        return MR_JPEG_LEFT;
    bool sound = mr_jpeg_scan_skip(&p.scan, mr_jpeg_wide(&d->header) * mr_jpeg_high(&d->header)) &&
                 mr_jpeg_scan_complete(&p.scan);
    return sound ? MR_JPEG_DONE : MR_JPEG_LEFT;
}
