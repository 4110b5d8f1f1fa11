/* test_objects.c - objects: written in one form, read back equal, turned back, counted.
 * Invariant tested: what is written is read back to the last thousandth of a pixel, and nothing else is taken. */
#include <math.h>
#include <string.h>

#include "base/scope.h"
#include "shards/format/objects.h"
#include "image/region/pixels.h"
#include "tests/support/support.h"

static const mr_class classes[] = {{.name = (char *)"cat"}, {.name = (char *)"do\"g"}};

static void fill(mr_objects *o)
{
    mr_object *a = mr_objects_add(o, 1);
    assert_non_null(a);
    a->has_box = true;
    memcpy(a->box, (mr_milli[]){-1500, 0, 10020, 3}, sizeof a->box);
    mr_objects_id(o, "17", 2);
    mr_objects_ring(o);
    mr_objects_point(o, 0, 1000);
    mr_objects_point(o, 2500, -10);
    mr_objects_point(o, 1, 100);
    mr_object *b = mr_objects_add(o, -1);
    assert_non_null(b);
    b->oriented = b->crowd = true;
    memcpy(b->corners, (mr_milli[]){1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000}, sizeof b->corners);
    mr_objects_keypoint(o, 1, (mr_keypoint){1200, 5000, 2});
    mr_objects_keypoint(o, 1, (mr_keypoint){0, 0, 0});
    mr_objects_add(o, 0);
    o->known = true;
}

static const char expected[] =
    "{\"source\":\"a\",\"objects\":[{\"label\":1,\"class\":\"do\\\"g\",\"box\":[-1.5,0,10.02,0.003],"
    "\"polygons\":[[0,1,2.5,-0.01,0.001,0.1]],\"id\":17},"
    "{\"oriented_box\":[1,2,3,4,5,6,7,8],\"keypoints\":[[1.2,5,2],[0,0,0]],\"crowd\":true},"
    "{\"label\":0,\"class\":\"cat\"}]}";

static void write_meta(const mr_objects *o, mr_buf *out)
{
    mr_buf_clear(out);
    mr_buf_add_text(out, "{\"source\":\"a\"");
    mr_objects_write(o, classes, MR_COUNT(classes), out);
    mr_buf_add_text(out, "}");
    assert_false(out->failed);
}

static void test_form(void **state)
{
    (void)state;
    MR_AUTO(mr_objects_free) mr_objects o = {0}, back = {0};
    MR_AUTO(mr_buf_free) mr_buf text = {0}, again = {0};
    mr_error err;
    fill(&o);
    write_meta(&o, &text);
    assert_string_equal(mr_buf_text(&text), expected);
    if (mr_objects_parse(text.data, text.len, &back, &err) != MR_OK)
        fail_msg("%s", err.text);
    assert_true(back.known);
    write_meta(&back, &again);
    assert_string_equal(mr_buf_text(&again), expected);
    assert_int_equal(mr_objects_parse("{\"source\":\"a\"}", 14, &back, &err), MR_OK);
    assert_false(back.known);
    mr_milli milli;
    assert_false(mr_milli_of(1e300, &milli) || mr_milli_of((double)NAN, &milli) || mr_milli_of(-1e7, &milli));
    assert_true(mr_milli_of(0.0004, &milli) && milli == 0);
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{\"objects\":{}}",
        "{\"objects\":3}",
        "{\"objects\":[3]}",
        "{\"objects\":[[1]]}",
        "{\"objects\":[{\"box\":[1,2,3]}]}",
        "{\"objects\":[{\"box\":[1,2,3,4,5]}]}",
        "{\"objects\":[{\"box\":[1,2,3,1e5]}]}",
        "{\"objects\":[{\"box\":[[1,2],[3,4]]}]}",
        "{\"objects\":[{\"box\":5}]}",
        "{\"objects\":[{\"label\":-1}]}",
        "{\"objects\":[{\"label\":1.5}]}",
        "{\"objects\":[{\"label\":99999999999}]}",
        "{\"objects\":[{\"polygons\":[1,2]}]}",
        "{\"objects\":[{\"polygons\":[[1,2,3]]}]}",
        "{\"objects\":[{\"polygons\":[[[1]]]}]}",
        "{\"objects\":[{\"keypoints\":[[1,2]]}]}",
        "{\"objects\":[{\"oriented_box\":[1,2,3,4]}]}",
        "{\"objects\":[{\"crowd\":1}]}",
        "{\"objects\":[],\"objects\":[]}",
        "{\"objects\":[",
        "{\"objects\":[{}",
        "{\"objects\":[{},]}",
        "{\"objects\":[{\"crowd\":true,}]}",
        "{\"objects\":[{\"crowd\":tru}]}",
        "{\"objects\":[{\"crowd\" true}]}",
        "{\"objects\":[{\"polygons\":[[1,2],]}]}",
        "{\"objects\":[{\"polygons\":[[1,2,]]}]}",
        "{\"objects\":[{\"b\\u006fx\":[1]}]}",
        "{\"objects\":[{\"label\":01}]}",
        "{\"objects\":[{\"label\":1.}]}",
        "{\"objects\":[{\"label\":1e5}]}",
        "{\"objects\":[{\"box\":[1,2,3,00]}]}",
        "{\"objects\":[{\"box\":[1,2,3,- 4]}]}",
        "{\"objects\":[{\"id\":01}]}",
        "{\"objects\":[{\"id\":1.}]}",
        "{\"objects\":[{\"id\":1e}]}",
        "{\"objects\":[{\"id\":one}]}",
        "{\"objects\":[{\"id\":\"a\\q\"}]}",
        "{\"objects\":[{\"id\":[1]}]}",
        "{\"objects\":[{\"more\":]}",
        "{\"a\":[,\"objects\":[]}",
        "{\"objects\":[]}]",
        "[]",
        "",
    };
    MR_AUTO(mr_objects_free) mr_objects o = {0};
    for (size_t i = 0; i < MR_COUNT(wrong); i++) {
        mr_error err;
        if (mr_objects_parse(wrong[i], strlen(wrong[i]), &o, &err) != MR_BAD_DATA)
            fail_msg("%s is taken", wrong[i]);
        assert_non_null(strstr(err.text, "meta: "));
    }
}

