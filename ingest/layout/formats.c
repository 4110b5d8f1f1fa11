/* formats.c - the table of formats, and what the beginning of a file says about it.
 * Invariant: the first row that fits counts, so a row comes after more specific ones.
 * Sources: the formats' own documents and exporters: COCO's "Data format", Apple's CreateML object detector, LabelMe's
 * label files, VIA 2's project and CSV, Label Studio's "Export formats", CVAT's "CVAT for images 1.1" and "for video
 * 1.1", PASCAL-Part's Annotations_Part/, RetinaNet's CSVs, Open Images' box CSVs. */
#include "ingest/layout/formats.h"

#include <string.h>

#include "base/scope.h"
#include "base/text.h"
#include "ingest/source/names.h"
#include "ingest/tables/lines.h"
#include "ingest/layout/format_files.h"

typedef struct row {
    mr_format format;
    bool (*is)(const mr_head *h);
} row;

/* ---- annotations ------------------------------------------------------------------------------------------------- */

static bool is_json(const mr_head *h)
{
    return mr_head_ends(h, ".json");
}

static bool is_via(const mr_head *h)
{
    return (is_json(h) && (mr_head_has(h, "\"_via_") || mr_head_has(h, "\"shape_attributes\""))) ||
           mr_head_has(h, "region_shape_attributes");
}

static bool is_labelme(const mr_head *h)
{
    return is_json(h) && mr_head_has(h, "\"shapes\"") && (mr_head_has(h, "\"points\"") || mr_head_has(h, "\"flags\""));
}

static bool is_label_studio(const mr_head *h)
{
    return is_json(h) && (mr_head_has(h, "\"completed_by\"") || mr_head_has(h, "\"from_name\"") ||
                          mr_head_has(h, "\"annotation_id\""));
}

static bool is_createml(const mr_head *h)
{
    bool named = *h->bytes == '[' && (mr_head_has(h, "\"image\"") || mr_head_has(h, "\"imagefilename\""));
    return is_json(h) && mr_head_has(h, "\"annotations\"") && (named || mr_head_has(h, "\"coordinates\""));
}

/* A string in it ends like the name of an image. */
static bool has_image_string(const mr_head *h)
{
    static const char *const ends[] = {".jpg\"", ".jpeg\"", ".png\"", ".webp\"", ".JPG\"", ".JPEG\"", ".PNG\""};
    for (size_t i = 0; i < MR_COUNT(ends); i++)
        if (mr_head_has(h, ends[i]))
            return true;
    return false;
}

static bool has_coco_images(const mr_head *h)
{
    return mr_head_has(h, "\"images\"") && (mr_head_has(h, "\"file_name\"") || mr_head_has(h, "\"categories\"") ||
                                            mr_head_has(h, "\"licenses\"") || mr_head_has(h, "\"annotations\""));
}

/* Annotations, or a list of results; a list with names of images is what captioning tools write. */
static bool has_coco_annotations(const mr_head *h)
{
    bool others = *h->bytes == '[' && has_image_string(h);
    return mr_head_has(h, "\"image_id\"") && !others &&
           (mr_head_has(h, "\"category_id\"") || mr_head_has(h, "\"caption\""));
}

static bool is_coco(const mr_head *h)
{
    return is_json(h) && (has_coco_images(h) || has_coco_annotations(h));
}

/* Two strings in it are names of images without ending: the keys of FiftyOne's labels.json are.  Short ones may as well
 * be the numbers of classes. */
static bool has_stems(const mr_head *h)
{
    enum { SHORTEST = 4 };
    const char *at = h->bytes, *end = h->bytes + h->len, *close, *first = NULL;
    size_t first_len = 0;
    while (h->stems && (at = memchr(at, '"', (size_t)(end - at))) &&
           (close = memchr(at + 1, '"', (size_t)(end - at - 1)))) {
        size_t len = (size_t)(close - at - 1);
        bool other = !first || len != first_len || memcmp(first, at + 1, len) != 0;
        if (len >= SHORTEST && other && mr_stems_have(h->stems, at + 1, len)) {
            if (first)
                return true;
            first = at + 1;
            first_len = len;
        }
        at = close + 1;
    }
    return false;
}

