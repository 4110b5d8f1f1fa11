/* augment_list.h - --augment: changes of pixels as a list.
 * Invariant: the words and their meaning are those of Python's millrace.Augment. */
#ifndef MR_AUGMENT_LIST_H
#define MR_AUGMENT_LIST_H

#include "millrace.h"

/* "brightness=0.4,hue=0.1,grey=0.2" to *out; "" is none.  A factor of X is from 1 - X, at least 0, to 1 + X.  MR_MISUSE
 * names the word or the value. */
mr_status mr_augment_list(const char *list, mr_augment *out, mr_error *err);

#endif
