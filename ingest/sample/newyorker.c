/* newyorker.c - the two zips of the hub's caption contest data (v1.0), with cartoons of shapes.
 * Invariant: description, right caption, question and entities name shapes that are in the cartoon; the wrong captions
 * name none of them.
 *
 *   all_contest_images.zip   all_contest_images/101.jpeg ...     stored; gray and RGB; contests 103 and 104 are equal
 *   matching.zip             matching/{train,val,test}.jsonl     a train contest has 6 rows: 3 tellings, 2 questions
 *
 * Entries carry no time: a zip keeps local time, which would differ between time zones. */
#include "ingest/sample/sample.h"
#include "base/scope.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

enum { FIRST_CONTEST = 101, TRAIN_ROWS = 6, TELLINGS = 3, QUESTIONS = 2, CHOICES = 5 };

typedef struct zip {
    struct archive *archive;
    mr_buf path;
} zip;

/* ---- zips ----------------------------------------------------------------------------------------------------- */

static mr_status zip_open(mr_sketch *s, const char *name, const char *compression, zip *z, mr_error *err)
{
    MR_TRY(mr_sketch_path(s, &z->path, err, "%s", name));
    z->archive = archive_write_new();
    if (!z->archive)
        return mr_fail_memory(err, "writing a zip");
    if (archive_write_set_format_zip(z->archive) != ARCHIVE_OK ||
        archive_write_set_format_option(z->archive, "zip", "compression", compression) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(z->archive, 1) != ARCHIVE_OK ||
        archive_write_open_filename(z->archive, mr_buf_text(&z->path)) != ARCHIVE_OK)
        return mr_fail(err, MR_SYSTEM, "%s: %s", mr_buf_text(&z->path), archive_error_string(z->archive));
    return MR_OK;
}

static mr_status zip_add(zip *z, const char *name, const mr_buf *bytes, mr_error *err)
{
    mr_status status = mr_buf_status(bytes, err, "writing a zip");
    if (status != MR_OK)
        return status;
    struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return mr_fail_memory(err, "writing a zip");
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, (la_int64_t)bytes->len);
    if (archive_write_header(z->archive, entry) != ARCHIVE_OK ||
        archive_write_data(z->archive, bytes->data, bytes->len) != (la_ssize_t)bytes->len)
        status = mr_fail(err, MR_SYSTEM, "%s: %s", mr_buf_text(&z->path), archive_error_string(z->archive));
    archive_entry_free(entry);
    return status;
}

/* Ends the zip, counts it if all was well, and releases everything. */
static mr_status zip_close(mr_sketch *s, zip *z, mr_status status, mr_error *err)
{
    struct stat st;
    if (z->archive && status == MR_OK && archive_write_close(z->archive) != ARCHIVE_OK)
        status = mr_fail(err, MR_SYSTEM, "%s: %s", mr_buf_text(&z->path), archive_error_string(z->archive));
    archive_write_free(z->archive);
    if (status == MR_OK && stat(mr_buf_text(&z->path), &st) != 0)
        status = mr_fail_errno(err, errno, "%s", mr_buf_text(&z->path));
    if (status == MR_OK) {
        s->files++;
        s->bytes += (uint64_t)st.st_size;
    }
    mr_buf_free(&z->path);
    return status;
}

/* ---- cartoons ------------------------------------------------------------------------------------------------- */

/* Two or three figures of different shapes.  Contest 3 has the cartoon of contest 2; both are in train. */
static mr_random compose(const mr_sketch *s, uint64_t n, mr_scene *scene)
{
    uint64_t drawn = n == 3 ? 2 : n;
    uint32_t width, height;
    mr_random r = mr_sketch_random(s, drawn);
    mr_sketch_size(s, s->simple ? 1 : mr_random_real(&r, 1, 1.35), &r, &width, &height);
    mr_scene_begin(scene, width, height, true, &r);
    unsigned shape = (unsigned)(drawn % MR_SHAPE_CLASSES);
    if (s->simple) {
        mr_scene_add_apart(scene, (mr_shape)shape, 2, &r);
        return r;
    }
    for (uint64_t more = 2 + mr_random_below(&r, 2); more; more--) {
        mr_scene_add(scene, (mr_shape)shape, mr_random_real(&r, .13, .22), &r);
        shape = (shape + 1 + (unsigned)mr_random_below(&r, 3)) % MR_SHAPE_CLASSES;
    }
    return r;
}

