/* Models that come and go: loading, unloading, what there is and in which state.
 *
 * Thread: any. The work is done by the engine's loader threads, at low priority once the engine
 * has started; on_done comes on one of them and must only hand over. A load or an unload goes on
 * whether or not somebody still waits for it. Read next: loader.h, table.h. */
#ifndef TELLTALE_ENGINE_CONTROL_H
#define TELLTALE_ENGINE_CONTROL_H

#include "engine/engine.h"

enum model_state {
    MODEL_UNKNOWN, /* in a repository, never loaded */
    MODEL_READY,
    MODEL_UNAVAILABLE, /* failed to load, or unloaded; the reason says which */
    MODEL_LOADING,
    MODEL_UNLOADING, /* takes no request any more; those it has are finished */
    MODEL_STATE_COUNT
};
/* "READY"; for MODEL_UNKNOWN "UNKNOWN". Static. */
const char *model_state_name(enum model_state state);

/* What a load brings in place of the files of the repository. */
struct override_file {
    const char *path; /* "1/model.onnx": below the model's directory; checked */
    const void *data;
    size_t size;
};
struct model_overrides {
    const char *config_json;            /* a model configuration in JSON; NULL: config.pbtxt's */
    const struct override_file *files;  /* where there are any, nothing of the repository is read */
    uint32_t file_count;                /* and config_json must be given */
};

/* status ST_OK: done. Otherwise err says what to do. Both live during the call only. */
typedef void (*control_done_fn)(void *ctx, enum status status, const struct err *err);

/* Loads a model, or loads it anew: what was served goes on until the new one is ready, and for
 * ever where that fails. overrides (NULL: none) are copied. on_done (NULL: nobody waits) comes
 * exactly once where ST_OK is returned, and not at all otherwise: ST_UNAVAILABLE where the control
 * mode is not explicit, ST_NOT_FOUND for a name that no repository has, ST_INVALID for what is no
 * name of a model ("", "a/b", ".."), ST_NO_MEMORY. Loads and unloads of one name are done in the
 * order in which they were asked for. */
MUST_CHECK enum status engine_load(struct engine *engine, struct view name,
                                   const struct model_overrides *overrides,
                                   control_done_fn on_done, void *ctx, struct err *err);
/* Takes all versions of a model away. on_done comes when no new request finds them; those that
 * have them are finished (MODEL_UNLOADING until then). with_dependents: an ensemble takes its
 * steps' models with it where no other ensemble needs them. ST_NOT_FOUND: nothing of that name is
 * loaded. Else as engine_load. */
MUST_CHECK enum status engine_unload(struct engine *engine, struct view name, bool with_dependents,
                                     control_done_fn on_done, void *ctx, struct err *err);

struct model_index_entry {
    const char *name;
    const char *version; /* "": not known, as nothing was ever loaded */
    enum model_state state;
    const char *reason;  /* "": nothing to say; else e.g. "unloaded", or the error of the load */
};
struct model_index {
    struct model_index_entry *items; /* by name, then version */
    size_t count;
    struct arena arena;
};
/* All models that the repositories have or the engine knows; with is_ready_only those alone that
 * take requests. Reads the directories: not for the request path, some microseconds a model.
 * out is to be given back by engine_index_done in either case. */
MUST_CHECK enum status engine_index(struct engine *engine, bool is_ready_only,
                                    struct model_index *out, struct err *err);
void engine_index_done(struct model_index *index);

/* False until start is over, and, where strict_readiness is on (the default), while a model that
 * should be served is not: one that failed at start or whose versions are all gone by failure. */
bool engine_is_ready(const struct engine *engine);
/* A repository's name, as in /v2/repository/NAME/...: there is such a --model-repository (its
 * path, or the last part of it). */
bool engine_has_repository(const struct engine *engine, struct view name);

#endif
