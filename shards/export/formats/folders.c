/* folders.c - SPLIT/CLASS/ folders of images.
 * Invariant: an image with one label is in its class's folder, any other in that of its split. */
#include "shards/export/formats/folders.h"

#include <stdlib.h>
#include <string.h>

#include "base/scope.h"

void mr_export_folders_free(void *state)
{
    mr_export_folders *f = state;
    for (size_t i = 0; f->classes && i < f->class_count; i++)
        free(f->classes[i]);
    free(f->classes);
    free(f->split);
    free(f);
}

mr_status mr_export_folders_begin(mr_export_run *run, mr_error *err)
{
    const mr_manifest *m = run->manifest;
    if (!run->state)
        run->state = mr_alloc(1, sizeof(mr_export_folders));
    mr_export_folders *f = run->state;
    if (!f)
        return mr_fail_memory(err, "exporting");
    f->classes = mr_alloc(m->class_count + 1, sizeof *f->classes);
    if (!f->classes)
        return mr_fail_memory(err, "exporting");
    for (; f->class_count < m->class_count; f->class_count++)
        MR_TRY(mr_export_folder_name(run, "/classes", m->classes[f->class_count].name, MR_PART_CLASS_NAMES,
                                     &f->classes[f->class_count], err));
    return MR_OK;
}

/* Takes the class's name in the split's folder, so that no image beside it gets it. */
static mr_status add_class(mr_export_run *run, const char *split, const char *name, mr_error *err)
{
    MR_AUTO(mr_buf_free) mr_buf path = {0}, taken = {0};
    const mr_name_request request = {.folder = split, .wanted = name, .len = strlen(name), .rules = MR_NAME_FOLDER};
    bool changed;
    MR_TRY(mr_names_take(&run->names, &request, &taken, &changed, err));
    mr_buf_printf(&path, "%s/%s", split, name);
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    const mr_export_folders *f = run->state;
    return f->only_used ? MR_OK : mr_out_folder(&run->out, text, err);
}

mr_status mr_export_folders_split(mr_export_run *run, const mr_split *split, mr_error *err)
{
    mr_export_folders *f = run->state;
    free(f->split);
    f->split = NULL;
    MR_TRY(mr_export_folder_name(run, "/splits", split->name, MR_PART_SPLIT_NAMES, &f->split, err));
    MR_TRY(mr_out_folder(&run->out, f->split, err));
    for (size_t i = 0; i < f->class_count; i++)
        MR_TRY(add_class(run, f->split, f->classes[i], err));
    return MR_OK;
}

mr_status mr_export_folders_picture(mr_export_run *run, const mr_export_sample *s, mr_buf *folder, mr_buf *name,
                                    mr_error *err)
{
    const mr_export_folders *f = run->state;
    MR_AUTO(mr_buf_free) mr_buf path = {0};
    mr_buf_clear(folder);
    if (s->view->label >= 0 && (size_t)s->view->label < f->class_count)
        mr_buf_add_text(folder, f->classes[s->view->label]);
    mr_buf_printf(&path, "%s%s%s", f->split, folder->len ? "/" : "", mr_buf_text(folder));
    const char *text = mr_buf_text(&path);
    MR_TRY(mr_buf_status(&path, err, "exporting"));
    MR_TRY(mr_buf_status(folder, err, "exporting"));
    MR_TRY(mr_export_picture_name(run, text, s, 0, name, err));
    return mr_export_picture(run, text, mr_buf_text(name), s, err);
}
