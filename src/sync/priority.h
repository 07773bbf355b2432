/* Work that may take its time: the calling thread gets a processor and a disk only when nobody
 * else wants them. There is no way back without privileges, and threads that it starts are like
 * it. */
#ifndef TELLTALE_SYNC_PRIORITY_H
#define TELLTALE_SYNC_PRIORITY_H

#include <stdbool.h>

bool priority_lower(void); /* false: the kernel did not allow it; nothing has changed */

#endif
