/* limits.c - how many pixels, bytes and scans an image may have.
 * Invariant: the limits are checked against the header, before memory is allocated. */
#include "image/codec/image.h"

mr_image_limits mr_image_limits_fill(const mr_image_limits *limits)
{
    mr_image_limits l = limits ? *limits : (mr_image_limits){0};
    if (!l.max_pixels)
        l.max_pixels = MR_DEFAULT_MAX_PIXELS;
    if (!l.max_scans)
        l.max_scans = 256;
    if (!l.max_segments)
        l.max_segments = 100000;
    return l;
}

uint32_t mr_image_scans_allowed(const mr_image_limits *limits, uint64_t pixels)
{
    enum { FULL_PASSES = 16 }; /* encoders write 10 to 13 */
    uint64_t work, allowed;
    if (pixels == 0 || __builtin_mul_overflow(limits->max_pixels, (uint64_t)FULL_PASSES, &work))
        return limits->max_scans;
    allowed = work / pixels;
    return allowed < limits->max_scans ? (uint32_t)allowed : limits->max_scans;
}

mr_status mr_image_check_size(const char *name, uint32_t width, uint32_t height, const mr_image_limits *limits,
                              mr_error *err)
{
    if (!width || !height)
        return mr_fail(err, MR_BAD_SAMPLE, "%s header states %u x %u pixels: the image is empty", name, width, height);
    if ((uint64_t)width * height > limits->max_pixels)
        return mr_fail(err, MR_BAD_SAMPLE, "%s of %u x %u pixels: more than the limit of %llu pixels (--max-pixels)",
                       name, width, height, (unsigned long long)limits->max_pixels);
    return MR_OK;
}
