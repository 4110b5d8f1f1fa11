/* scan.c - segments between restart markers; see scan.h.
 * Invariant: a segment is completely unstuffed before the first of its MCUs is decoded. */
#include "image/jpeg/scan.h"

#include <string.h>

/* libjpeg-turbo reads this many bytes ahead, and fails if the file ends among them without a marker. */
enum { AHEAD = 16 };

static bool at_marker(const mr_jpeg_scan *s)
{
    return s->len - s->at >= 2 && s->bytes[s->at + 1] != 0xFF;
}

void mr_jpeg_scan_begin(mr_jpeg_scan *s)
{
    uint8_t *out = s->unstuffed;
    mr_jpeg_unstuffed u = s->kernels->unstuff(s->bytes + s->at, s->len - s->at, out);
    memset(out + u.given, 0, MR_JPEG_PADDING);
    s->from = s->at;
    s->at += u.taken;
    s->stream = (mr_jpeg_stream){.end = out + u.given, .next = out};
    s->spare = s->part || at_marker(s) ? 0 : AHEAD * 8;
    s->to_go = s->restart ? s->restart : UINT32_MAX;
}

/* Bits left; negative if more were taken than there were. */
static int64_t rest_of(const mr_jpeg_scan *s)
{
    return (int64_t)(s->stream.end - s->stream.next) * 8 + s->stream.bits - s->spare;
}

bool mr_jpeg_scan_sound(const mr_jpeg_scan *s)
{
    return rest_of(s) >= 0;
}

bool mr_jpeg_scan_pass_marker(mr_jpeg_scan *s)
{
    if (s->to_go)
        return true;
    const uint8_t *p = s->bytes + s->at;
    int64_t rest = rest_of(s);
    if (rest < 0 || rest > 7 || s->len - s->at < 2 || p[0] != 0xFF || p[1] != 0xD0 + s->next_marker)
        return false;
    s->at += 2;
    s->next_marker = (s->next_marker + 1) & 7;
    mr_jpeg_scan_begin(s);
    return true;
}

bool mr_jpeg_scan_complete(const mr_jpeg_scan *s)
{
    int64_t rest = rest_of(s);
    return rest >= 0 && rest <= 7 && s->len - s->at >= 2 && s->bytes[s->at] == 0xFF && s->bytes[s->at + 1] == 0xD9;
}

/* ---- from entry to entry ----------------------------------------------------------------------------------------- */

/* The end of the byte with the bit before `to`, including a stuffed byte after it. */
static size_t end_of_part(const mr_jpeg_scan *s, size_t scan, const mr_jpeg_entry *to)
{
    size_t byte = scan + (size_t)(to->at / 8);
    if (to->at % 8 == 0)
        return byte;
    return byte + 1 + (s->bytes[byte] == 0xFF);
}

void mr_jpeg_scan_enter(mr_jpeg_scan *s, size_t scan, const mr_jpeg_entry *from, uint32_t mcu, const mr_jpeg_entry *to)
{
    unsigned passed = from->at % 8;
    s->part = true;
    s->at = scan + (size_t)(from->at / 8);
    s->len = end_of_part(s, scan, to);
    mr_jpeg_scan_begin(s);
    if (s->restart) {
        s->to_go = s->restart - mcu % s->restart;
        s->next_marker = mcu / s->restart & 7;
    }
    if (passed) {
        s->stream.word = (uint64_t)*s->stream.next++ << (56 + passed);
        s->stream.bits = 8 - passed;
    }
    for (unsigned c = 0; from->kind != MR_JPEG_BEGUN && c < MR_JPEG_COMPONENTS; c++)
        s->stream.dc[c] = from->dc[c];
}

bool mr_jpeg_scan_arrived(mr_jpeg_scan *s, const mr_jpeg_entry *to)
{
    for (unsigned c = 0; c < MR_JPEG_COMPONENTS; c++)
        if (s->stream.dc[c] != to->dc[c])
            return false;
    if (to->kind == MR_JPEG_BEGUN)
        return s->to_go == 0 && mr_jpeg_scan_pass_marker(s) && s->from == s->len;
    return s->at == s->len && rest_of(s) == (int64_t)(-to->at & 7);
}

/* ---- MCUs -------------------------------------------------------------------------------------------------------- */

/* How many of `mcus` come before a restart; 0: not sound. */
static uint32_t begin_some(mr_jpeg_scan *s, uint32_t mcus)
{
    if (!mr_jpeg_scan_pass_marker(s))
        return 0;
    if (mcus > s->to_go)
        mcus = s->to_go;
    if (s->restart)
        s->to_go -= mcus;
    return mcus;
}

bool mr_jpeg_scan_skip(mr_jpeg_scan *s, uint32_t mcus)
{
    mr_jpeg_mcu_skip(s->mcu);
    while (mcus) {
        uint32_t some = begin_some(s, mcus);
        if (!some || !s->kernels->skip(&s->stream, s->mcu, some))
            return false;
        mcus -= some;
    }
    return true;
}

bool mr_jpeg_scan_skip_parts(mr_jpeg_scan *s, const mr_jpeg_mcu *parts, unsigned count, int *dc)
{
    if (!begin_some(s, 1))
        return false;
    for (unsigned i = 0; i < count; i++) {
        if (!s->kernels->skip(&s->stream, &parts[i], 1))
            return false;
        dc[i] = s->stream.dc[0];
    }
    return true;
}

bool mr_jpeg_scan_store(mr_jpeg_scan *s, uint32_t mcus, int16_t *blocks)
{
    mr_jpeg_mcu_pair(s->mcu);
    while (mcus) {
        uint32_t some = begin_some(s, mcus);
        if (!some || !s->kernels->store(&s->stream, s->mcu, some, blocks))
            return false;
        blocks += (size_t)some * s->mcu->blocks * MR_JPEG_BLOCK;
        mcus -= some;
    }
    return true;
}
