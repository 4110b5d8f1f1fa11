/* soak_loader.c - opens and closes a dataset's loaders many times, half of them in the midst of an epoch.
 * Invariant: once warm, neither resident memory nor descriptors nor threads grow with the number of loaders opened.
 *
 *      soak_loader DATASET LOADERS      prints "RSS_KB DESCRIPTORS THREADS" after the second quarter and at the end */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "millrace.h"

static unsigned entries(const char *folder)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static void report(void)
{
    char line[256];
    unsigned long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtoul(line + 6, NULL, 10);
    if (file)
        fclose(file);
    printf("%lu %u %u\n", kb, entries("/proc/self/fd"), entries("/proc/self/task"));
}

static mr_status walk(const char *path, unsigned round, mr_error *err)
{
    mr_dataset *dataset;
    mr_loader *loader = NULL;
    const mr_batch *batch;
    mr_status status = mr_dataset_open(path, &dataset, err);
    if (status != MR_OK)
        return status;
    mr_loader_options options = {
        .split = "train",
        .global_batch = 4,
        .world = 1,
        .threads = round % 4,
        .seed = round,
        .epochs = 1,
        .deliver = round % 3 ? MR_DELIVER_F32_NCHW : MR_DELIVER_ENCODED,
        .transform = {.kind = MR_TRANSFORM_TRAIN, .size = 32},
    };
    status = mr_loader_open(dataset, &options, &loader, err);
    for (unsigned step = 0; status == MR_OK && (round % 2 || step < 3); step++) {
        status = mr_loader_next(loader, &batch, err);
        if (status == MR_OK)
            mr_batch_release(loader, batch);
    }
    mr_loader_free(loader);
    mr_dataset_free(dataset);
    return status == MR_END ? MR_OK : status;
}

int main(int argc, char **argv)
{
    mr_error err;
    unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (!rounds) {
        fprintf(stderr, "use: soak_loader DATASET LOADERS\n");
        return 2;
    }
    for (unsigned i = 0; i < rounds; i++) {
        if (walk(argv[1], i, &err) != MR_OK) {
            fprintf(stderr, "soak_loader: %s\n", err.text);
            return 1;
        }
        if (i + 1 == rounds / 2)
            report();
    }
    report();
    return 0;
}
