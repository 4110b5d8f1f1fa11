/* test_publish.c - the moment when a new dataset takes DATASET's place, and what others do there meanwhile.
 * Invariant tested: DATASET is the old dataset or the new one; nothing is removed that is not a dataset, or that
 * another ingest works in; when it does not come to the rename, no work is lost; what is said about DATASET is true. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "tests/support/support.h"

static char *dir, *dst;
static uint64_t clean, older;

/* $M: the program.  ingest PROGRAM: the words that put the dataset `clean` at dst.  with WORDS COMMAND..: as
 * preload/rename.c has it.  stopped PID: waits until it is.  said COMMAND..: one line of its exit status, whether
 * shards were taken over, and its complaint. */
static const char prelude[] =
    "M=$1; preload=$2; with() { local words=$1; shift; exec env ASAN_OPTIONS=verify_asan_link_order=0 "
    "LD_PRELOAD=$preload MILLRACE_TEST_RENAME=$words \"$@\"; }\n"
    "stopped() { until grep -q '^State:.T' /proc/$1/status; do sleep 0.01; done; }\n"
    "ingest() { echo \"$1\" ingest source dst --shard-size 64KiB; }\n"
    "said() { local r=0; (\"$@\") >out 2>err || r=$?; echo $r $(grep -o 'reused' out) "
    "$(grep -a millrace: err); }\n";

/* Runs the lines in the folder, expects these words on standard output. */
static void expect(const char *words, const char *lines)
{
    char *script = support_path("%s%s", prelude, lines);
    const char *argv[] = {"bash", "-c", script, "bash", support_millrace_path(), MILLRACE_TEST_RENAME, NULL};
    support_result r = support_run(argv, &(support_limits){.directory = dir});
    if (strcmp(r.out, words) != 0)
        fail_msg("expected:\n%sfound:\n%s%s", words, r.out, r.err);
    support_result_free(&r);
    free(script);
}

static bool is_there(const char *name)
{
    char *path = support_path("%s/%s", dir, name);
    bool there = support_exists(path);
    free(path);
    return there;
}

static void expect_only(uint64_t hash)
{
    assert_true(support_dataset_hash(dst) == hash);
    assert_false(is_there("dst.partial"));
    assert_false(is_there("dst.partial.old"));
}

static int make_datasets(void **state)
{
    (void)state;
    dir = support_tmpdir();
    dst = support_path("%s/dst", dir);
    expect("", "set -e; for n in 1 2; do $M sample source$n --layout imagenette --images 40 --seed $n -q; done\n"
               "mv source1 source; $M ingest source clean -q --shard-size 64KiB; $M ingest source2 older -q\n"
               "tar cf source.tar source");
    char *path = support_path("%s/clean", dir);
    clean = support_dataset_hash(path);
    free(path);
    path = support_path("%s/older", dir);
    older = support_tree_hash(path);
    free(path);
    return 0;
}

static int put_older(void **state)
{
    (void)state;
    expect("", "rm -rf dst*; cp -r older dst");
    return 0;
}

static int remove_all(void **state)
{
    (void)state;
    free(dst);
    support_tmpdir_remove(dir);
    return 0;
}

/* The one that has replaced DATASET removes what DATASET.partial has become: that is not a place to work in. */
static void test_another_ingest_while_the_old_one_goes(void **state)
{
    (void)state;
    expect("3 millrace: dst: another ingest is using it; wait until it ends, or name another DATASET\n"
           "3 millrace: dst.partial: another ingest is using it; wait until it ends, or name another DATASET\n"
           "0\n",
           "(with stop $(ingest $M) --force -q) & pid=$!; stopped $pid\n"
           "said $(ingest $M) --force -q\n"
           "mv dst moved; said $(ingest $M) -q; mv moved dst\n"
           "kill -CONT $pid; wait $pid; echo $?");
    expect_only(clean);
}

/* Put into DATASET after the first look: it is seen before the rename, and no work is lost. */
static void test_what_others_put_there_meanwhile(void **state)
{
    (void)state;
    expect("2\n"
           "millrace: dst: --force would delete 'run', which is not part of a dataset; move it away or choose another "
           "DATASET\nprecious\n",
           "mkfifo pipe; $M ingest - dst --force -q --shard-size 64KiB <pipe 2>err & exec 3>pipe\n"
           "until [ -d dst.partial ]; do sleep 0.01; done\n"
           "mkdir dst/run; echo precious >dst/run/checkpoint; cat source.tar >&3; exec 3>&-\n"
           "wait $!; echo $?; cat err dst/run/checkpoint");
    expect("0 reused\n", "rm -r dst/run; said $(ingest $M) --force");
    expect_only(clean);
}

