/* test_jpeg_warnings.c - JPEGs with one thing wrong: damage is refused, and what harms no pixel is not.
 * Invariant tested: one verdict for the same bytes - mr_image_decode(), and a loader's whole picture by millrace's own
 * decoder, by its plain C and by libjpeg-turbo - and one for the same region of them; equal pixels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "image/codec/jpeg_warnings.h"
#include "image/jpeg/region.h"
#include "image/region/parts.h"
#include "tests/support/images/jpeg.h"
#include "tests/support/images/jpeg_odd.h"

typedef struct ways {
    mr_pixels_scratch *own, *plain, *libjpeg;
} ways;

static ways ways_open(void)
{
    ways w = {mr_pixels_scratch_new(), mr_pixels_scratch_new(), mr_pixels_scratch_new()};
    assert_true(w.own && w.plain && w.libjpeg);
    mr_jpeg_decoder_plain(w.plain->jpeg);
    mr_pixels_scratch_libraries(w.libjpeg);
    return w;
}

static void ways_close(ways *w)
{
    mr_pixels_scratch_free(w->own);
    mr_pixels_scratch_free(w->plain);
    mr_pixels_scratch_free(w->libjpeg);
}

/* NULL: refused. */
static const uint8_t *show(mr_pixels_scratch *s, picture p, const mr_image_facts *f, mr_region r, mr_error *err)
{
    const uint8_t *rgb = NULL;
    mr_status status = mr_pixels_decode(s, p.bytes, p.len, f, &r, &rgb, err);
    assert_true(status == MR_OK || status == MR_BAD_SAMPLE);
    return status == MR_OK ? rgb : NULL;
}

/* The region by all ways, which must agree; NULL: refused.  Lent by w->libjpeg. */
static const uint8_t *agreed(const ways *w, picture p, const mr_image_facts *f, mr_region r, const char *what)
{
    mr_error a, b, c;
    const uint8_t *own = show(w->own, p, f, r, &a), *plain = show(w->plain, p, f, r, &b);
    const uint8_t *libjpeg = show(w->libjpeg, p, f, r, &c);
    if (!own != !libjpeg || !plain != !libjpeg)
        fail_msg("%s: region %u x %u at %u, %u: own %s, plain %s, libjpeg-turbo %s", what, r.width, r.height, r.left,
                 r.top, own ? "good" : a.text, plain ? "good" : b.text, libjpeg ? "good" : c.text);
    if (!libjpeg) {
        assert_string_equal(a.text, c.text);
        return NULL;
    }
    if (memcmp(own, libjpeg, (size_t)r.width * r.height * 3) || memcmp(plain, libjpeg, (size_t)r.width * r.height * 3))
        fail_msg("%s: region %u x %u at %u, %u: other pixels", what, r.width, r.height, r.left, r.top);
    return libjpeg;
}

/* All of it, and drawn regions of it; heap, NULL: refused.  A region of a picture that is refused may be good: less of
 * the file is read for it. */
static uint8_t *agreed_pixels(const ways *w, mr_random *rnd, picture p, const mr_image_facts *f, int times,
                              const char *what)
{
    const uint8_t *rgb = agreed(w, p, f, (mr_region){0, 0, f->width, f->height}, what);
    size_t stride = (size_t)f->width * 3;
    uint8_t *whole = rgb ? memcpy(pixels_take(stride * f->height), rgb, stride * f->height) : NULL;
    for (int i = 0; i < times; i++) {
        mr_region r = pixels_region(rnd, f->width, f->height);
        const uint8_t *part = agreed(w, p, f, r, what);
        if (whole && !part)
            fail_msg("%s: the whole decodes, but not a part of it", what);
        for (uint32_t y = 0; whole && y < r.height; y++)
            if (memcmp(part + (size_t)r.width * 3 * y, whole + stride * (r.top + y) + (size_t)r.left * 3, r.width * 3u))
                fail_msg("%s: a part has other pixels than the whole", what);
    }
    return whole;
}

static void check_oddities(const odd_case *c, uint32_t oddities, const char *what)
{
    uint32_t told = 1u << c->oddity;
    bool good = c->verdict == ODD_TOLD ? oddities == told : c->verdict == ODD_QUIET ? !(oddities & ~told) : !oddities;
    if (!good)
        fail_msg("%s: oddities %#x", what, oddities);
}

static void check_case(const ways *w, mr_random *rnd, const odd_case *c, picture good, picture p, const char *what)
{
    mr_image_facts f = pixels_facts(good), found;
    uint32_t oddities;
    mr_error err = {0};
    bool examined = mr_image_examine(p.bytes, p.len, NULL, &found, &err) == MR_OK;
    if (examined != (c->verdict != ODD_REFUSED))
        fail_msg("%s: examined as %s", what, examined ? "good" : err.text);
    if (!examined)
        return;
    bool decoded = mr_image_decode_oddities(p.bytes, p.len, NULL, &oddities, &err) == MR_OK;
    if (decoded != (c->verdict != ODD_DAMAGED))
        fail_msg("%s: %s", what, decoded ? "decoded" : err.text);
    if (decoded)
        check_oddities(c, oddities, what);
    uint8_t *before = agreed_pixels(w, rnd, good, &f, 0, what), *after = agreed_pixels(w, rnd, p, &f, 12, what);
    if (!after != !decoded)
        fail_msg("%s: decoding it all %s, loading all of it %s", what, decoded ? "succeeds" : "fails",
                 after ? "succeeds" : "fails");
    if (after && !c->other_pixels && memcmp(before, after, (size_t)f.width * f.height * 3))
        fail_msg("%s: other pixels than before", what);
    free(before);
    free(after);
}