/* Blanks, members of others and escapes in keys are JSON; a meta that was cut anywhere is refused. */
static void test_forms(void **state)
{
    (void)state;
    static const char text[] =
        " { \"a\\\"]\" : [ { \"objects\" : 3 } ] , \"objects\" : [ { \"l\\u0061bel\" : 7 , \"id\" : -1.5E+2 ,"
        "\"more\":{\"box\":[]},\"class\":\"]\",\"box\" : [ 1 , -2.5 , 3.125 , 0 ] ,\n\t"
        "\"polygons\" : [ [ ] , [ 1 , 2 ] ] , \"crowd\" : false } , { } ] , \"b\" : \"\\\\\" } ";
    MR_AUTO(mr_objects_free) mr_objects o = {0};
    mr_error err;
    size_t closed = strlen(text) - 1;
    assert_int_equal(mr_objects_parse(text, strlen(text), &o, &err), MR_OK);
    assert_true(o.known && o.count == 2 && o.ring_count == 2 && o.point_count == 2);
    assert_true(o.items[0].label == 7 && !o.items[0].crowd && o.items[0].has_box && o.items[0].box[1] == -2500);
    assert_true(o.items[0].box[2] == 3125 && o.items[1].label == -1 && !o.items[1].has_box);
    assert_int_equal(o.items[0].id_len, strlen("-1.5E+2"));
    assert_memory_equal(o.ids.data + o.items[0].id_at, "-1.5E+2", strlen("-1.5E+2"));
    for (size_t len = 0; len < closed; len++)
        if (mr_objects_parse(text, len, &o, &err) != MR_BAD_DATA)
            fail_msg("%.*s is taken", (int)len, text);
}

/* A point of the picture as stored, seen as each orientation shows it, comes back. */
static void test_orientation(void **state)
{
    (void)state;
    const struct {
        uint8_t orientation;
        mr_milli shown[2]; /* where (10, 20) of 100 x 50 is shown */
    } turns[] = {{5, {20000, 10000}}, {6, {30000, 10000}}, {7, {30000, 90000}}, {8, {20000, 90000}}};
    for (size_t i = 0; i < MR_COUNT(turns); i++) {
        MR_AUTO(mr_objects_free) mr_objects o = {.known = true, .width = 50, .height = 100};
        const mr_stored stored = {100, 50, turns[i].orientation};
        mr_object *object = mr_objects_add(&o, 0);
        assert_non_null(object);
        object->has_box = true;
        object->box[0] = turns[i].shown[0];
        object->box[1] = turns[i].shown[1];
        object->box[2] = 3000;
        object->box[3] = 4000;
        mr_objects_ring(&o);
        mr_objects_point(&o, turns[i].shown[0], turns[i].shown[1]);
        mr_objects_settle(&o, &stored);
        assert_int_equal(o.points[0], 10000);
        assert_int_equal(o.points[1], 20000);
        assert_int_equal(o.items[0].box[2], 4000);
        assert_int_equal(o.items[0].box[3], 3000);
        assert_true(o.items[0].box[0] == 10000 || o.items[0].box[0] == 6000);
        assert_true(o.items[0].box[1] == 20000 || o.items[0].box[1] == 17000);
        assert_int_equal(o.width, 100);
    }
    MR_AUTO(mr_objects_free) mr_objects same = {.known = true, .width = 100, .height = 50};
    mr_objects_add(&same, 0)->has_box = true;
    mr_objects_settle(&same, &(mr_stored){100, 50, 6});
    assert_int_equal(same.items[0].box[0], 0);
}

