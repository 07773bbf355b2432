/* The metrics page: what is counted for the process and its connections. Loop thread only.
 *
 * Invariant: a family's samples stand together, behind its HELP and TYPE.
 * Read next: metrics_model.c, docs/metrics.md. */
#include "serve/metrics.h"

#include "base/clock.h"
#include "measure/prom.h"
#include "serve/grpc_server.h"
#include <stdio.h>
#include <unistd.h>

static void one(struct buf *out, const char *name, const char *type, const char *help,
                uint64_t value) {
    prom_family(out, name, type, help);
    prom_u64(out, name, NULL, 0, value);
}

static void one_double(struct buf *out, const char *name, const char *type, const char *help,
                       double value) {
    prom_family(out, name, type, help);
    prom_double(out, name, NULL, 0, value);
}

static uint64_t resident_bytes(void) {
    unsigned long long size = 0;
    unsigned long long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    const int got = fscanf(file, "%llu %llu", &size, &resident);
    (void)fclose(file);
    return got == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void write_process(struct server *server) {
    struct buf *out = &server->body;
    one_double(out, "process_cpu_seconds_total", "counter", "User and system time of the process.",
               (double)process_cpu_ns() / 1e9);
    one(out, "process_resident_memory_bytes", "gauge", "Resident memory of the process.",
        resident_bytes());
    one_double(out, "process_start_time_seconds", "gauge",
               "Start of the process, seconds since the epoch.",
               (double)server->start_wall_ns / 1e9);
    struct engine_models models = {.items = NULL}; /* none, where memory is out */
    struct err err;
    if (engine_models_get(server->engine, &models, &err) != ST_OK)
        models.count = 0;
    const struct model *model = models.count ? models.items[0]->model : NULL;
    const bool is_simulated = model && model->backend->is_simulated;
    const struct prom_label labels[] = {{"version", TELLTALE_VERSION},
                                        {"backend", model ? model->backend->name : ""},
                                        {"simulated", is_simulated ? "true" : "false"}};
    prom_family(out, "telltale_info", "gauge", "Always 1; the labels say what runs.");
    prom_u64(out, "telltale_info", labels, 3, 1);
    engine_models_done(&models);
}

static void write_loop(struct server *server) {
    static const uint64_t BOUNDS[] = {/* ns */
        25000, 50000, 100000, 250000, 500000, 750000, 1000000, 1500000, 2000000, 3000000, 5000000,
        10000000, 25000000, 100000000, 1000000000};
    static const struct { const char *name, *help; size_t histogram;
    } FAMILIES[] = {
        {"telltale_loop_turn_seconds",
         "Turns of the I/O loop, from its first event until it waits again.",
         offsetof(struct server, turn_ns)},
        {"telltale_loop_turn_cpu_seconds",
         "Processor time of the I/O loop's turns, its system call to wait included.",
         offsetof(struct server, turn_cpu_ns)}};
    for (size_t i = 0; i < sizeof FAMILIES / sizeof FAMILIES[0]; i++) {
        prom_family(&server->body, FAMILIES[i].name, "histogram", FAMILIES[i].help);
        prom_histogram(&server->body, FAMILIES[i].name, NULL, 0,
                       (const void *)((const char *)server + FAMILIES[i].histogram), BOUNDS,
                       sizeof BOUNDS / sizeof BOUNDS[0], 1e9);
    }
}

static void write_connections(struct server *server) {
    struct buf *out = &server->body;
    const struct server_counts *counts = &server->counts;
    one(out, "telltale_connections", "gauge", "Client connections open now.",
        server->http_count + server->metrics_count);
    one(out, "telltale_connections_accepted_total", "counter", "Client connections accepted.",
        counts->accepted);
    one(out, "telltale_connections_refused_total", "counter",
        "Connections over the limit, answered with 503.", counts->refused);
    one(out, "telltale_connections_shed_total", "counter",
        "Connections closed unanswered: no descriptors or no memory.", loop_shed(server->loop));
    one(out, "telltale_clients_vanished_total", "counter",
        "Clients that left with a request in flight or an answer half read.", counts->vanished);
    one(out, "telltale_http_malformed_total", "counter", "Messages that the HTTP parser rejected.",
        counts->malformed);
    static const char TIMEOUTS[] = "telltale_connection_timeouts_total";
    prom_family(out, TIMEOUTS, "counter",
                "Connections ended for a request that did not arrive, no request, a slow reader.");
    prom_u64(out, TIMEOUTS, &(struct prom_label){"kind", "read"}, 1, counts->read_timeouts);
    prom_u64(out, TIMEOUTS, &(struct prom_label){"kind", "idle"}, 1, counts->idle_timeouts);
    prom_u64(out, TIMEOUTS, &(struct prom_label){"kind", "write"}, 1, counts->write_timeouts);
    static const char ANSWERS[] = "telltale_http_answers_total";
    prom_family(out, ANSWERS, "counter", "HTTP answers by status code, all paths.");
    for (int code = 100; code < 600; code++) {
        if (counts->by_http[code] == 0 && code != 200)
            continue;
        char text[4] = {(char)('0' + code / 100), (char)('0' + code / 10 % 10),
                        (char)('0' + code % 10), '\0'};
        prom_u64(out, ANSWERS, &(struct prom_label){"code", text}, 1, counts->by_http[code]);
    }
    one(out, "telltale_requests_in_flight", "gauge",
        "Inference requests being decoded, waiting, run or answered.", server->in_flight);
}

enum status metrics_write(struct server *server, const struct served_model *served,
                          struct err *err) {
    (void)served;
    (void)err;
    metrics_write_models(server);
    write_connections(server);
    grpc_server_write_metrics(server->grpc, &server->body);
    tls_ports_metrics(&server->tls, &server->body);
    write_loop(server);
    one(&server->body, "telltale_workers_waiting", "gauge",
        "Jobs waiting for a worker: bodies, texts, pictures, answers.",
        engine_workers_waiting(server->engine));
    one(&server->body, "telltale_trace_dropped_total", "counter",
        "Trace records lost because a ring was full.",
        tracer_dropped(engine_tracer(server->engine)));
    one(&server->body, "telltale_trace_stopped", "gauge",
        "1 when the trace can no longer be written: a full disk, or the limit of its size.",
        tracer_write_status(engine_tracer(server->engine), NULL) != ST_OK);
    one(&server->body, "telltale_draining", "gauge", "1 after the signal to stop.",
        server->is_draining);
    write_process(server);
    return ST_OK;
}
