/* ranks_card.h - what millrace_mpi.so offers: one C entry with an ABI number.
 * Invariant: ranks.c asks for MR_RANKS_ABI and takes nothing else. */
#ifndef MR_RANKS_CARD_H
#define MR_RANKS_CARD_H

#include <stddef.h>
#include <stdint.h>

#define MR_RANKS_ABI 1

typedef struct mr_ranks_card {      /* calls return 0 or a failure; all but start and stop are collective */
    int abi;
    int (*start)(unsigned *rank, unsigned *world);
    int (*stop)(void);
    int (*barrier)(void);
    int (*share)(void *bytes, uint64_t len);                                        /* from rank 0 */
    int (*gather)(const void *mine, uint64_t len, void *all, const uint64_t *lens); /* to all, in rank order */
    void (*abort)(int code);
} mr_ranks_card;

const mr_ranks_card *millrace_ranks_card(void);

#endif
