/* test_team.c - threads that stand by: each task once, however many there are, job after job. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/team.h"
#include "tests/support/support.h"

enum { MAX = 1000 };

typedef struct count {
    atomic_uint runs[MAX];
    unsigned threads;
    atomic_uint beyond; /* tasks or members that there are none of */
    size_t tasks;
} count;

static void count_task(void *ctx, size_t task, unsigned member)
{
    count *c = ctx;
    if (task >= c->tasks || member >= c->threads)
        atomic_fetch_add(&c->beyond, 1);
    else
        atomic_fetch_add(&c->runs[task], 1);
}

static mr_team *open_team(unsigned threads)
{
    mr_error err;
    mr_team *t = NULL;
    if (mr_team_open(threads, &t, &err) != MR_OK)
        fail_msg("%s", err.text);
    return t;
}

static void each_task_runs_once(void **state)
{
    mr_random r = support_random();
    (void)state;
    for (unsigned threads = 0; threads <= 9; threads++) {
        mr_team *t = open_team(threads);
        assert_int_equal(mr_team_threads(t), threads ? threads : 1);
        for (int job = 0; job < 300; job++) {
            static count c;
            memset(&c, 0, sizeof c);
            c.threads = mr_team_threads(t);
            c.tasks = (size_t)mr_random_below(&r, job % 3 ? 12 : MAX);
            mr_team_run(t, c.tasks, count_task, &c);
            assert_int_equal(atomic_load(&c.beyond), 0);
            for (size_t i = 0; i < MAX; i++)
                assert_int_equal(atomic_load(&c.runs[i]), i < c.tasks);
        }
        mr_team_close(t);
    }
}

/* What tasks wrote without any lock is there when run() returns, and the caller's next job sees it. */
typedef struct chain {
    uint64_t cells[64], next[64];
} chain;

static void link_task(void *ctx, size_t task, unsigned member)
{
    chain *c = ctx;
    (void)member;
    c->next[task] = c->cells[(task + 1) % 64] * 3 + c->cells[task];
}

static void a_job_sees_the_one_before(void **state)
{
    chain a = {{0}, {0}}, b = {{0}, {0}};
    mr_team *one = open_team(1), *many = open_team(4);
    (void)state;
    a.cells[0] = b.cells[0] = 1;
    for (int i = 0; i < 2000; i++) {
        mr_team_run(one, 64, link_task, &a);
        mr_team_run(many, 64, link_task, &b);
        memcpy(a.cells, a.next, sizeof a.cells);
        memcpy(b.cells, b.next, sizeof b.cells);
    }
    assert_memory_equal(a.cells, b.cells, sizeof a.cells);
    mr_team_close(one);
    mr_team_close(many);
}

static void teams_come_and_go(void **state)
{
    (void)state;
    mr_team_close(NULL);
    for (unsigned i = 0; i < 100; i++) {
        static count c;
        memset(&c, 0, sizeof c);
        mr_team *t = open_team(1 + i % 5);
        c.threads = mr_team_threads(t);
        c.tasks = i % 4;
        mr_team_run(t, c.tasks, count_task, &c);
        mr_team_close(t);
        for (size_t k = 0; k < MAX; k++)
            assert_int_equal(atomic_load(&c.runs[k]), k < c.tasks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_runs_once),
        cmocka_unit_test(a_job_sees_the_one_before),
        cmocka_unit_test(teams_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
