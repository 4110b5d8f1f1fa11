/* test_watch.c - beats and answers over real sockets, two ranks in one process.
 * Invariant tested: datagrams that are not of the run change nothing, and a rank that stops beating raises the alarm
 * on the other one.
 * Covers base/ranks/datagram.c. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/ranks/datagram.h"
#include "base/ranks/watch.h"
#include "tests/support/support.h"

typedef struct heard {
    atomic_int alarms, kind, rank, speaks;
} heard;

static void on_alarm(void *ctx, const mr_stall *stall, bool speaks)
{
    heard *h = ctx;
    if (stall->early)
        return;
    atomic_store(&h->kind, (int)stall->kind);
    atomic_store(&h->rank, (int)stall->rank);
    atomic_store(&h->speaks, speaks);
    atomic_fetch_add(&h->alarms, 1);
}

static mr_watch *open_rank(unsigned rank, uint64_t seconds, heard *h)
{
    const mr_watch_options o = {
        .rank = rank, .world = 2, .seconds = seconds, .speaks_of_first = true, .alarm = on_alarm, .ctx = h};
    mr_watch *w = NULL;
    assert_int_equal(mr_watch_open(&o, &w, NULL), MR_OK);
    return w;
}

static void wait_for_alarm(heard *h)
{
    support_watch("waiting for the alarm");
    while (!atomic_load(&h->alarms))
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    support_watch(NULL);
}

static void test_meeting_and_parting(void **state)
{
    (void)state;
    heard h[2] = {0};
    mr_watch *first = open_rank(0, 3600, &h[0]), *second = open_rank(1, 3600, &h[1]);
    mr_buf invitation = {0};
    assert_int_equal(mr_watch_meet(first, &invitation, NULL), MR_OK);
    assert_int_equal(mr_watch_find(second, &invitation, NULL), MR_OK);
    mr_watch_arm(first);
    mr_watch_arm(second);
    mr_watch_waits(first, true);
    mr_watch_waits(first, false);
    mr_watch_end(second); /* at once, not after a tick */
    mr_watch_end(first);
    assert_int_equal(h[0].alarms + h[1].alarms, 0);
    mr_watch_end(NULL);
    mr_watch_waits(NULL, true);
    mr_buf_free(&invitation);
}

/* Rank 1 is heard while it is met, and never again; strangers send what they like. */
static void test_a_rank_that_falls_silent(void **state)
{
    (void)state;
    heard h[2] = {0};
    mr_error err;
    mr_watch *first = open_rank(0, 1, &h[0]), *second = open_rank(1, 1, &h[1]);
    mr_buf invitation = {0}, shorter = {0};
    assert_int_equal(mr_watch_meet(first, &invitation, NULL), MR_OK);
    mr_buf_add(&shorter, invitation.data, invitation.len - 1);
    assert_int_equal(mr_watch_find(second, &shorter, &err), MR_SYSTEM);
    mr_watch_waits(first, true);
    mr_watch_arm(first);
    wait_for_alarm(&h[0]);
    assert_int_equal(h[0].kind, MR_STALL_SILENT);
    assert_int_equal(h[0].rank, 1);
    assert_true(h[0].speaks);
    mr_watch_end(first);
    mr_watch_end(second);
    mr_buf_free(&invitation);
    mr_buf_free(&shorter);
}

/* Rank 0 has ended without a word. */
static void test_rank_0_that_falls_silent(void **state)
{
    (void)state;
    heard h[2] = {0};
    mr_watch *first = open_rank(0, 1, &h[0]), *second = open_rank(1, 1, &h[1]);
    mr_buf invitation = {0};
    assert_int_equal(mr_watch_meet(first, &invitation, NULL), MR_OK);
    assert_int_equal(mr_watch_find(second, &invitation, NULL), MR_OK);
    mr_watch_end(first);
    mr_watch_arm(second);
    wait_for_alarm(&h[1]);
    assert_int_equal(h[1].kind, MR_STALL_SILENT);
    assert_int_equal(h[1].rank, 0);
    assert_true(h[1].speaks);
    mr_watch_end(second);
    mr_buf_free(&invitation);
}

/* Every socket of this machine that takes datagrams at these ports may be somebody else's: only ours are written to. */
static void test_strangers_are_ignored(void **state)
{
    (void)state;
    heard h[2] = {0};
    uint8_t noise[200];
    mr_random chance = support_random();
    mr_watch *first = open_rank(0, 3600, &h[0]), *second = open_rank(1, 3600, &h[1]);
    mr_buf invitation = {0};
    int s = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(mr_watch_meet(first, &invitation, NULL), MR_OK);
    mr_watch_arm(first);
    for (int i = 0; s >= 0 && i < 2000; i++) {
        struct sockaddr_storage to;
        size_t len = mr_random_below(&chance, sizeof noise);
        mr_random_bytes(&chance, noise, sizeof noise);
        if (i % 2)
            memcpy(noise, invitation.data, MR_DATAGRAM_KEY); /* the right key, followed by nonsense */
        memcpy(&to, invitation.data + offsetof(mr_invitation, at), sizeof to);
        sendto(s, noise, i % 3 ? sizeof(mr_datagram) : len, MSG_DONTWAIT, (struct sockaddr *)&to,
               sizeof(struct sockaddr_in6));
    }
    assert_int_equal(mr_watch_find(second, &invitation, NULL), MR_OK);
    assert_int_equal(h[0].alarms, 0);
    if (s >= 0)
        close(s);
    mr_watch_end(second);
    mr_watch_end(first);
    mr_buf_free(&invitation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting_and_parting),
        cmocka_unit_test(test_a_rank_that_falls_silent),
        cmocka_unit_test(test_rank_0_that_falls_silent),
        cmocka_unit_test(test_strangers_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
