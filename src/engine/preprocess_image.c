/* Pictures to a model's numbers: base64, decode, resize and place, pixels into the batch's row.
 * Shapes: (rows, channels, height, width) or (rows, height, width, channels). Invariant: pixels on
 * their way lie in scratch; only the numbers outlive the call. */
#include "engine/preprocess_private.h"

#include "batch/staging.h"

/* A row's numbers, where it was written to; rows of one size lie side by side. */
struct rows {
    unsigned char *data;
    size_t row_bytes;
    uint32_t width, height; /* of the canvas */
};

static enum status fail_row(const struct prepare *at, uint32_t row, enum status status) {
    if (at->request->prepared_rows > 1) err_prefix(&at->request->err, "%s[%u]", at->input->spec->name, row);
    else err_prefix(&at->request->err, "%s", at->input->spec->name);
    return status;
}

/* The rows' memory, the request's own. */
static bool reserve_rows(const struct prepare *at, size_t row_bytes, uint32_t count, struct rows *out) {
    out->row_bytes = row_bytes;
    out->data = arena_alloc_aligned64(&at->request->arena, row_bytes * count);
    return out->data != NULL;
}

/* Rows of a canvas that is always the same: where the batch will run them, while there is room. */
static bool reserve_fixed(const struct prepare *at, uint32_t count, struct rows *out) {
    const struct bound_image *image = &at->input->image;
    struct staging *staging = batcher_staging(at->model->batcher);
    if (staging == NULL || !staging_reserve(staging, &at->request->job))
        return reserve_rows(at, image->fixed_row_bytes, count, out);
    out->row_bytes = image->fixed_row_bytes;
    out->data = (unsigned char *)staging_rows(&at->request->job, image->to);
    return true;
}

/* What was sent is neither a picture nor the base64 of one, a text perhaps: says what is taken. */
static enum status refuse_other(struct request *request, enum status status) {
    static const char TAKEN[] =
        ". This input takes pictures, JPEG, PNG or WebP: the file as the body, with Content-Type "
        "image/jpeg, image/png or image/webp, or as an element of a BYTES tensor; in JSON its base64";
    struct err *err = &request->err;
    const size_t size = strlen(err->text);
    if (size + sizeof TAKEN <= sizeof err->text) memcpy(err->text + size, TAKEN, sizeof TAKEN);
    return status;
}

static enum status decode_row(const struct prepare *at, struct view sent, struct placement *placement,
                              struct image *out) {
    const struct bound_image *image = &at->input->image;
    struct request *request = at->request;
    uint64_t since_ns = mono_ns();
    struct view file = {.data = NULL};
    struct image_info info;
    bool was_base64 = false;
    enum status status = image_unwrap(sent, at->scratch, &file, &was_base64, &request->err);
    if (was_base64) preprocess_step(request, STEP_BASE64, &since_ns);
    struct image decoded;
    if (status == ST_OK)
        status = image_decode(file, &image->decode, at->scratch, &decoded, &info, &request->err);
    preprocess_step(request, STEP_IMAGE_DECODE, &since_ns);
    if (status == ST_INVALID && !image_is_known(sent) && !image_is_known(file))
        return refuse_other(request, status);
    if (status == ST_OK) {
        request->trace.pictures++;
        request->trace.scalable_jpegs += info.is_scalable ? 1 : 0;
        status = fit_place(&image->fit, info.width, info.height, placement, &request->err);
    }
    if (status == ST_OK)
        status = image_place(&decoded, placement, (enum resize_kind)at->input->spec->image.resize,
                             at->input->spec->image.pad, at->scratch, out, &request->err);
    preprocess_step(request, STEP_RESIZE, &since_ns);
    return status;
}

/* Columns right of the picture are blank where only the height is fitted. */
static uint32_t blank_from(const struct bound_image *image, const struct placement *placement) {
    const int64_t right = (int64_t)placement->left + placement->scaled_width;
    return image->fit.kind == FIT_HEIGHT && right < placement->width ? (uint32_t)right : placement->width;
}

static void write_row(const struct prepare *at, const struct image *picture,
                      const struct placement *placement, void *to) {
    uint64_t since_ns = mono_ns();
    pixels_write(&at->input->image.table, picture, blank_from(&at->input->image, placement), to);
    preprocess_step(at->request, STEP_PIXELS, &since_ns);
}

static void set_input(const struct prepare *at, const struct rows *rows) {
    const struct bound_image *image = &at->input->image;
    const struct pixel_format *format = &image->table.format;
    const uint32_t count = at->request->prepared_rows;
    const int64_t channels = format->color == COLOR_GREY ? 1 : 3;
    struct tensor *out = &at->inputs[image->to];
    *out = (struct tensor){.name = view_of(at->model->served.model->signature->inputs[image->to].name),
                           .dtype = format->dtype, .data = rows->data, .size = rows->row_bytes * count};
    if (image->has_batch_axis) out->shape[out->rank++] = count;
    if (format->layout == LAYOUT_NCHW) out->shape[out->rank++] = channels;
    out->shape[out->rank++] = rows->height;
    out->shape[out->rank++] = rows->width;
    if (format->layout == LAYOUT_NHWC) out->shape[out->rank++] = channels;
}

