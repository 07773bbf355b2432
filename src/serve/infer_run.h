/* An inference request from the moment its message is whole until its record is written, whatever
 * protocol it came by: decode, submit, deadline, encode, answer. What differs between protocols is
 * the front, a table of functions.
 *
 * Loop thread only, but for what a front is asked on a worker. */
#ifndef TELLTALE_SERVE_INFER_RUN_H
#define TELLTALE_SERVE_INFER_RUN_H

#include "serve/exchange.h"
#include "serve/server.h"

struct infer_front {
    /* Any thread, once: exchange->incoming to the request's inputs and wanted outputs. Touches the
     * exchange alone. The reason of a failure is in the request's err. */
    enum status (*decode)(struct exchange *exchange, struct infer_request *out_parsed);
    /* Any thread, once: the outputs to the answer's bytes. Touches the exchange alone. */
    enum status (*encode)(struct exchange *exchange, struct buf *out);
    /* Any thread: roughly the bytes that encode has to convert (text, not copies). */
    size_t (*encode_bytes)(const struct exchange *exchange);
    /* The loop: writes encode's bytes or, where the request's status is not ST_OK, its err. Calls
     * infer_run_sent when the kernel has all of it, perhaps before it returns (the exchange is gone
     * then). Returns an instant at which something of it was done, 0: none known. */
    uint64_t (*answer)(struct exchange *exchange, const struct buf *body);
    /* The loop: the waiter forgets the exchange, which the engine still works on. Gives what the
     * tensors may point into, to be freed with free(); NULL: nothing. */
    char *(*let_go)(struct exchange *exchange);
    /* The loop: tells a waiter that has let go that it will have no answer. */
    void (*fail)(void *waiter, enum status status, const char *text);
};

/* Takes on an exchange whose front, waiter and incoming are set; the answer follows, at once when
 * it is an error (status and err of the request are set before the call where the front found one
 * itself). start_ns: the first byte of the message. is_large: a worker decodes. Takes the
 * reference that the caller has to the model. */
void infer_run_start(struct exchange *exchange, const struct served_model *served,
                     uint64_t start_ns, size_t bytes_in, bool is_large);
/* What an engine thread has told. now_ns: a recent instant; returns a later one. */
uint64_t infer_run_note(struct note *note, uint64_t now_ns);
/* The client has left: cancels. */
void infer_run_abandon(struct exchange *exchange);
/* The last byte of the answer was handed to the kernel at at_ns: ends the record. */
void infer_run_sent(struct exchange *exchange, uint64_t at_ns);

#endif