/* JSON-LD, for example Croissant, describes a dataset whose annotations are elsewhere. */
static bool is_other_json(const mr_head *h)
{
    return is_json(h) && (has_image_string(h) || has_stems(h)) && !mr_head_has(h, "\"@context\"");
}

static bool is_lines(const mr_head *h)
{
    return (mr_head_ends(h, ".jsonl") || mr_head_ends(h, ".ndjson")) && has_image_string(h);
}

/* Stanford Dogs has them without an ending. */
static bool is_voc(const mr_head *h)
{
    return (mr_head_ends(h, ".xml") || !memchr(h->name, '.', h->name_len)) && mr_head_has(h, "<annotation>");
}

static bool is_cvat(const mr_head *h)
{
    return mr_head_ends(h, ".xml") && mr_head_has(h, "<annotations") &&
           (mr_head_has(h, "<version") || mr_head_has(h, "<image ") || mr_head_has(h, "<meta"));
}

static bool is_text(const mr_head *h)
{
    return mr_head_ends(h, ".txt");
}

static bool is_kitti(const mr_head *h)
{
    return is_text(h) && mr_head_is_kitti(h);
}

static bool is_dota(const mr_head *h)
{
    return is_text(h) && mr_head_is_dota(h);
}

static bool is_pixels(const mr_head *h)
{
    return is_text(h) && mr_head_is_pixels(h);
}

static bool is_yolo(const mr_head *h)
{
    return is_text(h) && mr_head_is_yolo(h);
}

static bool is_wider(const mr_head *h)
{
    return is_text(h) && mr_head_is_wider(h);
}

static bool is_list(const mr_head *h)
{
    return is_text(h) && mr_head_is_image_list(h);
}

static bool is_caption(const mr_head *h)
{
    return (is_text(h) || mr_head_ends(h, ".caption")) && mr_head_is_caption(h);
}

static bool is_table(const mr_head *h)
{
    return mr_head_ends(h, ".csv") || mr_head_ends(h, ".tsv");
}

static bool is_boxes(const mr_head *h)
{
    return is_table(h) && ((mr_head_has(h, "ImageID") && mr_head_has(h, "XMin")) || mr_head_has_box_cells(h));
}

static bool is_named(const mr_head *h)
{
    return is_table(h) && mr_head_names_images(h);
}

static bool is_pascal_part(const mr_head *h)
{
    return mr_head_ends(h, ".mat") && memmem(h->path, h->path_len, "Annotations_Part/", 17);
}

/* The first lines are names of images without ending, and labels: FGVC-Aircraft's lists, ADE20K's sceneCategories.txt.
 */
static bool is_stem_list(const mr_head *h)
{
    enum { LINES = 3 };
    size_t lines = 0;
    mr_lines l = mr_lines_of(h->bytes, h->len);
    while (h->stems && mr_head_ends(h, ".txt") && lines < LINES && mr_lines_next(&l)) {
        size_t word = mr_lines_word(&l);
        if (word == l.len || !mr_stems_have(h->stems, l.line, word))
            return false;
        lines++;
    }
    return lines > 1;
}

static bool is_lfs_pointer(const mr_head *h)
{
    return mr_text_is_lfs_pointer(h->bytes, h->len);
}

#define TO_BOXES  "convert the boxes to YOLO, COCO or Pascal VOC first, for example with Datumaro or FiftyOne"
#define TO_WRITER "read it with its own library and pass the samples to millrace.write() of Python"

