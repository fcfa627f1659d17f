/* The driver: picks kernels, and folds many or unlike sources block by block through the first-level cache. */
#include <string.h>

#include "kernels.h"

enum { BLOCK_BYTES = 8192 }; /* of accumulators: two such blocks and the sources fit a first-level cache of 32 KiB */

static const uint8_t dtype_size[GCCL_NTYPES] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
static const uint8_t acc_size[GCCL_NTYPES] = { 1, 1, 4, 4, 8, 8, 4, 4, 8, 4, 4, 4 };
/* The type of a partial value, as an element type. */
static const uint8_t acc_dtype[GCCL_NTYPES] = { GCCL_I8, GCCL_U8, GCCL_I32, GCCL_U32, GCCL_I64, GCCL_U64,
                                                GCCL_F32, GCCL_F32, GCCL_F64, GCCL_F32, GCCL_F32, GCCL_F32 };

size_t gccl_dtype_size(int dtype) { return (unsigned)dtype < GCCL_NTYPES ? dtype_size[dtype] : 0; }
size_t gccl_acc_size(int dtype) { return (unsigned)dtype < GCCL_NTYPES ? acc_size[dtype] : 0; }

void gccl_copy(const gccl_reduce_isa *isa, void *dst, const void *src, size_t bytes, int stream)
{
    if (!bytes || dst == src)
        return;
    if (!stream || bytes < 4096) { /* a fence costs more than a small copy */
        memcpy(dst, src, bytes);
        return;
    }
    isa->stream(dst, src, bytes);
    isa->fence();
}

/* One block on its way: where its folded value is, and buffers. */
typedef struct {
    const gccl_reduce_isa *isa;
    int dtype, acc, op;
    uint64_t div;
    size_t at, n; /* first element, elements */
    _Alignas(64) unsigned char value[BLOCK_BYTES], other[BLOCK_BYTES];
} block;

static size_t elem_bytes(const block *b, int partial) { return partial ? acc_size[b->dtype] : dtype_size[b->dtype]; }

/* The source's block as accumulators; converts into `room` where the source is not that
 * already. */
static const void *load(block *b, const gccl_reduce_src *s, void *room)
{
    int dtype = s->partial ? b->acc : b->dtype;
    const void *p = (const char *)s->ptr + b->at * elem_bytes(b, s->partial);
    if (s->scaled)
        b->isa->scale[dtype](room, p, b->n, s->scale);
    else if (dtype != b->acc)
        b->isa->widen[dtype](room, p, b->n);
    else
        return p;
    return room;
}

static const void *fold(block *b, const gccl_reduce_src *src, int nsrc)
{
    const void *v = load(b, src, b->value);
    for (int s = 1; s < nsrc; s++) {
        if (!src[s].partial && !src[s].scaled) {
            const char *p = (const char *)src[s].ptr + b->at * dtype_size[b->dtype];
            b->isa->fold[b->dtype][b->op](b->value, v, p, b->n);
        } else {
            b->isa->fold[b->acc][b->op](b->value, v, load(b, src + s, b->other), b->n);
        }
        v = b->value;
    }
    return v;
}

/* Stores v to the destinations that are partial, or to those that are not. The form is computed once, into the
 * first destination or, if that one is streamed, into a buffer, and copied from there. */
static void store_form(block *b, const gccl_reduce_dst *dst, int ndst, const void *v, int partial)
{
    size_t size = elem_bytes(b, partial);
    const void *form = NULL;
    for (int k = 0; k < ndst; k++) {
        if ((dst[k].partial != 0) != partial)
            continue;
        void *d = (char *)dst[k].ptr + b->at * size;
        if (!form) {
            void *to = dst[k].stream ? b->other : d;
            if (!partial && b->div && b->isa->divide[b->dtype])
                b->isa->divide[b->dtype](to, v, b->n, b->div);
            else
                b->isa->narrow[partial ? b->acc : b->dtype](to, v, b->n);
            form = to;
        }
        if (dst[k].stream)
            b->isa->stream(d, form, b->n * size);
        else if (d != form)
            memcpy(d, form, b->n * size);
    }
}

static void by_blocks(const gccl_reduce_isa *isa, int dtype, int op, const gccl_reduce_dst *dst, int ndst,
                      const gccl_reduce_src *src, int nsrc, size_t n, uint64_t div)
{
    block b;
    b.isa = isa, b.dtype = dtype, b.acc = acc_dtype[dtype], b.op = op, b.div = div;
    size_t most = BLOCK_BYTES / acc_size[dtype], first = most;
    int stream = 0;
    for (int k = ndst - 1; k >= 0; k--)
        if (dst[k].stream) { /* let blocks end where its cache lines do */
            first = most - ((uintptr_t)dst[k].ptr % 64) / elem_bytes(&b, dst[k].partial);
            stream = 1;
        }
    for (b.at = 0; b.at < n; b.at += b.n) {
        size_t want = b.at ? most : first;
        b.n = n - b.at < want ? n - b.at : want;
        const void *v = fold(&b, src, nsrc);
        /* Partial ones first: v may be a source, and a final destination that is the same memory changes it. */
        store_form(&b, dst, ndst, v, 1);
        store_form(&b, dst, ndst, v, 0);
    }
    if (stream)
        isa->fence();
}

/* A single unscaled source stored in its own form is copied. Returns 0 if a destination needs arithmetic. */
static int all_copies(const gccl_reduce_dst *dst, int ndst, const gccl_reduce_src *src, int same)
{
    for (int k = 0; k < ndst; k++)
        if (!same && dst[k].partial != src->partial)
            return 0;
    return !src->scaled;
}

int gccl_reduce(const gccl_reduce_isa *isa, int dtype, int op, gccl_reduce_dst *dst, int ndst,
                const gccl_reduce_src *src, int nsrc, size_t n, uint64_t div)
{
    if ((unsigned)dtype >= GCCL_NTYPES || (unsigned)op >= GCCL_NOPS || nsrc < 1)
        return -1;
    if (nsrc == 2 && ndst == 1 &&
        !(src[0].partial | src[0].scaled | src[1].partial | src[1].scaled | dst->partial | dst->stream) && !div) {
        isa->pair[dtype][op](dst->ptr, src[0].ptr, src[1].ptr, n);
        return 0;
    }
    if (nsrc == 2 && ndst == 2 && !div &&
        !(src[0].partial | src[0].scaled | src[1].partial | src[1].scaled | dst[0].partial | dst[0].stream |
          dst[1].partial | dst[1].stream)) {
        isa->pair2[dtype][op](dst[0].ptr, dst[1].ptr, src[0].ptr, src[1].ptr, n);
        return 0;
    }
    if (!n || ndst < 1)
        return 0;
    int same = acc_dtype[dtype] == dtype;
    if (nsrc == 1 && !(div && isa->divide[dtype]) && all_copies(dst, ndst, src, same)) {
        for (int k = 0; k < ndst; k++)
            gccl_copy(isa, dst[k].ptr, src->ptr, n * (src->partial ? acc_size : dtype_size)[dtype], dst[k].stream);
        return 0;
    }
    by_blocks(isa, dtype, op, dst, ndst, src, nsrc, n, div);
    return 0;
}
