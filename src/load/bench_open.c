/* Opens what will be loaded and makes requests of the inputs. Main thread, before the load.
 * Invariant: whatever bench_open leaves, bench_close frees. Read next: cmd_bench.c. */
#include "load/bench.h"

#include "load/fetch.h"
#include "net/tls.h"
#include "prep/tokenizer.h"
#include "proto/infer_json.h"

#include <stdio.h>
#include <stdlib.h>

#define FETCH_TIMEOUT_NS 5000000000u
#define SCRAPE_TIMEOUT_NS 1000000000u

static enum status no_memory(struct err *err) {
    return err_set(err, ST_NO_MEMORY, "out of memory");
}

static const char *kept(struct arena *arena, struct view text) {
    const char *copy = arena_copy(arena, text);
    return copy == NULL ? "" : copy;
}

/* ---- a server elsewhere ---- */

/* Says "404: model spam is not there" with the server's own sentence. */
static enum status refused(const char *path, int http, const struct buf *body, struct err *err) {
    json_t *document = json_loadb(body->data, body->size, 0, NULL);
    const char *text = json_string_value(json_object_get(document, "error"));
    enum status status = err_set(err, http == 404 ? ST_NOT_FOUND : ST_UNAVAILABLE,
                                 "the server answered %d to GET %s: %s", http, path,
                                 text != NULL ? text : "no reason given");
    json_decref(document);
    return status;
}

MUST_CHECK static enum status read_metadata(struct bench *bench, struct view body,
                                            struct err *err) {
    struct model_metadata metadata;
    enum status status = model_metadata_parse(body, &bench->arena, &metadata, err);
    if (status != ST_OK) {
        err_prefix(err, "the server's model metadata");
        return status == ST_INVALID ? ST_IO : status; /* the server's fault, no misuse */
    }
    struct bench_model *model = &bench->model;
    model->platform = kept(&bench->arena, metadata.platform);
    model->specs = arena_array(&bench->arena, metadata.input_count, sizeof *model->specs);
    if (model->specs == NULL) return no_memory(err);
    for (uint32_t i = 0; i < metadata.input_count; i++) {
        const struct tensor *input = &metadata.inputs[i];
        model->specs[i] = (struct input_spec){input->name, input->dtype, input->rank,
                                              input->shape};
    }
    model->spec_count = metadata.input_count;
    /* Ours says more than the protocol asks for. */
    json_t *document = json_loadb(body.data, body.size, 0, NULL);
    json_t *versions = json_object_get(document, "versions");
    const char *version = json_string_value(json_array_get(versions, 0));
    const char *sha256 = json_string_value(json_object_get(document, "sha256"));
    if (version != NULL) model->version = kept(&bench->arena, view_of(version));
    if (sha256 != NULL) model->sha256 = kept(&bench->arena, view_of(sha256));
    json_decref(document);
    return ST_OK;
}

MUST_CHECK static enum status fetch_metadata(struct bench *bench, struct err *err) {
    char path[512];
    if (snprintf(path, sizeof path, "/v2/models/%s", bench->model.name) >= (int)sizeof path)
        return err_set(err, ST_INVALID, "--model-name is too long");
    struct buf body;
    buf_init(&body);
    int http = 0;
    enum status status = fetch_get(&bench->url, path, FETCH_TIMEOUT_NS, &http, &body, err);
    if (status == ST_OK && http != 200) status = refused(path, http, &body, err);
    else if (status == ST_OK) {
        /* The views of the metadata must outlive this function: the body moves to the arena. */
        char *copy = arena_zalloc(&bench->arena, body.size + 64);
        if (copy == NULL) status = no_memory(err);
        else {
            memcpy(copy, body.data, body.size);
            status = read_metadata(bench, (struct view){copy, body.size}, err);
        }
    }
    buf_done(&body);
    return status;
}

/* Name and version of the server; a server that does not say is no error. */
static void fetch_server(struct bench *bench) {
    struct buf body;
    buf_init(&body);
    int http = 0;
    struct err ignored = {0};
    if (fetch_get(&bench->url, "/v2", FETCH_TIMEOUT_NS, &http, &body, &ignored) == ST_OK &&
        http == 200) {
        json_t *document = json_loadb(body.data, body.size, 0, NULL);
        const char *name = json_string_value(json_object_get(document, "name"));
        const char *version = json_string_value(json_object_get(document, "version"));
        if (name != NULL) bench->model.server = kept(&bench->arena, view_of(name));
        if (version != NULL) bench->model.server_version = kept(&bench->arena, view_of(version));
        json_decref(document);
    }
    buf_done(&body);
}

