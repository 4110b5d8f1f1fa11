/* name_pattern.h - images whose names are a class and a number, so that --class-pattern would give them labels.
 * Invariant: only a guess for messages; nothing is labelled by it. */
#ifndef MR_NAME_PATTERN_H
#define MR_NAME_PATTERN_H

#include "ingest/source/source.h"

/* Appends "names such as Abys_1.jpg ...: --class-pattern '{class}_#' ..." if nearly all images are named so, with
 * several classes of several images; otherwise nothing. */
void mr_name_pattern_hint(const mr_source *s, mr_buf *out);

#endif
