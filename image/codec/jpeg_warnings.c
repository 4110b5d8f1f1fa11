/* jpeg_warnings.c - the table of libjpeg's warnings; see jpeg_warnings.h.
 * Invariant: each verdict has its reason: what the decoder does after the warning.
 * Source: libjpeg-turbo 2.1.5: jerror.h for the codes, jd*.c for where they are raised. */
#include "image/codec/jpeg_warnings.h"

#include <stddef.h>
#include <stdio.h>

#include <jpeglib.h>
/* After jpeglib.h, which it needs. */
#include <jerror.h>

enum { DAMAGE = -1 };

static const struct {
    int code, verdict; /* DAMAGE, or an mr_oddity */
} warnings[] = {
    /* The coded bytes of a scan end at a marker before its last block: the rest is decoded from zero bits. */
    {JWRN_HIT_MARKER, DAMAGE},
    /* The file ends before its end marker: libjpeg supplies one, and what is missing stays gray. */
    {JWRN_JPEG_EOF, DAMAGE},
    /* Bits that are not a Huffman code: decoded as zero, and what follows is out of sync. */
    {JWRN_HUFF_BAD_CODE, DAMAGE},
#ifdef D_ARITH_CODING_SUPPORTED
    /* A value that arithmetic coding cannot represent: the blocks up to the next restart are not decoded. */
    {JWRN_ARITH_BAD_CODE, DAMAGE},
#endif
    /* A restart marker is missing or out of order: blocks are skipped, or decoded in the wrong place. */
    {JWRN_MUST_RESYNC, DAMAGE},
    /* A scan refines coefficients that no earlier scan began, repeats bits, or precedes the DC scan: a scan is missing
     * or duplicated, and the standard does not define the result (T.81, G.1.1.1). */
    {JWRN_BOGUS_PROGRESSION, DAMAGE},
    /* The caller asked for more rows than there are.  No file can cause it: a bug in millrace. */
    {JWRN_TOO_MUCH_DATA, DAMAGE},
    /* Decoding uses only the presence of this segment: three components are YCbCr. */
    {JWRN_JFIF_MAJOR, MR_ODDITY_JFIF_REVISION},
    /* A sequential scan has all coefficients at full precision whatever these bytes are; decoders ignore them. */
    {JWRN_NOT_SEQUENTIAL, MR_ODDITY_SCAN_PARAMETERS},
    /* Bytes between segments, or after the last block of a scan or restart interval, are skipped: all blocks have been
     * decoded.  mr_jpeg_trap_start() rejects the file if those bytes may have been a missing part of it. */
    {JWRN_EXTRANEOUS_DATA, MR_ODDITY_STRAY_BYTES},
    /* Three components are then read as YCbCr, four as YCCK, as in other decoders. */
    {JWRN_ADOBE_XFORM, MR_ODDITY_ADOBE_TRANSFORM},
    /* Raised only when a colour profile is requested, which millrace never does. */
    {JWRN_BOGUS_ICC, MR_ODDITY_COLOUR_PROFILE},
};

bool mr_jpeg_warning_harmless(int code, mr_oddity *oddity)
{
    for (size_t i = 0; i < MR_COUNT(warnings); i++) {
        if (warnings[i].code != code || warnings[i].verdict == DAMAGE)
            continue;
        *oddity = (mr_oddity)warnings[i].verdict;
        return true;
    }
    return false;
}