MUST_CHECK static enum status open_tls(struct bench *bench, struct err *err) {
    static const char *const HTTP_1[] = {"http/1.1", NULL};
    if (!bench->url.is_tls && !bench->metrics.is_tls) return ST_OK;
    const struct tls_client_config config = {
        .ca = bench->config.tls_ca,
        .certificate = bench->config.tls_certificate,
        .key = bench->config.tls_key,
        .is_insecure = bench->config.tls_insecure,
        .alpn = HTTP_1,
        .handshake_timeout_ns = bench->config.timeout_ns,
        .remedy = "give its CA with --tls-ca, or --tls-insecure for a test",
    };
    const enum status status = tls_client_create(&config, &bench->tls, err);
    if (bench->url.is_tls) bench->url.tls = bench->tls;
    if (bench->metrics.is_tls) bench->metrics.tls = bench->tls;
    return status;
}

MUST_CHECK static enum status open_url(struct bench *bench, struct err *err) {
    enum status status = http_url_parse(bench->config.url, &bench->url, err);
    if (status != ST_OK) return status;
    bench->metrics = bench->url;
    bench->metrics.is_tls = false; /* by default it is plain beside an https:// port too */
    bench->metrics.port = 8002;
    snprintf(bench->metrics.prefix, sizeof bench->metrics.prefix, "/metrics");
    if (bench->config.metrics_url != NULL)
        status = http_url_parse(bench->config.metrics_url, &bench->metrics, err);
    if (status == ST_OK) status = open_tls(bench, err);
    if (status != ST_OK) return status;
    bench->model.name = bench->config.engine.model_name;
    status = fetch_metadata(bench, err);
    if (status == ST_OK) fetch_server(bench);
    return status;
}

/* ---- the engine in this process ---- */

MUST_CHECK static enum status pick_model(struct bench *bench, struct err *err) {
    const char *wanted =
        bench->config.engine.model_repositories.count == 0 ? NULL : bench->config.engine.model_name;
    if (wanted == NULL && engine_model_count(bench->engine) != 1)
        return err_set(err, ST_INVALID, "the repository holds %zu models: name one by --model-name",
                       engine_model_count(bench->engine));
    bench->served = wanted == NULL ? engine_only(bench->engine)
                                   : engine_find(bench->engine, view_of(wanted), (struct view){0});
    if (bench->served == NULL)
        return err_set(err, ST_NOT_FOUND, "the repository holds no model %s", wanted);
    return ST_OK;
}

MUST_CHECK static enum status open_engine(struct bench *bench, struct err *err) {
    struct engine_config *config = &bench->config.engine;
    if (config->trace == NULL && !config->no_trace) config->trace = bench->config.out;
    /* With a repository --model-name picks one; the engine knows it for single models only. */
    struct engine_config single = *config;
    if (single.model_repositories.count > 0) single.model_name = NULL;
    struct engine_config *lasting = arena_alloc(&bench->arena, sizeof *lasting);
    if (lasting == NULL) return no_memory(err);
    *lasting = single;
    enum status status = engine_create(lasting, &bench->engine, err);
    if (status == ST_OK) status = pick_model(bench, err);
    if (status != ST_OK) return status;
    const struct model *model = bench->served->model;
    const struct signature *shown = &bench->served->shown;
    bench->model = (struct bench_model){
        .name = model->name,
        .version = model->version,
        .platform = model->backend->name,
        .sha256 = model->sha256,
        .server = "telltale",
        .server_version = TELLTALE_VERSION,
        .specs = arena_array(&bench->arena, shown->input_count, sizeof(struct input_spec)),
        .spec_count = shown->input_count,
    };
    if (bench->model.specs == NULL) return no_memory(err);
    for (uint32_t i = 0; i < shown->input_count; i++) {
        const struct io_spec *spec = &shown->inputs[i];
        bench->model.specs[i] = (struct input_spec){view_of(spec->name), spec->dtype, spec->rank,
                                                    spec->shape};
    }
    return ST_OK;
}

