/* The only C++ of this folder: simdjson behind the C functions of json.h. Any thread, load time
 * only. Invariant: no exception leaves this file. See tokenizer_file.c for the reader. */
#include "prep/dom.h"
#include <cstring>
#include <memory>
#include <new>
#include <simdjson.h>

struct json_document {
    simdjson::dom::parser parser;
};

namespace {

using simdjson::dom::element;

static_assert(sizeof(element) == sizeof(json_value), "json_value holds an element");
static_assert(std::is_trivially_copyable<element>::value, "an element may be copied as bytes");

json_value pack(element from) {
    json_value out;
    std::memcpy(&out, static_cast<const void *>(&from), sizeof out);
    return out;
}

element unpack(json_value from) {
    element out;
    std::memcpy(static_cast<void *>(&out), &from, sizeof from);
    return out;
}

view view_from(std::string_view text) { return view{text.data(), text.size()}; }

} // namespace

extern "C" {

enum status dom_open(view text, json_document **out, json_value *out_root, err *error) {
    try {
        auto document = std::make_unique<json_document>();
        element root;
        simdjson::error_code code = document->parser.parse(text.data, text.size).get(root);
        if (code == simdjson::MEMALLOC) {
            return err_set(error, ST_NO_MEMORY, "no memory for %zu bytes of JSON", text.size);
        }
        if (code) {
            return err_set(error, ST_INVALID, "not valid JSON: %s", simdjson::error_message(code));
        }
        *out_root = pack(root);
        *out = document.release();
        return ST_OK;
    } catch (const std::bad_alloc &) {
        return err_set(error, ST_NO_MEMORY, "no memory for %zu bytes of JSON", text.size);
    }
}

void dom_close(json_document *document) { delete document; }

enum json_kind dom_kind_of(json_value value) {
    if (value.document == nullptr) return JSON_NULL;
    switch (unpack(value).type()) {
    case simdjson::dom::element_type::ARRAY: return JSON_ARRAY;
    case simdjson::dom::element_type::OBJECT: return JSON_OBJECT;
    case simdjson::dom::element_type::STRING: return JSON_STRING;
    case simdjson::dom::element_type::BOOL: return JSON_BOOL;
    case simdjson::dom::element_type::NULL_VALUE: return JSON_NULL;
    default: return JSON_NUMBER;
    }
}

view dom_string(json_value value) {
    std::string_view text;
    if (unpack(value).get_string().get(text)) {
        return view{"", 0};
    }
    return view_from(text);
}

bool dom_bool(json_value value) {
    bool is_true = false;
    return !unpack(value).get_bool().get(is_true) && is_true;
}

bool dom_u32(json_value value, uint32_t *out) {
    uint64_t number = 0;
    if (unpack(value).get_uint64().get(number) || number > UINT32_MAX) {
        return false;
    }
    *out = static_cast<uint32_t>(number);
    return true;
}

bool dom_double(json_value value, double *out) {
    return !unpack(value).get_double().get(*out);
}

size_t dom_count(json_value value) {
    size_t count = 0;
    simdjson::dom::array array;
    simdjson::dom::object object;
    if (!unpack(value).get_array().get(array)) {
        for (element item : array) {
            (void)item;
            count++;
        }
    } else if (!unpack(value).get_object().get(object)) {
        for (simdjson::dom::key_value_pair member : object) {
            (void)member;
            count++;
        }
    }
    return count;
}

bool dom_member(json_value value, const char *name, json_value *out) {
    simdjson::dom::object object;
    if (unpack(value).get_object().get(object)) {
        return false;
    }
    bool is_there = false;
    for (simdjson::dom::key_value_pair member : object) {
        if (member.key == name) {
            *out = pack(member.value);
            is_there = true;
        }
    }
    return is_there;
}

enum status dom_each(json_value value, dom_visit_fn visit, void *context) {
    simdjson::dom::array array;
    simdjson::dom::object object;
    enum status status = ST_OK;
    if (!unpack(value).get_array().get(array)) {
        for (element item : array) {
            status = visit(context, view{"", 0}, pack(item));
            if (status != ST_OK) {
                return status;
            }
        }
    } else if (!unpack(value).get_object().get(object)) {
        for (simdjson::dom::key_value_pair member : object) {
            status = visit(context, view_from(member.key), pack(member.value));
            if (status != ST_OK) {
                return status;
            }
        }
    }
    return status;
}

} // extern "C"