/* A pixel as it is shown is where image/region/orient.c has it, and everything comes back from either side. */
static void test_turns(void **state)
{
    (void)state;
    mr_random random = support_random();
    for (int round = 0; round < 400; round++) {
        const mr_stored stored = {1 + (uint32_t)mr_random_below(&random, 300),
                                  1 + (uint32_t)mr_random_below(&random, 300), (uint8_t)mr_random_below(&random, 9)};
        const mr_stored shown = mr_stored_shown(&stored);
        const mr_region pixel = {(uint32_t)mr_random_below(&random, shown.width),
                                 (uint32_t)mr_random_below(&random, shown.height), 1, 1};
        const mr_region at = mr_orient_region(stored.orientation, stored.width, stored.height, &pixel);
        const mr_milli x = (mr_milli)pixel.left * 1000, y = (mr_milli)pixel.top * 1000;
        MR_AUTO(mr_objects_free) mr_objects o = {.known = true};
        mr_object *object = mr_objects_add(&o, 0);
        assert_non_null(object);
        object->has_box = object->oriented = true;
        memcpy(object->box, (mr_milli[]){x, y, 1000, 1000}, sizeof object->box);
        memcpy(object->corners, (mr_milli[]){x, y, x + 7, y, x + 7, y + 9, x, y + 9}, sizeof object->corners);
        mr_objects_ring(&o);
        mr_objects_point(&o, x + 500, y + 500);
        mr_objects_keypoint(&o, 0, (mr_keypoint){x + 500, y + 500, 1});
        mr_objects_keypoint(&o, 0, (mr_keypoint){0, 0, 0});
        mr_objects_turn_back(&o, &stored);
        assert_memory_equal(object->box, ((mr_milli[]){at.left * 1000, at.top * 1000, 1000, 1000}), sizeof object->box);
        assert_true(o.points[0] == at.left * 1000 + 500 && o.points[1] == at.top * 1000 + 500);
        assert_true(o.keypoints[0].x == o.points[0] && o.keypoints[0].y == o.points[1]);
        assert_true(o.keypoints[1].x == 0 && o.keypoints[1].y == 0);
        mr_objects_show(&o, &stored);
        assert_memory_equal(object->box, ((mr_milli[]){x, y, 1000, 1000}), sizeof object->box);
        assert_memory_equal(object->corners, ((mr_milli[]){x, y, x + 7, y, x + 7, y + 9, x, y + 9}),
                            sizeof object->corners);
        assert_true(o.points[0] == x + 500 && o.keypoints[0].y == y + 500);
        object->box[2] = -5000; /* stays odd */
        mr_objects_turn_back(&o, &stored);
        mr_objects_show(&o, &stored);
        assert_memory_equal(object->box, ((mr_milli[]){x, y, -5000, 1000}), sizeof object->box);
    }
}

static void add_box(mr_objects *o, int32_t label, mr_milli x, mr_milli y, mr_milli width, mr_milli height)
{
    mr_object *object = mr_objects_add(o, label);
    assert_non_null(object);
    object->has_box = true;
    memcpy(object->box, (mr_milli[]){x, y, width, height}, sizeof object->box);
}

