/* Members of a tokenizer.json. Load time, one thread. Invariant: *out is written only when the
 * member is what it must be. Called by all *_file.c of the tokenizer. */
#include "prep/tokenizer_read.h"

struct known_names {
    const char *const *known; /* ends with NULL */
    const char *where;
    struct err *err;
};

static enum status read_known_name(void *context, struct view name, struct json_value value) {
    const struct known_names *names = context;
    (void)value;
    for (const char *const *known = names->known; *known != NULL; known++) {
        if (view_is(name, *known)) return ST_OK;
    }
    return err_set(names->err, ST_UNSUPPORTED, "%s: \"%.*s\" is not supported", names->where,
                   VIEW_SHORT(name));
}

enum status read_members(struct json_value object, const char *where, const char *const *known,
                         struct err *err) {
    if (dom_kind_of(object) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "%s is not an object", where);
    }
    struct known_names names = {.known = known, .where = where, .err = err};
    return dom_each(object, read_known_name, &names);
}

bool read_is_null(struct json_value object, const char *name) {
    struct json_value value;
    return !dom_member(object, name, &value) || dom_kind_of(value) == JSON_NULL;
}

enum status read_bool(struct json_value object, const char *where, const char *name, bool *out,
                      struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || dom_kind_of(value) != JSON_BOOL) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be true or false", where, name);
    }
    *out = dom_bool(value);
    return ST_OK;
}

enum status read_u32(struct json_value object, const char *where, const char *name,
                     uint32_t *out, struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || !dom_u32(value, out)) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be a whole number below 2^32", where,
                       name);
    }
    return ST_OK;
}

enum status read_string(struct json_value object, const char *where, const char *name,
                        struct view *out, struct err *err) {
    struct json_value value;
    if (!dom_member(object, name, &value) || dom_kind_of(value) != JSON_STRING) {
        return err_set(err, ST_INVALID, "%s: \"%s\" must be a string", where, name);
    }
    *out = dom_string(value);
    return ST_OK;
}

enum status read_type(struct json_value object, const char *where, struct view *out,
                      struct err *err) {
    if (dom_kind_of(object) != JSON_OBJECT) {
        return err_set(err, ST_INVALID, "%s is not an object", where);
    }
    return read_string(object, where, "type", out, err);
}
