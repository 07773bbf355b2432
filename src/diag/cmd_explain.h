/* telltale explain. */
#ifndef TELLTALE_DIAG_CMD_EXPLAIN_H
#define TELLTALE_DIAG_CMD_EXPLAIN_H

/* argv[0] is "explain". 0: explained, or said that no cause stands out; 1: no usable data;
 * 2: wrong usage. */
int cmd_explain(int argc, char **argv);

#endif
