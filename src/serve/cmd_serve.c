/* telltale serve: options, start-up, what is said about it. The main thread becomes the loop.
 *
 * Invariant: the port file appears only when requests will be answered.
 * Read next: server.c. */
#include "serve/cmd_serve.h"

#include "base/options.h"
#include "serve/grpc_server.h"
#include "serve/notify.h"
#include "serve/routes.h"
#include "serve/server.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct option_spec OPTIONS[] = {
    ENGINE_OPTIONS(struct serve_config, engine),
    {.kind = OPT_HEADING, .help = "Network"},
    {"host", OPT_STRING, offsetof(struct serve_config, host), "ADDRESS", "127.0.0.1", 0, 0, NULL,
     "address to listen on; 0.0.0.0: every IPv4 address"},
    {"http-port", OPT_UINT, offsetof(struct serve_config, http_port), "N", "8000", 0, 65535, NULL,
     "port of the inference protocol; 0: any free one"},
    {"metrics-port", OPT_UINT, offsetof(struct serve_config, metrics_port), "N", "8002", 0, 65535,
     NULL, "port of /metrics (also at the HTTP port); 0: any free one"},
    {"grpc-port", OPT_STRING, offsetof(struct serve_config, grpc_port), "N", "8001", 0, 0, NULL,
     "port of the inference protocol over gRPC; 0: any free one; none: no gRPC"},
    {"grpc-max-message", OPT_UINT, offsetof(struct serve_config, grpc_max_message), "BYTES",
     "64MiB", 1, 4294967295.0, NULL,
     "largest gRPC message; a larger one gets RESOURCE_EXHAUSTED"},
    {"grpc-memory", OPT_UINT, offsetof(struct serve_config, grpc_memory), "BYTES", "1GiB", 65536,
     1099511627776.0, NULL,
     "gRPC messages being received and worked on, in all; more are refused with RESOURCE_EXHAUSTED"},
    {"grpc-max-streams", OPT_UINT, offsetof(struct serve_config, grpc_max_streams), "N", "1024", 1,
     65536, NULL, "gRPC calls at once on a connection; more wait at the client"},
    {"grpc-compression", OPT_CHOICE, offsetof(struct serve_config, grpc_compression), NULL, "none",
     0, 0, "none|low|medium|high",
     "gzip of gRPC answers of 1 KiB and more, to clients that take it"},
    {"max-connections", OPT_UINT, offsetof(struct serve_config, max_connections), "N", "1024", 1,
     1000000, NULL, "connections at once; one more is answered with 503 and closed"},
    {"max-body", OPT_UINT, offsetof(struct serve_config, max_body), "BYTES", "64MiB", 1,
     1099511627776.0, NULL, "largest request body; a larger one gets 413"},
    {"max-header", OPT_UINT, offsetof(struct serve_config, max_header), "BYTES", "16KiB", 256,
     65536, NULL, "largest request header; a larger one gets 431"},
    {"max-shared-regions", OPT_UINT, offsetof(struct serve_config, max_shared_regions), "N", "1024",
     0, 65536, NULL, "regions of shared memory that clients may register; 0: shared memory is off"},
    {"request-timeout-ms", OPT_UINT, offsetof(struct serve_config, request_timeout_ms), "N", "0", 0,
     86400000, NULL,
     "answer 504 when a request is not done N ms after it arrived whole; 0: never. A request's "
     "own parameter timeout (us) may shorten it"},
    {"read-timeout", OPT_DURATION, offsetof(struct serve_config, read_timeout_ns), "TIME", "30s", 0,
     0, NULL, "408 for a request that does not arrive whole in that time; 0s: never"},
    {"idle-timeout", OPT_DURATION, offsetof(struct serve_config, idle_timeout_ns), "TIME", "2m", 0,
     0, NULL, "close a connection without a request for that long; 0s: never"},
    {"drain-delay", OPT_DURATION, offsetof(struct serve_config, drain_delay_ns), "TIME", "100ms", 0,
     0, NULL, "after SIGTERM, keep the ports open that long while ready says false"},
    {"drain-timeout", OPT_DURATION, offsetof(struct serve_config, drain_timeout_ns), "TIME", "30s",
     0, 0, NULL, "after SIGTERM, leave with 1 when requests are still in flight after that"},
    {.kind = OPT_HEADING, .help = "TLS"},
    {"tls-certificate", OPT_STRING, offsetof(struct serve_config, tls.certificate), "FILE", NULL, 0,
     0, NULL, "speak TLS with this certificate and its chain, PEM; SIGHUP reads it and the key again"},
    {"tls-key", OPT_STRING, offsetof(struct serve_config, tls.key), "FILE", NULL, 0, 0, NULL,
     "the certificate's private key, PEM, not encrypted"},
    {"tls-client-ca", OPT_STRING, offsetof(struct serve_config, tls.client_ca), "FILE", NULL, 0, 0,
     NULL, "clients must show a certificate of one of these CAs, PEM"},
    {"tls-metrics", OPT_FLAG, offsetof(struct serve_config, tls.has_metrics), NULL, NULL, 0, 0,
     NULL, "the metrics port speaks TLS too; it is plain otherwise"},
    {.kind = OPT_HEADING, .help = "Output"},
    {"slow-ms", OPT_UINT, offsetof(struct serve_config, slow_ms), "N", "50", 0, 86400000, NULL,
     "log a request slower than N ms with its stages, 5 a second at most; 0: none"},
    {"log-level", OPT_CHOICE, offsetof(struct serve_config, log_level), NULL, "info", 0, 0,
     "error|warn|info|debug", "what is logged to standard error"},
    {"port-file", OPT_STRING, offsetof(struct serve_config, port_file), "FILE", NULL, 0, 0, NULL,
     "once ready, write the ports there: http PORT, metrics PORT, grpc PORT, a line each"},
};

