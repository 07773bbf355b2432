/* Server, model and configuration metadata. Loop thread only.
 *
 * Invariant: an extension is named in GET /v2 only when it is served.
 * Read next: routes.c (where these hang). */
#include "serve/metadata.h"

uint64_t metadata_max_batch(const struct server *server, const struct served_model *served) {
    return served->model->can_batch ? server->config->engine.max_batch : 0;
}

const char *metadata_platform(const struct served_model *served) {
    return served->model->backend->is_simulated ? "telltale_simulated" : "onnxruntime_onnx";
}

static const char *const EXTENSIONS[] = {"classification", "schedule_policy", "model_configuration",
                                         "binary_tensor_data", "parameters", "statistics", "trace",
                                         "logging", "system_shared_memory"};

size_t metadata_extension_count(const struct server *server) {
    const size_t count = sizeof EXTENSIONS / sizeof EXTENSIONS[0];
    return shared_memory_is_on(server->shared_memory) ? count : count - 1;
}

const char *metadata_extension(const struct server *server, size_t index) {
    (void)server;
    return EXTENSIONS[index];
}

enum status metadata_write_server(struct server *server, const struct served_model *served,
                                  struct err *err) {
    (void)served;
    (void)err;
    buf_text(&server->body, "{\"name\":\"telltale\",\"version\":\"" TELLTALE_VERSION
                            "\",\"extensions\":[");
    for (size_t i = 0; i < metadata_extension_count(server); i++) {
        buf_text(&server->body, i ? ",\"" : "\"");
        buf_text(&server->body, metadata_extension(server, i));
        buf_char(&server->body, '"');
    }
    buf_text(&server->body, "]}");
    return ST_OK;
}

enum status metadata_write_live(struct server *server, const struct served_model *served,
                                struct err *err) {
    (void)served;
    (void)err;
    buf_text(&server->body, "{\"live\":true}");
    return ST_OK;
}

enum status metadata_write_ready(struct server *server, const struct served_model *served,
                                 struct err *err) {
    (void)served;
    (void)err;
    buf_text(&server->body, server->is_draining ? "{\"ready\":false}" : "{\"ready\":true}");
    return server->is_draining ? ST_UNAVAILABLE : ST_OK;
}

enum status metadata_write_model_ready(struct server *server, const struct served_model *served,
                                       struct err *err) {
    (void)err;
    buf_text(&server->body, "{\"name\":");
    buf_json_string(&server->body, view_of(served->model->name));
    buf_text(&server->body, server->is_draining ? ",\"ready\":false}" : ",\"ready\":true}");
    return server->is_draining ? ST_UNAVAILABLE : ST_OK;
}

static void write_shape(struct buf *out, const struct io_spec *spec, uint32_t first) {
    buf_char(out, '[');
    for (uint32_t i = first; i < spec->rank; i++) {
        if (i > first)
            buf_char(out, ',');
        buf_i64(out, spec->shape[i]);
    }
    buf_char(out, ']');
}

static void write_tensors(struct buf *out, const char *key, const struct io_spec *specs,
                          uint32_t count) {
    buf_text(out, ",\"");
    buf_text(out, key);
    buf_text(out, "\":[");
    for (uint32_t i = 0; i < count; i++) {
        buf_text(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(out, view_of(specs[i].name));
        buf_text(out, ",\"datatype\":\"");
        buf_text(out, dtype_name(specs[i].dtype));
        buf_text(out, "\",\"shape\":");
        write_shape(out, &specs[i], 0);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

enum status metadata_write_model(struct server *server, const struct served_model *served,
                                 struct err *err) {
    (void)err;
    struct buf *out = &server->body;
    buf_text(out, "{\"name\":");
    buf_json_string(out, view_of(served->model->name));
    buf_text(out, ",\"versions\":[");
    buf_json_string(out, view_of(served->model->version));
    buf_text(out, "],\"platform\":\"");
    buf_text(out, metadata_platform(served));
    buf_char(out, '"');
    write_tensors(out, "inputs", served->shown.inputs, served->shown.input_count);
    write_tensors(out, "outputs", served->shown.outputs, served->shown.output_count);
    if (served->model->sha256[0] != 0) { /* ours: a result can be tied to the very file */
        buf_text(out, ",\"sha256\":");
        buf_json_string(out, view_of(served->model->sha256));
    }
    buf_char(out, '}');
    return ST_OK;
}

/* dims leave the batch dimension out where the model is batched, as Triton's do. */
static void write_config_tensors(struct buf *out, const char *key, const struct io_spec *specs,
                                 uint32_t count, bool is_batched) {
    buf_text(out, ",\"");
    buf_text(out, key);
    buf_text(out, "\":[");
    for (uint32_t i = 0; i < count; i++) {
        const bool is_bytes = specs[i].dtype == DTYPE_BYTES;
        buf_text(out, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(out, view_of(specs[i].name));
        buf_text(out, ",\"data_type\":\"TYPE_");
        buf_text(out, is_bytes ? "STRING" : dtype_name(specs[i].dtype));
        buf_text(out, "\",\"dims\":");
        write_shape(out, &specs[i], is_batched && specs[i].rank > 0 ? 1 : 0);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

enum status metadata_write_config(struct server *server, const struct served_model *served,
                                  struct err *err) {
    (void)err;
    struct buf *out = &server->body;
    const uint64_t max_batch = metadata_max_batch(server, served);
    buf_text(out, "{\"name\":");
    buf_json_string(out, view_of(served->model->name));
    buf_text(out, ",\"platform\":\"");
    buf_text(out, metadata_platform(served));
    buf_text(out, "\",\"backend\":\"");
    buf_text(out, served->model->backend->name);
    buf_text(out, "\",\"max_batch_size\":");
    buf_u64(out, max_batch);
    write_config_tensors(out, "input", served->shown.inputs, served->shown.input_count,
                         max_batch > 0);
    write_config_tensors(out, "output", served->shown.outputs, served->shown.output_count,
                         max_batch > 0);
    if (max_batch > 0) {
        buf_text(out, ",\"dynamic_batching\":{\"max_queue_delay_microseconds\":");
        buf_u64(out, server->config->engine.max_delay_us);
        buf_char(out, '}');
    }
    buf_char(out, '}');
    return ST_OK;
}
