/* libtelltale: the inference engine of Telltale, without the network. Batching, tokenizing and
 * the trace of each request's stages, for a C or C++ program.
 *
 *     const char *options[] = {"model=spam_int8.onnx", "max-batch=16", NULL};
 *     struct telltale *engine;
 *     char error[512];
 *     if (telltale_open(options, &engine, error, sizeof error) != 0) { ... }
 *     telltale_infer(engine, NULL, &input, 1, &answer);
 *
 * Build: cc program.c $(pkg-config --cflags --libs telltale)
 *
 * Threads: any thread may call telltale_submit and telltale_infer at any time; open and close
 * on one thread. Codes: 0 is success; others are HTTP status codes (400 what was asked is not
 * valid, 404 no such model, 503 overloaded or not ready, 504 too late, 500 internal). */
#ifndef TELLTALE_H
#define TELLTALE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TELLTALE_MAX_RANK 8

/* Row major, little endian. datatype as the Open Inference Protocol names it: "FP32", "INT64",
 * "BYTES" ... BYTES: each element a 32-bit little-endian length and its bytes. */
struct telltale_tensor {
    const char *name;
    const char *datatype;
    uint32_t rank;
    int64_t shape[TELLTALE_MAX_RANK];
    const void *data;
    size_t size; /* bytes */
};

struct telltale;        /* an engine with its models */
struct telltale_answer; /* the result of one request */

/* "0.1.0"; static. */
const char *telltale_version(void);

/* options: "name=value" strings, ended by NULL; the names are those of `telltale serve --help`
 * under Model, Batching and threads, and Trace ("model=FILE", "simulate=a=4ms,b=0.05ms"). On
 * failure *out is untouched and error (may be NULL) holds a sentence. */
int telltale_open(const char *const *options, struct telltale **out, char *error,
                  size_t error_size);
/* Lets every request in flight finish, then frees. NULL allowed. */
void telltale_close(struct telltale *engine);

/* Starts a request. model: NULL for the only one. The inputs' descriptions are copied; their
 * bytes must stay until done is called. done is called exactly once, on a thread of the engine,
 * also when the request fails; it must not block. It owns the answer: telltale_answer_free. */
void telltale_submit(struct telltale *engine, const char *model,
                     const struct telltale_tensor *inputs, uint32_t input_count,
                     void (*done)(struct telltale_answer *answer, void *ctx), void *ctx);
/* The same, waiting for the answer. Returns its code. *out is set even on failure (for the error
 * text) unless memory is out, which is 503 with *out NULL. */
int telltale_infer(struct telltale *engine, const char *model,
                   const struct telltale_tensor *inputs, uint32_t input_count,
                   struct telltale_answer **out);

int telltale_answer_code(const struct telltale_answer *answer);
/* Sentence, "" on success. Lives as long as the answer, like everything below. */
const char *telltale_answer_error(const struct telltale_answer *answer);
uint32_t telltale_answer_output_count(const struct telltale_answer *answer);
/* index < output count. */
const struct telltale_tensor *telltale_answer_output(const struct telltale_answer *answer,
                                                     uint32_t index);
/* Time spent in a stage, ns: "preprocess", "batch_hold", "execute" ... (docs/trace.md); "total"
 * for all of it. 0 for an unknown name. */
uint64_t telltale_answer_stage_ns(const struct telltale_answer *answer, const char *stage);
void telltale_answer_free(struct telltale_answer *answer);

#ifdef __cplusplus
}
#endif

#endif
