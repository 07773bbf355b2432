/* telltale serve. */
#ifndef TELLTALE_SERVE_CMD_SERVE_H
#define TELLTALE_SERVE_CMD_SERVE_H

/* argv[0] is "serve". 0: stopped after draining; 1: failed; 2: wrong usage. */
int cmd_serve(int argc, char **argv);

#endif
