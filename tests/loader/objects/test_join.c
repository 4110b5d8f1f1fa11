/* test_join.c - objects as a loader hands them out: joined, masked, detached, for any threads, ranks and deliveries.
 * Covers loader/batch/work_objects.c.
 * Invariant tested: what a sample shows depends on the sample, its view and the options alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "loader/objects/move.h"
#include "tests/support/shards/dataset_maker.h"
#include "tests/support/shards/loader.h"
#include "tests/support/support.h"

enum { SAMPLES = 12, DAMAGED = 3, WIDTH = 60, HEIGHT = 40 };

/* Sample n has n modulo 4 boxes, each with a triangle, and every other one with keypoints; EXIF turns every third. */
static char *meta_of(int n)
{
    char text[2000], *at = text, *end = text + sizeof text;
    at += snprintf(at, (size_t)(end - at), ",\"objects\":[");
    for (int i = 0; i < n % 4; i++)
        at += snprintf(at, (size_t)(end - at),
                       "%s{\"label\":%d,\"box\":[%d.5,%d,30,20],\"polygons\":[[1,2,40,3,20.25,30]]%s%s}", i ? "," : "",
                       i % 3, 2 * i, n, i % 2 ? "" : ",\"keypoints\":[[9,9,2],[0,0,0]]", i ? ",\"crowd\":true" : "");
    return support_path("%s]", text);
}

static mr_dataset *make_objects(const char *dir)
{
    made samples[SAMPLES] = {{0}};
    picture exif = make_exif(false, 3, 1, 6);
    for (int n = 0; n < SAMPLES; n++)
        samples[n] = (made){.source = support_path("%d.jpg", n),
                            .more = meta_of(n),
                            .image = make_jpeg((jpeg_kind){WIDTH, HEIGHT, 3, .exif = n % 3 == 2 ? &exif : NULL})};
    dataset_make(dir, &(made_split){"train", samples, SAMPLES, 5}, 1);
    for (int n = 0; n < SAMPLES; n++) {
        free((char *)(uintptr_t)samples[n].source);
        free((char *)(uintptr_t)samples[n].more);
        picture_free(&samples[n].image);
    }
    picture_free(&exif);
    return open_dataset_at(dir);
}

static mr_loader_options options(mr_delivery deliver)
{
    mr_loader_options o = usual_options(deliver, MR_TAIL_DROP);
    o.struct_size = sizeof o;
    o.global_batch = 6;
    o.with_meta = 0;
    o.with_objects = 1;
    o.transform.kind = MR_TRANSFORM_TRAIN;
    o.transform.flip = 0.5f;
    o.transform.apply_orientation = 1;
    return o;
}

/* Slot i against the sample's meta, moved here. */
static void check_slot(const mr_dataset *ds, const mr_batch *b, uint64_t i, const mr_loader_options *o)
{
    const mr_sample_facts *f = &b->samples[i];
    const mr_batch_objects *all = b->objects;
    mr_sample_view v = {0};
    mr_mover mover = {.path = {0}};
    mr_moved want = {0};
    const mr_object_rules rules = {o->transform.size, o->height ? o->height : o->transform.size, 1, 0};
    assert_int_equal(mr_dataset_read(ds, "train", f->sample, &v, NULL), MR_OK);
    assert_int_equal(mr_objects_parse(v.meta, v.meta_len, &mover.objects, NULL), MR_OK);
    const mr_stored stored = {v.width, v.height, o->transform.apply_orientation ? v.orientation : 1};
    const mr_stored shown = mr_stored_shown(&stored);
    mr_objects_show(&mover.objects, &stored);
    mr_view view = mr_view_train(&o->transform, o->seed, b->epoch, f->item, shown.width, shown.height);
    view.out_height = o->height ? o->height : view.out_height;
    assert_true(mr_objects_move(&mover, &view, &rules, &want));
    uint64_t at = all->first_object[i], ring = 0, number = 0, key = 0;
    assert_int_equal(all->first_object[i + 1] - at, want.count);
    for (size_t k = 0; k < want.count; k++, at++) {
        const mr_moved_object *object = &want.objects[k];
        assert_memory_equal(all->boxes + 4 * at, object->box, sizeof object->box);
        assert_true(all->labels[at] == object->label && all->number[at] == object->number);
        assert_int_equal(all->crowd[at], object->crowd);
        assert_int_equal(all->first_polygon[at + 1] - all->first_polygon[at], object->polygons);
        assert_int_equal(all->first_keypoint[at + 1] - all->first_keypoint[at], object->keypoints);
        for (uint64_t p = all->first_polygon[at]; p < all->first_polygon[at + 1]; p++, ring++) {
            size_t points = all->first_point[p + 1] - all->first_point[p];
            assert_int_equal(points, want.rings[ring]);
            assert_memory_equal(all->point + 2 * all->first_point[p], want.numbers + number, points * 8);
            number += 2 * points;
        }
        for (uint64_t p = all->first_keypoint[at]; p < all->first_keypoint[at + 1]; p++, key += 3)
            assert_memory_equal(all->keypoint + 3 * p, want.keypoints + key, 12);
    }
    if (o->with_masks) {
        uint8_t mask[24 * 40];
        const uint32_t height = o->height ? o->height : 24;
        assert_int_equal(o->transform.size, 24);
        assert_true(mr_moved_draw(&want, &mover.path, 24, height, mask));
        assert_memory_equal(all->masks + i * 24 * height, mask, 24 * height);
    } else {
        assert_null(all->masks);
    }
    mr_moved_free(&want);
    mr_mover_free(&mover);
    mr_sample_view_free(&v);
}

