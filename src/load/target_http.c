/* Sends the load to an HTTP server, over a pool of keep-alive connections that grows with what
 * is in flight. Loop thread.
 *
 * Invariant: a lane (one connection) is idle, connecting for a call, or carrying a call; each
 * call in flight has exactly one lane. A lane whose connection ended is freed at once: the next
 * call opens a new one. Nothing is sent twice. Read next: http_client.c. */
#include "load/target.h"

#include "base/buf.h"
#include "base/clock.h"
#include "load/http_client.h"
#include "load/timing_header.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

struct lane {
    struct http_target *owner;
    struct http_client *client;
    struct call *call;  /* NULL: idle */
    struct lane *prev, *next; /* all lanes */
    struct lane *next_idle;
    bool is_ready;      /* connected */
};

struct http_target {
    struct target base;
    struct loop *loop;
    const struct http_url *url;
    char host_header[300];
    struct buf path;    /* terminated */
    struct buf head;    /* of the request being sent */
    struct lane *lanes, *idle; /* idle: newest first, so that a pool shrinks to what is used */
    uint32_t lane_count;
};

enum status http_url_parse(const char *text, struct http_url *out, struct err *err) {
    static const char PLAIN[] = "http://", TLS[] = "https://";
    struct http_url url = {.port = 80};
    const char *host = text + sizeof PLAIN - 1;
    if (strncmp(text, TLS, sizeof TLS - 1) == 0) {
        url.is_tls = true;
        url.port = 443;
        host = text + sizeof TLS - 1;
    } else if (strncmp(text, PLAIN, sizeof PLAIN - 1) != 0) {
        return err_set(err, ST_INVALID, "%s: must be http://HOST:PORT or https://HOST:PORT", text);
    }
    const char *path = strchr(host, '/');
    if (path == NULL) path = host + strlen(host);
    const char *host_end = path;
    const char *colon = memrchr(host, ':', (size_t)(path - host));
    const char *bracket = memchr(host, ']', (size_t)(path - host));
    if (colon != NULL && (bracket == NULL || colon > bracket)) {
        char *end;
        unsigned long port = strtoul(colon + 1, &end, 10);
        if (end == colon + 1 || end != path || port == 0 || port > 65535)
            return err_set(err, ST_INVALID, "%s: the port must be 1 to 65535", text);
        url.port = (uint16_t)port;
        host_end = colon;
    }
    if (*host == '[' && bracket != NULL) {
        host++;
        host_end = bracket;
    }
    size_t path_size = strlen(path);
    while (path_size > 0 && path[path_size - 1] == '/') path_size--;
    if (host_end == host || (size_t)(host_end - host) >= sizeof url.host ||
        path_size >= sizeof url.prefix)
        return err_set(err, ST_INVALID, "%s: must be http://HOST:PORT", text);
    memcpy(url.host, host, (size_t)(host_end - host));
    memcpy(url.prefix, path, path_size);
    *out = url;
    return ST_OK;
}

static struct http_target *of(struct target *target) { return (struct http_target *)target; }

/* ---- lanes ---- */

static void lane_free(struct lane *lane) {
    struct http_target *t = lane->owner;
    if (lane->prev != NULL) lane->prev->next = lane->next;
    else t->lanes = lane->next;
    if (lane->next != NULL) lane->next->prev = lane->prev;
    for (struct lane **at = &t->idle; *at != NULL; at = &(*at)->next_idle) {
        if (*at != lane) continue;
        *at = lane->next_idle;
        break;
    }
    t->lane_count--;
    free(lane);
}

static void lane_send(struct lane *lane) {
    struct http_target *t = lane->owner;
    struct call *call = lane->call;
    const struct input *input = &t->base.inputs->items[call->sample.input];
    size_t id_size = strlen(call->id);
    size_t body_size = input->body_head.size + id_size + input->body_tail.size;
    char extra[120] = "Content-Type: application/json\r\n";
    if (input->json_size > 0)
        snprintf(extra, sizeof extra,
                 "Content-Type: application/octet-stream\r\n"
                 "Inference-Header-Content-Length: %zu\r\n",
                 input->json_size + id_size);
    buf_clear(&t->head);
    http_write_request(&t->head, "POST", t->path.data, t->host_header, extra, body_size);
    buf_append(&t->head, input->body_head.data, input->body_head.size);
    buf_append(&t->head, call->id, id_size);
    call->sample.bytes_out = (uint32_t)body_size;
    call->sample.sent_ns = mono_ns();
    http_client_send(lane->client, buf_view(&t->head), input->body_tail);
}

static void on_ready(void *ctx) {
    struct lane *lane = ctx;
    lane->is_ready = true;
    if (lane->call != NULL) lane_send(lane);
}

/* {"error":"..."} as the protocol has it, or the first bytes of whatever came. */
static void read_error(const struct http_message *message, char *out, size_t out_size) {
    json_t *body = json_loadb(message->body.data, message->body.size, 0, NULL);
    const char *text = json_string_value(json_object_get(body, "error"));
    if (text != NULL) snprintf(out, out_size, "%s", text);
    else if (message->body.size == 0) snprintf(out, out_size, "%s", http_reason(message->status));
    else
        snprintf(out, out_size, "%.*s", (int)(message->body.size < 200 ? message->body.size : 200),
                 message->body.data);
    json_decref(body);
    for (char *at = out; *at != 0; at++)
        if ((unsigned char)*at < ' ') *at = ' ';
}

