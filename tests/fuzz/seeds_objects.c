/* seeds_objects.c - seeds of the layouts with objects: YOLO, Pascal VOC, CreateML, tasks of COCO.
 * Invariant: each is small, and taken as it is, so that a fuzzer starts beyond the first refusal. */
#include "tests/fuzz/seeds.h"

static const char yaml[] = "path: ../x\ntrain: images/train\nval: [a, b]\nnames:\n  0: cat\n  1: 'd''og'\n"
                           "kpt_shape: [2, 3]\nroboflow: {license: \"CC \\u0042Y\"}\n";
static const char yolo[] =
    ",,val=test,\0data.yaml\0train: ../train/images\nval: val.txt\nnames: [cat, dog]\nnc: 2\n\0val.txt\0"
    "./valid/images/b.jpg\n\0train/images/a.jpg\0\0train/labels/a.txt\0"
    "0 0.5 0.5 0.2 0.4\n1 0.1 0.1 0.5 0.1 0.5 0.6\n\0valid/images/b.jpg\0\0valid/labels/b.txt\0\0";
static const char boxes[] = "\0000 0.5 0.5 0.25 0.125\r\n\n3 .5 1e-1 0.5 1\n1 0.1 0.1 0.5 0.1 0.5 0.6\n";
static const char pose[] = "\0050 0.5 0.5 0.25 0.125 0.1 0.2 2 0 0 0 0.3 0.4 1\n";
static const char text[] = "\012imagesource:x\n1 2 30 2 30 40 1 40 dog 1\n";

#define OBJECT                                                                                                         \
    "<object><name>dog</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>"                \
    "<polygon><x1>1</x1><y1>2</y1><x2>3</x2><y2>2</y2><x3>3</x3><y3>4</y3></polygon></object>"
static const char xml[] = "<?xml version=\"1.0\"?><annotation><size><width>8</width><height>9</height></size>" OBJECT
                          "<object><name>a &amp; b</name><part><name>x</name></part></object></annotation>";
static const char voc[] = ",,val=,\0train/a.jpg\0\0train/a.xml\0<annotation>" OBJECT "</annotation>\0"
                          "valid/b.jpg\0\0valid/b.xml\0<annotation/>\0";
static const char kit[] = ",,,\0JPEGImages/1.jpg\0\0JPEGImages/2.jpg\0\0Annotations/1.xml\0<annotation>" OBJECT
                          "</annotation>\0ImageSets/Main/train.txt\0"
                          "1\n2\n\0ImageSets/Main/val.txt\0"
                          "3\n\0SegmentationClass/1.png\0\0SegmentationObject/2.png\0";

#define DOG                                                                                                            \
    "[{\"image\":\"a.jpg\",\"annotations\":[{\"label\":\"dog\",\"coordinates\":{\"x\":8,\"y\":9,\"width\":4,"          \
    "\"height\":5}}]},{\"imagefilename\":\"b.jpg\",\"annotation\":[]}]"
static const char table[] = ",,,,,\0train.csv\0id,label\na,x|y\nb,\"x\"\n../c,y\nb,y\n\0images/a.jpg\0\0images/b.jpg\0";
static const char box_rows[] = ",,,\0a.csv\0filename,width,height,class,xmin,ymin,xmax,ymax\n1.jpg,64,48,a,0,2,8,4\n"
                               "1.jpg,64,48,nan,9,2,8,4\n2.jpg,64,48,,,,,\n\0"
                               "1.jpg\0\0"
                               "2.jpg\0";
static const char bare_rows[] = ",,,\0a.csv\0/x/1.jpg,0.1,0,1,1,10\n1.jpg,0,0,.5,1,9.0\n2.jpg,,,,,\n\0"
                                "1.jpg\0\0"
                                "2.jpg\0";
static const char bbox_rows[] = ",,,\0a.csv\0sep=;\nid;width;height;bbox\n1;9;9;[1, 2, 3,4]\n1;9;9;[1 2 3 4]\n\0"
                                "1.jpg\0";
static const char via_rows[] =
    ",,,\0a.csv\0filename,region_shape_attributes,region_attributes\n1.jpg,"
    "\"{\"\"name\"\":\"\"polygon\"\",\"\"all_points_x\"\":[1,2,3],\"\"all_points_y\"\":[1,2,3]}\","
    "\"{\"\"a\"\":\"\"b\"\"}\"\n\0"
    "1.jpg\0";
static const char caption_rows[] = ",,,\0c.txt\0"
                                   "1.jpg#0\ta b\n1.jpg#1\tc d\n2.jpg#0\te\n\0"
                                   "1.jpg\0\0"
                                   "2.jpg\0";
static const char flags[] = "x,,,x,;\0t.tsv\0file\tx\ty\tsplit\n1.jpg\t1\t0\ttrain\n2.jpg\t1\t1\tval\n\0"
                            "1.jpg\0\0"
                            "2.jpg\0";
static const char cub[] = ",,,\0images.txt\0"
                          "1 001.a/x.jpg\n2 002.b/y.jpg\n\0image_class_labels.txt\0"
                          "1 1\n2 2\n\0"
                          "classes.txt\0"
                          "1 001.a\n2 002.b\n\0train_test_split.txt\0"
                          "1 1\n2 0\n\0"
                          "images/001.a/x.jpg\0\0images/002.b/y.jpg\0";
