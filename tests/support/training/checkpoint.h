/* checkpoint.h - small checkpoints, made from a number and distinguished by it. */
#ifndef MR_SUPPORT_CHECKPOINT_H
#define MR_SUPPORT_CHECKPOINT_H

#include "train/checkpoint/checkpoint.h"
#include "tests/support/support.h"

/* A Vision Transformer of a few thousand parameters; all values follow from `update`.  mr_checkpoint_release(). */
mr_checkpoint make_checkpoint(uint64_t update, mr_optimizer_kind optimizer);
/* The same for a small BridgeTower, whose weights are kept as on the hub, with a tokenizer. */
mr_checkpoint make_pair_checkpoint(uint64_t update, mr_optimizer_kind optimizer);
/* Equal to the bit; `with_state`: the optimizer's buffers too. */
void assert_same_checkpoint(const mr_checkpoint *a, const mr_checkpoint *b, bool with_state);

void write_checkpoint(const mr_checkpoint *c, const char *output, unsigned keep); /* expects success */
mr_checkpoint read_checkpoint(const char *path);                                  /* expects success */
/* Makes step UPDATE of sgd and writes it. */
void put_step(const char *output, uint64_t update, unsigned keep, double best_accuracy, uint64_t best_update);

/* Names in a folder, hidden ones too, sorted, each followed by a space; heap. */
char *names_in(const char *dir);

#endif