static mr_status draw_cartoon(const mr_sketch *s, uint64_t n, mr_buf *out, mr_error *err)
{
    mr_scene scene;
    mr_picture p = {0};
    mr_random r = compose(s, n, &scene);
    scene.gray = mr_random_below(&r, 4) > 0;
    mr_jpeg_style style = mr_jpeg_style_random(&r);
    style.restart_rows = (unsigned)mr_random_below(&r, 2);
    mr_status status = mr_scene_draw(&scene, &r, &p, err);
    if (status == MR_OK)
        status = mr_picture_jpeg(&p, &style, out, err);
    mr_picture_free(&p);
    return status;
}

static mr_status write_images(mr_sketch *s, mr_error *err)
{
    zip z = {0};
    mr_buf bytes = {0};
    char name[64];
    mr_status status = zip_open(s, "all_contest_images.zip", "store", &z, err);
    for (uint64_t n = 0; n < s->images && status == MR_OK; n++) {
        mr_buf_clear(&bytes);
        snprintf(name, sizeof name, "all_contest_images/%llu.jpeg", (unsigned long long)n + FIRST_CONTEST);
        status = draw_cartoon(s, n, &bytes, err);
        if (status == MR_OK)
            status = zip_add(&z, name, &bytes, err);
    }
    mr_buf_free(&bytes);
    return zip_close(s, &z, status, err);
}

/* ---- rows ----------------------------------------------------------------------------------------------------- */

static bool shows(const mr_scene *scene, unsigned shape)
{
    for (size_t i = 0; i < scene->count; i++)
        if ((unsigned)scene->figures[i].shape == shape)
            return true;
    return false;
}

static unsigned absent_shape(const mr_scene *scene, mr_random *r)
{
    unsigned shape = (unsigned)mr_random_below(r, MR_SHAPE_CLASSES);
    while (shows(scene, shape)) /* at most three of ten are used */
        shape = (shape + 1) % MR_SHAPE_CLASSES;
    return shape;
}

static void add_joke(mr_buf *out, unsigned a, unsigned b, mr_random *r)
{
    const char *x = mr_shape_words[a], *y = mr_shape_words[b];
    switch (mr_random_below(r, 6)) {
    case 0:
        mr_buf_printf(out, "Ever since the %s moved in, nobody talks to the %s.", x, y);
        break;
    case 1:
        mr_buf_printf(out, "I ordered %s %s, and they sent %s %s.", mr_article(x), x, mr_article(y), y);
        break;
    case 2:
        mr_buf_printf(out, "My %s is fine. It's the %s I worry about.", x, y);
        break;
    case 3:
        mr_buf_printf(out, "You should have seen the %s before it met the %s.", x, y);
        break;
    case 4:
        mr_buf_printf(out, "Online, the %s said it was %s %s.", x, mr_article(y), y);
        break;
    default:
        mr_buf_printf(out, "First the %s, then the %s. Where will it end?", x, y);
        break;
    }
}

/* One of three captions describes the cartoon. */
static void add_telling(mr_buf *out, const mr_scene *scene, unsigned telling)
{
    static const char *const begin[TELLINGS] = {"The cartoon shows ", "Somebody has drawn ", "There is "};
    mr_buf_add_text(out, begin[telling]);
    if (telling == 1) {
        for (size_t i = 0; i < scene->count; i++) {
            mr_buf_add_text(out, !i ? "" : i + 1 == scene->count ? " and " : ", ");
            mr_figure_describe(scene, &scene->figures[i], out);
        }
    } else {
        mr_scene_describe(scene, out);
    }
    mr_buf_add_text(out, ".");
}