static const row rows[] = {
    {{"Git LFS pointer", "Git LFS pointers", "fetch the files themselves: git lfs pull", 0}, is_lfs_pointer},
    {{"PASCAL-Part annotation", "PASCAL-Part annotations",
      "ingest the VOC tree of its images (JPEGImages/, Annotations/ with XML files), or convert the parts to COCO "
      "first",
      MR_FORMAT_PER_IMAGE},
     is_pascal_part},
    {{"TFRecord file", "TFRecord files",
      "export the dataset again as COCO, YOLO or Pascal VOC, or write its images and labels as a WebDataset tar", 0},
     mr_head_is_tfrecord},
    {{"Arrow file", "Arrow files",
      "in Python, millrace.write(datasets.load_from_disk(FOLDER), DATASET) takes what save_to_disk() wrote; or save "
      "it as Parquet",
      0},
     mr_head_is_arrow},
    {{"LitData or MDS file", "LitData or MDS files", TO_WRITER, 0}, mr_head_is_streamed},
    {{"RecordIO or FFCV file", "RecordIO or FFCV files", TO_WRITER, 0}, mr_head_is_packed},
    {{"file of arrays", "files of arrays",
      "write its images as PNG files and its labels as a CSV file, or pass both to millrace.write() of Python", 0},
     mr_head_is_arrays},
    {{"MATLAB file", "MATLAB files", "convert its labels to a CSV file of file name and class", 0}, mr_head_is_matlab},
    {{"Parquet file", "Parquet files", NULL, 0}, mr_head_is_parquet},
    {{"part of a split archive", "parts of a split archive",
      "join the parts first: cat NAME.* > NAME, or, where the last is a .zip, zip -s 0 NAME.zip --out JOINED.zip", 0},
     mr_head_is_part},
    {{"spreadsheet", "spreadsheets", "save it as a CSV file, in UTF-8", MR_FORMAT_PERHAPS}, mr_head_is_spreadsheet},
    {{"SQLite database", "SQLite databases", "export its labels as a CSV file", MR_FORMAT_PERHAPS},
     mr_head_is_database},
    {{"archive inside the source", "archives inside the source",
      "only ImageNet's class tars (n01440764.tar) and shards of WebDataset are opened there; unpack it, or give it as "
      "another SRC",
      0},
     mr_head_is_archive},
    {{"VIA annotation file", "VIA annotation files", "export it from VIA as COCO", 0}, is_via},
    {{"LabelMe annotation", "LabelMe annotations",
      "convert the folder to COCO or Pascal VOC, for example with labelme2coco or labelme2voc of LabelMe's examples",
      MR_FORMAT_PER_IMAGE},
     is_labelme},
    {{"Label Studio export", "Label Studio exports", "export it from Label Studio again as COCO or YOLO, with images",
      0},
     is_label_studio},
    {{"CreateML annotation file", "CreateML annotation files", NULL, 0}, is_createml},
    {{"COCO annotation file", "COCO annotation files", NULL, MR_FORMAT_CHOSEN}, is_coco},
    {{"JSON file that names images", "JSON files that name images",
      "write it as metadata.jsonl or as a CSV file beside the images", 0},
     is_other_json},
    {{"JSON lines file that names images", "JSON lines files that name images", NULL, 0}, is_lines},
    {{"Pascal VOC annotation", "Pascal VOC annotations", NULL, MR_FORMAT_PER_IMAGE}, is_voc},
    {{"CVAT annotation file", "CVAT annotation files",
      "export it again from CVAT as 'COCO 1.0', 'Ultralytics YOLO' or 'PASCAL VOC 1.1', with images", 0},
     is_cvat},
    {{"KITTI label file", "KITTI label files", TO_BOXES, MR_FORMAT_PER_IMAGE}, is_kitti},
    {{"DOTA label file", "DOTA label files",
      "convert the boxes to YOLO's form of oriented boxes first, for example with convert_dota_to_yolo_obb of "
      "Ultralytics",
      MR_FORMAT_PER_IMAGE},
     is_dota},
    {{"MOT, VisDrone or ICDAR file", "MOT, VisDrone or ICDAR files", TO_BOXES, MR_FORMAT_PER_IMAGE}, is_pixels},
    {{"WIDER FACE file of boxes", "WIDER FACE files of boxes", TO_BOXES, 0}, is_wider},
    {{"YOLO label file", "YOLO label files", NULL, MR_FORMAT_PER_IMAGE}, is_yolo},
    {{"caption", "captions", NULL, MR_FORMAT_PER_IMAGE}, is_caption},
    {{"image list", "image lists", NULL, MR_FORMAT_LIST}, is_list},
    {{"CSV file of boxes", "CSV files of boxes", NULL, MR_FORMAT_TABLE}, is_boxes},
    {{"CSV file that names images", "CSV files that name images", NULL, MR_FORMAT_TABLE}, is_named},
    {{"text file that names images", "text files that name images", "write it as a CSV file with a header: file,label",
      MR_FORMAT_PERHAPS},
     is_stem_list},
};

