/* Which ports speak TLS, reading the certificates at start and at SIGHUP, and what is said of it.
 * Loop thread only.
 *
 * Invariant: a reload that fails for one port leaves that port as it was; all ports read the same
 * files, so that they end up alike unless the files change in that very moment.
 * Read next: net/tls.h, docs/serve.md. */
#include "serve/tls_ports.h"

#include "base/clock.h"
#include "measure/prom.h"
#include <inttypes.h>

enum { PORT_COUNT = 3 };
static const uint64_t HANDSHAKE_NS = 10000000000;

static const char *const HTTP_1[] = {"http/1.1", NULL};
static const char *const HTTP_2[] = {"h2", NULL};
static const char *const NAMES[PORT_COUNT] = {"http", "grpc", "metrics"};

static void list(const struct tls_ports *ports, struct tls *out[PORT_COUNT]) {
    out[0] = ports->http;
    out[1] = ports->grpc;
    out[2] = ports->metrics;
}

static void on_failure(void *ctx, const char *sentence) {
    struct tls_ports *ports = ctx;
    uint64_t held_back = 0;
    if (!log_limit_pass(&ports->limit, mono_ns(), &held_back))
        return;
    log_line(LOG_DEBUG, "a TLS connection ended: %s (%" PRIu64 " like it held back)", sentence,
             held_back);
}

enum status tls_options_check(const struct tls_options *options, struct err *err) {
    if (options->certificate && options->key)
        return ST_OK;
    if (options->certificate)
        return err_set(err, ST_INVALID, "--tls-certificate needs --tls-key FILE");
    const char *other = options->key         ? "--tls-key"
                        : options->client_ca ? "--tls-client-ca"
                        : options->has_metrics ? "--tls-metrics"
                                               : NULL;
    if (!other)
        return ST_OK;
    return err_set(err, ST_INVALID, "%s needs --tls-certificate FILE and --tls-key FILE", other);
}

enum status tls_ports_init(struct tls_ports *ports, const struct tls_options *options,
                           uint64_t read_timeout_ns, struct err *err) {
    *ports = (struct tls_ports){.limit = {.per_second = 5}};
    if (!options->certificate)
        return ST_OK;
    struct tls_server_config config = {.certificate = options->certificate,
                                       .key = options->key,
                                       .client_ca = options->client_ca,
                                       .alpn = HTTP_1,
                                       .handshake_timeout_ns = HANDSHAKE_NS};
    if (read_timeout_ns > 0 && read_timeout_ns < HANDSHAKE_NS)
        config.handshake_timeout_ns = read_timeout_ns;
    enum status status = tls_server_create(&config, &ports->http, err);
    if (status == ST_OK && options->has_metrics)
        status = tls_server_create(&config, &ports->metrics, err);
    config.alpn = HTTP_2;
    if (status == ST_OK)
        status = tls_server_create(&config, &ports->grpc, err);
    if (status != ST_OK)
        return status;
    struct tls *all[PORT_COUNT];
    list(ports, all);
    for (int i = 0; i < PORT_COUNT; i++)
        if (all[i])
            tls_on_failure(all[i], on_failure, ports);
    if (tls_warning(ports->http)[0])
        log_line(LOG_WARN, "%s", tls_warning(ports->http));
    return ST_OK;
}

void tls_ports_done(struct tls_ports *ports) {
    tls_free(ports->http);
    tls_free(ports->grpc);
    tls_free(ports->metrics);
}

void tls_ports_on_signal(void *ctx, int signum) {
    struct tls_ports *ports = ctx;
    (void)signum;
    if (!ports->http) {
        log_line(LOG_INFO, "SIGHUP: nothing to read again: it is for --tls-certificate, and this "
                           "server has none; SIGTERM stops it");
        return;
    }
    struct tls *all[PORT_COUNT];
    list(ports, all);
    struct err err = {.text = ""};
    for (int i = 0; i < PORT_COUNT; i++) {
        if (!all[i] || tls_reload(all[i], &err) == ST_OK)
            continue;
        log_line(LOG_ERROR, "SIGHUP: %s; the certificate read before stays in use", err.text);
        return;
    }
    log_line(LOG_INFO, "SIGHUP: the certificate was read again; connections from now on get it");
    if (tls_warning(ports->http)[0])
        log_line(LOG_WARN, "%s", tls_warning(ports->http));
}

void tls_ports_metrics(const struct tls_ports *ports, struct buf *out) {
    static const char HANDSHAKES[] = "telltale_tls_handshakes_total";
    static const char FAILURES[] = "telltale_tls_failures_total";
    if (!ports->http)
        return;
    struct tls *all[PORT_COUNT];
    list(ports, all);
    prom_family(out, HANDSHAKES, "counter",
                "TLS handshakes completed, in full or resumed by a ticket.");
    for (int i = 0; i < PORT_COUNT; i++) {
        if (!all[i])
            continue;
        const struct tls_counts *counts = tls_counts(all[i]);
        struct prom_label labels[] = {{"port", NAMES[i]}, {"kind", "full"}};
        prom_u64(out, HANDSHAKES, labels, 2, counts->handshakes - counts->resumed);
        labels[1].value = "resumed";
        prom_u64(out, HANDSHAKES, labels, 2, counts->resumed);
    }
    prom_family(out, FAILURES, "counter",
                "TLS handshakes that failed: for any reason, no TLS spoken, too slow.");
    for (int i = 0; i < PORT_COUNT; i++) {
        if (!all[i])
            continue;
        const struct tls_counts *counts = tls_counts(all[i]);
        struct prom_label labels[] = {{"port", NAMES[i]}, {"kind", "failed"}};
        prom_u64(out, FAILURES, labels, 2, counts->failed);
        labels[1].value = "plain";
        prom_u64(out, FAILURES, labels, 2, counts->plain);
        labels[1].value = "timeout";
        prom_u64(out, FAILURES, labels, 2, counts->timeouts);
    }
}
