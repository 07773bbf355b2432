/* A directory of models: DIR/<name>/[config.pbtxt]/<version>/model.onnx, Triton's layout. Finds
 * them, opens nothing.
 *
 * Thread: any, a loader's mostly. Versions are whole numbers from 1; directories of other names
 * are nobody's business. */
#ifndef TELLTALE_INFER_REPOSITORY_H
#define TELLTALE_INFER_REPOSITORY_H

#include "base/view.h"
#include "infer/model.h"

struct names { /* sorted; freed by names_free */
    char **items;
    size_t count;
};
void names_free(struct names *names); /* zeroed allowed */

/* What a request may ask to be loaded: one part of a path, no longer than a file system's and
 * without control characters; ".", ".." and what begins with a dot are none. */
bool model_name_is_valid(struct view name);

/* The directories in it, those that begin with a dot left out. */
MUST_CHECK enum status repository_names(const char *repository, struct names *out, struct err *err);
/* Is there such a directory? name is a valid one. */
bool repository_has(const char *repository, const char *name);

struct versions { /* ascending; freed by versions_free */
    uint64_t *items;
    size_t count;
};
void versions_free(struct versions *versions);
/* The version directories of a model; none is ST_OK and count 0. */
MUST_CHECK enum status repository_versions(const char *repository, const char *name,
                                           struct versions *out, struct err *err);

/* The model in name/version; file_name: NULL for model.onnx. A directory of that name holds the
 * file under the same name once more, beside its external data. ST_NOT_FOUND where it is not there.
 * The model is the caller's. */
MUST_CHECK enum status model_in_repository(const char *repository, const char *name,
                                           uint64_t version, const char *file_name,
                                           struct model **out, struct err *err);

/* A number that changes when a file of the model is written, moved or comes or goes: of name, size,
 * time of modification and inode of all that is below its directory. */
MUST_CHECK enum status repository_stamp(const char *repository, const char *name,
                                        uint64_t *out_stamp, struct err *err);

#endif
