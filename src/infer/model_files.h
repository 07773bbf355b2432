/* Private to model.c and repository.c: paths, versions and the making of a struct model. */
#ifndef TELLTALE_INFER_MODEL_FILES_H
#define TELLTALE_INFER_MODEL_FILES_H

#include "infer/model.h"

/* "7" but not "07", "0", "7a": as Triton names versions. */
bool version_parse(const char *text, unsigned long long *out_version);
/* Caller frees; NULL when memory is out. */
char *path_join(const char *directory, const char *name);
bool is_regular_file(const char *path);
struct model_place {
    const char *path;      /* the ONNX file; NULL for a bare simulation */
    const char *directory; /* what stands beside the model is looked for there ... */
    const char *parent;    /* ... and then there; NULL: nowhere else */
};
MUST_CHECK enum status model_create(const struct model_place *place, const char *name,
                                    const char *version, struct model **out, struct err *err);

#endif
