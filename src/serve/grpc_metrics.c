/* What /metrics says of the gRPC port. Loop thread only. */
#include "measure/prom.h"
#include "serve/grpc_server.h"

static void one(struct buf *out, const char *name, const char *kind, const char *help,
                uint64_t value) {
    prom_family(out, name, kind, help);
    prom_u64(out, name, NULL, 0, value);
}

void grpc_server_write_metrics(const struct grpc_server *grpc, struct buf *out) {
    if (!grpc)
        return;
    const struct grpc_counts *counts = &grpc->counts;
    prom_family(out, "telltale_grpc_calls_total", "counter", "Calls answered, by gRPC code.");
    for (unsigned code = 0; code < GRPC_CODE_COUNT; code++) {
        const struct prom_label labels[] = {{"code", grpc_code_name(code)}};
        if (counts->by_code[code] || code == 0)
            prom_u64(out, "telltale_grpc_calls_total", labels, 1, counts->by_code[code]);
    }
    one(out, "telltale_grpc_stream_messages_total", "counter",
        "Answers inside of ModelStreamInfer.", counts->stream_messages);
    one(out, "telltale_grpc_cancelled_total", "counter", "Calls that their client gave up.",
        counts->cancelled);
    one(out, "telltale_grpc_connections", "gauge", "Connections of the gRPC port.",
        grpc->connection_count);
    one(out, "telltale_grpc_streams", "gauge", "Calls open at the gRPC port.", grpc->stream_count);
    one(out, "telltale_grpc_message_bytes", "gauge",
        "Memory of messages being received and worked on; --grpc-memory is its limit.",
        grpc->quota.used_bytes);
    one(out, "telltale_grpc_connections_accepted_total", "counter",
        "Connections that the gRPC port took.", counts->accepted);
    one(out, "telltale_grpc_connections_refused_total", "counter",
        "Connections closed at once, being over --max-connections.", counts->refused);
    one(out, "telltale_grpc_connections_broken_total", "counter",
        "Connections that broke HTTP/2.", counts->broken);
    one(out, "telltale_grpc_connections_too_lively_total", "counter",
        "Connections told ENHANCE_YOUR_CALM.", counts->too_lively);
    one(out, "telltale_grpc_timeouts_total", "counter",
        "Idle, silent and stalled connections and calls that were ended.", counts->timeouts);
}