/* Columns in the order of the hub's files, which is alphabetic.  Nothing here needs escaping in JSON. */
static void add_row(const mr_sketch *s, uint64_t n, unsigned row, mr_buf *out)
{
    static const char letters[] = "ABCDE";
    mr_scene scene;
    compose(s, n, &scene);
    mr_random r = mr_sketch_random(s, n | UINT64_C(1) << 40); /* choices are the same in every row of a contest */
    unsigned label = (unsigned)mr_random_below(&r, CHOICES), a = scene.figures[0].shape;
    unsigned b = scene.figures[scene.count - 1].shape;
    mr_buf choices[CHOICES] = {{0}}, told = {0};
    for (unsigned i = 0; i < CHOICES; i++) {
        unsigned x = i == label ? a : absent_shape(&scene, &r);
        unsigned y = i == label ? b : absent_shape(&scene, &r);
        add_joke(&choices[i], x, y, &r);
    }
    mr_random id = mr_sketch_random(s, n | (uint64_t)(row + 2) << 42);
    add_telling(&told, &scene, row % TELLINGS);
    mr_buf_add_text(out, "{\"caption_choices\": [");
    for (unsigned i = 0; i < CHOICES; i++)
        mr_buf_printf(out, "%s\"%s\"", i ? ", " : "", mr_buf_text(&choices[i]));
    mr_buf_printf(out, "], \"contest_number\": %llu, \"entities\": [", (unsigned long long)n + FIRST_CONTEST);
    for (size_t i = 0; i < scene.count; i++)
        mr_buf_printf(out, "%s\"https://en.wikipedia.org/wiki/%c%s\"", i ? ", " : "",
                      mr_shape_words[scene.figures[i].shape][0] - 'a' + 'A',
                      mr_shape_words[scene.figures[i].shape] + 1);
    const char *paper = mr_paper_words[scene.paper];
    mr_buf_printf(out, "], \"from_description\": \"scene: a %s room description: %s choices", paper,
                  mr_buf_text(&told));
    for (unsigned i = 0; i < CHOICES; i++)
        mr_buf_printf(out, " %c: %s", letters[i], mr_buf_text(&choices[i]));
    mr_buf_printf(out, "\", \"image_description\": \"%s\", \"image_location\": \"a %s room\", ", mr_buf_text(&told),
                  paper);
    mr_buf_printf(out, "\"image_uncanny_description\": \"The %s and the %s stand in a room.\", \"instance_id\": \"",
                  mr_shape_words[a], mr_shape_words[b]);
    mr_sketch_hex(&id, 16, out);
    mr_buf_printf(out, "\", \"label\": \"%c\", \"n_tokens_label\": 1, \"questions\": [\"", letters[label]);
    mr_buf_printf(out,
                  row / TELLINGS % QUESTIONS ? "What is the %s saying to the %s?\"]}\n"
                                             : "Why is the %s beside the %s?\"]}\n",
                  mr_shape_words[a], mr_shape_words[b]);
    for (unsigned i = 0; i < CHOICES; i++) {
        out->failed |= choices[i].failed;
        mr_buf_free(&choices[i]);
    }
    mr_buf_free(&told);
}

/* The rows of `count` contests from `first` on, shuffled. */
static mr_status write_rows(mr_sketch *s, zip *z, const char *split, uint64_t first, uint64_t count, unsigned each,
                            mr_error *err)
{
    char name[64];
    mr_buf text = {0};
    mr_random r = mr_sketch_random(s, UINT64_C(1) << 41 | first);
    uint64_t *order = mr_alloc(count * each, sizeof *order);
    if (!order)
        return mr_fail_memory(err, "writing matching.zip");
    for (uint64_t i = 0; i < count * each; i++)
        order[i] = i;
    mr_random_shuffle(&r, order, count * each, sizeof *order);
    for (uint64_t i = 0; i < count * each; i++)
        add_row(s, first + order[i] / each, (unsigned)(order[i] % each), &text);
    snprintf(name, sizeof name, "matching/%s.jsonl", split);
    mr_status status = zip_add(z, name, &text, err);
    mr_buf_free(&text);
    free(order);
    return status;
}

static mr_status write_matching(mr_sketch *s, mr_error *err)
{
    zip z = {0};
    uint64_t first = 0;
    mr_status status = zip_open(s, "matching.zip", "deflate", &z, err);
    for (int split = MR_TRAIN; split <= MR_TEST && status == MR_OK; split++) {
        uint64_t count = s->in_split[split] = mr_sketch_share(s, (enum mr_sketch_split)split, true);
        status =
            write_rows(s, &z, mr_sketch_newyorker.splits[split], first, count, split == MR_TRAIN ? TRAIN_ROWS : 1, err);
        first += count;
    }
    return zip_close(s, &z, status, err);
}

static mr_status draw(mr_sketch *s, mr_error *err)
{
    MR_TRY(write_images(s, err));
    return write_matching(s, err);
}

const mr_sketch_layout mr_sketch_newyorker = {
    .name = "newyorker",
    .variants = "",
    .min_side = 280,
    .max_side = 400,
    .splits = {"train", "val", "test"},
    .draw = draw,
};
