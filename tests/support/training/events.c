/* events.c - a TensorBoard event file read back. */
#include "tests/support/training/events.h"

#include <stdlib.h>
#include <string.h>

typedef unsigned long long ull;

typedef struct span {
    const uint8_t *at, *end;
} span;

static uint64_t fixed(span *s, unsigned bytes)
{
    uint64_t value = 0;
    if ((size_t)(s->end - s->at) < bytes)
        fail_msg("an event ends early");
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)*s->at++ << (8 * i);
    return value;
}

static uint64_t varint(span *s)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = fixed(s, 1);
        value |= (byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return value;
    }
    fail_msg("a varint has no end");
    return 0;
}

static span bytes_of(span *s)
{
    uint64_t len = varint(s);
    span out = {s->at, s->at + len};
    if (len > (uint64_t)(s->end - s->at))
        fail_msg("a field of %llu bytes is longer than what holds it", (ull)len);
    s->at += len;
    return out;
}

static void text_of(span s, char *out, size_t capacity)
{
    size_t len = (size_t)(s.end - s.at);
    assert_true(len < capacity);
    memcpy(out, s.at, len);
    out[len] = '\0';
}

static void read_value(span s, support_scalar *out)
{
    bool tag = false, value = false;
    while (s.at < s.end) {
        uint64_t key = varint(&s);
        if (key == 0x0A) { /* 1: tag, bytes */
            text_of(bytes_of(&s), out->tag, sizeof out->tag);
            tag = true;
        } else if (key == 0x15) { /* 2: simple_value, 32 bits */
            uint32_t bits = (uint32_t)fixed(&s, 4);
            memcpy(&out->value, &bits, sizeof bits);
            value = true;
        } else {
            fail_msg("a value has a field of key %llu", (ull)key);
        }
    }
    assert_true(tag && value);
}

static void read_event(span s, support_event *e)
{
    while (s.at < s.end) {
        uint64_t key = varint(&s), bits;
        if (key == 0x09) { /* 1: wall_time, 64 bits */
            bits = fixed(&s, 8);
            memcpy(&e->wall_time, &bits, sizeof bits);
        } else if (key == 0x10) { /* 2: step, varint */
            e->step = varint(&s);
        } else if (key == 0x1A) { /* 3: file_version, bytes */
            text_of(bytes_of(&s), e->version, sizeof e->version);
        } else if (key == 0x2A) { /* 5: summary, a message of values */
            for (span sum = bytes_of(&s); sum.at < sum.end;) {
                assert_int_equal(varint(&sum), 0x0A);
                assert_true(e->count < sizeof e->scalars / sizeof e->scalars[0]);
                read_value(bytes_of(&sum), &e->scalars[e->count++]);
            }
        } else if (key == 0x3A) { /* 7: session_log, with status START */
            span log = bytes_of(&s);
            e->starts = log.end - log.at == 2 && log.at[0] == 0x08 && log.at[1] == 1;
            assert_true(e->starts);
        } else {
            fail_msg("an event has a field of key %llu", (ull)key);
        }
    }
}

/* Bit by bit, as in RFC 3720, then masked as in TFRecord. */
static uint32_t masked_crc(const uint8_t *at, size_t len)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < len; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

support_event *support_events_read(const char *path, size_t *count, bool *whole)
{
    size_t len;
    uint8_t *bytes = support_read(path, &len);
    span file = {bytes, bytes + len};
    support_event *events = NULL;
    *count = 0;
    *whole = true;
    while (file.at < file.end) {
        span head = {file.at, file.end};
        if (file.end - file.at < 12) {
            *whole = false;
            break;
        }
        uint64_t size = fixed(&head, 8);
        assert_true(fixed(&head, 4) == masked_crc(file.at, 8));
        if (size + 4 > (uint64_t)(head.end - head.at)) {
            *whole = false;
            break;
        }
        span event = {head.at, head.at + size}, tail = {head.at + size, head.end};
        assert_true(fixed(&tail, 4) == masked_crc(event.at, size));
        events = realloc(events, (*count + 1) * sizeof *events);
        assert_non_null(events);
        memset(&events[*count], 0, sizeof *events);
        read_event(event, &events[(*count)++]);
        file.at = tail.at;
    }
    free(bytes);
    return events;
}

support_event *support_events_in(const char *dir, size_t *count)
{
    char *list = support_list(dir), *end = strchr(list, '\n');
    bool whole;
    assert_non_null(end);
    assert_string_equal(end, "\n"); /* one file */
    *end = '\0';
    char *path = support_path("%s/%s", dir, list);
    support_event *events = support_events_read(path, count, &whole);
    assert_true(whole);
    free(path);
    free(list);
    return events;
}

float support_events_value(const support_event *events, size_t count, const char *tag, uint64_t step)
{
    float value = 0;
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < events[i].count; k++)
            if (events[i].step == step && strcmp(events[i].scalars[k].tag, tag) == 0) {
                value = events[i].scalars[k].value;
                found++;
            }
    if (found != 1)
        fail_msg("%s at step %llu is there %zu times", tag, (ull)step, found);
    return value;
}
