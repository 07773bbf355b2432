/* The journey of a request without a network: models, workers, batchers, trace. What serve and
 * bench drive, and what a C program embeds (include/telltale.h).
 *
 * Thread: create and free on one thread; engine_submit from any; on_done comes on a worker or an
 * instance thread. */
#ifndef TELLTALE_ENGINE_ENGINE_H
#define TELLTALE_ENGINE_ENGINE_H

#include "batch/batcher.h"
#include "base/options.h"
#include "engine/request.h"
#include "infer/model.h"
#include "measure/trace.h"

enum preprocess_where { PREPROCESS_POOL, PREPROCESS_INLINE };

enum control_mode {
    CONTROL_NONE,     /* all models of the repositories at start, then never a change */
    CONTROL_POLL,     /* the same, and the directories are looked at again and again */
    CONTROL_EXPLICIT, /* those of --load-model at start, then what engine_load and unload say */
    CONTROL_MODE_COUNT
};
#define CONTROL_MODE_CHOICES "none|poll|explicit"

/* yes is what a zeroed configuration has. */
enum setting { SETTING_YES, SETTING_NO, SETTING_TRUE, SETTING_FALSE };
#define SETTING_CHOICES "yes|no|true|false"

enum engine_event_kind {
    ENGINE_EVENT_NONE,
    ENGINE_EVENT_LOADED,
    ENGINE_EVENT_LOAD_FAILED, /* what was served before goes on */
    ENGINE_EVENT_UNLOADED
};
struct engine_event {
    enum engine_event_kind kind;
    const char *model;
    const char *text;  /* of a failure */
    bool is_start;     /* while the engine starts */
    uint64_t took_ns;
};

struct engine_config {      /* filled by options.h from ENGINE_OPTIONS */
    const char *model;              /* ONNX file */
    const char *model_name;         /* of a single model; NULL: from the file */
    struct option_strings model_repositories; /* directories */
    int control_mode;               /* enum control_mode */
    uint64_t poll_secs;             /* between two looks at the repositories; 0: 15 */
    struct option_strings load_models; /* explicit: at start; "*": all */
    int exit_on_error;              /* enum setting: a model that fails at start ends the start */
    int strict_readiness;           /* enum setting: ready means that all models are */
    uint64_t load_threads;          /* models loaded at once; 0: a processor each, at most 4 */
    const char *tokenizer;          /* tokenizer.json for a single model; NULL: beside the model */
    const char *labels;             /* labels.txt likewise */
    const char *pipeline;           /* pipeline.yaml likewise; "none": without one */
    const char *onnxruntime;
    const char *simulate;           /* "a=4ms,b=0.05ms" */
    int queue;                      /* enum queue_kind */
    int policy;                     /* enum policy_kind */
    int preprocess;                 /* enum preprocess_where */
    uint64_t max_batch;             /* rows; 0: not batched */
    uint64_t max_delay_us;
    uint64_t instances;             /* 0: one a processor (simulation: 1) */
    uint64_t intra_op_threads;
    uint64_t workers;               /* 0: half the processors, at least 1 */
    uint64_t max_tokens;            /* 0: what tokenizer.json says, or 512 */
    uint64_t queue_limit;
    bool allow_spinning;
    bool denormal_as_zero;
    const char *trace;              /* directory; NULL: not written */
    bool trace_all;
    double trace_sample;            /* uniform share */
    bool no_trace;                  /* overhead benchmark only */
    /* What happens to models, for the log; on a thread of the engine's, must not block. NULL: is
     * not told. Set by the owner, no option. */
    void (*on_event)(void *ctx, const struct engine_event *event);
    void *event_ctx;
};
/* Options shared by serve and bench: put ENGINE_OPTIONS(struct serve_config, engine) into the
 * command's table, where `engine` is a struct engine_config member. */
