/* A model as it is served: where its files are, its session, how it batches, what stands beside
 * it (tokenizer.json, labels). Does not know how to tokenize: that is engine's. */
#ifndef TELLTALE_INFER_MODEL_H
#define TELLTALE_INFER_MODEL_H

#include "infer/backend.h"
#include "infer/weights.h"

struct model {
    char *name;
    char *version;         /* "1" */
    char *path;            /* ONNX file; NULL for a bare simulation */
    char *tokenizer_path;  /* tokenizer.json beside the model (or its version's parent); or NULL */
    char *labels_path;     /* labels.txt likewise; or NULL */
    char *pipeline_path;   /* pipeline.yaml likewise; or NULL */
    char *sha256;          /* of the ONNX file, hex; "" until opened and for a bare simulation */
    struct weights weights; /* of the ONNX file; not known until opened and for a simulation */
    const struct backend *backend;
    struct session *session;
    const struct signature *signature; /* the session's; NULL until opened */
    bool can_batch;        /* dimension 0 is free in every input and output */
};

/* A single file: name from the file's stem, or, for DIR/name/1/model.onnx, from the layout. */
MUST_CHECK enum status model_from_file(const char *path, const char *name_or_null,
                                       struct model **out, struct err *err);
/* No file: a simulation named name_or_null or "simulated". */
MUST_CHECK enum status model_simulated(const char *name_or_null, struct model **out,
                                       struct err *err);
/* Opens the session with the back end and fills sha256, weights, signature, can_batch. config's model_path
 * is taken from the model; simulate_text is set where the model has a tokenizer beside it. On
 * failure the model stays as it was. */
MUST_CHECK enum status model_open(struct model *model, const struct backend *backend,
                                  const struct session_config *config, struct err *err);
void model_free(struct model *model); /* NULL allowed; closes the session */

#endif
