/* test_move.c - objects moved with their picture, against a plain reference that follows single points and pixels.
 * Invariant tested: a point of an object is where the pixel at its place is, and nothing is outside of the picture.
 * Covers loader/objects/clip.c, loader/objects/mask.c. */
#include "base/error.h"
#include "base/random.h"
#include "loader/objects/move.h"
#include "tests/support/support.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 400 };

static double between(mr_random *r, double low, double high)
{
    return low + (high - low) * (double)mr_random_below(r, 1000001) / 1e6;
}

static mr_milli milli(double pixels)
{
    mr_milli out = 0;
    assert_true(mr_milli_of(pixels, &out));
    return out;
}

typedef struct scene {
    uint32_t width, height;
    mr_view view;
    mr_object_rules rules;
} scene;

static scene draw_scene(mr_random *r, uint64_t n)
{
    scene s = {.width = 20 + (uint32_t)mr_random_below(r, 300), .height = 20 + (uint32_t)mr_random_below(r, 300)};
    mr_transform t = {.kind = (mr_transform_kind)(n % 3), .size = 32 + (uint32_t)mr_random_below(r, 64), .flip = 0.5f};
    s.view = t.kind == MR_TRANSFORM_TRAIN ? mr_view_train(&t, n, 1, n, s.width, s.height)
                                          : mr_view_eval(&t, s.width, s.height);
    s.rules = (mr_object_rules){t.size, t.size, 1, 0};
    return s;
}

/* Step by step, as torchvision's functions are called: cut, resized, cut again, mirrored. */
static void follow(const scene *s, double *x, double *y)
{
    const mr_view *v = &s->view;
    *x -= v->left;
    *y -= v->top;
    *x *= (double)v->out_width / v->width;
    *y *= (double)v->out_height / v->height;
    *x -= v->crop_left;
    *y -= v->crop_top;
    if (v->flip)
        *x = s->rules.width - *x;
}

static double clamp(double x, double limit)
{
    return fmin(fmax(x, 0), limit);
}

static void check_box(const scene *s, const double b[4], const mr_moved *m, size_t *at, uint32_t number)
{
    double x[2] = {b[0], b[2]}, y[2] = {b[1], b[3]};
    for (int i = 0; i < 2; i++)
        follow(s, &x[i], &y[i]);
    const double want[4] = {clamp(fmin(x[0], x[1]), s->rules.width), clamp(fmin(y[0], y[1]), s->rules.height),
                            clamp(fmax(x[0], x[1]), s->rules.width), clamp(fmax(y[0], y[1]), s->rules.height)};
    bool kept = want[2] - want[0] >= 1 && want[3] - want[1] >= 1;
    bool there = *at < m->count && m->objects[*at].number == number;
    if (fabs(want[2] - want[0] - 1) > 1e-6 && fabs(want[3] - want[1] - 1) > 1e-6)
        assert_int_equal(there, kept);
    if (!there)
        return;
    for (int i = 0; i < 4; i++)
        assert_true(fabs((double)m->objects[*at].box[i] - want[i]) < 1e-3);
    assert_int_equal(m->objects[*at].label, (int32_t)number % 5);
    ++*at;
}

static void boxes_are_where_their_corners_are(void **state)
{
    (void)state;
    mr_random r = support_random();
    mr_mover mover = {.path = {0}};
    mr_moved moved = {0};
    size_t kept = 0, all = 0;
    for (uint64_t n = 0; n < ROUNDS; n++) {
        scene s = draw_scene(&r, n);
        double b[8][4];
        mr_objects_clear(&mover.objects);
        for (int i = 0; i < 8; i++, all++) {
            mr_object *o = mr_objects_add(&mover.objects, i % 5);
            assert_non_null(o);
            o->has_box = true;
            for (int k = 0; k < 4; k++) {
                double most = k % 2 ? s.height : s.width;
                o->box[k] = milli(k < 2 ? between(&r, -2, most) : between(&r, 0, most - (double)o->box[k - 2] / 1000));
                b[i][k] = (double)(k < 2 ? o->box[k] : o->box[k - 2] + o->box[k]) / 1000;
            }
        }
        assert_true(mr_objects_move(&mover, &s.view, &s.rules, &moved));
        size_t at = 0;
        for (uint32_t i = 0; i < 8; i++)
            check_box(&s, b[i], &moved, &at, i);
        assert_int_equal(at, moved.count);
        kept += at;
    }
    assert_true(kept > all / 10 && kept < all);
    mr_moved_free(&moved);
    mr_mover_free(&mover);
}

/* Even and odd: whether a ray to the right crosses the polygon an odd number of times. */
static bool covers(const double *at, size_t numbers, double x, double y)
{
    bool in = false;
    for (size_t i = 0, j = numbers - 2; i < numbers; j = i, i += 2)
        if ((at[i + 1] > y) != (at[j + 1] > y) &&
            x < (at[j] - at[i]) * (y - at[i + 1]) / (at[j + 1] - at[i + 1]) + at[i])
            in = !in;
    return in;
}

/* A star around the middle: it has dents, and leaves the picture and returns. */
static void draw_star(mr_random *r, mr_path *p)
{
    enum { POINTS = 11 };
    double x = between(r, -10, 50), y = between(r, -10, 50);
    p->count = 0;
    for (int i = 0; i < POINTS; i++) {
        double far = between(r, 2, 60), angle = 2 * acos(-1) * i / POINTS;
        assert_true(mr_path_point(p, x + far * cos(angle), y + far * sin(angle)));
    }
}