static const struct command_spec COMMAND = {
    .name = "serve",
    .synopsis = "telltale serve (--model FILE.onnx | --model-repository DIR | --simulate SPEC) "
                "[options]",
    .summary = "Serves models over HTTP with the Open Inference Protocol v2, batches requests, and "
               "records where each one spent its time.",
    .epilog = "Examples:\n"
              "  telltale serve --model examples/spam/spam_int8.onnx\n"
              "  telltale serve --simulate 'a=4ms,b=0.05ms' --max-batch 32 --trace run1\n"
              "\n"
              "A pipeline.yaml beside the model (or --pipeline) makes it take pictures and texts and\n"
              "answer with labels, boxes or embeddings; a tokenizer.json alone makes it take TEXT:\n"
              "  telltale serve --model faces.onnx --pipeline faces.yaml\n"
              "  curl -T photo.jpg -H 'Content-Type: image/jpeg' localhost:8000/v2/models/faces/infer\n"
              "\n"
              "SIGTERM or SIGINT stops without losing an answer, a second one at once; SIGHUP reads\n"
              "the TLS certificate again.\n"
              "Exit codes: 0 drained, 1 failed or left with requests in flight, 2 wrong usage.\n",
    .options = OPTIONS,
    .option_count = sizeof OPTIONS / sizeof OPTIONS[0],
};

struct ports {
    unsigned http, metrics, grpc; /* grpc 0: none */
};

static bool write_ports(const char *path, const struct ports *ports) {
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool is_written = fprintf(file, "http %u\nmetrics %u\n", ports->http, ports->metrics) > 0;
    if (ports->grpc)
        is_written &= fprintf(file, "grpc %u\n", ports->grpc) > 0;
    return fclose(file) == 0 && is_written;
}

/* By way of a second file, so that a reader finds all lines or none. Not where something else
 * than a file is there: renaming would put a file in the place of a device, a pipe or a link
 * (/dev/stdout is one). */
