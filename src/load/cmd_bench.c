/* `telltale bench`: options, steps one after another, tables and files. Main thread, which runs
 * the loop that carries all clients.
 *
 * Invariant: whatever was measured is printed and written, also after Ctrl-C and after errors.
 * Read next: bench_open.c (what is loaded), step.c (how), summary.c (what it adds up to). */
#include "load/cmd_bench.h"

#include "base/clock.h"
#include "base/log.h"
#include "load/bench.h"
#include "sync/role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_MEASURED = 0, EXIT_FAILED = 1, EXIT_MISUSED = 2, EXIT_INTERRUPTED = 130 };

/* One connection is one descriptor: as many as the system allows, before any is needed. */
static void raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Every client of a closed loop opens its connection at once. */
MUST_CHECK static enum status check_descriptors(const struct bench_config *config,
                                                struct err *err) {
    enum { OTHERS = 24 }; /* files, the loop's own, the metrics connection */
    struct rlimit limit;
    uint64_t most = 0;
    for (size_t i = 0; i < config->concurrency.count; i++)
        if (config->concurrency.items[i] > most) most = config->concurrency.items[i];
    if (config->url == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur >= most + OTHERS)
        return ST_OK;
    return err_set(err, ST_UNAVAILABLE,
                   "--concurrency %llu needs %llu file descriptors, the limit is %llu: raise it "
                   "(ulimit -n) or lower --concurrency", (unsigned long long)most,
                   (unsigned long long)most + OTHERS, (unsigned long long)limit.rlim_cur);
}

static void show_progress(void *ctx, const struct step_progress *progress) {
    const struct bench *bench = ctx;
    fprintf(stderr, "\r\033[Kstep %u of %zu, %s, %.0f s: %llu answered, %llu failed, %llu in flight",
            progress->config->number, bench_step_count(&bench->config),
            progress->phase == PHASE_WARMUP ? "warm-up" : "measuring",
            (double)progress->elapsed_ns / 1e9, (unsigned long long)progress->answered,
            (unsigned long long)progress->failed, (unsigned long long)progress->in_flight);
}

