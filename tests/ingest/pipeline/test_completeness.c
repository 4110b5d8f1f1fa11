/* test_completeness.c - the verdict of ingest on source trees like those that people have:
 * tests/ingest/pipeline/source_trees.txt, line by line. Invariant: a tree gets the same verdict as a folder and as a
 * tar archive. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "tests/support/support.h"
#include "tests/support/images/image.h"

enum { OPTIONS_MAX = 12, PIECES_MAX = 40 };

typedef struct tree {
    char *dir; /* the test's folder: the tree is in DIR/source and DIR/source.tar */
    char title[200];
    unsigned images; /* made so far: each is a picture of its own */
    char run[400];   /* options of the current run */
    unsigned line;
} tree;

/* ---- files ---------------------------------------------------------------------------------------------------- */

/* "{a,b}" and "#3" stand for several names: calls itself for each until none is left, then writes the file. */
static void put_files(tree *t, const char *name)
{
    const char *open = strchr(name, '{'), *close = open ? strchr(open, '}') : NULL, *number = strchr(name, '#');
    if (close) {
        for (const char *at = open; at < close;) {
            size_t len = strcspn(at + 1, ",}");
            char *one = support_path("%.*s%.*s%s", (int)(open - name), name, (int)len, at + 1, close + 1);
            put_files(t, one);
            free(one);
            at += 1 + len;
        }
        return;
    }
    if (number) {
        for (int i = 1; i <= number[1] - '0'; i++) {
            char *one = support_path("%.*s%d%s", (int)(number - name), name, i, number + 2);
            put_files(t, one);
            free(one);
        }
        return;
    }
    char *path = support_path("%s/source/%s", t->dir, name);
    const char *dot = strrchr(name, '.');
    if (dot && strcmp(dot, ".png") == 0) {
        picture p = make_png(8 + t->images++, 8, 2, 8, false);
        support_write(path, p.bytes, p.len);
        picture_free(&p);
    } else if (dot && strncasecmp(dot, ".jp", 3) == 0) {
        picture p = make_jpeg((jpeg_kind){.width = 8 + t->images++, .height = 8, .components = 3});
        support_write(path, p.bytes, p.len);
        picture_free(&p);
    } else {
        support_write_text(path, "text\n");
    }
    free(path);
}

/* PATH TEXT, where \n and \t are written out. */
static void put_text(const tree *t, const char *line)
{
    size_t name = strcspn(line, " ");
    char *path = support_path("%s/source/%.*s", t->dir, (int)name, line);
    mr_buf text = {0};
    for (const char *at = line + name + 1; *at; at++) {
        bool escape = at[0] == '\\' && (at[1] == 'n' || at[1] == 't');
        mr_buf_add(&text, escape ? (at[1] == 'n' ? "\n" : "\t") : at, 1);
        at += escape;
    }
    support_write(path, text.data, text.len);
    mr_buf_free(&text);
    free(path);
}

/* PATH TARGET: a symbolic link. */
static void put_link(const tree *t, const char *line)
{
    size_t name = strcspn(line, " ");
    char *path = support_path("%s/source/%.*s", t->dir, (int)name, line);
    support_write(path, "", 0); /* and its folder */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(line + name + 1, path), 0);
    free(path);
}

/* ---- runs ----------------------------------------------------------------------------------------------------- */

static support_result ingest(const tree *t, const char *source)
{
    char *options = support_path("%s", t->run), *src = support_path("%s/%s", t->dir, source), *rest;
    const char *args[OPTIONS_MAX + 6] = {"ingest", src, "--dry-run", "--json"};
    size_t count = 4;
    for (char *word = strtok_r(options, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < OPTIONS_MAX);
        args[count++] = word;
    }
    support_result r = support_millrace_under(args, NULL);
    free(options);
    free(src);
    return r;
}

/* "imagenette data/ train cat=2 dog=1 ; val -=3" */
static char *verdict(const char *json)
{
    static const char *const splits[] = {"train", "val", "test"};
    mr_buf out = {0};
    json_t *doc = json_loads(json, 0, NULL), *all = json_object_get(doc, "splits"), *split, *count;
    const char *root = json_string_value(json_object_get(doc, "root")), *name, *class;
    mr_buf_printf(&out, "%s %s", json_string_value(json_object_get(doc, "layout")), root && *root ? root : "-");
    bool first = true;
    for (size_t pass = 0; pass <= MR_COUNT(splits); pass++)
        json_object_foreach(all, name, split)
        {
            size_t known = 0;
            while (known < MR_COUNT(splits) && strcmp(splits[known], name) != 0)
                known++;
            if (known != pass)
                continue;
            mr_buf_printf(&out, "%s %s", first ? "" : " ;", name);
            first = false;
            if (json_integer_value(json_object_get(split, "unlabelled")))
                mr_buf_printf(&out, " -=%lld", json_integer_value(json_object_get(split, "unlabelled")));
            json_object_foreach(json_object_get(split, "classes"), class, count)
                mr_buf_printf(&out, " %s=%lld", class, json_integer_value(count));
        }
    json_decref(doc);
    mr_buf_text(&out);
    return (char *)out.data;
}