static void polygons_keep_their_area_inside(void **state)
{
    (void)state;
    mr_random r = support_random();
    mr_path path = {0}, scratch = {0};
    size_t inside = 0;
    for (int n = 0; n < ROUNDS; n++) {
        double before[64];
        draw_star(&r, &path);
        size_t numbers = path.count;
        memcpy(before, path.at, numbers * sizeof *before);
        assert_true(mr_path_clip(&path, &scratch, 40, 30));
        for (size_t i = 0; i < path.count; i++)
            assert_true(path.at[i] >= 0 && path.at[i] <= (i % 2 ? 30 : 40));
        for (int k = 0; k < 50; k++) {
            double x = between(&r, 0.01, 39.99), y = between(&r, 0.01, 29.99);
            bool in = covers(before, numbers, x, y);
            assert_int_equal(path.count ? covers(path.at, path.count, x, y) : false, in);
            inside += in;
        }
    }
    assert_true(inside > ROUNDS);
    free(path.at);
    free(scratch.at);
}

static void rules_and_parts(void **state)
{
    (void)state;
    /* The right half of 20 x 10 pixels, twice as large, mirrored. */
    const mr_view v = {.left = 10, .width = 10, .height = 10, .out_width = 20, .out_height = 20, .flip = true};
    mr_object_rules rules = {20, 20, 1, 0};
    mr_mover m = {.path = {0}};
    mr_moved out = {0};
    mr_objects *o = &m.objects;
    const mr_milli box[4] = {8000, 2000, 4000, 4000}, square[8] = {8000, 2000, 12000, 2000, 12000, 6000, 8000, 6000};
    mr_object *first = mr_objects_add(o, 2);
    memcpy(first->box, box, sizeof box);
    first->has_box = first->crowd = true;
    mr_objects_keypoint(o, 0, (mr_keypoint){11000, 3000, 2});
    mr_objects_keypoint(o, 0, (mr_keypoint){9000, 3000, 2});
    mr_objects_keypoint(o, 0, (mr_keypoint){0, 0, 0});
    mr_object *second = mr_objects_add(o, -1); /* without a box */
    second->oriented = true;
    memcpy(second->corners, square, sizeof square);
    mr_objects_add(o, 1); /* nowhere */
    assert_true(mr_objects_move(&m, &v, &rules, &out));
    assert_int_equal(out.count, 2);
    const float box_wanted[4] = {16, 4, 20, 12}, points[9] = {18, 6, 2, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < 2; i++)
        assert_memory_equal(out.objects[i].box, box_wanted, sizeof box_wanted);
    assert_true(out.objects[0].crowd && !out.objects[1].crowd && out.objects[1].label == -1);
    assert_int_equal(out.objects[0].keypoints, 3);
    assert_memory_equal(out.keypoints, points, sizeof points);
    assert_true(out.objects[0].polygons == 0 && out.objects[1].polygons == 1);
    assert_true(out.ring_count == 1 && out.rings[0] == 4 && out.number_count == 8);

    rules.least_visible = 0.5; /* exactly half of it */
    assert_true(mr_objects_move(&m, &v, &rules, &out));
    assert_int_equal(out.count, 2);
    rules.least_visible = 0.51;
    assert_true(mr_objects_move(&m, &v, &rules, &out));
    assert_int_equal(out.count, 0);
    rules = (mr_object_rules){20, 20, 4.01, 0}; /* 4 pixels wide */
    assert_true(mr_objects_move(&m, &v, &rules, &out));
    assert_int_equal(out.count, 0);
    mr_moved_free(&out);
    mr_mover_free(&m);
}

static void masks_cover_the_pixels_whose_centres_are_inside(void **state)
{
    (void)state;
    enum { SIDE = 40, HEIGHT = 30, ALL = SIDE * HEIGHT };
    static const uint8_t values[5] = {1, 2, 255, 254, 255};
    mr_random r = support_random();
    mr_path path = {0}, scratch = {0};
    for (int n = 0; n < 50; n++) {
        mr_moved_object objects[5] = {{.label = 0}, {.label = 1}, {.label = -1}, {.label = 253}, {.crowd = true}};
        float numbers[5 * 22];
        uint32_t rings[5];
        uint8_t mask[ALL], want[ALL] = {0};
        mr_moved m = {.objects = objects, .count = 5, .rings = rings, .ring_count = 5, .numbers = numbers};
        for (int i = 0; i < 5; i++) {
            draw_star(&r, &path);
            objects[i].polygons = 1;
            rings[i] = (uint32_t)path.count / 2;
            for (size_t k = 0; k < path.count; k++)
                path.at[k] = (double)(numbers[m.number_count++] = (float)path.at[k]);
            for (int pixel = 0; pixel < ALL; pixel++)
                if (covers(path.at, path.count, pixel % SIDE + 0.5, pixel / SIDE + 0.5))
                    want[pixel] = values[i];
        }
        assert_true(mr_moved_draw(&m, &scratch, SIDE, HEIGHT, mask));
        assert_memory_equal(mask, want, sizeof want);
    }
    free(path.at);
    free(scratch.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_are_where_their_corners_are),
        cmocka_unit_test(polygons_keep_their_area_inside),
        cmocka_unit_test(rules_and_parts),
        cmocka_unit_test(masks_cover_the_pixels_whose_centres_are_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
