/* jpeg_warnings.h - what each warning of libjpeg means for the pixels; the one place where that is decided.
 * Invariant: a warning that the table does not name is damage. */
#ifndef MR_JPEG_WARNINGS_H
#define MR_JPEG_WARNINGS_H

#include "codec/image.h"

/* `code`: libjpeg's msg_code of a message of level -1.  True: the pixels are what every decoder makes of the file, and
 * *oddity says what is unusual about it.  False: pixels were invented, or may have been. */
bool mr_jpeg_warning_harmless(int code, mr_oddity *oddity);

#endif
