/* See work.h. Any thread. Invariant: what is handed over here is run even when the engine is being
 * freed: the pool ends last. Read next: pipeline.c. */
#include "engine/work.h"

#include "engine/engine_private.h"

bool engine_work(struct engine *engine, struct pool_job *job) {
    return pool_submit_first(engine->pool, job);
}