/* The same for the folder where the dataset grows; if that is moved away, no other is used instead. */
static void test_what_others_do_to_the_stage(void **state)
{
    (void)state;
    static const char lines[] =
        "rm -rf dst.*; [ -p pipe ] || mkfifo pipe; $M ingest - dst --force -q <pipe 2>err & exec 3>pipe\n"
        "until ls -l /proc/$!/fd | grep -q dst.partial/spool; do sleep 0.01; done\n"
        "%s echo precious >dst.partial/notes/mine; cat source.tar >&3; exec 3>&-\n"
        "wait $!; echo $?; cat err dst.partial/notes/mine; ls dst.partial; rm -r dst.partial/notes";
    static const struct {
        const char *does, *words;
    } cases[] = {
        {"mkdir dst.partial/notes;",
         "2\nmillrace: dst.partial: holds 'notes', which is not part of an unfinished dataset; move it away or choose "
         "another DATASET\nprecious\nnotes\n"},
        {"mv dst.partial moved; mkdir -p dst.partial/notes;",
         "3\nmillrace: dst.partial: was moved, removed or replaced while the dataset was being built in it; run "
         "the "
         "command again\nprecious\nnotes\n"},
    };
    for (size_t i = 0; i < MR_COUNT(cases); i++) {
        char *script = support_path(lines, cases[i].does);
        expect(cases[i].words, script);
        assert_true(support_tree_hash(dst) == older);
        free(script);
    }
    expect("0\n", "said $(ingest $M) --force");
    expect_only(clean);
}

/* Put there at the last moment, it is kept with what was replaced. */
static void test_what_others_put_there_last(void **state)
{
    (void)state;
    static const char *const ways[] = {"stop", "stop-apart"}, *const places[] = {"dst.partial", "dst.partial.old"};
    for (size_t i = 0; i < 2; i++) {
        char *words = support_path("2\nmillrace: %s: the replaced dataset is kept because of 'run', which is "
                                   "not part of it\nprecious\n",
                                   places[i]);
        char *lines = support_path("rm -rf dst*; cp -r older dst; (with %s $(ingest $M) --force -q) 2>err & pid=$!\n"
                                   "stopped $pid; mkdir %s/run; echo precious >%s/run/checkpoint; kill -CONT $pid\n"
                                   "wait $pid; echo $?; cat err %s/run/checkpoint; rm -r %s/run",
                                   ways[i], places[i], places[i], places[i], places[i]);
        expect(words, lines);
        char *old = support_path("%s/%s", dir, places[i]);
        assert_true(support_tree_hash(old) == older);
        support_tmpdir_remove(old);
        expect_only(clean);
        free(words);
        free(lines);
    }
}

/* Only a file is a part of a dataset. */
static void test_folders_named_as_shards(void **state)
{
    (void)state;
    expect(
        "2 millrace: dst: --force would delete 'holiday-20251224.seek', which is not part of a dataset; move it away "
        "or choose another DATASET\n"
        "2 millrace: dst.partial: holds 'data-00001.mdb', which is not part of an unfinished dataset; move it away "
        "or choose another DATASET\n"
        "mine\nmine\n",
        "mkdir -p dst/holiday-20251224.seek dst.partial/data-00001.mdb; holiday=dst/holiday-20251224.seek\n"
        "echo mine | tee $holiday/photo >dst.partial/data-00001.mdb/rows; said $(ingest $M) --force\n"
        "mv dst other; said $(ingest $M); cat other/*/photo dst.partial/*/rows; rm -r other");
}