static void test_tally(void **state)
{
    (void)state;
    MR_AUTO(mr_objects_free) mr_objects o = {.known = true, .width = 640, .height = 480, .unreadable = 2};
    mr_object_tally tally = {0}, all = {0};
    const mr_stored stored = {100, 50, 3};
    add_box(&o, 0, 0, 0, 100000, 50000);
    add_box(&o, 0, -1000, 0, 102000, 51000); /* a pixel is allowed */
    add_box(&o, 0, -1001, 0, 5000, 5000);
    add_box(&o, 0, 98000, 48000, 1000, 3001);
    add_box(&o, 1, 0, 0, 0, 5000);
    add_box(&o, 1, 5000, 5000, 5000, -5);
    add_box(&o, 2, 5000, 5000, 5000, 5000);
    add_box(&o, 3, 5000, 5000, 5000, 5000);
    add_box(&o, 2, 5000, 5000, 5000, 5000);
    add_box(&o, 2, 5000, 5000, 5000, 5000);
    add_box(&o, 4, 100, 200, 900, 800);
    add_box(&o, -1, 100, 200, 901, 800);
    assert_true(mr_objects_count(&o, &stored, 7, &tally));
    assert_int_equal(tally.objects, 12);
    assert_int_equal(tally.odd[MR_OBJECT_LEAVES].objects, 2);
    assert_int_equal(tally.odd[MR_OBJECT_EMPTY].objects, 2);
    assert_int_equal(tally.odd[MR_OBJECT_REPEATED].objects, 2);
    assert_int_equal(tally.odd[MR_OBJECT_UNREADABLE].objects, 2);
    assert_int_equal(tally.odd[MR_OBJECT_FRACTIONS].objects, 1);
    assert_int_equal(tally.odd[MR_OBJECT_UNNAMED].objects, 1);
    assert_int_equal(tally.odd[MR_OBJECT_TURNED].objects, 12);
    assert_int_equal(tally.odd[MR_OBJECT_RESIZED].objects, 12);
    assert_int_equal(tally.odd[MR_OBJECT_LEAVES].first, 7);
    mr_objects_clear(&o);
    o.known = true;
    for (int i = 0; i < 4;
         i++) { /* a polygon within, one that is not, a keypoint that is not, one that is not labelled */
        assert_non_null(mr_objects_add(&o, i));
        if (i < 2) {
            mr_objects_ring(&o);
            mr_objects_point(&o, 101000, 51000);
            mr_objects_point(&o, 50000, 51000 + i);
        } else {
            mr_objects_keypoint(&o, (size_t)i, (mr_keypoint){5000, -1001, i == 2});
        }
    }
    assert_true(mr_objects_count(&o, &stored, 7, &all));
    assert_int_equal(all.odd[MR_OBJECT_LEAVES].objects, 2);
    all = (mr_object_tally){0};
    mr_objects_clear(&o);
    assert_true(mr_objects_count(&o, &stored, 8, &tally));
    assert_int_equal(tally.pictures, 1);
    o.known = true;
    assert_true(mr_objects_count(&o, &stored, 9, &tally));
    assert_int_equal(tally.without, 1);
    mr_object_tally_add(&all, &tally);
    tally.odd[MR_OBJECT_LEAVES].first = 99;
    mr_object_tally_add(&all, &tally);
    assert_int_equal(all.odd[MR_OBJECT_LEAVES].first, 7);
    assert_int_equal(all.pictures, 4);
}

/* A polygon, or keypoints, of which no part is in the box; what only touches it, or is not labelled, does not count. */
static void test_apart(void **state)
{
    (void)state;
    static const struct {
        mr_milli x, y;
        bool apart;
    } trials[] = {{15000, 15000, false}, {9000, 9000, false},  {8999, 15000, true}, {15000, 8999, true},
                  {21000, 15000, false}, {21001, 15000, true}, {600, 700, true}};
    const mr_stored stored = {100, 50, 1};
    for (size_t i = 0; i < MR_COUNT(trials); i++)
        for (int keypoint = 0; keypoint < 3; keypoint++) {
            MR_AUTO(mr_objects_free) mr_objects o = {.known = true};
            mr_object_tally tally = {0};
            add_box(&o, 0, 10000, 10000, 10000, 10000);
            if (keypoint)
                mr_objects_keypoint(&o, 0, (mr_keypoint){trials[i].x, trials[i].y, keypoint == 1 ? 2 : 0});
            else
                mr_objects_ring(&o);
            for (int k = 0; k < 3 && !keypoint; k++)
                mr_objects_point(&o, trials[i].x, trials[i].y);
            assert_true(mr_objects_count(&o, &stored, 0, &tally));
            assert_int_equal(tally.odd[MR_OBJECT_APART].objects, keypoint < 2 && trials[i].apart);
        }
}

/* A name that a source gives once is not repeated for each object where it is long. */
static void test_long_name(void **state)
{
    (void)state;
    char name[257];
    memset(name, 'x', sizeof name - 1);
    name[256] = '\0';
    mr_class class = {.name = name};
    for (size_t len = 256; len >= 255; len--) {
        MR_AUTO(mr_objects_free) mr_objects o = {0};
        MR_AUTO(mr_buf_free) mr_buf text = {0};
        name[len] = '\0';
        assert_non_null(mr_objects_add(&o, 0));
        mr_objects_write(&o, &class, 1, &text);
        assert_true((strstr(mr_buf_text(&text), "\"class\"") != NULL) == (len == 255));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_form),  cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_forms), cmocka_unit_test(test_orientation),
                                       cmocka_unit_test(test_turns), cmocka_unit_test(test_tally),
                                       cmocka_unit_test(test_apart), cmocka_unit_test(test_long_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