static void one_thing_wrong(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    (void)state;
    for (size_t n = 0; n < odd_case_count; n++) {
        unsigned done = 0;
        for (unsigned i = 0; i < ODD_KINDS; i++) {
            picture good = odd_good(&rnd, i), p;
            if (odd_make(&odd_cases[n], 1u << i, good, &p)) {
                char *what = support_path("%s, kind %u", odd_cases[n].name, i);
                check_case(&w, &rnd, &odd_cases[n], good, p, what);
                free(what);
                picture_free(&p);
                done++;
            }
            picture_free(&good);
        }
        if (!done)
            fail_msg("%s: done to nothing", odd_cases[n].name);
    }
    ways_close(&w);
}

/* Two harmless things are harmless and both told; beside damage they excuse nothing. */
static void two_things_wrong(void **state)
{
    mr_random rnd = support_random();
    (void)state;
    for (int times = 0; times < 800; times++) {
        const odd_case *a = &odd_cases[mr_random_below(&rnd, odd_case_count)];
        const odd_case *b = &odd_cases[mr_random_below(&rnd, odd_case_count)];
        unsigned kind = (unsigned)mr_random_below(&rnd, ODD_KINDS);
        picture good = odd_good(&rnd, kind), one, both;
        if (a->verdict == ODD_TOLD && b->verdict >= ODD_TOLD && b->verdict <= ODD_DAMAGED &&
            a->oddity != MR_ODDITY_ADOBE_TRANSFORM && b->oddity != MR_ODDITY_ADOBE_TRANSFORM &&
            a->oddity != MR_ODDITY_STRAY_BYTES && odd_make(a, 1u << kind, good, &one)) {
            if (odd_make(b, 1u << kind, one, &both)) {
                uint32_t oddities, want = 1u << a->oddity | 1u << b->oddity;
                bool decoded = mr_image_decode_oddities(both.bytes, both.len, NULL, &oddities, NULL) == MR_OK;
                if (decoded != (b->verdict == ODD_TOLD) || (decoded && oddities != want))
                    fail_msg("%s, then %s, kind %u: %s, oddities %#x", a->name, b->name, kind,
                             decoded ? "decoded" : "refused", oddities);
                picture_free(&both);
            }
            picture_free(&one);
        }
        picture_free(&good);
    }
}

/* Bytes of any file changed by chance: still one verdict. */
static void random_edits(void **state)
{
    mr_random rnd = support_random();
    ways w = ways_open();
    unsigned good = 0, told = 0, damaged = 0;
    (void)state;
    for (unsigned i = 0; i < 800; i++) {
        picture p = odd_good(&rnd, i % ODD_KINDS), q;
        mr_image_facts f;
        uint32_t oddities = 0;
        mr_error err;
        jpeg_damage(&rnd, &p);
        q = picture_splice(p, mr_random_below(&rnd, p.len), p.bytes, mr_random_below(&rnd, 3) ? 0 : 1);
        picture_free(&p);
        char *what = support_path("edit %u", i);
        if (mr_image_examine(q.bytes, q.len, NULL, &f, NULL) == MR_OK) {
            bool decoded = mr_image_decode_oddities(q.bytes, q.len, NULL, &oddities, &err) == MR_OK;
            uint8_t *pixels = agreed_pixels(&w, &rnd, q, &f, 2, what);
            if (!pixels != !decoded)
                fail_msg("%s: decoding it all: %s; loading all of it %s", what, decoded ? "good" : err.text,
                         pixels ? "succeeds" : "fails");
            good += decoded && !oddities;
            told += decoded && oddities;
            damaged += !decoded;
            free(pixels);
        }
        free(what);
        picture_free(&q);
    }
    print_message("%u good, %u odd, %u damaged\n", good, told, damaged);
    assert_true(good > 30 && told > 30 && damaged > 15);
    ways_close(&w);
}

/* So are codes that a later libjpeg may have, and its errors. */
static void what_is_not_known_is_damage(void **state)
{
    static const int damage[] = {JWRN_HIT_MARKER,  JWRN_JPEG_EOF,          JWRN_HUFF_BAD_CODE,
                                 JWRN_MUST_RESYNC, JWRN_BOGUS_PROGRESSION, JWRN_TOO_MUCH_DATA};
    unsigned harmless = 0;
    mr_oddity none;
    (void)state;
    for (size_t i = 0; i < MR_COUNT(damage); i++)
        assert_false(mr_jpeg_warning_harmless(damage[i], &none));
    for (int code = -10; code < 2000; code++) {
        mr_oddity oddity = MR_ODDITY_COUNT;
        if (!mr_jpeg_warning_harmless(code, &oddity))
            continue;
        assert_true(oddity < MR_ODDITY_COUNT && code >= JWRN_ADOBE_XFORM && code < JMSG_LASTMSGCODE);
        harmless |= 1u << oddity;
    }
    assert_int_equal(harmless, (1u << MR_ODDITY_COUNT) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thing_wrong),
        cmocka_unit_test(two_things_wrong),
        cmocka_unit_test(random_edits),
        cmocka_unit_test(what_is_not_known_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