/* Every piece between bars is in the text. */
static const char *missing_piece(const char *pieces, const char *text, char *piece, size_t capacity)
{
    while (*pieces) {
        size_t len = strcspn(pieces, "|");
        const char *next = pieces + len + (pieces[len] == '|');
        while (len && *pieces == ' ') {
            pieces++;
            len--;
        }
        while (len && pieces[len - 1] == ' ')
            len--;
        snprintf(piece, capacity, "%.*s", (int)len, pieces);
        if (!strstr(text, piece))
            return piece;
        pieces = next;
    }
    return NULL;
}

static void check(const tree *t, const char *kind, const char *expected)
{
    static const char *const sources[] = {"source", "source.tar"};
    for (size_t i = 0; i < MR_COUNT(sources); i++) {
        support_result r = ingest(t, sources[i]);
        int status = strcmp(kind, "gets") == 0 ? 0 : strcmp(kind, "fails") == 0 ? 1 : 2;
        char piece[200] = "", *got = status == 0 && r.status == 0 ? verdict(r.out) : NULL;
        if (r.status != status || (got && strcmp(got, expected) != 0) ||
            (status && missing_piece(expected, r.err, piece, sizeof piece)))
            fail_msg("source_trees.txt:%u: %s, %s, options '%s': expected %s %s\n%s%s\nexit code %d\n%s", t->line,
                     t->title, sources[i], t->run, kind, piece[0] ? piece : expected, got ? "got " : "", got ? got : "",
                     r.status, r.err);
        free(got);
        support_result_free(&r);
    }
}

/* ---- the table ------------------------------------------------------------------------------------------------ */

static void begin(tree *t, const char *title)
{
    if (t->dir)
        support_tmpdir_remove(t->dir);
    *t = (tree){.dir = support_tmpdir(), .line = t->line};
    snprintf(t->title, sizeof t->title, "%s", title);
}

static void begin_run(tree *t, const char *options)
{
    char *archive = support_path("%s/source.tar", t->dir), *source = support_path("%s/source", t->dir);
    if (!support_exists(archive)) {
        const char *const tar[] = {"tar", "-cf", archive, "-C", source, ".", NULL};
        support_result r = support_run(tar, NULL);
        support_assert_status(&r, 0);
        support_result_free(&r);
    }
    snprintf(t->run, sizeof t->run, "%s", options);
    free(archive);
    free(source);
}

static void take_line(tree *t, char *line)
{
    char *rest, *word = strtok_r(line, " ", &rest);
    if (!word || word[0] == '#')
        return;
    if (strcmp(word, "tree") == 0)
        begin(t, rest);
    else if (strcmp(word, "files") == 0)
        for (char *name = strtok_r(NULL, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
            put_files(t, name);
    else if (strcmp(word, "text") == 0)
        put_text(t, rest);
    else if (strcmp(word, "link") == 0)
        put_link(t, rest);
    else if (strcmp(word, "run") == 0)
        begin_run(t, rest);
    else if (strcmp(word, "gets") == 0 || strcmp(word, "fails") == 0 || strcmp(word, "misuse") == 0)
        check(t, word, rest);
    else
        fail_msg("source_trees.txt:%u: %s: not a word of the table", t->line, word);
}

static void trees_get_their_verdicts(void **state)
{
    (void)state;
    size_t len;
    char *text = (char *)support_read(MILLRACE_SOURCE_DIR "/tests/ingest/pipeline/source_trees.txt", &len);
    tree t = {0};
    for (char *line = text, *end; line < text + len; line = end + 1) {
        end = strchr(line, '\n');
        assert_non_null(end);
        *end = '\0';
        t.line++;
        take_line(&t, line);
    }
    support_tmpdir_remove(t.dir);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_get_their_verdicts)};
    return cmocka_run_group_tests_name("source_trees", tests, NULL, NULL);
}