/* Nor is a file that has a shard's name, if the manifest knows no such shard; of a damaged one that cannot be asked. */
static void test_files_named_as_shards(void **state)
{
    (void)state;
    expect("2 millrace: dst: --force would delete 'mine-20261122.mdb', which is not part of a dataset; move it away or "
           "choose another DATASET\nmine\n"
           "0\n",
           "echo mine >dst/mine-20261122.mdb; said $(ingest $M) --force; cat dst/*2.mdb; rm dst/*2.mdb\n"
           "touch dst/train-00000.mdb-lock dst/train-00000.seek.tmp; said $(ingest $M) --force");
    expect_only(clean);
    /* what NFS leaves of a removed file that is still open goes by itself */
    expect("0\ndst/.nfs0000000000abcdef12\n0\ndst.partial/.nfs0000000000abcdef12\n"
           "2 millrace: e: exists and is not a millrace dataset; choose another DATASET or remove it\n",
           "f=.nfs0000000000abcdef12; mkdir dst.partial e; touch dst.partial/$f e/$f; said $(ingest $M) --force\n"
           "ls dst/$f; said $(ingest $M) --force; ls dst.partial/$f; rm -r dst.partial\n"
           "said $(ingest $M | sed s:dst:e:); rm -r e");
    expect_only(clean);
    expect("0\n", "echo damaged >dst/manifest.json; said $(ingest $M) --force");
    expect_only(clean);
}

/* File systems that cannot exchange two names. */
static void test_without_exchange(void **state)
{
    (void)state;
    expect("3 millrace: dst.partial: cannot take the place of dst: Device or resource busy\n",
           "said with apart,refused $(ingest $M) --force");
    assert_true(support_tree_hash(dst) == older);
    assert_false(is_there("dst.partial.old"));
    /* left by a crash between the renames of another; not all of it is its own */
    expect("2 millrace: dst.partial.old: the replaced dataset is kept because of 'x', which is not part of "
           "it\n",
           "cp -r older dst.partial.old; touch dst.partial.old/x; said with apart $(ingest $M) --force");
    assert_true(support_tree_hash(dst) == older);
    expect("0 reused\n", "rm dst.partial.old/x; said with apart $(ingest $M) --force");
    expect_only(clean);
}

/* It may be somebody's copy: only where the name is needed, and a dataset has it, it goes. */
static void test_what_lies_aside_stays(void **state)
{
    (void)state;
    expect("0\n", "cp -r older dst.partial.old; said $(ingest $M) --force");
    char *old = support_path("%s.partial.old", dst);
    assert_true(support_tree_hash(old) == older);
    support_tmpdir_remove(old);
    expect("2 millrace: dst.partial.old: exists and is not a dataset; move it out of the way\n"
           "2 millrace: dst.partial.old: exists and is not a dataset; move it out of the way\n0 reused\n",
           "mkdir dst.partial.old; touch dst.partial.old/report.json; said with apart $(ingest $M) --force\n"
           "rm -r dst.partial.old; ln -s older dst.partial.old; said with apart $(ingest $M) --force\n"
           "rm dst.partial.old; said with apart $(ingest $M) --force");
    expect_only(clean);
    expect("3 millrace: dst.partial.old: the replaced dataset is still being read; run the command "
           "again when that has ended\n0 reused\n",
           "mkdir dst.partial.old; touch dst.partial.old/.nfs0000000000abcdef12; said with apart $(ingest $M) --force\n"
           "rm -r dst.partial.old; said with apart $(ingest $M) --force");
    expect_only(clean);
    /* what a crash leaves that comes while it goes: its manifest, which goes last, or nothing */
    expect("0\n0\n",
           "mkdir dst.partial.old; cp older/manifest.json dst.partial.old; said with apart $(ingest $M) --force\n"
           "mkdir dst.partial.old; said with apart $(ingest $M) --force");
    expect_only(clean);
}

static void test_a_rename_that_fails_loses_no_work(void **state)
{
    (void)state;
    expect("3 millrace: dst.partial: cannot take the place of dst: Device or resource busy\n"
           "0 reused\n",
           "rm -r dst; said with refused $(ingest $M); said $(ingest $M)");
    expect_only(clean);
}

