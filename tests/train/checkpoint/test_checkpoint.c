/* test_checkpoint.c - checkpoints: written, found, kept, swept, and what a kill or a full disk leaves.
 * Invariant tested: whatever happens to a writer, what can be found is complete. */
#include "tests/support/training/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/files/safetensors.h"

static void expect_names(const char *dir, const char *want)
{
    char *have = names_in(dir);
    assert_string_equal(have, want);
    free(have);
}

static void test_round_trip(void **state)
{
    for (int kind = MR_SGD; kind <= MR_ADAMW; kind++) {
        char *out = support_path("%s/a/b/run-%d", (char *)*state, kind), *found = NULL;
        mr_checkpoint c = make_checkpoint(1234567, (mr_optimizer_kind)kind), light;
        uint64_t bytes = 0;
        mr_error err;
        c.model.compute = kind == MR_SGD ? MR_F32 : MR_BF16;
        c.model.every_token = kind == MR_SGD;
        c.accuracy = kind == MR_SGD ? -1 : 0.1 + 0.2;
        c.best_accuracy = kind == MR_SGD ? -1 : 1;
        c.best_update = kind == MR_SGD ? 0 : 1234566;
        if (mr_checkpoint_write(&c, out, 0, &bytes, &err) != MR_OK)
            fail_msg("%s", err.text);
        mr_checkpoint back = read_checkpoint(out);
        assert_same_checkpoint(&c, &back, true);
        if (mr_checkpoint_read(out, false, false, &light, &found, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_same_checkpoint(&c, &light, false);
        char *want = support_path("%s/step-01234567", out);
        assert_string_equal(found, want);
        expect_names(found, "optimizer.npz state.json weights.npz ");
        uint64_t seen = 0;
        static const char *const files[] = {"optimizer.npz", "state.json", "weights.npz"};
        for (size_t i = 0; i < 3; i++) {
            char *path = support_path("%s/%s", found, files[i]);
            seen += support_size(path);
            free(path);
        }
        assert_int_equal(bytes, seen);
        mr_checkpoint_release(&light);
        mr_checkpoint_release(&back);
        back = read_checkpoint(want); /* by its own name */
        assert_same_checkpoint(&c, &back, true);
        mr_checkpoint_release(&back);
        mr_checkpoint_release(&back); /* contents twice is fine */
        mr_checkpoint_release(&c);
        free(found);
        free(want);
        free(out);
    }
}

/* The hub's files: their names and sizes, and that others find in them what we say. */
static void test_pair_model(void **state)
{
    char *out = support_path("%s/run", (char *)*state), *dir = support_path("%s/step-00000300", out);
    char *config = support_path("%s/config.json", dir), *tokenizer = support_path("%s/tokenizer.json", dir);
    mr_checkpoint c = make_pair_checkpoint(300, MR_ADAMW), light;
    mr_model_config said = c.model;
    mr_safetensors *weights;
    uint64_t bytes = 0, seen = 0;
    size_t len;
    mr_error err;
    if (mr_checkpoint_write(&c, out, 0, &bytes, &err) != MR_OK)
        fail_msg("%s", err.text);
    expect_names(dir, "config.json model.safetensors optimizer.npz state.json tokenizer.json ");
    char *list = support_list(dir), *rest = list;
    for (char *name; (name = strsep(&rest, "\n")) && *name;) {
        char *path = support_path("%s/%s", dir, name);
        seen += support_size(path);
        free(path);
    }
    assert_int_equal(bytes, seen);
    for (int with_state = 0; with_state < 2; with_state++) {
        if (mr_checkpoint_read(out, false, with_state, &light, NULL, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_same_checkpoint(&c, &light, with_state);
        mr_checkpoint_release(&light);
    }
    said.embed = said.vocab = 0;
    if (c.model.iface->configure(config, &said, &err) != MR_OK || mr_safetensors_open(dir, &weights, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_int_equal(said.embed, c.model.embed);
    assert_int_equal(said.vocab, c.model.vocab);
    assert_int_equal(mr_safetensors_count(weights), c.params.count);
    for (size_t i = 0; i < c.params.count; i++) {
        const mr_param *p = &c.params.items[i];
        const mr_tensor *t = mr_safetensors_find(weights, p->name);
        assert_true(t && t->count == p->count && t->dims == p->dims);
        float *values = malloc(p->count * sizeof *values);
        assert_non_null(values);
        assert_int_equal(mr_safetensors_take(weights, t, values, &err), MR_OK);
        assert_memory_equal(values, c.values + p->offset, p->count * sizeof *values);
        free(values);
    }
    mr_safetensors_free(weights);
    uint8_t *text = support_read(tokenizer, &len);
    assert_int_equal(len, c.tokenizer.len);
    assert_memory_equal(text, c.tokenizer.data, len);
    mr_buf_free(&c.tokenizer); /* and one without */
    write_checkpoint(&c, out, 0);
    expect_names(dir, "config.json model.safetensors optimizer.npz state.json ");
    light = read_checkpoint(dir);
    assert_same_checkpoint(&c, &light, true);
    mr_checkpoint_release(&light);
    mr_checkpoint_release(&c);
    free(text);
    free(list);
    free(tokenizer);
    free(config);
    free(dir);
    free(out);
}

/* A tokenizer belongs to the checkpoint, not to the form of the weights. */
static void test_tokenizer_alone(void **state)
{
    char *dir = support_path("%s/step-00000100", (char *)*state);
    mr_checkpoint c = make_checkpoint(100, MR_SGD);
    mr_buf_add_text(&c.tokenizer, "x");
    write_checkpoint(&c, *state, 0);
    expect_names(dir, "optimizer.npz state.json tokenizer.json weights.npz ");
    mr_checkpoint back = read_checkpoint(dir);
    assert_same_checkpoint(&c, &back, true);
    mr_checkpoint_release(&back);
    mr_checkpoint_release(&c);
    free(dir);
}

static void test_same_state_same_bytes(void **state)
{
    char *a = support_path("%s/a", (char *)*state), *b = support_path("%s/b", (char *)*state);
    put_step(a, 7, 0, -1, 0);
    put_step(b, 7, 0, -1, 0);
    assert_true(support_tree_hash(a) == support_tree_hash(b));
    free(a);
    free(b);
}

static void test_which_one(void **state)
{
    char *out = support_path("%s/run", (char *)*state), *gone = support_path("%s/run/step-00000200", (char *)*state);
    char *stray = support_path("%s/run/step-1", (char *)*state), *found = NULL;
    mr_checkpoint c;
    mr_error err;
    assert_int_equal(mr_checkpoint_read(out, false, true, &c, NULL, &err), MR_MISUSE); /* no such folder */
    assert_int_equal(mkdir(out, 0755), 0);
    assert_int_equal(mr_checkpoint_read(out, false, true, &c, NULL, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "holds no checkpoint"));
    put_step(out, 100, 0, -1, 0);
    assert_int_equal(mr_checkpoint_read(out, true, true, &c, NULL, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "evaluated"));
    put_step(out, 200, 0, 0.5, 200);
    put_step(out, 300, 0, 0.5, 200);
    put_step(out, 123456789, 0, 0.5, 200); /* more digits, and not last in the order of names */
    support_write_text(stray, "a file, and no name of ours");
    for (int best = 0; best < 2; best++) {
        if (mr_checkpoint_read(out, best, true, &c, &found, &err) != MR_OK)
            fail_msg("%s", err.text);
        assert_int_equal(c.update, best ? 200 : 123456789);
        assert_non_null(strstr(found, best ? "step-00000200" : "step-123456789"));
        mr_checkpoint_release(&c);
        free(found);
    }
    char *command = support_path("rm -r %s", gone);
    assert_int_equal(system(command), 0);
    assert_int_equal(mr_checkpoint_read(out, true, true, &c, NULL, &err), MR_MISUSE);
    assert_non_null(strstr(err.text, "step-00000200"));
    free(command);
    free(stray);
    free(gone);
    free(out);
}

static void test_replacing(void **state)
{
    char *out = support_path("%s/run", (char *)*state);
    mr_checkpoint c = make_checkpoint(50, MR_ADAMW);
    put_step(out, 50, 0, -1, 0);
    write_checkpoint(&c, out, 0);
    expect_names(out, "step-00000050 ");
    mr_checkpoint back = read_checkpoint(out);
    assert_same_checkpoint(&c, &back, true);
    mr_checkpoint_release(&back);
    mr_checkpoint_release(&c);
    free(out);
}

static void test_keep(void **state)
{
    char *out = support_path("%s/run", (char *)*state);
    put_step(out, 100, 2, 0.5, 100);
    put_step(out, 200, 2, 0.5, 100);
    put_step(out, 300, 2, 0.5, 100);
    expect_names(out, "step-00000100 step-00000200 step-00000300 "); /* 100 is the best */
    put_step(out, 400, 2, 0.5, 100);
    expect_names(out, "step-00000100 step-00000300 step-00000400 ");
    put_step(out, 500, 2, 0.7, 500); /* a new best one: the old may go */
    expect_names(out, "step-00000400 step-00000500 ");
    put_step(out, 600, 1, 0.7, 500);
    expect_names(out, "step-00000500 step-00000600 ");
    put_step(out, 700, 0, 0.7, 500);
    put_step(out, 550, 1, 0.7, 500); /* gone back: what lies ahead is not of this run, and stays */
    expect_names(out, "step-00000500 step-00000550 step-00000600 step-00000700 ");
    /* Killed after its last checkpoint, before what is older went: the run that finds nothing to do removes it. */
    const mr_checkpoint last = {.update = 700, .best_accuracy = 0.7, .best_update = 500};
    assert_int_equal(mr_checkpoint_sweep(&last, out, 0, NULL), MR_OK);
    expect_names(out, "step-00000500 step-00000550 step-00000600 step-00000700 ");
    assert_int_equal(mr_checkpoint_sweep(&last, out, 1, NULL), MR_OK);
    expect_names(out, "step-00000500 step-00000700 ");
    free(out);
}

/* Written before it is judged, then judged: all else of it stays to the byte, and what it outdoes may go. */
static void test_judge(void **state)
{
    char *out = support_path("%s/run", (char *)*state), *weights = support_path("%s/step-00000301/weights.npz", out);
    mr_error err;
    put_step(out, 100, 1, 0.5, 100);
    mr_checkpoint c = make_checkpoint(301, MR_ADAMW);
    c.accuracy = c.best_accuracy = 0.5;
    c.best_update = 100;
    write_checkpoint(&c, out, 1);
    expect_names(out, "step-00000100 step-00000301 ");
    mr_checkpoint back = read_checkpoint(out);
    assert_true(back.evaluation_due);
    mr_checkpoint_release(&back);
    size_t len, len_later;
    uint8_t *before = support_read(weights, &len);

    c.accuracy = c.best_accuracy = 0.75;
    c.best_update = 301;
    if (mr_checkpoint_evaluated(&c, out, 1, &err) != MR_OK)
        fail_msg("%s", err.text);
    c.evaluation_due = false;
    expect_names(out, "step-00000301 ");
    back = read_checkpoint(out);
    assert_same_checkpoint(&c, &back, true);
    uint8_t *after = support_read(weights, &len_later);
    assert_true(len == len_later && memcmp(before, after, len) == 0);
    char *step = support_path("%s/step-00000301", out);
    expect_names(step, "optimizer.npz state.json weights.npz ");

    c.update = 302; /* there is none of it to be judged */
    assert_int_equal(mr_checkpoint_evaluated(&c, out, 1, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, "step-00000302"));
    mr_checkpoint_release(&back);
    mr_checkpoint_release(&c);
    free(before);
    free(after);
    free(step);
    free(weights);
    free(out);
}

/* ---- sweeping ---------------------------------------------------------------------------------------------------- */

static pid_t dead_process(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

/* One that has ended, and whose number is still taken because nobody has asked for it. */
static pid_t zombie_process(void)
{
    siginfo_t how;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT);
    return pid;
}

/* A process that lives, and holds the lock of `dir` if there is one; ends with its pipe. */
static pid_t living_process(const char *dir, int *end)
{
    int ready[2], wait[2];
    char byte;
    assert_int_equal(pipe(ready) | pipe(wait), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(wait[1]);
        close(ready[0]);
        char *own = support_path("%s/.step-00000009.tmp-%ld", dir, (long)getpid());
        int fd = mkdir(own, 0755) == 0 ? open(own, O_RDONLY | O_DIRECTORY) : -1;
        byte = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
        if (write(ready[1], &byte, 1) == 1)
            while (read(wait[0], &byte, 1) > 0)
                ;
        _exit(0);
    }
    close(ready[1]);
    close(wait[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 1);
    close(ready[0]);
    *end = wait[1];
    return pid;
}

static void make_left(const char *out, const char *what, long pid)
{
    support_write_textf("half of it", "%s/.step-%s-%ld/weights.npz", out, what, pid);
}

static void test_sweep(void **state)
{
    char *out = support_path("%s/run", (char *)*state);
    pid_t dead = dead_process(), zombie = zombie_process();
    int end;
    put_step(out, 100, 0, -1, 0);
    pid_t living = living_process(out, &end);
    make_left(out, "00000200.tmp", dead);
    make_left(out, "00000400.tmp", zombie);
    make_left(out, "00000300.tmp", (long)getpid()); /* of an earlier process of this number */
    make_left(out, "00000100.gone", dead);
    make_left(out, "00000100.old", dead); /* the new one is in its place */
    make_left(out, "00000200.tmp", living);
    make_left(out, "00000200.other", dead); /* nothing of ours */
    make_left(out, "200.tmp", dead);
    char *other = support_path("%s/results.json", out);
    support_write_text(other, "{}");
    put_step(out, 110, 0, -1, 0);
    char *want = support_path(".step-00000009.tmp-%ld .step-00000200.other-%ld .step-00000200.tmp-%ld "
                              ".step-200.tmp-%ld results.json step-00000100 step-00000110 ",
                              (long)living, (long)dead, (long)living, (long)dead);
    expect_names(out, want);
    close(end);
    waitpid(living, NULL, 0);
    waitpid(zombie, NULL, 0);
    put_step(out, 120, 0, -1, 0);
    free(want);
    want = support_path(".step-00000200.other-%ld .step-200.tmp-%ld results.json step-00000100 step-00000110 "
                        "step-00000120 ",
                        (long)dead, (long)dead);
    expect_names(out, want);
    free(want);
    free(other);
    free(out);
}

/* Killed while an old checkpoint had stepped aside, where names cannot be exchanged. */
static void test_aside(void **state)
{
    char *out = support_path("%s/run", (char *)*state), *name = support_path("%s/step-00000100", out);
    char *aside = support_path("%s/.step-00000100.old-%ld", out, (long)dead_process());
    put_step(out, 90, 0, -1, 0);
    put_step(out, 100, 0, -1, 0);
    assert_int_equal(rename(name, aside), 0);
    mr_checkpoint c = read_checkpoint(out);
    assert_int_equal(c.update, 100); /* found where it stands */
    mr_checkpoint_release(&c);
    put_step(out, 110, 0, -1, 0);
    expect_names(out, "step-00000090 step-00000100 step-00000110 ");
    c = read_checkpoint(name);
    mr_checkpoint_release(&c);
    free(aside);
    free(name);
    free(out);
}

/* ---- kills and full disks ---------------------------------------------------------------------------------------- */

/* For both ways in which weights are kept. */
static mr_checkpoint make_either(bool pairs, uint64_t update)
{
    return pairs ? make_pair_checkpoint(update, MR_ADAMW) : make_checkpoint(update, MR_ADAMW);
}

/* Writes the steps 10, 20, 20, 30 ... for ever, telling each by a byte in a pipe. */
static void write_for_ever(const char *out, bool pairs, int told)
{
    for (uint64_t update = 10;; update += 10)
        for (int twice = 0; twice < (update % 20 == 0 ? 2 : 1); twice++) {
            mr_checkpoint c = make_either(pairs, update);
            uint8_t done = (uint8_t)(update / 10);
            if (mr_checkpoint_write(&c, out, 2, NULL, NULL) != MR_OK || write(told, &done, 1) != 1)
                _exit(1);
            mr_checkpoint_release(&c);
        }
}

/* Everything that is called a checkpoint is one. */
static void assert_all_whole(const char *out)
{
    char *names = names_in(out), *rest = names, *name;
    while ((name = strsep(&rest, " ")) && *name) {
        char *dir = support_path("%s/%s", out, name);
        if (*name != '.') {
            mr_checkpoint c = read_checkpoint(dir);
            mr_checkpoint_release(&c);
        }
        free(dir);
    }
    free(names);
}

static void test_kill(void **state)
{
    enum { ROUNDS = 30 };
    mr_random rnd = support_random();
    for (int round = 0; round < ROUNDS; round++) {
        char *out = support_path("%s/run-%d", (char *)*state, round);
        uint8_t last = 0, byte;
        int told[2], status;
        assert_int_equal(pipe(told), 0);
        pid_t pid = fork();
        if (pid == 0)
            write_for_ever(out, round % 2, told[1]);
        close(told[1]);
        for (uint64_t n = mr_random_between(&rnd, 1, 4); n > 0; n--)
            assert_int_equal(read(told[0], &byte, 1), 1);
        usleep((useconds_t)mr_random_below(&rnd, 20000));
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
        assert_true(WIFSIGNALED(status));
        do
            last = byte;
        while (read(told[0], &byte, 1) == 1);
        close(told[0]);
        assert_all_whole(out);
        mr_checkpoint c = read_checkpoint(out);
        assert_true(c.update == last * 10u || c.update == last * 10u + 10);
        mr_checkpoint same = make_either(round % 2, c.update);
        assert_same_checkpoint(&same, &c, true);
        write_checkpoint(&same, out, 1);
        char *want = support_path("step-%08llu ", (unsigned long long)c.update);
        expect_names(out, want);
        free(want);
        mr_checkpoint_release(&same);
        mr_checkpoint_release(&c);
        free(out);
    }
}

static void test_full_disk(void **state)
{
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    for (int pairs = 0; pairs < 2; pairs++) {
        char *out = support_path("%s/run-%d", (char *)*state, pairs);
        mr_checkpoint c = make_either(pairs, 100), next = make_either(pairs, 200);
        const rlim_t weights = next.params.elements * sizeof(float);
        write_checkpoint(&c, out, 1);
        for (rlim_t most = 0; most < weights; most += most < 2000 ? 500 : weights / 6) {
            struct rlimit limit = {most, old.rlim_max};
            mr_error err = {0};
            setrlimit(RLIMIT_FSIZE, &limit);
            mr_status status = mr_checkpoint_write(&next, out, 1, NULL, &err);
            setrlimit(RLIMIT_FSIZE, &old);
            assert_int_equal(status, MR_SYSTEM);
            if (!strstr(err.text, strerror(EFBIG)) || !strstr(err.text, "step-00000200/"))
                fail_msg("%s", err.text);
            expect_names(out, "step-00000100 ");
            mr_checkpoint back = read_checkpoint(out);
            assert_same_checkpoint(&c, &back, true);
            mr_checkpoint_release(&back);
        }
        write_checkpoint(&next, out, 1);
        expect_names(out, "step-00000200 ");
        mr_checkpoint_release(&next);
        mr_checkpoint_release(&c);
        free(out);
    }
}

static void test_misuse(void **state)
{
    char *out = support_path("%s/run", (char *)*state);
    mr_error err;
    for (int i = 0; i < 12; i++) {
        mr_checkpoint c = i < 11 ? make_checkpoint(100, MR_SGD) : make_pair_checkpoint(100, MR_SGD);
        mr_checkpoint bad = c;
        switch (i) {
        case 0:
            bad.slots = 4;
            break;
        case 1:
            bad.accuracy = 1.5;
            break;
        case 2:
            bad.best_accuracy = -0.5;
            break;
        case 3:
            bad.update = UINT64_MAX;
            break;
        case 4:
            bad.best_update = 101;
            break;
        case 5:
            bad.values = NULL;
            break;
        case 6:
            bad.state[0] = NULL;
            break;
        case 7:
            bad.model.name[0] = '\xFF';
            break;
        case 8:
            bad.model.logit_scale = NAN;
            break;
        case 9:
            bad.model.frozen = 4;
            break;
        case 10:
            bad.tokenizer.len = (64 << 20) + 1;
            break;
        default:
            bad.model.vocab = 0; /* cannot be described */
        }
        assert_int_equal(mr_checkpoint_write(&bad, out, 0, NULL, &err), MR_MISUSE);
        assert_int_equal(err.status, MR_MISUSE);
        assert_false(support_exists(out));
        mr_checkpoint_release(&c);
    }
    support_write_text(out, "a file");
    mr_checkpoint c = make_checkpoint(100, MR_SGD);
    assert_int_equal(mr_checkpoint_write(&c, out, 0, NULL, &err), MR_SYSTEM);
    assert_non_null(strstr(err.text, out));
    mr_checkpoint_release(&c);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_TMPDIR(test_round_trip),
        IN_TMPDIR(test_pair_model),
        IN_TMPDIR(test_tokenizer_alone),
        IN_TMPDIR(test_same_state_same_bytes),
        IN_TMPDIR(test_which_one),
        IN_TMPDIR(test_replacing),
        IN_TMPDIR(test_keep),
        IN_TMPDIR(test_judge),
        IN_TMPDIR(test_sweep),
        IN_TMPDIR(test_aside),
        IN_TMPDIR(test_kill),
        IN_TMPDIR(test_full_disk),
        IN_TMPDIR(test_misuse),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
