/* One GET, waited for. Any thread that runs no loop at the time. Invariant: the loop that it
 * makes is gone when it returns. */
#include "load/fetch.h"

#include "base/clock.h"
#include "load/http_client.h"

#include <stdio.h>

enum { FETCH_PADDING = 64 };

struct fetch {
    struct loop *loop;
    struct loop_timer *timer;
    struct http_client *client; /* NULL: closed */
    const struct http_url *url;
    const char *path;
    struct buf *body;
    int http;
    enum status status;
    struct err *err;
};

static void end(struct fetch *fetch, enum status status) {
    fetch->status = status;
    http_client_close(fetch->client);
    fetch->client = NULL;
    if (fetch->timer != NULL) loop_timer_close(fetch->timer);
    fetch->timer = NULL; /* nothing is left on the loop: it returns when the handles are closed */
}

static void on_ready(void *ctx) {
    struct fetch *fetch = ctx;
    char path[600], host[300];
    snprintf(path, sizeof path, "%s%s", fetch->url->prefix, fetch->path);
    snprintf(host, sizeof host, strchr(fetch->url->host, ':') != NULL ? "[%s]:%u" : "%s:%u",
             fetch->url->host, (unsigned)fetch->url->port);
    struct buf head;
    buf_init(&head);
    http_write_request(&head, "GET", path, host, "", 0);
    http_client_send(fetch->client, buf_view(&head), (struct view){0});
    buf_done(&head);
}

static void on_answer(void *ctx, const struct http_answer *answer, bool is_reusable) {
    static const char ZEROS[FETCH_PADDING];
    struct fetch *fetch = ctx;
    fetch->http = answer->message->status;
    buf_append(fetch->body, answer->message->body.data, answer->message->body.size);
    buf_append(fetch->body, ZEROS, sizeof ZEROS);
    if (!is_reusable) fetch->client = NULL;
    if (fetch->body->failed) {
        end(fetch, err_set(fetch->err, ST_NO_MEMORY, "out of memory for an answer"));
        return;
    }
    fetch->body->size -= sizeof ZEROS;
    end(fetch, ST_OK);
}

static void on_failed(void *ctx, const char *detail, uint64_t first_byte_ns) {
    struct fetch *fetch = ctx;
    (void)first_byte_ns;
    fetch->client = NULL;
    end(fetch, err_set(fetch->err, ST_UNAVAILABLE, "http%s://%s:%u: %s",
                       fetch->url->is_tls ? "s" : "", fetch->url->host,
                       (unsigned)fetch->url->port, detail));
}

static void on_timeout(void *ctx) {
    struct fetch *fetch = ctx;
    end(fetch, err_set(fetch->err, ST_TIMEOUT, "http%s://%s:%u%s%s: no answer in time",
                       fetch->url->is_tls ? "s" : "", fetch->url->host, (unsigned)fetch->url->port, fetch->url->prefix,
                       fetch->path));
}

enum status fetch_get(const struct http_url *url, const char *path, uint64_t timeout_ns,
                      int *out_http, struct buf *out_body, struct err *err) {
    static const struct http_client_events EVENTS = {
        .on_ready = on_ready,
        .on_answer = on_answer,
        .on_failed = on_failed,
    };
    struct fetch fetch = {.url = url, .path = path, .body = out_body, .err = err,
                          .status = ST_INTERNAL};
    enum status status = loop_create(&fetch.loop, err);
    if (status != ST_OK) return status;
    fetch.timer = loop_timer_create(fetch.loop, on_timeout, &fetch);
    if (fetch.timer == NULL) {
        status = err_set(err, ST_NO_MEMORY, "out of memory for a timer");
        goto out;
    }
    loop_timer_set(fetch.timer, mono_ns() + timeout_ns);
    status = http_client_connect(fetch.loop, url->tls, url->host, url->port, &EVENTS, &fetch,
                                 &fetch.client, err);
    if (status != ST_OK) loop_timer_close(fetch.timer);
    loop_run(fetch.loop);
    if (status == ST_OK) status = fetch.status;
    if (status == ST_OK) *out_http = fetch.http;
out:
    loop_free(fetch.loop);
    return status;
}
