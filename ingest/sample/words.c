/* words.c - a drawn image described in text, so that text and image match.
 * Invariant: the description is visible: shape, colour or shade, relative size, and place. */
#include "ingest/sample/sample.h"

#include <string.h>

const char *mr_article(const char *word)
{
    return strchr("aeio", word[0]) ? "an" : "a";
}

static const char *colour_seen(const mr_scene *scene, unsigned colour)
{
    /* A cartoon fills with paper, hatching or ink; draw.c takes the same three from the colour.  A gray image
     * has the brightness of the palette. */
    static const char *const shades[] = {"white", "striped", "black"};
    static const char *const grays[MR_COLOURS] = {"gray", "gray",       "light gray", "gray",  "gray",
                                                  "gray", "light gray", "dark gray",  "white", "black"};
    return scene->cartoon ? shades[colour % 3] : scene->gray ? grays[colour] : mr_colour_words[colour];
}

static const char *size_word(const mr_scene *scene, const mr_figure *f)
{
    uint32_t side = scene->width < scene->height ? scene->width : scene->height;
    double share = f->radius / side;
    return share > .28 ? "large " : share < .16 ? "small " : "";
}

void mr_figure_describe(const mr_scene *scene, const mr_figure *f, mr_buf *out)
{
    const char *size = size_word(scene, f);
    const char *colour = colour_seen(scene, f->colour);
    mr_buf_printf(out, "%s %s%s %s", mr_article(*size ? size : colour), size, colour, mr_shape_words[f->shape]);
}

static const char *position_of(const mr_scene *scene, const mr_figure *f)
{
    static const char *const places[3][3] = {
        {"at the top left", "at the top", "at the top right"},
        {"at the left", "in the middle", "at the right"},
        {"at the bottom left", "at the bottom", "at the bottom right"},
    };
    unsigned column = (unsigned)(f->cx * 3 / scene->width), row = (unsigned)(f->cy * 3 / scene->height);
    return places[row > 2 ? 2 : row][column > 2 ? 2 : column];
}

void mr_scene_describe(const mr_scene *scene, mr_buf *out)
{
    if (!scene->count)
        mr_buf_add_text(out, "nothing at all");
    for (size_t i = 0; i < scene->count; i++) {
        if (i)
            mr_buf_add_text(out, i + 1 == scene->count ? " and " : ", ");
        mr_figure_describe(scene, &scene->figures[i], out);
        mr_buf_printf(out, " %s", position_of(scene, &scene->figures[i]));
    }
}

void mr_scene_caption(const mr_scene *scene, unsigned way, mr_buf *out)
{
    const mr_figure *subject = &scene->figures[0];
    const char *paper = mr_paper_words[scene->paper], *colour = colour_seen(scene, scene->paper_colour);
    const char *shape = mr_shape_words[subject->shape];
    switch (way) {
    case 0:
        mr_buf_add_text(out, "There is ");
        mr_scene_describe(scene, out);
        mr_buf_add_text(out, ".");
        break;
    case 1:
        mr_figure_describe(scene, subject, out);
        mr_buf_printf(out, " on a %s %s background", paper, colour);
        break;
    case 2:
        mr_buf_printf(out, "A drawing of %zu shape%s, one of them %s %s.", scene->count, scene->count == 1 ? "" : "s",
                      mr_article(shape), shape);
        break;
    case 3:
        mr_buf_add_text(out, "We see ");
        mr_figure_describe(scene, subject, out);
        mr_buf_printf(out, " %s of the picture. ", position_of(scene, subject));
        break;
    default:
        mr_buf_printf(out, "A %s %s surface with the %s", paper, colour, shape);
        for (size_t i = 1; i < scene->count; i++)
            mr_buf_printf(out, " and the %s", mr_shape_words[scene->figures[i].shape]);
        break;
    }
}
