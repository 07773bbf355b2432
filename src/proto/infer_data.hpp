// "data" of a tensor in JSON to an array in the arena. Included by infer_json.cc alone: the two are
// one C++ unit, cut where the tensor's elements begin.
//
// Invariant: what is allocated is bounded by the size of the JSON text, whatever shape says.
#ifndef TELLTALE_PROTO_INFER_DATA_HPP
#define TELLTALE_PROTO_INFER_DATA_HPP

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <simdjson.h>
#include <string_view>
#include <type_traits>

namespace infer {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::element_type;
using simdjson::dom::object;

enum class problem { none, wrong_type, not_integer, out_of_range, mixed, too_many, nesting };

// Where a walk stopped, for the error's sentence.
struct walk_state {
    size_t index = 0; // elements stored so far
    size_t limit = 0; // elements that the shape allows
    uint32_t depth = 1;             // levels of arrays
    const int64_t *shape = nullptr; // checked level by level when set
    element bad;                    // the element that did not fit
};

template <typename T> struct number_sink {
    char *to;
    problem put(const element &e) {
        T value{};
        if constexpr (std::is_floating_point_v<T>) {
            switch (e.type()) {
            case element_type::INT64: value = static_cast<T>(e.get_int64().value_unsafe()); break;
            case element_type::UINT64: value = static_cast<T>(e.get_uint64().value_unsafe()); break;
            case element_type::DOUBLE: {
                const double wide = e.get_double().value_unsafe();
                // FLT_MAX and half a step more: what rounds to infinity is out of range.
                if (sizeof(T) == 4 && std::fabs(wide) >= 0x1.ffffffp127)
                    return problem::out_of_range;
                value = static_cast<T>(wide);
                break;
            }
            default: return problem::wrong_type;
            }
        } else {
            switch (e.type()) {
            case element_type::INT64: {
                const int64_t wide = e.get_int64().value_unsafe();
                if constexpr (std::is_same_v<T, uint64_t>) {
                    if (wide < 0)
                        return problem::out_of_range;
                } else if (wide < int64_t(std::numeric_limits<T>::min()) ||
                           wide > int64_t(std::numeric_limits<T>::max())) {
                    return problem::out_of_range;
                }
                value = static_cast<T>(wide);
                break;
            }
            case element_type::UINT64: // only what is beyond int64
                if constexpr (std::is_same_v<T, uint64_t>)
                    value = e.get_uint64().value_unsafe();
                else
                    return problem::out_of_range;
                break;
            case element_type::DOUBLE: return problem::not_integer;
            default: return problem::wrong_type;
            }
        }
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
        return problem::none;
    }
};

struct bool_sink {
    char *to;
    problem put(const element &e) {
        bool truth = false;
        int64_t number = 0;
        if (e.get(truth) != simdjson::SUCCESS) {
            if (e.get(number) != simdjson::SUCCESS)
                return e.type() == element_type::DOUBLE ? problem::not_integer
                                                        : problem::wrong_type;
            if (number != 0 && number != 1)
                return problem::out_of_range;
            truth = number == 1;
        }
        *to++ = truth ? 1 : 0;
        return problem::none;
    }
};

// BYTES, first pass: how much memory. Second pass: the bytes, each after its length.
struct bytes_size_sink {
    size_t size = 0;
    problem put(const element &e) {
        std::string_view text;
        if (e.get(text) != simdjson::SUCCESS)
            return problem::wrong_type;
        size += 4 + text.size();
        return problem::none;
    }
};
struct bytes_copy_sink {
    char *to;
    problem put(const element &e) {
        const std::string_view text = e.get_string().value_unsafe();
        const uint32_t size = static_cast<uint32_t>(text.size());
        std::memcpy(to, &size, 4);
        if (size > 0)
            std::memcpy(to + 4, text.data(), size);
        to += 4 + size;
        return problem::none;
    }
};
struct count_sink {
    problem put(const element &) { return problem::none; }
};

// Levels of arrays along the first elements: 1 for [1,2], 2 for [[1],[2]].
inline uint32_t depth_of(array a, uint32_t limit) {
    uint32_t depth = 1;
    while (depth <= limit) {
        array inner;
        const auto first = a.begin();
        if (!(first != a.end()) || (*first).get(inner) != simdjson::SUCCESS)
            break;
        a = inner;
        depth++;
    }
    return depth;
}

// Elements in row-major order into sink; level counts from 1. Recursion ends at state.depth.
template <typename Sink>
problem walk(const array &a, uint32_t level, walk_state &state, Sink &sink) {
    int64_t here = 0;
    for (const element e : a) {
        problem found = problem::none;
        const bool is_array = e.type() == element_type::ARRAY;
        here++;
        if (level < state.depth) {
            array inner;
            if (e.get(inner) != simdjson::SUCCESS)
                found = problem::mixed;
            else
                found = walk(inner, level + 1, state, sink);
        } else if (is_array) {
            found = problem::mixed;
        } else if (state.index == state.limit) {
            found = problem::too_many;
        } else {
            state.bad = e;
            found = sink.put(e);
            state.index += found == problem::none;
        }
        if (found != problem::none)
            return found;
    }
    if (state.shape && state.shape[level - 1] != here)
        return problem::nesting;
    return problem::none;
}

// An element as a short text, for an error's sentence.
inline const char *show(const element &e, char (&out)[64]) {
    int64_t i = 0;
    uint64_t u = 0;
    double d = 0;
    bool b = false;
    std::string_view s;
    if (e.get(i) == simdjson::SUCCESS)
        std::snprintf(out, sizeof out, "%lld", static_cast<long long>(i));
    else if (e.get(u) == simdjson::SUCCESS)
        std::snprintf(out, sizeof out, "%llu", static_cast<unsigned long long>(u));
    else if (e.get(d) == simdjson::SUCCESS)
        std::snprintf(out, sizeof out,
                      std::fabs(d) < 1e15 && d == std::floor(d) ? "%.1f" : "%.9g", d);
    else if (e.get(b) == simdjson::SUCCESS)
        std::snprintf(out, sizeof out, "%s", b ? "true" : "false");
    else if (e.get(s) == simdjson::SUCCESS)
        std::snprintf(out, sizeof out, "\"%.*s%s\"", int(s.size() < 24 ? s.size() : 24), s.data(),
                      s.size() > 24 ? "..." : "");
    else
        std::snprintf(out, sizeof out, "%s",
                      e.is_null() ? "null" : e.is_array() ? "an array" : "an object");
    return out;
}

// The members of an object that one knows, found in one pass.
struct member {
    std::string_view name; // of a literal: terminated
    element value;
    bool is_present;
};
// nullptr, or the name of a member that comes twice.
inline const char *find_members(const object &from, member *members, size_t count) {
    for (const auto field : from) {
        for (size_t i = 0; i < count; i++) {
            if (field.key != members[i].name)
                continue;
            if (members[i].is_present)
                return members[i].name.data();
            members[i].value = field.value;
            members[i].is_present = true;
            break;
        }
    }
    return nullptr;
}

// What a datatype's elements may be, for an error's sentence.
inline const char *range_text(enum dtype dtype) {
    switch (dtype) {
    case DTYPE_BOOL: return "takes true, false, 0 or 1";
    case DTYPE_UINT8: return "takes 0 to 255";
    case DTYPE_UINT16: return "takes 0 to 65535";
    case DTYPE_UINT32: return "takes 0 to 4294967295";
    case DTYPE_UINT64: return "takes 0 to 18446744073709551615";
    case DTYPE_INT8: return "takes -128 to 127";
    case DTYPE_INT16: return "takes -32768 to 32767";
    case DTYPE_INT32: return "takes -2147483648 to 2147483647";
    case DTYPE_INT64: return "takes -9223372036854775808 to 9223372036854775807";
    case DTYPE_FP32: return "takes up to 3.4028235e+38 in size";
    case DTYPE_BYTES: return "takes strings";
    default: return "takes numbers";
    }
}

} // namespace infer

#endif