static enum status write_port_file(const char *path, const struct ports *ports, struct err *err) {
    struct stat info;
    const bool is_special = lstat(path, &info) == 0 && !S_ISREG(info.st_mode);
    struct buf name;
    buf_init(&name);
    buf_text(&name, path);
    buf_append(&name, is_special ? "" : ".tmp", is_special ? 1 : 5);
    if (name.failed) {
        buf_done(&name);
        return err_set(err, ST_NO_MEMORY, "no memory for --port-file");
    }
    enum status status = ST_OK;
    if (!write_ports(name.data, ports) || (!is_special && rename(name.data, path) != 0)) {
        status = err_set(err, ST_IO, "--port-file %s: %s", path, strerror(errno));
        if (!is_special)
            (void)unlink(name.data);
    }
    buf_done(&name);
    return status;
}

static void log_models(const struct serve_config *config, struct engine *engine) {
    static const char *const QUEUES[] = {"ring", "mutex"};
    struct engine_models models;
    struct err err;
    if (engine_models_get(engine, &models, &err) != ST_OK) {
        log_line(LOG_WARN, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < models.count; i++) {
        const struct served_model *served = models.items[i];
        const struct model *model = served->model;
        struct batcher_stats stats;
        engine_stats(served, &stats);
        log_line(LOG_INFO, "model %s version %s: %s%s%s%s", model->name, model->version,
                 model->backend->is_simulated ? "SIMULATED, " : "",
                 model->backend->describe(model->session), served->has_pipeline ? ", takes " : "",
                 served->has_pipeline ? served->shown.inputs[0].name : "");
        if (config->engine.max_batch == 0 || !model->can_batch)
            log_line(LOG_INFO, "model %s: not batched, %" PRIu64 " instances, queue %s",
                     model->name, stats.instances, QUEUES[config->engine.queue]);
        else
            log_line(LOG_INFO,
                     "model %s: policy %s, max batch %" PRIu64 ", max delay %" PRIu64
                     " us, %" PRIu64 " instances, queue %s",
                     model->name, policy_name((enum policy_kind)config->engine.policy),
                     config->engine.max_batch, config->engine.max_delay_us, stats.instances,
                     QUEUES[config->engine.queue]);
        char warning[480];
        if (!config->engine.denormal_as_zero && weights_may_be_slow(&model->weights))
            log_line(LOG_WARN, "%s", weights_warning(&model->weights, model->name, warning,
                                                     sizeof warning));
    }
    engine_models_done(&models);
}

/* One of the engine's threads. At start log_models says more of those that are served. */
static void log_event(void *ctx, const struct engine_event *event) {
    (void)ctx;
    const double seconds = (double)event->took_ns / 1e9;
    if (event->kind == ENGINE_EVENT_LOAD_FAILED)
        log_line(LOG_ERROR, "model %s is not loaded: %s", event->model, event->text);
    else if (event->kind == ENGINE_EVENT_UNLOADED)
        log_line(LOG_INFO, "model %s is unloaded", event->model);
    else if (event->kind == ENGINE_EVENT_LOADED && !event->is_start)
        log_line(LOG_INFO, "model %s is loaded, after %.3f s", event->model, seconds);
}

/* A connection needs a descriptor, and the usual soft limit is 1024 for everything. */
static void raise_descriptor_limit(uint64_t connections) {
    enum { OTHERS = 512 }; /* listeners, models, trace files, connections about to be refused */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= connections + OTHERS)
        return;
    limit.rlim_cur = connections + OTHERS < limit.rlim_max ? connections + OTHERS : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < connections + OTHERS)
        log_line(LOG_WARN, "only %llu file descriptors for %" PRIu64 " connections: raise the "
                 "hard limit (ulimit -Hn) or lower --max-connections",
                 (unsigned long long)limit.rlim_cur, connections);
}