#define ENGINE_OPTIONS(type, member)                                                            \
    {.kind = OPT_HEADING, .help = "Model"},                                                     \
    {"model", OPT_STRING, offsetof(type, member.model), "FILE", NULL, 0, 0, NULL,              \
     "ONNX model to use"},                                                                      \
    {"model-name", OPT_STRING, offsetof(type, member.model_name), "NAME", NULL, 0, 0, NULL,    \
     "name of the model; default: from the file's name"},                                       \
    {"model-repository", OPT_STRINGS, offsetof(type, member.model_repositories), "DIR", NULL, 0, 0, NULL, \
     "directory of models, NAME/VERSION/model.onnx (the highest version of each); may be given more than once"}, \
    {"model-control-mode", OPT_CHOICE, offsetof(type, member.control_mode), NULL, "none", 0, 0, CONTROL_MODE_CHOICES, \
     "when models come and go: never after the start; when their files change; on request"},    \
    {"repository-poll-secs", OPT_UINT, offsetof(type, member.poll_secs), "N", "15", 1, 86400, NULL, \
     "poll: look at the repositories every N seconds; what two looks find the same is loaded"}, \
    {"load-model", OPT_STRINGS, offsetof(type, member.load_models), "NAME", NULL, 0, 0, NULL,   \
     "explicit: load that model at start; may be given more than once; '*': all"},              \
    {"model-load-threads", OPT_UINT, offsetof(type, member.load_threads), "N", "0", 0, 64, NULL, \
     "models loaded at once; 0: one a processor, at most 4"},                                   \
    {"exit-on-error", OPT_CHOICE, offsetof(type, member.exit_on_error), NULL, "yes", 0, 0, SETTING_CHOICES, \
     "no: models that cannot be loaded at start are left out and the others served"},           \
    {"strict-readiness", OPT_CHOICE, offsetof(type, member.strict_readiness), NULL, "yes", 0, 0, SETTING_CHOICES, \
     "no: ready also while a model that should be served is not"},                              \
    {"tokenizer", OPT_STRING, offsetof(type, member.tokenizer), "FILE", NULL, 0, 0, NULL,      \
     "tokenizer.json; default: the one beside the model, if any. Gives a BYTES input TEXT"},    \
    {"labels", OPT_STRING, offsetof(type, member.labels), "FILE", NULL, 0, 0, NULL,            \
     "a label a line; default: labels.txt beside the model. Gives outputs label and score"},    \
    {"pipeline", OPT_STRING, offsetof(type, member.pipeline), "FILE", NULL, 0, 0, NULL,        \
     "pipeline.yaml: pictures and texts in, labels and boxes out; default: the one beside the model, if any; none: without"}, \
    {"max-tokens", OPT_UINT, offsetof(type, member.max_tokens), "N", "0", 0, 65536, NULL,      \
     "truncate texts to N tokens; 0: what tokenizer.json says, or 512"},                        \
    {"onnxruntime", OPT_STRING, offsetof(type, member.onnxruntime), "FILE", NULL, 0, 0, NULL,  \
     "ONNX Runtime's shared library; default: $TELLTALE_ONNXRUNTIME, then the installed one"},  \
    {"simulate", OPT_STRING, offsetof(type, member.simulate), "SPEC", NULL, 0, 0, NULL,        \
     "no model but a simulated accelerator that takes a + b * batch: 'a=4ms,b=0.05ms'. Labelled as simulated everywhere"}, \
    {.kind = OPT_HEADING, .help = "Batching and threads"},                                      \
    {"queue", OPT_CHOICE, offsetof(type, member.queue), NULL, "ring", 0, 0, QUEUE_CHOICES,     \
     "hand-over to the instances: lock-free, or a mutex and condition variable as a control"},  \
    {"policy", OPT_CHOICE, offsetof(type, member.policy), NULL, "adaptive", 0, 0, POLICY_CHOICES, \
     "when a batch starts: held only while requests keep arriving; at once; full or max-delay over"}, \
    {"max-batch", OPT_UINT, offsetof(type, member.max_batch), "N", "32", 0, 4096, NULL,        \
     "largest batch in rows; 0: shapes are passed to the model as they come, unbatched"},       \
    {"max-delay-us", OPT_UINT, offsetof(type, member.max_delay_us), "N", "0", 0, 60000000, NULL, \
     "timer: hold a batch until the oldest request has waited N us; adaptive: hard cap (0: none); eager: not used"}, \
    {"instances", OPT_UINT, offsetof(type, member.instances), "N", "0", 0, 256, NULL,          \
     "threads that run the model; 0: one a processor (simulation: 1)"},                         \
    {"intra-op-threads", OPT_UINT, offsetof(type, member.intra_op_threads), "N", "1", 1, 256, NULL, \
     "ONNX Runtime's threads inside one run"},                                                  \
    {"workers", OPT_UINT, offsetof(type, member.workers), "N", "0", 0, 256, NULL,              \
     "threads that decode, tokenize, resize, label; 0: half the processors, at least 1"},                  \
    {"preprocess", OPT_CHOICE, offsetof(type, member.preprocess), NULL, "pool", 0, 0, "pool|inline", \
     "where texts and pictures are prepared: in the workers, or (as an experiment) inside the instance thread"}, \
    {"queue-limit", OPT_UINT, offsetof(type, member.queue_limit), "N", "4096", 1, 1000000, NULL, \
     "requests waiting for an instance; more are refused with 503"},                            \
    {"allow-spinning", OPT_FLAG, offsetof(type, member.allow_spinning), NULL, NULL, 0, 0, NULL, \
     "let ONNX Runtime's threads spin after a run"},                                            \
    {"denormal-as-zero", OPT_FLAG, offsetof(type, member.denormal_as_zero), NULL, NULL, 0, 0, NULL, \
     "treat subnormal numbers as zero (much faster where weights hold them)"},                  \
    {.kind = OPT_HEADING, .help = "Trace"},                                                     \
    {"trace", OPT_STRING, offsetof(type, member.trace), "DIR", NULL, 0, 0, NULL,               \
     "write the trace there: the slowest 1 %, a uniform sample, their batches whole"},          \
    {"trace-all", OPT_FLAG, offsetof(type, member.trace_all), NULL, NULL, 0, 0, NULL,          \
     "write every request"},                                                                    \
    {"trace-sample", OPT_DOUBLE, offsetof(type, member.trace_sample), "SHARE", "0.01", 0, 1, NULL, \
     "share of requests in the uniform sample"},                                                \
    {"no-trace", OPT_FLAG, offsetof(type, member.no_trace), NULL, NULL, 0, 0, NULL,            \
     "drop trace records at once: only to measure what tracing costs"}