static const char sidecars[] = ",,,\0a.jpg\0\0a.txt\0a red box\n\0b.jpg\0";
static const char pattern[] = ",,,x,,{class}_#\0cat_1.jpg\0\0test/dog_2.jpg\0\0x.png\0";
static const char metadata[] = ",,,\0train/metadata.jsonl\0{\"file_name\":\"1.png\",\"label\":\"b\",\"text\":[\"u\"]}\n"
                               "{\"file_name\":\"2.png\"}\n\0train/1.png\0\0train/2.png\0\0val/metadata.csv\0"
                               "file_name,label\n1.png,a\n\0val/1.png\0";
static const char createml[] = ",,,x\0train/_annotations.createml.json\0" DOG "\0train/a.jpg\0\0train/c.jpg\0";

#define PANOPTIC                                                                                                       \
    "{\"images\":[{\"id\":\"a "                                                                                        \
    "b\",\"file_name\":\"a.jpg\",\"width\":4,\"height\":3}],\"annotations\":[{\"image_id\":\"a b\","                   \
    "\"file_name\":\"a.png\",\"segments_info\":[{\"id\":\"x\",\"category_id\":\"1\",\"iscrowd\":1,\"bbox\":[1,2,3,4]}" \
    ","                                                                                                                \
    "{\"id\":7,\"category_id\":\"sky\"}]}],\"categories\":[{\"id\":1,\"name\":\"cat\"},{\"id\":\"sky\",\"name\":"      \
    "\"sky\"}]}"
#define MASK                                                                                                           \
    "{\"info\":{},\"images\":[{\"id\":\"a b\",\"file_name\":\"a.jpg\"}],\"annotations\":[{\"image_id\":\"a "           \
    "b\",\"category_id\":1,"                                                                                           \
    "\"segmentation\":{\"counts\":\"11221NN\",\"size\":[3,4]}},{\"image_id\":\"a "                                     \
    "b\",\"category_id\":1,\"segmentation\":{"                                                                         \
    "\"counts\":[0,5,7],\"size\":[3,4]}}],\"categories\":[{\"id\":1,\"name\":\"cat\"}]}"
static const char tasks[] = ",,,\0annotations/panoptic_val.json\0" PANOPTIC "\0annotations/stuff_val.json\0" MASK
                            "\0annotations/panoptic_val/a.png\0\0stuff_val_pixelmaps/a.png\0\0val/a.jpg\0";
static const char other[] = ",,,x\0labels.json\0" MASK "\0panoptic.json\0" PANOPTIC "\0panoptic/a.png\0\0data/a.jpg\0";

static const char meta[] = "{\"source\":\"a\",\"objects\":[{\"label\":1,\"class\":\"b\",\"box\":[-1.5,0,10.02,0.003],"
                           "\"polygons\":[[0,1,2.5,-0.01,0.001,0.1]],\"id\":17},{\"oriented_box\":[1,2,3,4,5,6,7,8],"
                           "\"keypoints\":[[1.2,5,2],[0,0,0]],\"crowd\":true,\"id\":\"x\"}]}";

static const char raw[] =
    "{\"source\":\"../CON.jpg\",\"image\":{\"id\":3},\"captions\":[\"a\",{\"caption\":\"b\"}],"
    "\"columns\":{\"c\":[1]},\"instances\":[{\"id\":17,\"area\":2.5,\"segmentation\":{\"counts\":[0,9],"
    "\"size\":[3,3]}}],\"objects\":[{\"label\":0,\"box\":[0,0,3,3],\"crowd\":true,\"id\":17},"
    "{\"label\":0,\"polygons\":[[0,0,1,0,1,1],[2,2,3,2,3,3]]}]}";

void seed_objects(void)
{
    seed("meta", "objects", meta, sizeof meta - 1);
    seed("export", "objects", meta, sizeof meta - 1);
    seed("export", "raw", raw, sizeof raw - 1);
    seed("createml", "annotations", DOG, sizeof DOG - 1);
    seed("coco_json", "panoptic", PANOPTIC, sizeof PANOPTIC - 1);
    seed("coco_json", "masks", MASK, sizeof MASK - 1);
    seed("layouts", "small-coco-tasks", tasks, sizeof tasks);
    seed("layouts", "small-coco-other", other, sizeof other);
    seed("layouts", "small-createml", createml, sizeof createml);
    seed("layouts", "small-table", table, sizeof table);
    seed("layouts", "small-boxes", box_rows, sizeof box_rows);
    seed("layouts", "small-boxes-bare", bare_rows, sizeof bare_rows);
    seed("layouts", "small-bbox", bbox_rows, sizeof bbox_rows);
    seed("layouts", "small-via", via_rows, sizeof via_rows);
    seed("layouts", "small-captions", caption_rows, sizeof caption_rows);
    seed("layouts", "small-flags", flags, sizeof flags);
    seed("layouts", "small-cub", cub, sizeof cub);
    seed("layouts", "small-sidecars", sidecars, sizeof sidecars);
    seed("layouts", "small-pattern", pattern, sizeof pattern);
    seed("layouts", "small-metadata", metadata, sizeof metadata);
    seed("voc", "annotation", xml, sizeof xml - 1);
    seed("layouts", "small-voc", voc, sizeof voc);
    seed("layouts", "small-voc-kit", kit, sizeof kit);
    seed("yaml", "data", yaml, sizeof yaml - 1);
    seed("layouts", "small-yolo", yolo, sizeof yolo);
    seed("yolo", "boxes", boxes, sizeof boxes - 1);
    seed("yolo", "pose", pose, sizeof pose - 1);
    seed("yolo", "text", text, sizeof text - 1);
}
