/* What the load is sent to, behind one small table: an HTTP server (target_http.c) or the
 * engine in this process (target_engine.c). All functions and callbacks on the loop's thread. */
#ifndef TELLTALE_LOAD_TARGET_H
#define TELLTALE_LOAD_TARGET_H

#include "load/inputs.h"
#include "load/sample.h"
#include "net/loop.h"

enum { CALL_ID_SIZE = 32, CALL_DETAIL_SIZE = 240 };

/* One request on its way. The runner's; lent to the target from send until on_done or abandon. */
struct call {
    struct sample sample; /* the target fills what happens after the plan */
    char id[CALL_ID_SIZE];
    char detail[CALL_DETAIL_SIZE]; /* why it failed, in the server's words where it said any */
    uint64_t issued_ns;
    uint32_t user;
    struct call *prev, *next; /* the runner's list, in order of issue */
    void *carrier;            /* the target's: what carries it now */
};

struct target;
struct target_table {
    /* Starts call (id, sample.input set). False: it is over already (outcome, detail, done_ns
     * are set; on_done does not come). True: on_done comes later, never from inside send. */
    bool (*send)(struct target *target, struct call *call);
    /* Forgets call: on_done will not come for it. */
    void (*abandon)(struct target *target, struct call *call);
    /* Closes connections or waits for what the engine still holds; then free. */
    void (*free)(struct target *target);
};

struct target {
    const struct target_table *table;
    const struct inputs *inputs;
    void (*on_done)(void *ctx, struct call *call);
    void *ctx;
    bool is_simulated;        /* the target said so */
    uint32_t connections_peak; /* 0: has none */
};

struct tls;
struct http_url {
    char host[256];
    uint16_t port;
    char prefix[256];
    bool is_tls;
    struct tls *tls; /* a client's, for is_tls: set by whoever parsed the URL, before use */
};
/* "http://HOST[:PORT][/prefix]", or https://; a trailing slash of the prefix is dropped. */
MUST_CHECK enum status http_url_parse(const char *text, struct http_url *out, struct err *err);

/* url and inputs must outlive the target; inputs must be rendered (inputs_render). */
MUST_CHECK enum status target_http_create(struct loop *loop, const struct http_url *url,
                                          const char *model_name, const struct inputs *inputs,
                                          struct target **out, struct err *err);
struct engine;
struct served_model;
MUST_CHECK enum status target_engine_create(struct loop *loop, struct engine *engine,
                                            const struct served_model *model,
                                            const struct inputs *inputs, struct target **out,
                                            struct err *err);

#endif
