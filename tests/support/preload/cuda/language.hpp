/* language.hpp - what the text of the kernels needs of CUDA C++, for g++; see fake.h.
 * Invariant: a lane is a fiber of tests/support/device/lanes.h; what lanes of a warp exchange is on a board, and all of
 * them have to be there.  Fragments are those of the PTX ISA 8.0: "Matrix Fragments for mma.m16n8k16" (.bf16, .f32).
 *
 * It is read twice: macros alone before the text of the kernels, when that is preprocessed, and all else before the
 * result.  In between assembly becomes calls, `asm volatile("mma..." : "+f"(x) : "r"(y))` emulated(LINE, "mma...", x,
 * y), and kernels are listed (compiler.c). */
#ifdef EMULATED_MACROS
#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __constant__                     static const
#define __shared__                       emulated_shared
#define __forceinline__                  inline
#define __align__(bytes)                 __attribute__((aligned(bytes)))
#define __launch_bounds__(lanes, groups) emulated_bound(lanes)
#define threadIdx                        (emulated_index{emulated_host->spot->lane, 0})
#define blockIdx                         (emulated_index{emulated_host->spot->group, emulated_host->spot->row})
#define blockDim                         (emulated_index{emulated_host->spot->lanes, 1})
#define __syncthreads()                  emulated_host->wait(__LINE__)
#define __shfl_xor_sync(lanes, x, away)  emulated_of_lane(__LINE__, lanes, x, away)
#define asm emulated_asm __LINE__
#else
#include "module.h"

#ifdef __SANITIZE_ADDRESS__ /* which knows the end of each */
#define emulated_shared static
#else /* together, so that a launch finds no numbers there */
#define emulated_shared static __attribute__((section("emulated_shared")))
extern "C" uint8_t __start_emulated_shared[], __stop_emulated_shared[];
#endif

static const emulated_lanes *emulated_host;

