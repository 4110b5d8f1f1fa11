/* datagram.h - small messages between the ranks of one run, over UDP.
 * Invariant: what does not carry the run's key is never seen by the caller.
 *
 * A message, in this machine's byte order, as all ranks of a run have the same:
 *      | key, 16 bytes | kind | rank | state | stalled | work | turns | */
#ifndef MR_DATAGRAM_H
#define MR_DATAGRAM_H

#include <sys/socket.h>

#include "base/error.h"

enum { MR_DATAGRAM_KEY = 16, MR_DATAGRAM_ADDRESSES = 16 };

typedef struct mr_datagram {
    uint8_t key[MR_DATAGRAM_KEY];
    uint32_t kind, rank, state, stalled;
    uint64_t work, turns;
} mr_datagram;

/* What the other ranks need to reach rank 0. */
typedef struct mr_invitation {
    uint8_t key[MR_DATAGRAM_KEY];
    uint32_t count;
    struct sockaddr_storage at[MR_DATAGRAM_ADDRESSES];
} mr_invitation;

typedef struct mr_datagrams {
    int socket, family; /* -1: closed */
    mr_invitation host; /* rank 0's */
} mr_datagrams;

/* A port that the system chooses; both kinds of addresses, or IPv4 where there is no IPv6.  MR_SYSTEM: no socket. */
mr_status mr_datagrams_open(mr_datagrams *d, mr_error *err);
void mr_datagrams_close(mr_datagrams *d);
/* On rank 0: a new key, and this host's addresses, the loopback last.  MR_SYSTEM: the system has neither. */
mr_status mr_datagrams_invite(mr_datagrams *d, mr_error *err);

/* Never waits; a message that cannot be sent is as good as one that was lost. */
void mr_datagram_send(const mr_datagrams *d, const struct sockaddr_storage *to, const mr_datagram *message);
/* Never waits.  False: nothing has arrived. */
bool mr_datagram_receive(const mr_datagrams *d, mr_datagram *message, struct sockaddr_storage *from);

#endif
