/* jpeg_warnings.h - what each warning of libjpeg means for the pixels; the only place where that is decided.
 * Invariant: a warning that is not in the table is damage. */
#ifndef MR_JPEG_WARNINGS_H
#define MR_JPEG_WARNINGS_H

#include "image/codec/image.h"

/* `code`: libjpeg's msg_code of a message of level -1.  True: every decoder gives the same pixels, and *oddity is what
 * is unusual about the file.  False: pixels were invented, or may have been. */
bool mr_jpeg_warning_harmless(int code, mr_oddity *oddity);

#endif
