/* datagram.c - the socket, this host's addresses, sending and receiving.
 * Invariant: no call waits. */
#include "base/ranks/datagram.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "base/scope.h"

enum { STRANGERS = 1000 }; /* that are passed over in one call: a flood must not keep the caller */

static socklen_t length(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

void mr_datagram_send(const mr_datagrams *d, const struct sockaddr_storage *to, const mr_datagram *message)
{
    if (to->ss_family == d->family)
        sendto(d->socket, message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to,
               length(to));
}

bool mr_datagram_receive(const mr_datagrams *d, mr_datagram *message, struct sockaddr_storage *from)
{
    for (int i = 0; i < STRANGERS; i++) {
        socklen_t len = sizeof *from;
        ssize_t n = recvfrom(d->socket, message, sizeof *message, MSG_DONTWAIT, (struct sockaddr *)from, &len);
        if (n < 0 && errno != EINTR && errno != ECONNREFUSED)
            return false;
        if (n == sizeof *message && memcmp(message->key, d->host.key, MR_DATAGRAM_KEY) == 0)
            return true;
    }
    return false;
}

static int open_socket(int *family)
{
    int off = 0, s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_storage any = {.ss_family = AF_INET6};
    *family = AF_INET6;
    if (s >= 0 && setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
        bind(s, (struct sockaddr *)&any, length(&any)) == 0)
        return s;
    mr_scope_close(&s);
    s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    any.ss_family = AF_INET;
    *family = AF_INET;
    if (s >= 0 && bind(s, (struct sockaddr *)&any, length(&any)) == 0)
        return s;
    mr_scope_close(&s);
    return -1;
}

mr_status mr_datagrams_open(mr_datagrams *d, mr_error *err)
{
    *d = (mr_datagrams){.socket = -1};
    d->socket = open_socket(&d->family);
    return d->socket < 0 ? mr_fail_errno(err, errno, "watching the ranks: no socket") : MR_OK;
}

void mr_datagrams_close(mr_datagrams *d)
{
    mr_scope_close(&d->socket);
    d->socket = -1;
}

/* On an IPv6 socket, IPv4's are ::ffff:a.b.c.d. */
static void add_address(mr_datagrams *d, const struct sockaddr *a, in_port_t port)
{
    struct sockaddr_storage *to = &d->host.at[d->host.count];
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
    struct in_addr four =
        a->sa_family == AF_INET ? ((const struct sockaddr_in *)(const void *)a)->sin_addr : (struct in_addr){0};
    if (d->host.count == MR_DATAGRAM_ADDRESSES || (a->sa_family != AF_INET && a->sa_family != d->family))
        return;
    if (d->family == AF_INET) {
        *(struct sockaddr_in *)to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port, .sin_addr = four};
    } else {
        *six = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
        if (a->sa_family == AF_INET6)
            six->sin6_addr = ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        else
            six->sin6_addr.s6_addr[10] = six->sin6_addr.s6_addr[11] = 0xFF;
        if (a->sa_family == AF_INET)
            memcpy(six->sin6_addr.s6_addr + 12, &four, sizeof four);
        if (IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
            return; /* means nothing on another host */
    }
    d->host.count++;
}

mr_status mr_datagrams_invite(mr_datagrams *d, mr_error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } self = {.six = {.sin6_family = AF_UNSPEC}};
    socklen_t len = sizeof self;
    struct ifaddrs *all = NULL;
    if (getsockname(d->socket, &self.any, &len) != 0 || getifaddrs(&all) != 0)
        return mr_fail_errno(err, errno, "watching the ranks: no addresses");
    in_port_t port = d->family == AF_INET6 ? self.six.sin6_port : self.four.sin_port;
    for (int loops = 0; loops < 2; loops++) /* the loopback last: it is useful only on this host */
        for (const struct ifaddrs *i = all; i; i = i->ifa_next)
            if (i->ifa_addr && (i->ifa_flags & IFF_UP) && !(i->ifa_flags & IFF_LOOPBACK) == !loops)
                if (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6)
                    add_address(d, i->ifa_addr, port);
    freeifaddrs(all);
    if (getrandom(d->host.key, MR_DATAGRAM_KEY, 0) != MR_DATAGRAM_KEY)
        return mr_fail_errno(err, errno, "watching the ranks: no random numbers");
    return MR_OK;
}