/* Reading it is not required, so a failure, such as a damaged entry of an archive, does not make the source fail. */
static void read_head(const mr_source *s, uint32_t entry, const mr_stems *stems, mr_head *h)
{
    const mr_entry *e = mr_source_entry(s, entry);
    const char *slash = memrchr(e->path, '/', e->path_len);
    *h = (mr_head){.source = s, .stems = stems, .path = e->path, .path_len = e->path_len};
    h->name = slash ? slash + 1 : e->path;
    h->name_len = e->path_len - (size_t)(h->name - e->path);
    h->whole = e->size <= MR_HEAD;
    h->len = h->whole ? (size_t)e->size : MR_HEAD;
    if (h->len && mr_source_pread(s, entry, h->bytes, h->len, 0, NULL) != MR_OK)
        h->len = 0;
    size_t mark = mr_utf8_mark(h->bytes, h->len);
    h->len -= mark;
    memmove(h->bytes, h->bytes + mark, h->len + 1);
}

/* Formats with any of the kinds in `without` do not count. */
static mr_content content_of(const mr_source *s, uint32_t entry, const mr_stems *stems, unsigned without)
{
    mr_head h;
    read_head(s, entry, stems, &h);
    if (mr_head_is_image(&h))
        return (mr_content){.image = true};
    for (size_t i = 0; i < MR_COUNT(rows); i++)
        if (!(rows[i].format.kind & without) && rows[i].is(&h))
            return (mr_content){.format = &rows[i].format};
    return (mr_content){0};
}

mr_content mr_content_of(const mr_source *s, uint32_t entry, const mr_stems *stems)
{
    return content_of(s, entry, stems, MR_FORMAT_PERHAPS);
}

static mr_status list_stems(const mr_source *s, mr_stems *out)
{
    for (uint32_t i = 0; i < mr_source_count(s); i++) {
        const mr_entry *e = mr_source_entry(s, i);
        if (mr_name_is_image(e->path, e->path_len))
            MR_TRY(mr_stems_add(out, e->path, e->path_len, NULL));
    }
    mr_stems_sort(out);
    return MR_OK;
}

void mr_format_hint(const mr_source *s, mr_buf *out)
{
    enum { HEADS_MAX = 256 }; /* where no layout fits, the first files tell */
    MR_AUTO(mr_stems_free) mr_stems stems = {0};
    unsigned heads = 0;
    out->failed = out->failed || list_stems(s, &stems) != MR_OK;
    for (uint32_t i = 0; i < mr_source_count(s) && heads < HEADS_MAX; i++) {
        const mr_entry *e = mr_source_entry(s, i);
        if (mr_name_is_image(e->path, e->path_len))
            continue;
        heads++;
        mr_content c = content_of(s, i, &stems, 0);
        bool lines = c.format && mr_name_ends(e->path, e->path_len, ".jsonl"); /* some layout reads other names */
        if (!c.image && !lines && (!c.format || !c.format->instead))
            continue;
        mr_text_show(out, e->path, e->path_len);
        if (lines) {
            mr_buf_add_text(out, " names images: write it as metadata.jsonl, with their paths in file_name, or as CSV");
            return;
        }
        if (c.image) {
            mr_buf_add_text(out, " is an image, but is read only if its name ends in .jpg, .png, .webp or the like");
            return;
        }
        mr_buf_printf(out, " is a%s %s, which millrace does not read: %s", strchr("aA", *c.format->name) ? "n" : "",
                      c.format->name, c.format->instead);
        return;
    }
}