/* Names that no folder can be renamed to are refused before the work. */
static void test_names_that_cannot_be_replaced(void **state)
{
    (void)state;
    static const char *const names[] = {".", "..", "in/.", "in/..", "./", "in/../"};
    expect("", "mkdir in empty; ln -s empty link; ln -s dst old-link");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int len = (int)strlen(names[i]) - (strlen(names[i]) > 1 && names[i][strlen(names[i]) - 1] == '/');
        char *words = support_path("2 millrace: %.*s: a folder cannot be replaced under this name; use its own, or "
                                   "name a new folder in it, for example %.*s/dataset\n",
                                   len, names[i], len, names[i]);
        char *lines = support_path("cd in; said $M ingest ../source2 %s", names[i]);
        expect(words, lines);
        free(words);
        free(lines);
    }
    expect("2 millrace: link: is a link; name the folder itself or choose another DATASET\n"
           "2 millrace: link: is a link; name the folder itself or choose another DATASET\n"
           "2 millrace: old-link: is a link; name the folder itself or choose another DATASET\n"
           "2 millrace: new.partial: names that end in .partial are reserved for unfinished datasets, which may be "
           "removed; "
           "choose "
           "another DATASET\n",
           "said $(ingest $M | sed s:dst:link:); said $(ingest $M | sed s:dst:link//:)\n"
           "said $(ingest $M | sed s:dst:old-link/:) --force; said $(ingest $M | sed s:dst:new.partial/:)");
    expect("", "ls -d *.partial */*.partial .partial ..partial 2>&- | cat");
    if (system("unshare -rm true 2>/dev/null") != 0)
        support_cannot("a mount point", "unshare -rm true");
    else
        expect("2 millrace: empty: is a mount point and cannot be replaced; name a folder in it, for example "
               "empty/dataset\n0\n",
               "said unshare -rm sh -c \"mount --bind empty empty && $(ingest $M | sed s:dst:empty:)\"\n"
               "said unshare -rm sh -c \"mount -t tmpfs none empty && $(ingest $M | sed s:dst:empty/dataset:)\"");
    if (system("unshare -rm true 2>/dev/null") == 0)
        expect(
            "2 millrace: dst.partial: is a mount point, which cannot take the place of DATASET; unmount it or choose "
            "another DATASET\n",
            "rm -r dst; mkdir dst.partial\n"
            "said unshare -rm sh -c \"mount -t tmpfs none dst.partial && $(ingest $M)\"");
}

/* From the rename on DATASET is another, whatever else is still to be done. */
static void test_interrupted_after_the_rename(void **state)
{
    (void)state;
    expect("143\n\nmillrace: interrupted; dst is the new dataset, complete; what may be left of the old one is beside "
           "it, as .partial\n",
           "(with stop $(ingest $M) --force -q) 2>err & pid=$!; stopped $pid\n"
           "kill -TERM $pid; kill -CONT $pid; wait $pid; echo $?; cat err");
    assert_true(support_dataset_hash(dst) == clean);
    expect("143\n\nmillrace: interrupted; dst is the new dataset, complete\n",
           "rm -r dst dst.partial; (with stop $(ingest $M) -q) 2>err & pid=$!; stopped $pid\n"
           "kill -TERM $pid; kill -CONT $pid; wait $pid; echo $?; cat err");
    expect_only(clean);
}

/* Exports change places as datasets do, also where names cannot be exchanged. */
static void test_an_export_takes_its_place(void **state)
{
    (void)state;
    static const char lines[] =
        "$M export clean files --split val -q; ln -s nowhere lost\n"
        "say() { (\"$@\") >said 2>&1; echo $? $(ls -d files*) $(ls files | head -1) \\\n"
        "    $(grep -o 'cannot take the place of\\|is a link' said); }\n"
        "say with apart,refused $M export clean files --force -q\n"
        "say with apart $M export clean files --force -q\n"
        "say $M export clean lost\n"
        "said with taken $M export clean a.tar -q; stat -c '%s' a.tar; said $M export clean a.tar -q --force\n";
    expect("3 files val cannot take the place of\n0 files train\n2 files train is a link\n"
           "2 millrace: a.tar: exists already; --force replaces it\n0\n0\n",
           lines);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, put_older)
    const struct CMUnitTest tests[] = {
        TEST(test_another_ingest_while_the_old_one_goes),
        TEST(test_what_others_put_there_meanwhile),
        TEST(test_what_others_put_there_last),
        TEST(test_what_others_do_to_the_stage),
        TEST(test_folders_named_as_shards),
        TEST(test_files_named_as_shards),
        TEST(test_without_exchange),
        TEST(test_what_lies_aside_stays),
        TEST(test_a_rename_that_fails_loses_no_work),
        TEST(test_names_that_cannot_be_replaced),
        TEST(test_interrupted_after_the_rename),
        TEST(test_an_export_takes_its_place),
    };
    return cmocka_run_group_tests(tests, make_datasets, remove_all);
}