static void read_answer(struct http_target *t, const struct http_message *message,
                        struct call *call) {
    struct sample *sample = &call->sample;
    sample->http = (uint16_t)message->status;
    sample->bytes_in = (uint32_t)message->body.size;
    sample->outcome = message->status == 200 ? OUTCOME_OK : OUTCOME_REFUSED;
    if (sample->outcome == OUTCOME_REFUSED)
        read_error(message, call->detail, sizeof call->detail);
    struct view timing = http_header(message, "Server-Timing");
    struct timing_header parsed;
    if (timing.data != NULL && timing_header_parse(timing, &parsed) && parsed.has_total) {
        sample->server_total_ns = parsed.total_ns;
        sample->has_stages = parsed.seen != 0;
        for (int i = 0; i < STAGE_COUNT; i++)
            sample->stage_us[i] = (float)parsed.stage_ns[i] / 1000;
    }
    struct view simulated = http_header(message, "Telltale-Simulated");
    if (simulated.data != NULL && view_is(simulated, "true")) t->base.is_simulated = true;
}

static void on_answer(void *ctx, const struct http_answer *answer, bool is_reusable) {
    struct lane *lane = ctx;
    struct http_target *t = lane->owner;
    struct call *call = lane->call;
    call->sample.done_ns = mono_ns();
    call->sample.first_byte_ns = answer->first_byte_ns;
    read_answer(t, answer->message, call);
    lane->call = NULL;
    if (is_reusable) {
        lane->next_idle = t->idle;
        t->idle = lane;
    } else {
        lane_free(lane);
    }
    t->base.on_done(t->base.ctx, call);
}

static void on_failed(void *ctx, const char *detail, uint64_t first_byte_ns) {
    struct lane *lane = ctx;
    struct http_target *t = lane->owner;
    struct call *call = lane->call;
    lane_free(lane);
    if (call == NULL) return; /* an idle connection that the server closed */
    call->sample.outcome = OUTCOME_CONNECTION;
    call->sample.done_ns = mono_ns();
    call->sample.first_byte_ns = first_byte_ns;
    snprintf(call->detail, sizeof call->detail, "%s", detail);
    t->base.on_done(t->base.ctx, call);
}

MUST_CHECK static enum status lane_open(struct http_target *t, struct call *call,
                                        struct lane **out, struct err *err) {
    static const struct http_client_events EVENTS = {
        .on_ready = on_ready,
        .on_answer = on_answer,
        .on_failed = on_failed,
    };
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL) return err_set(err, ST_NO_MEMORY, "out of memory for a connection");
    *lane = (struct lane){.owner = t, .call = call, .next = t->lanes};
    enum status status = http_client_connect(t->loop, t->url->tls, t->url->host, t->url->port,
                                             &EVENTS, lane, &lane->client, err);
    if (status != ST_OK) {
        free(lane);
        return status;
    }
    if (t->lanes != NULL) t->lanes->prev = lane;
    t->lanes = lane;
    t->lane_count++;
    if (t->lane_count > t->base.connections_peak) t->base.connections_peak = t->lane_count;
    *out = lane;
    return ST_OK;
}

/* ---- the table ---- */

static bool http_send(struct target *target, struct call *call) {
    struct http_target *t = of(target);
    struct lane *lane = t->idle;
    if (lane != NULL) {
        t->idle = lane->next_idle;
        lane->next_idle = NULL;
        lane->call = call;
        call->carrier = lane;
        lane_send(lane);
        return true;
    }
    struct err err = {0};
    if (lane_open(t, call, &lane, &err) == ST_OK) {
        call->carrier = lane; /* sent when the connection is there */
        return true;
    }
    call->sample.outcome = OUTCOME_CONNECTION;
    call->sample.done_ns = mono_ns();
    snprintf(call->detail, sizeof call->detail, "%.*s", CALL_DETAIL_SIZE - 1, err.text);
    return false;
}

static void http_abandon(struct target *target, struct call *call) {
    (void)target;
    struct lane *lane = call->carrier;
    http_client_close(lane->client);
    lane_free(lane);
}

static void http_free(struct target *target) {
    struct http_target *t = of(target);
    while (t->lanes != NULL) {
        http_client_close(t->lanes->client);
        lane_free(t->lanes);
    }
    buf_done(&t->path);
    buf_done(&t->head);
    free(t);
}

enum status target_http_create(struct loop *loop, const struct http_url *url,
                               const char *model_name, const struct inputs *inputs,
                               struct target **out, struct err *err) {
    static const struct target_table TABLE = {http_send, http_abandon, http_free};
    struct http_target *t = calloc(1, sizeof *t);
    if (t == NULL) return err_set(err, ST_NO_MEMORY, "out of memory");
    t->base = (struct target){.table = &TABLE, .inputs = inputs};
    t->loop = loop;
    t->url = url;
    bool is_ipv6 = strchr(url->host, ':') != NULL;
    snprintf(t->host_header, sizeof t->host_header, is_ipv6 ? "[%s]:%u" : "%s:%u", url->host,
             (unsigned)url->port);
    buf_printf(&t->path, "%s/v2/models/%s/infer", url->prefix, model_name);
    buf_char(&t->path, 0);
    if (t->path.failed) {
        http_free(&t->base);
        return err_set(err, ST_NO_MEMORY, "out of memory");
    }
    *out = &t->base;
    return ST_OK;
}
