/* Work of the engine's owner that a worker shall do: encoding a large answer, say. */
#ifndef TELLTALE_ENGINE_WORK_H
#define TELLTALE_ENGINE_WORK_H

#include "engine/engine.h"
#include "sync/pool.h"

/* Runs job->run on a worker, before what waits for its first work. False: too much waits for one. A request's pool_job may be
 * used in and after on_done. Any thread, until engine_free. */
MUST_CHECK bool engine_work(struct engine *engine, struct pool_job *job);

#endif