static enum status announce(const struct serve_config *config, const struct server *server,
                            struct err *err) {
    const struct ports ports = {.http = listener_port(server->http),
                                .metrics = listener_port(server->metrics),
                                .grpc = grpc_server_port(server->grpc)};
    log_models(config, server->engine);
    log_line(LOG_INFO, "listening on http%s://%s:%u, metrics on http%s://%s:%u/metrics",
             server->tls.http ? "s" : "", config->host, ports.http,
             server->tls.metrics ? "s" : "", config->host, ports.metrics);
    if (ports.grpc)
        log_line(LOG_INFO, "listening on grpc%s://%s:%u", server->tls.grpc ? "s" : "",
                 config->host, ports.grpc);
    if (!notify_service_manager("READY=1"))
        log_line(LOG_WARN, "$NOTIFY_SOCKET: %s: the service manager was not told that the server is "
                 "ready", strerror(errno));
    return config->port_file ? write_port_file(config->port_file, &ports, err) : ST_OK;
}

static int run(const struct serve_config *config) {
    struct err err = {.text = ""};
    struct engine *engine = NULL;
    raise_descriptor_limit(2 * config->max_connections + config->max_shared_regions);
    /* A trace that meets ulimit -f is a failed write, not the end of the server. */
    (void)signal(SIGXFSZ, SIG_IGN);
    enum status status = engine_create(&config->engine, &engine, &err);
    if (status == ST_OK) {
        struct server server;
        status = server_init(&server, config, engine, &err);
        if (status == ST_OK)
            status = announce(config, &server, &err);
        if (status == ST_OK)
            server_run(&server);
        engine_free(engine); /* before server_done, see server.h */
        engine = NULL;
        server_done(&server);
    }
    engine_free(engine);
    if (status == ST_OK)
        return 0;
    log_line(LOG_ERROR, "cannot serve: %s", err.text[0] ? err.text : status_sentence(status));
    return 1;
}

/* What the table cannot check; the sentence is for standard error. */
static enum status check_config(const struct serve_config *config, struct err *err) {
    const struct engine_config *engine = &config->engine;
    if (!engine->model && !engine->model_repositories.count && !engine->simulate)
        return err_set(err, ST_INVALID, "nothing to serve: give --model FILE.onnx, "
                                        "--model-repository DIR or --simulate SPEC");
    if (config->http_port && config->http_port == config->metrics_port)
        return err_set(err, ST_INVALID, "--http-port and --metrics-port are both %" PRIu64
                       ": give two ports; /metrics answers at the HTTP port too",
                       config->http_port);
    if (grpc_port_check(config, err) != ST_OK)
        return ST_INVALID;
    if (tls_options_check(&config->tls, err) != ST_OK)
        return ST_INVALID;
    const char *name = engine->model_name;
    if (!name)
        return ST_OK;
    const size_t size = strlen(name);
    if (size == 0 || size >= ROUTE_NAME_MAX)
        return err_set(err, ST_INVALID, "--model-name: a name of %zu bytes cannot be asked for in "
                       "a path: 1 to %d bytes", size, ROUTE_NAME_MAX - 1);
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return err_set(err, ST_INVALID, "--model-name: byte %zu is a control character", i);
    return ST_OK;
}

int cmd_serve(int argc, char **argv) {
    struct serve_config config = {.host = NULL};
    const char **positional = NULL;
    size_t count = 0;
    struct err err = {.text = ""};
    int code = 2;
    switch (options_parse(&COMMAND, argc, argv, &config, &positional, &count)) {
    case OPTIONS_HELP_SHOWN:
        code = 0;
        break;
    case OPTIONS_BAD:
        break;
    case OPTIONS_RUN:
        if (count) {
            (void)fprintf(stderr, "telltale serve: unexpected argument \"%s\"; the model is given "
                          "with --model\n", positional[0]);
        } else if (check_config(&config, &err) != ST_OK) {
            (void)fprintf(stderr, "telltale serve: %s\n", err.text);
        } else {
            log_set_level((enum log_level)config.log_level);
            config.engine.on_event = log_event;
            code = run(&config);
        }
        break;
    }
    options_free(&COMMAND, &config, positional);
    return code;
}
