/* objects_turn.c - objects of an image as it is stored, and as EXIF shows it.
 * Invariant: showing and turning back are each other's inverse, to the last thousandth of a pixel.
 *
 *      1 ##    2 ##    3  #    4 #     5 ###   6 ###   7   #   8 #       how an image is shown
 *        #        #       #      #       #         #     ###     ###     that is stored as 1 is
 *        #        #      ##      ##
 * Source: Exif 2.3, tag 0x0112. */
#include "shards/format/objects.h"

/* From shown to stored: first width and height change places, then left and right, then top and bottom. */
enum { LEFT = 1, UP = 2, SWAPS = 4 };

static unsigned way_of(const mr_stored *p)
{
    static const uint8_t ways[] = {0, 0, LEFT, LEFT | UP, UP, SWAPS, SWAPS | UP, SWAPS | LEFT | UP, SWAPS | LEFT};
    return p->orientation < sizeof ways ? ways[p->orientation] : 0;
}

mr_stored mr_stored_shown(const mr_stored *p)
{
    return way_of(p) & SWAPS ? (mr_stored){p->height, p->width, 1} : (mr_stored){p->width, p->height, 1};
}

typedef struct place { /* a point, or a box with its left and upper edge */
    mr_milli x, y, width, height;
} place;

static place swapped(place p, unsigned way)
{
    return way & SWAPS ? (place){p.y, p.x, p.height, p.width} : p;
}

static place mirrored(place p, const mr_stored *picture, unsigned way)
{
    p.x = way & LEFT ? (mr_milli)picture->width * 1000 - p.x - p.width : p.x;
    p.y = way & UP ? (mr_milli)picture->height * 1000 - p.y - p.height : p.y;
    return p;
}

static place move(place p, const mr_stored *picture, bool back)
{
    unsigned way = way_of(picture);
    return back ? mirrored(swapped(p, way), picture, way) : swapped(mirrored(p, picture, way), way);
}

static void move_point(const mr_stored *picture, bool back, mr_milli *x, mr_milli *y)
{
    place p = move((place){*x, *y, 0, 0}, picture, back);
    *x = p.x;
    *y = p.y;
}

static void move_all(mr_objects *o, const mr_stored *picture, bool back)
{
    for (size_t i = 0; i < o->count; i++) {
        mr_object *object = &o->items[i];
        mr_milli *b = object->box;
        place box = move((place){b[0], b[1], b[2], b[3]}, picture, back);
        if (object->has_box)
            b[0] = box.x, b[1] = box.y, b[2] = box.width, b[3] = box.height;
        for (size_t k = 0; object->oriented && k < 8; k += 2)
            move_point(picture, back, &object->corners[k], &object->corners[k + 1]);
    }
    for (size_t i = 0; i + 1 < o->point_count; i += 2)
        move_point(picture, back, &o->points[i], &o->points[i + 1]);
    for (size_t i = 0; i < o->keypoint_count; i++)
        if (o->keypoints[i].visibility)
            move_point(picture, back, &o->keypoints[i].x, &o->keypoints[i].y);
}

void mr_objects_show(mr_objects *o, const mr_stored *picture)
{
    if (way_of(picture))
        move_all(o, picture, false);
}

void mr_objects_turn_back(mr_objects *o, const mr_stored *picture)
{
    if (way_of(picture))
        move_all(o, picture, true);
}

/* True: its sides were in the wrong order. */
static bool put_in_order(mr_milli box[4])
{
    bool wrong = box[2] < 0 || box[3] < 0;
    for (int i = 0; i < 2; i++)
        if (box[2 + i] < 0) {
            box[i] += box[2 + i];
            box[2 + i] = -box[2 + i];
        }
    return wrong;
}

void mr_objects_settle(mr_objects *o, const mr_stored *picture)
{
    for (size_t i = 0; i < o->count; i++)
        o->reversed += o->items[i].has_box && put_in_order(o->items[i].box);
    if (!(way_of(picture) & SWAPS) || picture->width == picture->height || o->width != picture->height ||
        o->height != picture->width)
        return;
    mr_objects_turn_back(o, picture);
    o->width = picture->width;
    o->height = picture->height;
}
