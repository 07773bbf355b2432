/* The running configuration as JSON: what a result is bound to. */
#include "engine/engine_private.h"

#include "base/buf.h"

static void member(struct buf *out, const char *name, const char *text) {
    buf_printf(out, ",\"%s\":", name);
    if (text == NULL) buf_text(out, "null");
    else buf_json_string(out, view_of(text));
}

static void describe_model(const struct engine_model *model, struct buf *out) {
    const struct model *own = model->served.model;
    buf_text(out, "{\"name\":");
    buf_json_string(out, view_of(own->name));
    member(out, "version", own->version);
    member(out, "file", own->path);
    member(out, "sha256", own->sha256);
    member(out, "backend", own->backend->name);
    member(out, "backend_description", own->backend->describe(own->session));
    buf_printf(out, ",\"simulated\":%s,\"batched\":%s,\"max_batch\":%u,\"text\":%s,\"max_tokens\":%u}",
               own->backend->is_simulated ? "true" : "false", model->is_batched ? "true" : "false",
               model->max_rows, model->served.is_text ? "true" : "false", model->served.max_tokens);
}

void engine_describe(struct engine *engine, struct buf *out) {
    static const char *const QUEUES[QUEUE_KIND_COUNT] = {"ring", "mutex"};
    const struct engine_config *config = engine->config;
    buf_text(out, "{\"telltale\":\"" TELLTALE_VERSION "\"");
    member(out, "queue", QUEUES[config->queue]);
    member(out, "policy", policy_name((enum policy_kind)config->policy));
    member(out, "preprocess", config->preprocess == PREPROCESS_INLINE ? "inline" : "pool");
    buf_printf(out,
               ",\"max_batch\":%llu,\"max_delay_us\":%llu,\"instances\":%u,\"intra_op_threads\":%llu"
               ",\"workers\":%u,\"processors\":%u,\"queue_limit\":%llu,\"trace_sample\":%g"
               ",\"trace_all\":%s",
               (unsigned long long)config->max_batch, (unsigned long long)config->max_delay_us,
               engine->instances, (unsigned long long)config->intra_op_threads, engine->workers,
               engine->processors, (unsigned long long)config->queue_limit, config->trace_sample,
               config->trace_all ? "true" : "false");
    member(out, "simulate", config->simulate);
    buf_text(out, ",\"models\":[");
    for (size_t i = 0; i < engine->model_count; i++) {
        if (i > 0) buf_char(out, ',');
        describe_model(&engine->models[i], out);
    }
    buf_text(out, "]}\n");
}
