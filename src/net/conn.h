/* TCP listeners and connections on a loop. All functions on the loop's thread. */
#ifndef TELLTALE_NET_CONN_H
#define TELLTALE_NET_CONN_H

#include "base/view.h"
#include "net/loop.h"

struct listener;
struct conn;
struct tls; /* tls.h */

struct conn_events {
    /* Bytes came in (valid during the call). room: where bytes go next, see conn_read_into. */
    void (*on_data)(struct conn *conn, void *ctx, const char *bytes, size_t size);
    /* The peer closed its side or the connection failed; conn_close must still be called. Comes
     * once, never from within another call, and not while reading is paused unless a write
     * fails. When the peer only closed its sending side (conn_can_write), answers still go out. */
    void (*on_end)(struct conn *conn, void *ctx);
    /* Everything written so far has been handed to the kernel, or dropped where the connection
     * failed after on_end. at_ns: when. */
    void (*on_drained)(struct conn *conn, void *ctx, uint64_t at_ns);
    /* Optional direct reads: memory for the next bytes, NULL for the connection's own buffer
     * (64 KiB, shared by the loop). on_data then gets that pointer back. */
    char *(*read_room)(struct conn *conn, void *ctx, size_t *out_room);
    /* Handle closed: ctx may be freed now. */
    void (*on_closed)(void *ctx);
};

/* Events may be NULL where they are not wanted, on_data excepted. The struct conn_events must live
 * as long as the connection. A conn may be closed from within any event.
 *
 * on_accept: a new connection; call conn_start with its events, or conn_close. Listens with
 * TCP_NODELAY connections. port 0: any; listener_port tells. host: an address, "localhost",
 * "::1", "0.0.0.0". Address in use: the error names port and remedy. */
MUST_CHECK enum status listener_create(struct loop *loop, const char *host, uint16_t port,
                                       void (*on_accept)(void *ctx, struct conn *conn), void *ctx,
                                       struct listener **out, struct err *err);
/* Connections accepted from now on speak TLS, a server's; NULL: none. Their owners need not know:
 * the events are the same. on_data comes at most once a record, and what has been read already
 * still comes after conn_pause_reading, 64 KiB at most. What is written before the handshake is
 * over waits for it. on_end also comes when the handshake fails. */
void listener_use_tls(struct listener *listener, struct tls *tls);
uint16_t listener_port(const struct listener *listener);
/* Accepts what the kernel has connected already, on_accept for each: before listener_close, which
 * resets whoever still waits to be accepted. */
void listener_accept_waiting(struct listener *listener);
void listener_close(struct listener *listener);

/* on_connected, later on the loop, gets ST_OK or the failure and a sentence; after a failure call
 * conn_close. The name is resolved with getaddrinfo at once (it may block); its addresses are
 * tried in turn. Not called when conn_close came first. */
MUST_CHECK enum status conn_connect(struct loop *loop, const char *host, uint16_t port,
                                    void (*on_connected)(struct conn *conn, void *ctx,
                                                         enum status status, const char *detail),
                                    void *ctx, struct conn **out, struct err *err);
/* The same over TLS, a client's; NULL: plain. on_connected comes after the handshake, in which the
 * server's certificate is checked against host, and must itself call conn_start or conn_close. */
MUST_CHECK enum status conn_connect_tls(struct loop *loop, struct tls *tls, const char *host,
                                        uint16_t port,
                                        void (*on_connected)(struct conn *conn, void *ctx,
                                                             enum status status,
                                                             const char *detail),
                                        void *ctx, struct conn **out, struct err *err);
bool conn_is_tls(const struct conn *conn);
/* The protocol that both sides agreed on ("h2"); empty: none was offered, or this is plain. Known
 * when the first on_data comes. */
struct view conn_alpn(const struct conn *conn);
/* In on_end: why it failed, where TLS knows; else "". */
const char *conn_fault(const struct conn *conn);
void conn_start(struct conn *conn, const struct conn_events *events, void *ctx);
/* When the bytes that on_data is being given, or has been given last, were first seen to be there:
 * the beginning of this turn of the loop, or of an earlier one where reading was put off. */
uint64_t conn_readable_ns(const struct conn *conn);
void conn_pause_reading(struct conn *conn);
void conn_resume_reading(struct conn *conn);
/* Writes head and body at once: tries the kernel first, queues what is left (bytes are copied
 * only then). Returns true when all went to the kernel in this call (on_drained is not called
 * then). After an error it returns true and on_end follows. */
bool conn_write(struct conn *conn, struct view head, struct view body);
/* False once the connection has failed or is being closed: what is written then is dropped. */
bool conn_can_write(const struct conn *conn);
bool conn_is_drained(const struct conn *conn);
size_t conn_unsent_bytes(const struct conn *conn);
void conn_close(struct conn *conn); /* idempotent; on_closed follows later, on the loop */
/* Closes so that the peer gets what was written: sends the queue, shuts the sending side, reads
 * and drops what still arrives until the peer closes too, for linger_ns at most. (Closing with
 * unread input makes the kernel send a reset, which may destroy the answer on its way: this is
 * for "Connection: close" and for errors sent in the middle of a body.) No event but on_closed
 * follows. */
void conn_finish(struct conn *conn, uint64_t linger_ns);

#endif
