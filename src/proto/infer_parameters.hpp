// Parameters in inference JSON: a request's, a tensor's, and what every reader of that JSON shares.
// For infer_json.cc.
//
// Thread: any. Invariant: out is written only when everything was right.
#ifndef TELLTALE_PROTO_INFER_PARAMETERS_HPP
#define TELLTALE_PROTO_INFER_PARAMETERS_HPP

#include "proto/infer_data.hpp"

#include <cstdarg>
#include <cstdio>

namespace infer {

using simdjson::SUCCESS;

struct reading {
    struct arena *arena;
    struct err *err;
    struct view binary;  // what follows the JSON
    size_t binary_used;  // bytes given to tensors so far
    bool any_shape;      // metadata: -1 allowed
    size_t json_size;
};

// "inputs[1] (attention_mask)", written out only when something is wrong.
struct place {
    const char *list;
    uint32_t index;
    std::string_view name;
};

__attribute__((format(printf, 4, 5))) inline enum status
fail_at(const reading &r, const place &at, enum status status, const char *format, ...) {
    char text[360];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (at.name.empty())
        return err_set(r.err, status, "%s[%u]: %s", at.list, at.index, text);
    const int shown = at.name.size() < 64 ? int(at.name.size()) : 64;
    return err_set(r.err, status, "%s[%u] (%.*s): %s", at.list, at.index, shown, at.name.data(),
                   text);
}

inline enum status no_memory(const reading &r) {
    return err_set(r.err, ST_NO_MEMORY, "no memory for the inference request's tensors");
}

inline enum status copy_text(const reading &r, std::string_view text, struct view *out) {
    const struct view from = {text.data(), text.size()};
    char *copy = arena_copy(r.arena, from);
    if (!copy)
        return no_memory(r);
    *out = {copy, text.size()};
    return ST_OK;
}

struct shared_members {
    enum { REGION, OFFSET, SIZE, COUNT };
    member all[COUNT] = {{"shared_memory_region", {}, false},
                         {"shared_memory_offset", {}, false},
                         {"shared_memory_byte_size", {}, false}};
};

// out stays empty where none of the three parameters is there.
inline enum status read_shared(const reading &r, const place &at, const shared_members &m,
                        struct shared_place *out) {
    std::string_view region;
    struct shared_place found = {};
    if (!m.all[m.REGION].is_present) {
        if (!m.all[m.OFFSET].is_present && !m.all[m.SIZE].is_present)
            return ST_OK;
        return fail_at(r, at, ST_INVALID, "shared_memory_region is missing");
    }
    if (m.all[m.REGION].value.get(region) != SUCCESS || region.empty())
        return fail_at(r, at, ST_INVALID, "shared_memory_region must be a region's name");
    if (!m.all[m.SIZE].is_present || m.all[m.SIZE].value.get(found.size) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "shared_memory_byte_size must be a number of bytes");
    if (m.all[m.OFFSET].is_present && m.all[m.OFFSET].value.get(found.offset) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "shared_memory_offset must be a number of bytes");
    const enum status status = copy_text(r, region, &found.region);
    if (status == ST_OK)
        *out = found;
    return status;
}

struct tensor_parameters {
    bool has_size;
    uint64_t binary_size;
    struct shared_place shared;
};

inline enum status read_tensor_parameters(const reading &r, const place &at, const member &from,
                                   struct tensor_parameters *out) {
    *out = {};
    if (!from.is_present)
        return ST_OK;
    object members;
    member size[] = {{"binary_data_size", {}, false}};
    shared_members shared;
    if (from.value.get(members) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "parameters must be an object");
    const char *twice = find_members(members, size, 1);
    if (!twice)
        twice = find_members(members, shared.all, shared.COUNT);
    if (twice)
        return fail_at(r, at, ST_INVALID, "parameter %s comes twice", twice);
    out->has_size = size[0].is_present;
    if (out->has_size && size[0].value.get(out->binary_size) != SUCCESS)
        return fail_at(r, at, ST_INVALID, "binary_data_size must be a number of bytes");
    return read_shared(r, at, shared, &out->shared);
}

// What a client sends that has no sequence: 0, "", false.
inline bool is_nothing(const element &value) {
    uint64_t number = 0;
    bool flag = false;
    std::string_view text;
    if (value.get(number) == SUCCESS)
        return number == 0;
    if (value.get(flag) == SUCCESS)
        return !flag;
    return value.get(text) == SUCCESS && text.empty();
}

inline enum status read_request_parameters(const reading &r, const member &from,
                                    struct infer_request *out) {
    if (!from.is_present)
        return ST_OK;
    object members;
    if (from.value.get(members) != SUCCESS)
        return err_set(r.err, ST_INVALID, "parameters must be an object");
    enum { TIMEOUT, BINARY, PRIORITY, SEQUENCE, START, END, COUNT };
    member known[COUNT] = {{"timeout", {}, false},        {"binary_data_output", {}, false},
                           {"priority", {}, false},       {"sequence_id", {}, false},
                           {"sequence_start", {}, false}, {"sequence_end", {}, false}};
    if (const char *twice = find_members(members, known, COUNT))
        return err_set(r.err, ST_INVALID, "parameters: %s comes twice", twice);
    out->has_timeout = known[TIMEOUT].is_present;
    if (out->has_timeout && known[TIMEOUT].value.get(out->timeout_us) != SUCCESS)
        return err_set(r.err, ST_INVALID,
                       "parameters: timeout must be a whole number of microseconds");
    if (known[BINARY].is_present && known[BINARY].value.get(out->wants_binary) != SUCCESS)
        return err_set(r.err, ST_INVALID, "parameters: binary_data_output must be true or false");
    if (known[PRIORITY].is_present && known[PRIORITY].value.get(out->priority) != SUCCESS)
        return err_set(r.err, ST_INVALID, "parameters: priority must be a whole number from 0 on");
    for (int i = SEQUENCE; i < COUNT; i++)
        if (known[i].is_present && !is_nothing(known[i].value))
            return err_set(r.err, ST_UNSUPPORTED,
                           "parameters: %s: a model that keeps state between the requests of a "
                           "sequence is not supported", known[i].name.data());
    return ST_OK;
}

} // namespace infer

#endif
