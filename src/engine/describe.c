/* The running configuration as JSON: what a result is bound to. */
#include "engine/engine_private.h"

#include "base/buf.h"
#include "infer/sha256.h"

static void member(struct buf *out, const char *name, const char *text) {
    buf_printf(out, ",\"%s\":", name);
    if (text == NULL) buf_text(out, "null");
    else buf_json_string(out, view_of(text));
}

/* null: the model takes and gives tensors. file null: it was inferred. */
static void describe_pipeline(const struct binding *binding, struct buf *out) {
    buf_text(out, ",\"pipeline\":");
    if (binding->input_count + binding->output_count == 0) {
        buf_text(out, "null");
        return;
    }
    buf_text(out, "{\"file\":");
    const char *path = binding->file.path;
    char sum[SHA256_HEX_SIZE];
    struct err err; /* a file that is gone by now is no reason to fail */
    const bool has_sum = path[0] != '\0' && sha256_file(path, sum, &err) == ST_OK;
    if (path[0] == '\0') buf_text(out, "null");
    else buf_json_string(out, view_of(path));
    member(out, "sha256", has_sum ? sum : NULL);
    buf_text(out, ",\"inputs\":[");
    for (uint32_t i = 0; i < binding->input_count; i++) {
        const struct pipeline_input *input = binding->inputs[i].spec;
        buf_printf(out, "%s{\"kind\":\"%s\"", i > 0 ? "," : "",
                   input->kind == PIPELINE_IMAGE ? "image" : "text");
        member(out, "name", input->name);
        buf_char(out, '}');
    }
    buf_text(out, "],\"outputs\":[");
    for (uint32_t i = 0; i < binding->output_count; i++)
        buf_printf(out, "%s\"%s\"", i > 0 ? "," : "", binding_kind_name(binding->outputs[i].spec->kind));
    buf_text(out, "]}");
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
    buf_printf(out, ",\"simulated\":%s,\"batched\":%s,\"max_batch\":%u,\"text\":%s,\"max_tokens\":%u",
               own->backend->is_simulated ? "true" : "false", model->is_batched ? "true" : "false",
               model->max_rows, model->served.is_text ? "true" : "false", model->served.max_tokens);
    describe_pipeline(&model->binding, out);
    buf_char(out, '}');
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
    struct engine_models models;
    struct err err;
    if (engine_models_get(engine, &models, &err) != ST_OK) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < models.count; i++) {
        if (i > 0) buf_char(out, ',');
        describe_model((const struct engine_model *)models.items[i], out);
    }
    engine_models_done(&models);
    buf_text(out, "]}\n");
}
