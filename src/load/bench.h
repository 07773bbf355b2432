/* A run of `telltale bench`: what is loaded, with what, and what came out. Main thread. */
#ifndef TELLTALE_LOAD_BENCH_H
#define TELLTALE_LOAD_BENCH_H

#include "load/bench_options.h"
#include "load/run_dir.h"
#include "load/summary.h"
#include "load/target.h"
#include <jansson.h>

struct bench_model {      /* as the server or the engine says; "" where it does not */
    const char *name, *version, *platform, *sha256;
    const char *server, *server_version;
    struct input_spec *specs;
    uint32_t spec_count;
};

struct bench {
    struct bench_config config;
    int argc;
    char **argv;
    struct arena arena;       /* of what follows */
    struct bench_model model;
    struct http_url url, metrics;
    struct tls *tls;          /* of both; NULL: neither is https:// */
    struct loop *loop;
    struct engine *engine;    /* in process; NULL: HTTP */
    const struct served_model *served;
    struct inputs inputs;
    struct distribution input_bytes, input_tokens;
    struct target *target;
    struct run_dir *dir;      /* NULL: nothing is written */
    struct step_summary *steps;
    size_t step_count;        /* of steps that ran */
    uint64_t began_wall_ns;
    bool is_interrupted;
};

/* Opens model or server, loads the inputs, makes the target. On failure bench_close frees what
 * there is. */
MUST_CHECK enum status bench_open(struct bench *bench, struct err *err);
void bench_close(struct bench *bench);

/* The server's counters now, over HTTP or from the engine; absent where it offers none. */
void bench_scrape(struct bench *bench, struct scrape *out);

bool bench_is_simulated(const struct bench *bench);
bool bench_is_demo(const struct bench *bench); /* random inputs */

/* result.json (docs/bench.md): a new reference; NULL when memory is out. */
json_t *bench_result(const struct bench *bench);
json_t *bench_result_step(const struct step_summary *step);
json_t *bench_result_distribution(const struct distribution *values, double unit);

/* What is shown: before the first step, and after the last. */
void bench_show_intro(const struct bench *bench, struct buf *out);
void bench_show_tables(const struct bench *bench, struct buf *out);

#endif