/* ---- inputs ---- */

MUST_CHECK static enum status make_inputs(struct bench *bench, struct err *err) {
    const struct bench_config *config = &bench->config;
    struct tokenizer *tokenizer = NULL;
    enum status status =
        inputs_apply_shapes(config->shapes.items, config->shapes.count, bench->model.specs,
                            bench->model.spec_count, &bench->arena, err);
    if (status == ST_OK && config->engine.tokenizer != NULL && bench->inputs.kind == INPUT_TEXT)
        status = tokenizer_load(config->engine.tokenizer, &tokenizer, err);
    struct input_shape shape = {bench->model.specs, bench->model.spec_count};
    /* Over HTTP a ready body is sent as it is. */
    bool is_ready = bench->inputs.kind == INPUT_JSON && bench->engine == NULL;
    if (status == ST_OK && !is_ready)
        status = inputs_make_tensors(&bench->inputs, shape, tokenizer, config->tokens,
                                     (uint32_t)config->engine.max_tokens, config->seed, err);
    tokenizer_free(tokenizer);
    bool is_bytes = bench->inputs.kind == INPUT_IMAGE ||
                    (bench->inputs.kind == INPUT_TEXT && !config->tokens);
    bool binary = config->format == FORMAT_BINARY || (config->format == FORMAT_AUTO && !is_bytes);
    if (status == ST_OK && bench->engine == NULL)
        status = inputs_render(&bench->inputs, binary, err);
    if (status == ST_OK)
        status = inputs_shuffle(&bench->inputs, config->order == ORDER_SEQUENTIAL, config->seed,
                                err);
    if (status == ST_OK)
        status = inputs_sizes(&bench->inputs, &bench->input_bytes, &bench->input_tokens, err);
    return status;
}

enum status bench_open(struct bench *bench, struct err *err) {
    bench->model = (struct bench_model){"", "", "", "", "", "", NULL, 0};
    enum status status = inputs_load(bench->config.input, &bench->inputs, err);
    if (status == ST_OK && bench->config.out != NULL)
        status = run_dir_create(bench->config.out, &bench->dir, err);
    if (status == ST_OK)
        status = bench->config.url != NULL ? open_url(bench, err) : open_engine(bench, err);
    if (status == ST_OK) status = make_inputs(bench, err);
    if (status == ST_OK) status = loop_create(&bench->loop, err);
    if (status != ST_OK) return status;
    if (bench->engine != NULL)
        return target_engine_create(bench->loop, bench->engine, bench->served, &bench->inputs,
                                    &bench->target, err);
    return target_http_create(bench->loop, &bench->url, bench->model.name, &bench->inputs,
                              &bench->target, err);
}

void bench_close(struct bench *bench) {
    if (bench->target != NULL) bench->target->table->free(bench->target);
    if (bench->loop != NULL) {
        loop_run(bench->loop); /* until the handles that were closed are gone */
        loop_free(bench->loop);
    }
    tls_free(bench->tls);
    engine_release(bench->served);
    engine_free(bench->engine);
    run_dir_free(bench->dir);
    inputs_done(&bench->inputs);
    free(bench->steps);
    arena_done(&bench->arena);
}

void bench_scrape(struct bench *bench, struct scrape *out) {
    *out = (struct scrape){0};
    if (bench->engine != NULL) {
        struct batcher_stats stats;
        engine_stats(bench->served, &stats);
        *out = (struct scrape){
            .has_device = true,
            .has_instances = true,
            .device_busy_s = (double)stats.device_busy_ns / 1e9,
            .instances = (double)stats.instances,
        };
        return;
    }
    struct buf body;
    buf_init(&body);
    int http = 0;
    struct err ignored = {0};
    if (fetch_get(&bench->metrics, "", SCRAPE_TIMEOUT_NS, &http, &body, &ignored) == ST_OK &&
        http == 200)
        scrape_parse(buf_view(&body), bench->model.name, out);
    buf_done(&body);
}

bool bench_is_simulated(const struct bench *bench) {
    return (bench->target != NULL && bench->target->is_simulated) ||
           strcmp(bench->model.platform, "telltale_simulated") == 0;
}

bool bench_is_demo(const struct bench *bench) { return bench->inputs.kind == INPUT_RANDOM; }
