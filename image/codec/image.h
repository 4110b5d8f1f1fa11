/* image.h - an image's codec, the facts in its header, and whether all of it decodes.
 * Invariant: no input, however hostile, makes these functions read out of bounds, loop, or exceed the memory limits;
 * what they reject is MR_BAD_SAMPLE with a reason.
 *
 * This module: image.c finds the codec and checks the limits; codec_jpeg, codec_png and codec_webp are an mr_codec
 * each. JPEG's parts: jpeg_trap and jpeg_warnings (failures of libjpeg), jpeg_source (its input), shrink_jpeg.  exif is
 * shared; png_open and webp_open serve this module and region/. */
#ifndef MR_IMAGE_H
#define MR_IMAGE_H

#include <stdbool.h>

#include "image/similar/alike.h"
#include "base/error.h"

#define MR_RECORD_MAX ((uint64_t)UINT32_MAX) /* bytes of an encoded image: an index row has 32 bits for its length */

/* Stored on disk: a number is never changed or reused. */
enum mr_codec_id { MR_CODEC_NONE = 0, MR_CODEC_JPEG = 1, MR_CODEC_PNG = 2, MR_CODEC_WEBP = 3 };

/* Flags of an image and of a sample, as in an index row (FORMAT.md). */
enum mr_flag {
    MR_FLAG_SAME_BYTES = 1 << 0,  /* image stored under an earlier sample of the shard (`holder`) */
    MR_FLAG_MULTI_LABEL = 1 << 1, /* meta has "labels", a list, possibly empty; label is -1 */
    MR_FLAG_UNANNOTATED = 1 << 2, /* the source has no annotation for it */
    MR_FLAG_PROGRESSIVE = 1 << 3, /* progressive JPEG or interlaced PNG */
    MR_FLAG_ANIMATED = 1 << 4,    /* more than one frame: the first is used */
    MR_FLAG_ALPHA = 1 << 5,       /* an alpha channel or transparent colour */
    MR_FLAG_PALETTE = 1 << 6,     /* palette PNG */
    MR_FLAG_ARITHMETIC = 1 << 7,  /* arithmetic-coded JPEG */
};

typedef struct mr_image_facts {
    uint32_t width, height; /* pixels as stored */
    uint8_t codec;          /* enum mr_codec_id */
    uint8_t orientation;    /* EXIF 1 to 8; 1 if none or unreadable */
    uint8_t components;     /* channels stored: 1 gray, 2 gray+alpha, 3, 4 (CMYK, RGBA); palette: 3 */
    uint8_t bits;           /* per channel */
    uint32_t flags;         /* MR_FLAG_PROGRESSIVE, _ANIMATED, _ALPHA, _PALETTE, _ARITHMETIC */
} mr_image_facts;

#define MR_DEFAULT_MAX_PIXELS 178956970 /* Pillow's limit */

typedef struct mr_image_limits { /* 0: the default */
    uint64_t max_pixels;         /* MR_DEFAULT_MAX_PIXELS */
    uint32_t max_scans;          /* scans of a JPEG, 256; and at most 16 for an image of max_pixels */
    uint32_t max_segments;       /* JPEG markers before the first scan / PNG and WebP chunks, 100,000 */
} mr_image_limits;

/* Harmless warnings, after which every decoder gives the same pixels: reported, never a failure. */
#define MR_ODDITIES(X)                                                                                                 \
    X(JFIF_REVISION, "unknown JFIF revision")                                                                          \
    X(SCAN_PARAMETERS, "invalid scan parameters in a sequential JPEG")                                                 \
    X(STRAY_BYTES, "extraneous bytes before a JPEG marker")                                                            \
    X(ADOBE_TRANSFORM, "unknown Adobe colour transform")                                                               \
    X(COLOUR_PROFILE, "invalid colour profile")

typedef enum mr_oddity {
#define X(name, words) MR_ODDITY_##name,
    MR_ODDITIES(X)
#undef X
        MR_ODDITY_COUNT
} mr_oddity;

extern const char *const mr_oddity_words[MR_ODDITY_COUNT];

typedef struct mr_codec { /* a new codec is one file and one word in MR_CODECS */
    const char *name;     /* "JPEG" */
    const char *suffix;   /* "jpg", for exported names without one */
    enum mr_codec_id id;
    bool (*claims)(const uint8_t *bytes, size_t len); /* by the first bytes */
    /* Reads header, structure up to the end marker and EXIF, but no pixel. */
    mr_status (*examine)(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                         mr_error *err);
    /* Decodes every pixel and discards them.  A warning after which the decoder may invent pixels is a failure; the
     * others are in *oddities, a bit 1 << mr_oddity each.  Memory: at most 8 bytes per pixel, of a JPEG's whole MCUs,
     * for at most as many pixels as the limit; row by row if the library can.  `look`, unless NULL: the grey cells as
     * well, in the same pass, perhaps from fewer pixels than `shrink` takes: enough for a hash. */
    mr_status (*decode)(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                        mr_alike *look, mr_error *err);
    /* Decodes the image into the grey cells by which it is compared; fails as `decode` does, with no more memory. */
    mr_status (*shrink)(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out, mr_error *err);
} mr_codec;

#define MR_CODECS(X)           X(jpeg) X(png) X(webp)
#define MR_CODEC_DECLARE(word) extern const mr_codec mr_codec_##word;
MR_CODECS(MR_CODEC_DECLARE)

/* The codec of the bytes, by their first bytes; NULL: not supported.  *what, unless NULL: the codec's name, or what the
 * bytes look like ("GIF", "TIFF", "HTML", "an empty file"); NULL: like nothing that is known. */
const mr_codec *mr_codec_find(const uint8_t *bytes, size_t len, const char **what);
const mr_codec *mr_codec_by_id(unsigned id);

/* Finds the codec, then examines.  MR_BAD_SAMPLE: "GIF: millrace stores JPEG, PNG and WebP", or the codec's reason. */
mr_status mr_image_examine(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_image_facts *facts,
                           mr_error *err);
mr_status mr_image_decode(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_error *err);
/* The same; *oddities: the harmless warnings, a bit 1 << mr_oddity each. */
mr_status mr_image_decode_oddities(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                                   mr_error *err);
/* The same; fills `look` as well, unless it is NULL: grey cells for mr_near_hash(). */
mr_status mr_image_decode_look(const uint8_t *bytes, size_t len, const mr_image_limits *limits, uint32_t *oddities,
                               mr_alike *look, mr_error *err);

mr_status mr_image_shrink(const uint8_t *bytes, size_t len, const mr_image_limits *limits, mr_alike *out,
                          mr_error *err);

/* The limits with defaults filled in. */
mr_image_limits mr_image_limits_fill(const mr_image_limits *limits);
/* MR_BAD_SAMPLE if a side is 0 or the image has more pixels than the limit; `name` is the codec's. */
mr_status mr_image_check_size(const char *name, uint32_t width, uint32_t height, const mr_image_limits *limits,
                              mr_error *err);
/* How many scans a JPEG of `pixels` pixels may have: each takes few bytes, but a pass over all pixels.  `limits` have
 * their defaults filled in. */
uint32_t mr_image_scans_allowed(const mr_image_limits *limits, uint64_t pixels);

/* EXIF orientation from a TIFF block ("II*\0..." / "MM\0*..."), bounds-checked: IFD0 only, at most 1,000 entries.
 * A leading "Exif\0\0" is skipped.  1 if there is none or it is not 1 to 8.  Source: EXIF 2.32, tag 0x0112. */
uint8_t mr_exif_orientation(const uint8_t *tiff, size_t len);

#endif
