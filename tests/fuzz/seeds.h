/* seeds.h - what the makers of first inputs share. */
#ifndef MR_SEEDS_H
#define MR_SEEDS_H

#include <stddef.h>

void seed(const char *target, const char *name, const void *bytes, size_t len); /* OUT/TARGET/NAME */
void seed_file(const char *target, const char *name, const char *path);         /* a copy of that file */

void seed_pictures(void);
void seed_train(const char *tmp);
void seed_tokenizer(void);

void seed_objects(void);
void seed_imagenet(const char *tmp);

#endif