struct emulated_index {
    unsigned x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

/* ---- functions of CUDA --------------------------------------------------------------------------------------------
 */

#define EMULATED_FLOAT(name)                                                                                           \
    static inline float name(float x)                                                                                  \
    {                                                                                                                  \
        return __builtin_##name##f(x);                                                                                 \
    }
EMULATED_FLOAT(erf)
EMULATED_FLOAT(exp)
EMULATED_FLOAT(fabs)
EMULATED_FLOAT(log)
EMULATED_FLOAT(log1p)
EMULATED_FLOAT(sqrt)
EMULATED_FLOAT(tanh)

static inline float fmax(float x, float y)
{
    return __builtin_fmaxf(x, y);
}

static inline float fma(float x, float y, float sum)
{
    return __builtin_fmaf(x, y, sum);
}

static inline float __fmaf_rn(float x, float y, float sum)
{
    return __builtin_fmaf(x, y, sum);
}

static inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float __uint_as_float(unsigned bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float __int_as_float(int bits)
{
    return __uint_as_float((unsigned)bits);
}

/* Nibble i of `which` says which of the eight bytes of y and x, y above, is byte i. */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which)
{
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned out = 0;
    for (unsigned i = 0; i < 4; i++)
        out |= (unsigned)(bytes >> 8 * (which >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}

/* An address of the group's memory. */
alignas(16) static const char emulated_anchor = 0;

static inline size_t __cvta_generic_to_shared(const void *x)
{
    return (size_t)((const char *)x - &emulated_anchor);
}

static inline char *emulated_shared_at(unsigned address)
{
    return (char *)&emulated_anchor + (int)address;
}

/* ---- warps --------------------------------------------------------------------------------------------------------
 */

enum { EMULATED_WARP = LANES_WARP, EMULATED_NUMBERS = 12 };

typedef float emulated_numbers_of_lane[EMULATED_NUMBERS];

/* Two sides alternate: a lane that writes one has waited until all others have read it. */
static emulated_numbers_of_lane emulated_board[2][LANES_MOST];
static unsigned char emulated_side[LANES_MOST];

/* Across all lanes of the warp. */
static inline const emulated_numbers_of_lane *emulated_exchange(int line, const float *numbers, unsigned count)
{
    unsigned lane = emulated_host->spot->lane, side = emulated_side[lane] ^= 1;
    __builtin_memcpy(emulated_board[side][lane], numbers, count * sizeof *numbers);
    emulated_host->wait_warp(line);
    return &emulated_board[side][lane / EMULATED_WARP * EMULATED_WARP];
}

static inline float emulated_of_lane(int line, unsigned lanes, float x, unsigned away)
{
    if (lanes != 0xffffffffU || away >= EMULATED_WARP)
        __builtin_trap();
    return emulated_exchange(line, &x, 1)[emulated_host->spot->lane % EMULATED_WARP ^ away][0];
}

/* mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: c += a b; ab: words of a, then of b. */
static inline void emulated_mma(int line, float *const *c, const unsigned *ab)
{
    emulated_numbers_of_lane own;
    for (unsigned i = 0; i < EMULATED_NUMBERS; i++)
        own[i] = __uint_as_float(ab[i / 2] >> 16 * (i % 2) << 16);
    const emulated_numbers_of_lane *warp = emulated_exchange(line, own, EMULATED_NUMBERS);
    unsigned lane = emulated_host->spot->lane % EMULATED_WARP, g = lane / 4, t = lane % 4;
    double sums[4] = {0, 0, 0, 0};
    for (unsigned u = 0; u < 4; u++) {
        const float *rows = warp[g * 4 + u], *columns[] = {warp[2 * t * 4 + u], warp[(2 * t + 1) * 4 + u]};
        for (unsigned k = 0; k < 4; k++) /* 2 u, 2 u + 1, 2 u + 8, 2 u + 9 */
            for (unsigned i = 0; i < 4; i++)
                sums[i] += (double)rows[k / 2 * 4 + i / 2 * 2 + k % 2] * (double)columns[i % 2][8 + k];
    }
    for (unsigned i = 0; i < 4; i++)
        *c[i] = (float)((double)*c[i] + sums[i]);
}

static inline bool emulated_starts(const char *text, const char *start)
{
    while (*start && *text == *start)
        text++, start++;
    return !*start;
}

static inline void emulated(int line, const char *text, float &c0, float &c1, float &c2, float &c3, unsigned a0,
                            unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1)
{
    float *c[] = {&c0, &c1, &c2, &c3};
    const unsigned ab[] = {a0, a1, a2, a3, b0, b1};
    if (!emulated_starts(text,
                         "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                         "{%8, %9}, {%0, %1, %2, %3};"))
        __builtin_trap();
    emulated_mma(line, c, ab);
}

static inline unsigned emulated_half(float x)
{
    unsigned bits = __float_as_uint(x);
    return __builtin_isnan(x) ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

/* ldmatrix of four squares: lane i says where row i % 8 of square i / 8 is, and gets numbers 2t and 2t + 1 of row g of
 * each, of the squares turned with .trans. */
static inline void emulated(int line, const char *text, unsigned &w0, unsigned &w1, unsigned &w2, unsigned &w3,
                            unsigned row)
{
    bool turned = emulated_starts(text, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];");
    if ((!turned && !emulated_starts(text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];")) ||
        row % 16)
        __builtin_trap();
    float own = __uint_as_float(row);
    const emulated_numbers_of_lane *warp = emulated_exchange(line, &own, 1);
    unsigned lane = emulated_host->spot->lane % EMULATED_WARP, g = lane / 4, t = lane % 4, *words[] = {&w0, &w1, &w2, &w3};
    for (unsigned square = 0; square < 4; square++) {
        unsigned both = 0;
        for (unsigned i = 0; i < 2; i++) {
            unsigned at = turned ? 2 * t + i : g, column = turned ? g : 2 * t + i;
            const unsigned short *from =
                (const unsigned short *)emulated_shared_at(__float_as_uint(warp[square * 8 + at][0]));
            both |= (unsigned)from[column] << 16 * i;
        }
        *words[square] = both;
    }
}

/* ex2.approx.ftz.f32, rcp.approx.ftz.f32: numbers too small for float32's 24 bits are 0. */
static inline float emulated_flushed(float x)
{
    return __builtin_fabsf(x) < 0x1p-126F ? __builtin_copysignf(0, x) : x;
}

static inline void emulated(int, const char *text, float &y, float x)
{
    if (emulated_starts(text, "ex2.approx.ftz.f32 %0, %1;"))
        y = emulated_flushed(__builtin_exp2f(emulated_flushed(x)));
    else if (emulated_starts(text, "rcp.approx.ftz.f32 %0, %1;"))
        y = emulated_flushed(1 / emulated_flushed(x));
    else
        __builtin_trap();
}

/* ---- copies that run ahead ----------------------------------------------------------------------------------------
 * Of lanes with even numbers they happen at once, of the others when they are waited for: both may be. */

enum { EMULATED_COPIES = 64, EMULATED_COPY = 16 };

struct emulated_copies { /* of a lane */
    struct {
        unsigned to, bytes, batch;
        const void *from;
    } all[EMULATED_COPIES];
    unsigned count, batch;
};

static emulated_copies emulated_ahead[LANES_MOST];

static inline void emulated_copy(unsigned to, const void *from, unsigned bytes)
{
    unsigned char all[EMULATED_COPY] = {0};
    __builtin_memcpy(all, from, bytes);
    __builtin_memcpy(emulated_shared_at(to), all, sizeof all);
}

static inline void emulated(int, const char *text, unsigned to, const void *from, unsigned bytes)
{
    emulated_copies &own = emulated_ahead[emulated_host->spot->lane];
    if (!emulated_starts(text, "cp.async.cg.shared.global [%0], [%1], 16, %2;") || to % EMULATED_COPY ||
        (uintptr_t)from % EMULATED_COPY || bytes > EMULATED_COPY || own.count == EMULATED_COPIES)
        __builtin_trap();
    if (emulated_host->spot->lane % 2 == 0)
        emulated_copy(to, from, bytes);
    else
        own.all[own.count++] = {to, bytes, own.batch, from};
}

static inline void emulated(int, const char *text)
{
    emulated_copies &own = emulated_ahead[emulated_host->spot->lane];
    if (emulated_starts(text, "cp.async.commit_group;")) {
        own.batch++;
        return;
    }
    static const char wait[] = "cp.async.wait_group ";
    if (!emulated_starts(text, wait))
        __builtin_trap();
    unsigned later = (unsigned)(text[sizeof wait - 1] - '0'), left = 0;
    for (unsigned i = 0; i < own.count; i++)
        if (own.all[i].batch + later < own.batch)
            emulated_copy(own.all[i].to, own.all[i].from, own.all[i].bytes);
        else
            own.all[left++] = own.all[i];
    own.count = left;
}

/* cvt.rn.bf16x2.f32: to nearest, ties to even; the first operand is above. */
static inline void emulated(int, const char *text, unsigned &both, float above, float below)
{
    if (!emulated_starts(text, "cvt.rn.bf16x2.f32 %0, %1, %2;"))
        __builtin_trap();
    both = emulated_half(above) << 16 | emulated_half(below);
}

/* ---- kernels ------------------------------------------------------------------------------------------------------
 */

template <unsigned... I> struct emulated_numbers {
};
template <unsigned N, unsigned... I> struct emulated_below : emulated_below<N - 1, N - 1, I...> {
};
template <unsigned... I> struct emulated_below<0, I...> {
    typedef emulated_numbers<I...> numbers;
};
template <class T> struct emulated_is_pointer {
    static const bool value = false;
};
template <class T> struct emulated_is_pointer<T *> {
    static const bool value = true;
};

/* For a pointer, the size of what it points to. */
template <class T> struct emulated_size {
    static const uint8_t value = sizeof(T);
};
template <class T> struct emulated_size<T *> {
    static const uint8_t value = sizeof(T);
};

template <class... A, unsigned... I>
static void emulated_apply(void (*kernel)(A...), void *const *arguments, emulated_numbers<I...>)
{
    kernel(*(A *)arguments[I]...);
    if (emulated_ahead[emulated_host->spot->lane].count)
        __builtin_trap();
}

template <auto kernel> struct emulated_entry;
template <class... A, void (*kernel)(A...)> struct emulated_entry<kernel> {
    static void call(void *const *arguments)
    {
        emulated_apply(kernel, arguments, typename emulated_below<sizeof...(A)>::numbers());
    }
    static constexpr emulated_kernel row(const char *name, uint32_t lanes)
    {
        return {name, lanes, sizeof...(A), {emulated_size<A>::value...}, {emulated_is_pointer<A>::value...}, call};
    }
};

/* After the text: EMULATED_KERNELS_BEGIN EMULATED_KERNEL(mr_norm, 64) ... EMULATED_KERNELS_END. */
#define EMULATED_KERNELS_BEGIN       static constexpr emulated_kernel emulated_kernels[] = {
#define EMULATED_KERNEL(name, lanes) emulated_entry<name>::row(#name, lanes),
#ifdef __SANITIZE_ADDRESS__
#define EMULATED_SHARED nullptr, nullptr
#else
#define EMULATED_SHARED __start_emulated_shared, __stop_emulated_shared
#endif
#define EMULATED_KERNELS_END                                                                                           \
    }                                                                                                                  \
    ;                                                                                                                  \
    extern "C" emulated_module emulated_open(const emulated_lanes *host)                                               \
    {                                                                                                                  \
        emulated_host = host;                                                                                          \
        return {emulated_kernels, sizeof emulated_kernels / sizeof *emulated_kernels, EMULATED_SHARED};                \
    }
#endif
