/* Joining by id: an open-addressed table from an id to the requests that carry it. Any thread.
 * Invariant: a client's line is joined with one request at most. Where several carry the same id
 * it is the one that began while the client waited, by the clock they share. Read next:
 * run_read.c. */
#include "diag/run_client.h"

#include "diag/jsonl.h"
#include "diag/run_line.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TRACE_ID_BYTES = 47 }; /* the trace cuts ids after so many */
#define EMPTY UINT32_MAX

struct run_client {
    struct run *run;
    uint32_t *slots; /* indices of requests */
    size_t mask;
};

struct client_line {
    struct jsonl_value id, phase, status;
    uint64_t sent_ns, done_ns, latency_ns, service_ns;
    uint32_t step;
};

static const struct line_field FIELDS[] = {
    {"step", LINE_U32, false, offsetof(struct client_line, step)},
    {"phase", LINE_VALUE, true, offsetof(struct client_line, phase)},
    {"id", LINE_VALUE, true, offsetof(struct client_line, id)},
    {"sent_ns", LINE_U64, false, offsetof(struct client_line, sent_ns)},
    {"done_ns", LINE_U64, true, offsetof(struct client_line, done_ns)},
    {"latency_ns", LINE_U64, true, offsetof(struct client_line, latency_ns)},
    {"service_ns", LINE_U64, false, offsetof(struct client_line, service_ns)},
    {"status", LINE_VALUE, false, offsetof(struct client_line, status)},
};

/* FNV-1a, and a last mix: ids differ in their last digits. */
static uint64_t hash_of(const char *text) {
    uint64_t hash = 14695981039346656037ull;
    for (; *text != 0; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
    hash ^= hash >> 32;
    return hash * 0x9e3779b97f4a7c15ull >> 16;
}

enum status run_client_create(struct run *run, struct run_client **out, struct err *err) {
    struct run_client *client = calloc(1, sizeof *client);
    size_t slots = 64;
    while (slots < run->count * 2) slots *= 2;
    if (client != NULL) client->slots = malloc(slots * sizeof *client->slots);
    if (client == NULL || client->slots == NULL || run->count >= EMPTY) {
        run_client_free(client);
        return err_set(err, ST_NO_MEMORY, "no memory to join %zu requests", run->count);
    }
    client->run = run;
    client->mask = slots - 1;
    memset(client->slots, 0xff, slots * sizeof *client->slots);
    for (size_t i = 0; i < run->count; i++) {
        size_t slot = hash_of(run_id(run, &run->requests[i])) & client->mask;
        while (client->slots[slot] != EMPTY) slot = (slot + 1) & client->mask;
        client->slots[slot] = (uint32_t)i;
    }
    *out = client;
    return ST_OK;
}

void run_client_free(struct run_client *client) {
    if (client == NULL) return;
    free(client->slots);
    free(client);
}

static struct run_request *find(const struct run_client *client, const char *id,
                                const struct client_line *line) {
    struct run_request *found = NULL;
    uint64_t matches = 0;
    for (size_t slot = hash_of(id) & client->mask; client->slots[slot] != EMPTY;
         slot = (slot + 1) & client->mask) {
        struct run_request *request = &client->run->requests[client->slots[slot]];
        if (strcmp(run_id(client->run, request), id) != 0) continue;
        if (request->start_ns >= line->sent_ns && request->start_ns <= line->done_ns)
            return request;
        found = request;
        matches++;
    }
    return matches == 1 ? found : NULL;
}

enum status run_client_line(struct run_client *client, struct view text, struct err *err) {
    struct client_line line = {0};
    const enum status status =
        line_read(FIELDS, sizeof FIELDS / sizeof *FIELDS, text, &line, err);
    if (status != ST_OK) return status;
    struct run *run = client->run;
    run->client_lines++;
    if (!view_is(line.phase.text, "measure")) return ST_OK;
    if (line.step == 0) line.step = 1;
    if (line.step > run->steps) {
        run->steps = line.step;
        if (run->step == 0) run->step_ok = 0; /* the last step is wanted: count anew */
    }
    if (line.status.text.size != 0 && !view_is(line.status.text, "ok")) return ST_OK;
    if (line.sent_ns == 0) return ST_OK;
    if (line.step == (run->step == 0 ? run->steps : run->step)) run->step_ok++;
    char id[TRACE_ID_BYTES + 1];
    jsonl_text(&line.id, id, sizeof id);
    struct run_request *request = find(client, id, &line);
    if (request != NULL) run_join(request, line.latency_ns, line.service_ns, line.step);
    return ST_OK;
}

enum status run_client_read(struct run_client *client, const char *path, struct err *err) {
    struct line_reader reader;
    struct view line;
    bool is_whole;
    enum status status = line_reader_open(&reader, path, err);
    if (status != ST_OK) return status;
    while (line_reader_next(&reader, &line, &is_whole, &status, err)) {
        status = run_client_line(client, line, err);
        if (status == ST_OK) continue;
        if (status == ST_INVALID && !is_whole) {
            client->run->lines_cut++;
            status = ST_OK;
            break;
        }
        err_prefix(err, "%s, line %llu", path, (unsigned long long)reader.number);
        break;
    }
    line_reader_done(&reader);
    return status;
}