static void clear_progress(void) {
    if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

/* Measures one step and appends its summary. */
MUST_CHECK static enum status run_step(struct bench *bench, struct runner *runner, size_t index,
                                       struct err *err) {
    struct step_config config = bench_step(&bench->config, index);
    struct step_result result = {0};
    struct scrape before = {0}, after = {0};
    enum status status = runner_warm_up(runner, &config, &result, err);
    if (status == ST_OK && !result.is_interrupted && !result.is_hopeless) {
        bench_scrape(bench, &before);
        uint64_t before_ns = mono_ns();
        status = runner_measure(runner, &result, err);
        uint64_t after_ns = mono_ns();
        bench_scrape(bench, &after);
        struct step_summary *summary = &bench->steps[bench->step_count];
        if (status == ST_OK) status = summary_of(&result, summary, err);
        if (status == ST_OK) {
            summary_add_server(summary, &before, &after, (double)(after_ns - before_ns) / 1e9);
            bench->step_count++;
        }
    }
    if (status == ST_OK && bench->dir != NULL)
        status = run_dir_samples(bench->dir, config.number, &result.samples, err);
    if (result.is_interrupted) bench->is_interrupted = true;
    if (status == ST_OK && result.is_hopeless) {
        const char *why = result.error_kinds > 0 ? result.errors[0].detail : "no reason known";
        status = err_set(err, ST_UNAVAILABLE, "the first %d requests all failed: %s",
                         STEP_HOPELESS, why);
    }
    step_result_done(&result);
    return status;
}

MUST_CHECK static enum status run_steps(struct bench *bench, struct err *err) {
    size_t count = bench_step_count(&bench->config);
    bench->steps = calloc(count, sizeof *bench->steps);
    if (bench->steps == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for %zu steps", count);
    struct runner *runner;
    enum status status = runner_create(bench->loop, bench->target, &runner, err);
    if (status != ST_OK) return status;
    if (isatty(STDERR_FILENO)) runner_on_progress(runner, show_progress, bench);
    for (size_t i = 0; i < count && status == ST_OK && !bench->is_interrupted; i++)
        status = run_step(bench, runner, i, err);
    clear_progress();
    runner_free(runner);
    return status;
}

static void print(const struct buf *text, bool *is_ok) {
    if (text->failed) *is_ok = false;
    if (text->size > 0 && fwrite(text->data, 1, text->size, stdout) != text->size) *is_ok = false;
    if (fflush(stdout) != 0) *is_ok = false;
}

/* What there is, as tables or as JSON, and into the directory. */
MUST_CHECK static enum status report(struct bench *bench, struct err *err) {
    json_t *result = bench_result(bench);
    enum status status = ST_OK;
    bool is_printed = true;
    struct buf text;
    buf_init(&text);
    if (bench->config.json) status = json_file_print(result, &text);
    else bench_show_tables(bench, &text);
    if (status == ST_OK) print(&text, &is_printed);
    if (status == ST_OK && !is_printed)
        status = err_set(err, ST_IO, "cannot write to standard output: %s", strerror(errno));
    if (bench->dir != NULL) {
        struct err write_err = {0};
        enum status written = run_dir_result(bench->dir, result, &write_err);
        if (status == ST_OK && written != ST_OK) {
            status = written;
            if (err != NULL) *err = write_err;
        }
    }
    buf_done(&text);
    json_decref(result);
    return status;
}

static bool has_success(const struct bench *bench) {
    for (size_t i = 0; i < bench->step_count; i++)
        if (bench->steps[i].ok > 0) return true;
    return false;
}

/* What a person should know about a model in this process before believing the figures. */
static void warn_of_model(const struct bench *bench) {
    if (bench->served == NULL) return;
    const struct model *model = bench->served->model;
    char warning[480];
    if (bench->served->note != NULL) log_line(LOG_WARN, "bench: %s", bench->served->note);
    if (!bench->config.engine.denormal_as_zero && weights_may_be_slow(&model->weights))
        log_line(LOG_WARN, "bench: %s", weights_warning(&model->weights, model->name, warning,
                                                        sizeof warning));
}

static int run(struct bench *bench) {
    struct err err = {0};
    struct buf intro;
    bool is_printed = true;
    bench->began_wall_ns = wall_ns();
    enum status status = check_descriptors(&bench->config, &err);
    if (status == ST_OK) status = bench_open(bench, &err);
    if (status != ST_OK) {
        log_line(LOG_ERROR, "bench: %s", err.text);
        return status == ST_INVALID ? EXIT_MISUSED : EXIT_FAILED;
    }
    warn_of_model(bench);
    buf_init(&intro);
    bench_show_intro(bench, &intro);
    if (!bench->config.json) print(&intro, &is_printed);
    buf_done(&intro);
    status = run_steps(bench, &err);
    struct err report_err = {0};
    enum status reported = report(bench, &report_err);
    if (status == ST_OK && reported != ST_OK) {
        status = reported;
        err = report_err;
    }
    if (status != ST_OK) log_line(LOG_ERROR, "bench: %s", err.text);
    if (bench->is_interrupted) return EXIT_INTERRUPTED;
    if (status == ST_OK && !has_success(bench)) {
        log_line(LOG_ERROR, "bench: no request succeeded");
        return EXIT_FAILED;
    }
    return status == ST_OK ? EXIT_MEASURED : EXIT_FAILED;
}

int cmd_bench(int argc, char **argv) {
    struct bench bench = {.argc = argc, .argv = argv};
    const char **positional = NULL;
    size_t positional_count = 0;
    arena_init(&bench.arena);
    switch (options_parse(&BENCH_COMMAND, argc, argv, &bench.config, &positional,
                          &positional_count)) {
    case OPTIONS_HELP_SHOWN: return EXIT_MEASURED;
    case OPTIONS_BAD: return EXIT_MISUSED;
    case OPTIONS_RUN: break;
    }
    struct err err = {0};
    int code = EXIT_MISUSED;
    if (positional_count > 0)
        fprintf(stderr, "telltale bench: unexpected argument '%s'\n", positional[0]);
    else if (bench_options_check(&bench.config, &err) != ST_OK)
        fprintf(stderr, "telltale bench: %s\n", err.text);
    else {
        role_set(ROLE_LOOP, 0);
        raise_descriptor_limit();
        code = run(&bench);
    }
    bench_close(&bench);
    options_free(&BENCH_COMMAND, &bench.config, positional);
    return code;
}