/* Canvases of one size: each row is written where the batch will read it. Their place is reserved
 * as late as can be, so that requests are pushed in the order in which they lie there. */
static enum status fixed_rows(const struct prepare *at, const char *element) {
    const uint32_t count = at->request->prepared_rows;
    struct rows rows = {.data = NULL};
    for (uint32_t r = 0; r < count; r++) {
        struct image picture;
        struct placement *placement = &at->out->placements[r];
        const enum status status = decode_row(at, preprocess_next(&element), placement, &picture);
        if (status != ST_OK) return fail_row(at, r, status);
        if (r == 0 && !reserve_fixed(at, count, &rows))
            return err_set(&at->request->err, ST_NO_MEMORY, "no memory for %u pictures", count);
        write_row(at, &picture, placement, rows.data + r * rows.row_bytes);
        rows.width = picture.width;
        rows.height = picture.height;
    }
    set_input(at, &rows);
    return ST_OK;
}

/* Rows of unequal width, of a recogniser: each is copied line by line into the widest, blank on
 * the right. */
static void widen(const struct pixel_format *format, const struct rows *from, const struct rows *to) {
    const size_t element = dtype_size(format->dtype);
    const size_t channels = format->color == COLOR_GREY ? 1 : 3;
    const bool is_planar = format->layout == LAYOUT_NCHW;
    const size_t lines = from->height * (is_planar ? channels : 1);
    const size_t unit = element * (is_planar ? 1 : channels);
    memset(to->data, 0, to->row_bytes);
    for (size_t i = 0; i < lines; i++)
        memcpy(to->data + i * to->width * unit, from->data + i * from->width * unit, from->width * unit);
}

static enum status join_rows(const struct prepare *at, const struct rows *each) {
    const struct pixel_table *table = &at->input->image.table;
    const uint32_t count = at->request->prepared_rows;
    struct rows all = each[0];
    for (uint32_t r = 1; r < count; r++) {
        if (each[r].height != all.height ||
            (each[r].width != all.width && at->input->image.fit.kind != FIT_HEIGHT))
            return err_set(&at->request->err, ST_INVALID,
                           "%s[%u] is %ux%u for the model, those before it %ux%u: send pictures of other "
                           "sizes in a request of their own", at->input->spec->name, r, each[r].width,
                           each[r].height, all.width, all.height);
        if (each[r].width > all.width) all.width = each[r].width;
    }
    if (!reserve_rows(at, pixels_size(table, all.width, all.height), count, &all))
        return err_set(&at->request->err, ST_NO_MEMORY, "no memory for %u pictures", count);
    for (uint32_t r = 0; r < count; r++) {
        struct rows to = all;
        to.data += r * all.row_bytes;
        widen(&table->format, &each[r], &to);
        at->out->placements[r].width = all.width;
    }
    set_input(at, &all);
    return ST_OK;
}

/* Canvases as the pictures want them. */
static enum status free_rows(const struct prepare *at, const char *element) {
    const struct pixel_table *table = &at->input->image.table;
    const uint32_t count = at->request->prepared_rows;
    struct rows *each = arena_array(&at->request->arena, count, sizeof *each);
    if (each == NULL) return err_set(&at->request->err, ST_NO_MEMORY, "no memory for %u pictures", count);
    for (uint32_t r = 0; r < count; r++) {
        struct image picture;
        struct placement *placement = &at->out->placements[r];
        const enum status status = decode_row(at, preprocess_next(&element), placement, &picture);
        if (status != ST_OK) return fail_row(at, r, status);
        each[r].width = picture.width;
        each[r].height = picture.height;
        if (!reserve_rows(at, pixels_size(table, picture.width, picture.height), 1, &each[r]))
            return err_set(&at->request->err, ST_NO_MEMORY, "no memory for a picture of %ux%u", picture.width,
                           picture.height);
        write_row(at, &picture, placement, each[r].data);
    }
    if (count > 1) return join_rows(at, each);
    set_input(at, &each[0]);
    return ST_OK;
}

enum status preprocess_images(const struct prepare *at) {
    const struct tensor *input = preprocess_input(at->request, at->input->spec->name);
    const uint32_t count = at->request->prepared_rows;
    at->out->placements = arena_array(&at->request->arena, count, sizeof *at->out->placements);
    if (at->out->placements == NULL)
        return err_set(&at->request->err, ST_NO_MEMORY, "no memory for %u pictures", count);
    return at->input->image.fixed_row_bytes != 0 ? fixed_rows(at, input->data) : free_rows(at, input->data);
}