struct Inference__ModelConfig; /* schema's model_config.proto */

/* A version of a model that takes requests. Read-only; lives as long as somebody holds a reference
 * to it, also when it was unloaded or loaded anew meanwhile. */
struct served_model {
    struct model *model;
    /* The configuration in force, autocompleted from the model and the command line; as GET
     * .../config shows it. NULL: not known yet. */
    const struct Inference__ModelConfig *config;
    uint16_t trace_model;
    bool is_text;        /* a pipeline's text input: TEXT */
    bool has_pipeline;   /* inputs or outputs are not the model's own */
    /* What clients see: pictures, texts or tensors in, what the pipeline makes of the model's
     * outputs out. A pipeline's model takes its own tensors too. Names live as long as the model. */
    struct signature shown;
    uint32_t max_tokens;
    const char *note;    /* something a person should know (a tokenizer that was left aside); NULL */
};

struct engine;
/* Opens everything; on failure err says which model and why. The config must outlive the engine. */
MUST_CHECK enum status engine_create(const struct engine_config *config, struct engine **out,
                                     struct err *err);
/* Finishes what was submitted, then frees. A request that it has still answered has lost its model:
 * request->model is to be set to NULL before request_clear or request_done. */
void engine_free(struct engine *engine);
/* The models that take requests now, by name and version, a reference to each. On failure there is
 * nothing to give back. Not for the request path. */
struct engine_models {
    const struct served_model **items;
    size_t count;
};
MUST_CHECK enum status engine_models_get(struct engine *engine, struct engine_models *out,
                                         struct err *err);
void engine_models_done(struct engine_models *models);
/* Gives back a reference of engine_find, engine_only. Any thread; NULL allowed. A reference that
 * went into request->model is given back by request_clear and request_done instead. All are to be
 * given back before engine_free. */
void engine_release(const struct served_model *served);
/* One reference more to what the caller has one to. Any thread; NULL allowed. */
const struct served_model *engine_share(const struct served_model *served);
/* The only model there is, with a reference; NULL where there are none or several. */
const struct served_model *engine_only(struct engine *engine);
size_t engine_model_count(const struct engine *engine); /* those that take requests now */
/* version empty: the highest that is ready. NULL when there is none; otherwise a reference: to be
 * moved into request->model or given back by engine_release. Any thread; lock-free. */
const struct served_model *engine_find(const struct engine *engine, struct view name,
                                       struct view version);
struct tracer *engine_tracer(struct engine *engine);
void engine_stats(const struct served_model *served, struct batcher_stats *out);
size_t engine_workers_waiting(struct engine *engine);
/* Shutdown has begun: nothing is held for company any more. */
void engine_drain(struct engine *engine);
/* The running configuration with the defaults filled in, models with their sha256, back end,
 * processors: a JSON object, for config.json and result.json. */
void engine_describe(struct engine *engine, struct buf *out);

/* Starts a request. On ST_OK on_done will come exactly once; otherwise the request failed its
 * checks (err in request) and stays the caller's, on_done never comes. AT_START, AT_RECEIVED and
 * AT_DECODED are stamped by the caller; AT_DECODED here where the request brings a decode: then
 * its checks fail in on_done. */
MUST_CHECK enum status engine_submit(struct engine *engine, struct request *request);
/* Wakes what submits since the last flush left asleep: call once at the end of a loop's turn. */
void engine_flush(struct engine *engine);
/* The caller no longer wants the answer; on_done still comes. Any thread. */
void request_cancel(struct request *request);
/* The last stage is over (AT_SENT stamped, or the client went away): hands the record to the
 * trace. ring belongs to the calling thread. */
void request_trace(struct request *request, struct trace_ring *ring);

#endif
