/* The options of `telltale bench` as one struct. */
#ifndef TELLTALE_LOAD_BENCH_OPTIONS_H
#define TELLTALE_LOAD_BENCH_OPTIONS_H

#include "base/options.h"
#include "engine/engine.h"

enum bench_format { FORMAT_AUTO, FORMAT_BINARY, FORMAT_JSON };
enum bench_order { ORDER_SHUFFLED, ORDER_SEQUENTIAL };

struct bench_config {
    struct engine_config engine; /* in process; model_name and tokenizer serve HTTP too */
    const char *url;             /* NULL: in process */
    const char *metrics_url;     /* NULL: port 8002 of url's host, plain */
    const char *tls_ca;          /* NULL: what the system trusts */
    const char *tls_certificate, *tls_key; /* NULL: the client shows none */
    bool tls_insecure;
    const char *input;
    struct option_strings shapes; /* "NAME:1,3,224,224" */
    bool tokens;
    int format;                  /* enum bench_format */
    int order;                   /* enum bench_order */
    struct option_uints concurrency, rate;
    int arrivals;                /* enum arrivals */
    uint64_t duration_ns, warmup, requests, timeout_ns, max_in_flight, seed;
    bool spin;
    const char *out;
    bool json;
};

extern const struct command_spec BENCH_COMMAND;

/* What the table cannot check: that there is one target, and what options need of each other. */
MUST_CHECK enum status bench_options_check(const struct bench_config *config, struct err *err);
struct step_config;
/* The steps in order: rates x concurrencies where both are given. */
size_t bench_step_count(const struct bench_config *config);
struct step_config bench_step(const struct bench_config *config, size_t index);

#endif
