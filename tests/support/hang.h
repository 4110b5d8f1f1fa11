/* hang.h - how long a test waits before it calls something hung.
 * Invariant: no verdict depends on time but this one, and no work of a test comes near it: not on a processor five
 * times slower that a dozen others share. */
#ifndef MR_HANG_H
#define MR_HANG_H

enum { HANG_SECONDS = 900 }; /* of a command or a wait; ctest's TIMEOUT of a whole program is in CMakeLists.txt */

#endif
