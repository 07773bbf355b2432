/* Private to ort*.c: the library that is loaded at run time, and its errors in our terms.
 *
 * The only includer of ONNX Runtime's header. Whoever needs a newer function than
 * ORT_API_NEEDED has asks for the newer table by its version first, as ort_session.c does. */
#ifndef TELLTALE_INFER_ORT_API_H
#define TELLTALE_INFER_ORT_API_H

#include "infer/backend.h"

#include <onnxruntime_c_api.h>

/* 1.15: the first with GetResizedStringTensorElementBuffer. Older and newer libraries than the
 * header's own version are both fine, since the table only ever grows at its end. */
enum { ORT_API_NEEDED = 15 };

struct ort_library { /* one a process, lives until it ends */
    const OrtApiBase *base;
    const OrtApi *api;
    OrtEnv *env;
    OrtMemoryInfo *cpu_memory;  /* what our own buffers are */
    OrtAllocator *allocator;    /* ONNX Runtime's default one: names, string tensors */
    char version[24];           /* "1.30.0" */
    char path[512];             /* as given to dlopen */
    char requested[512];        /* as ort_library_get's first caller named it; "" for a search */
};

struct session {
    const struct ort_library *library;
    OrtSession *session;
    OrtRunOptions *run_options;
    struct signature signature;
    const char *input_names[MODEL_MAX_IO]; /* the signature's, as Run wants them */
    const char *output_names[MODEL_MAX_IO];
    /* The output's shape follows from the inputs' shapes, by what the model declares. */
    bool is_output_derived[MODEL_MAX_IO];
    char description[64];
};

/* Thread-safe. path NULL: search (ort_library.c says where). The first success decides for the
 * process; asking for another path later is ST_INVALID. */
MUST_CHECK enum status ort_library_get(const char *path, const struct ort_library **out,
                                       struct err *err);

/* Takes and releases ort_status (not NULL). Text: "doing: ONNX Runtime's sentence, shortened". */
enum status ort_fail(const struct ort_library *library, OrtStatus *ort_status, struct err *err,
                     const char *doing);

enum status ort_session_open(const struct session_config *config, struct session **out,
                             struct err *err);
void ort_session_close(struct session *session); /* NULL and half-built allowed */

bool ort_dtype_from(ONNXTensorElementDataType type, enum dtype *out_dtype);
ONNXTensorElementDataType ort_dtype_to(enum dtype dtype);

#endif
