/* Stopping without a lost answer. Loop thread only. */
#ifndef TELLTALE_SERVE_DRAIN_H
#define TELLTALE_SERVE_DRAIN_H

#include "serve/server.h"

/* SIGTERM or SIGINT: begins; the second one ends the process at once with 1. */
void drain_on_signal(void *ctx, int signum);
/* The drain timer: stops listening, later gives up. */
void drain_on_timer(void *ctx);
/* Something ended: finishes when nothing is left. */
void drain_check(struct server *server);

#endif
