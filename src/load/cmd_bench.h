/* `telltale bench`: loads a model or a server, and measures it. */
#ifndef TELLTALE_LOAD_CMD_BENCH_H
#define TELLTALE_LOAD_CMD_BENCH_H

/* argv[0] is "bench". Exit code: 0 measured, 1 failed, 2 misused, 130 interrupted. */
int cmd_bench(int argc, char **argv);

#endif