static void every_slot_has_its_objects(void **state)
{
    (void)state;
    static const mr_delivery ways[] = {MR_DELIVER_ENCODED, MR_DELIVER_U8_NHWC, MR_DELIVER_F32_NCHW, MR_DELIVER_CODED};
    char *dir = support_tmpdir();
    mr_dataset *ds = make_objects(dir);
    uint64_t boxes = 0, points = 0, keypoints = 0;
    for (unsigned n = 0; n < 2 * MR_COUNT(ways); n++) {
        mr_loader_options o = options(ways[n / 2]);
        o.threads = n % 2 * 3;
        o.with_meta = n % 3 == 0;
        o.with_masks = n % 2;
        o.height = n / 2 % 2 && o.deliver != MR_DELIVER_CODED ? 40 : 0;
        o.transform.apply_orientation = n % 2;
        mr_loader *l = open_loader(ds, &o);
        const mr_batch *b;
        mr_status status;
        while ((status = mr_loader_next(l, &b, NULL)) == MR_OK) {
            assert_int_equal(b->objects->first_object[b->count], b->objects->objects);
            for (uint64_t i = 0; i < b->count; i++)
                check_slot(ds, b, i, &o);
            boxes += b->objects->objects;
            points += b->objects->points;
            keypoints += b->objects->keypoints;
            mr_batch_release(l, b);
        }
        assert_int_equal(status, MR_END);
        mr_loader_free(l);
    }
    assert_true(boxes > 50 && points > 150 && keypoints > 20);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void they_stay_with_a_batch_of_ones_own(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = make_objects(dir);
    mr_loader_options o = options(MR_DELIVER_U8_NHWC);
    o.with_masks = 1;
    mr_loader *l = open_loader(ds, &o);
    const mr_batch *b;
    mr_batch *own;
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    assert_int_equal(mr_batch_detach(l, b, &own, NULL), MR_OK);
    while (mr_loader_next(l, &b, NULL) == MR_OK)
        mr_batch_release(l, b);
    mr_loader_free(l);
    for (uint64_t i = 0; i < own->count; i++)
        check_slot(ds, own, i, &o);
    mr_batch_free(own);
    o.with_objects = o.with_masks = 0;
    l = open_loader(ds, &o);
    assert_int_equal(mr_loader_next(l, &b, NULL), MR_OK);
    assert_null(b->objects);
    mr_loader_free(l);
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void a_masked_sample_shows_nothing(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset_free(make_objects(dir));
    hurt_meta(dir, DAMAGED, 5);
    mr_dataset *ds = open_dataset_at(dir);
    for (int way = MR_ON_BAD_REPLACE; way <= MR_ON_BAD_MASK; way++) {
        mr_loader_options o = options(MR_DELIVER_U8_NHWC);
        o.on_bad = (mr_on_bad)way;
        o.with_masks = 1;
        mr_loader *l = open_loader(ds, &o);
        const mr_batch *b;
        uint64_t bad = 0;
        while (mr_loader_next(l, &b, NULL) == MR_OK) {
            for (uint64_t i = 0; i < b->count; i++)
                if (way == MR_ON_BAD_REPLACE || b->samples[i].weight > 0)
                    check_slot(ds, b, i, &o);
                else
                    assert_true(
                        b->objects->first_object[i + 1] == b->objects->first_object[i] &&
                        !b->objects->masks[i * 24 * 24] &&
                        !memcmp(b->objects->masks + i * 24 * 24, b->objects->masks + i * 24 * 24 + 1, 24 * 24 - 1));
            bad += b->replaced;
            mr_batch_release(l, b);
        }
        assert_int_equal(bad, 2); /* once in each epoch */
        mr_loader_free(l);
    }
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

static void limits_are_checked(void **state)
{
    (void)state;
    char *dir = support_tmpdir();
    mr_dataset *ds = make_objects(dir);
    mr_loader_options o = options(MR_DELIVER_U8_NHWC);
    o.object_visible = 1.5f;
    expect_no_loader(ds, &o, MR_MISUSE, "object_visible 1.5");
    o.object_visible = 0;
    o.object_side = -1;
    expect_no_loader(ds, &o, MR_MISUSE, "object_side -1");
    o = options(MR_DELIVER_CODED);
    o.height = 40;
    expect_no_loader(ds, &o, MR_MISUSE, "coded delivery makes only squares");
    o = options(MR_DELIVER_U8_NHWC);
    o.height = 40;
    o.transform.kind = MR_TRANSFORM_CENTER;
    expect_no_loader(ds, &o, MR_MISUSE, "a central crop makes only squares");
    o.height = 100000;
    expect_no_loader(ds, &o, MR_MISUSE, "height of 100000");
    mr_dataset_free(ds);
    support_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_has_its_objects),
        cmocka_unit_test(they_stay_with_a_batch_of_ones_own),
        cmocka_unit_test(a_masked_sample_shows_nothing),
        cmocka_unit_test(limits_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
