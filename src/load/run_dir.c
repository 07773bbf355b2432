/* Files of a bench run. Main thread, between steps. Invariant: a run is never written over, and
 * client.jsonl holds whole lines. Read next: docs/bench.md for what the fields mean. */
#include "load/run_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

struct run_dir {
    char *path;
    FILE *client; /* client.jsonl; NULL before the first step, so that a run that never began */
};                /* leaves nothing that the next try would take for a run */

enum { FLUSH_BYTES = 256 * 1024 };

MUST_CHECK static enum status make_directories(const char *path, struct err *err) {
    char *copy = strdup(path);
    if (copy == NULL) return err_set(err, ST_NO_MEMORY, "out of memory");
    int failed = 0;
    for (char *at = copy + 1; *at != 0 && !failed; at++) {
        if (*at != '/') continue;
        *at = 0;
        failed = mkdir(copy, 0777) != 0 && errno != EEXIST;
        *at = '/';
    }
    failed = failed || (mkdir(copy, 0777) != 0 && errno != EEXIST);
    free(copy);
    return failed ? err_set(err, ST_IO, "cannot create --out %s: %s", path, strerror(errno))
                  : ST_OK;
}

static void join(const char *path, const char *file, char *out, size_t out_size) {
    snprintf(out, out_size, "%s/%s", path, file);
}

MUST_CHECK static enum status check_empty(const char *path, struct err *err) {
    static const char *const FILES[] = {"result.json", "client.jsonl", "requests.jsonl",
                                        "batches.jsonl", "summary.json"};
    char file[4200];
    struct stat info;
    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
        join(path, FILES[i], file, sizeof file);
        if (stat(file, &info) == 0)
            return err_set(err, ST_INVALID,
                           "--out %s holds a run already (%s is there): choose another directory "
                           "or remove it", path, FILES[i]);
    }
    return ST_OK;
}

enum status run_dir_create(const char *path, struct run_dir **out, struct err *err) {
    if (*path == 0 || strlen(path) > 4000)
        return err_set(err, ST_INVALID, "--out: not a directory's name");
    enum status status = make_directories(path, err);
    if (status == ST_OK) status = check_empty(path, err);
    if (status != ST_OK) return status;
    struct run_dir *dir = calloc(1, sizeof *dir);
    if (dir != NULL) dir->path = strdup(path);
    if (dir == NULL || dir->path == NULL) {
        free(dir);
        return err_set(err, ST_NO_MEMORY, "out of memory");
    }
    *out = dir;
    return ST_OK;
}

void run_dir_free(struct run_dir *dir) {
    if (dir == NULL) return;
    if (dir->client != NULL) fclose(dir->client);
    free(dir->path);
    free(dir);
}

static void number(struct buf *out, const char *name, uint64_t value) {
    buf_text(out, ",\"");
    buf_text(out, name);
    buf_text(out, "\":");
    buf_u64(out, value);
}

static void stages(struct buf *out, const struct sample *sample) {
    const char *between = "";
    buf_text(out, ",\"stages_ns\":{");
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (sample->stage_us[i] <= 0) continue;
        buf_text(out, between);
        buf_char(out, '"');
        buf_text(out, stage_name((enum stage)i));
        buf_text(out, "\":");
        buf_u64(out, (uint64_t)((double)sample->stage_us[i] * 1000 + 0.5));
        between = ",";
    }
    buf_char(out, '}');
}

void run_dir_line(uint32_t step, const struct sample *sample, struct buf *out) {
    buf_text(out, "{\"step\":");
    buf_u64(out, step);
    buf_text(out, ",\"phase\":\"");
    buf_text(out, phase_name((enum phase)sample->phase));
    buf_text(out, sample->phase == PHASE_WARMUP ? "\",\"id\":\"w" : "\",\"id\":\"b");
    buf_u64(out, step);
    buf_char(out, '-');
    buf_u64(out, sample->number);
    buf_char(out, '"');
    number(out, "input", sample->input);
    number(out, "planned_ns", sample->planned_ns);
    if (sample->sent_ns != 0) number(out, "sent_ns", sample->sent_ns);
    if (sample->first_byte_ns != 0) number(out, "first_byte_ns", sample->first_byte_ns);
    number(out, "done_ns", sample->done_ns);
    number(out, "latency_ns", sample_latency_ns(sample));
    if (sample->sent_ns != 0) number(out, "service_ns", sample_service_ns(sample));
    buf_text(out, ",\"status\":\"");
    buf_text(out, outcome_name((enum outcome)sample->outcome));
    buf_char(out, '"');
    if (sample->http != 0) number(out, "http", sample->http);
    number(out, "bytes_out", sample->bytes_out);
    number(out, "bytes_in", sample->bytes_in);
    if (sample->tokens != 0) number(out, "tokens", sample->tokens);
    if (sample->server_total_ns != 0) number(out, "server_total_ns", sample->server_total_ns);
    if (sample->has_stages) stages(out, sample);
    buf_text(out, "}\n");
}

MUST_CHECK static enum status open_client(struct run_dir *dir, struct err *err) {
    char file[4200];
    if (dir->client != NULL) return ST_OK;
    join(dir->path, "client.jsonl", file, sizeof file);
    dir->client = fopen(file, "wx");
    return dir->client != NULL
               ? ST_OK
               : err_set(err, ST_IO, "cannot create %s: %s", file, strerror(errno));
}

enum status run_dir_samples(struct run_dir *dir, uint32_t step,
                            const struct sample_list *samples, struct err *err) {
    enum status status = open_client(dir, err);
    if (status != ST_OK) return status;
    struct buf lines;
    buf_init(&lines);
    bool is_written = true;
    for (size_t i = 0; i < samples->count; i++) {
        run_dir_line(step, &samples->items[i], &lines);
        if (lines.size < FLUSH_BYTES && i + 1 < samples->count) continue;
        if (fwrite(lines.data, 1, lines.size, dir->client) != lines.size) is_written = false;
        buf_clear(&lines);
    }
    if (fflush(dir->client) != 0) is_written = false;
    if (lines.failed) status = err_set(err, ST_NO_MEMORY, "out of memory for client.jsonl");
    else if (!is_written)
        status = err_set(err, ST_IO, "cannot write %s/client.jsonl: %s", dir->path,
                         strerror(errno));
    buf_done(&lines);
    return status;
}

enum status run_dir_result(struct run_dir *dir, const json_t *result, struct err *err) {
    char file[4200];
    join(dir->path, "result.json", file, sizeof file);
    return json_file_write(result, file, err);
}
