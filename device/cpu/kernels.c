/* kernels.c - the inner loops of the CPU device, in plain C that compilers vectorise.
 * Invariant: compiled once per instruction set (device/CMakeLists.txt), MR_CPU_TABLE being the table's name; every loop
 * also works in place, as element i depends only on element i; `omp simd` tells the compiler so.
 *
 * exp, erf, tanh are glibc's vector functions (libmvec, within 4 ulp) if the compiler knows them. */
#include "device/cpu/kernels.h"

#include <float.h>
#include <math.h>

#include "base/bf16.h"

#define SIMD          _Pragma("omp simd")
#define SIMD_SUM(...) SIMD_OF(omp simd reduction(+ : __VA_ARGS__))
#define SIMD_MAX(x)   SIMD_OF(omp simd reduction(max : x))
#define SIMD_OF(x)    _Pragma(#x)

/* Below this, exp() leaves its fast vector path; e^-87 is negligible next to the largest term, 1. */
static const float least_exponent = -87;

static inline float kept(const mr_cpu_mask *mask, uint32_t e)
{
    uint32_t x = e ^ mask->key[0];
    x ^= x >> 17;
    x *= UINT32_C(0xed5ad4bb);
    x ^= x >> 11;
    x += mask->key[1];
    x *= UINT32_C(0xac4c1b51);
    x ^= x >> 15;
    x *= UINT32_C(0x31848bab);
    x ^= x >> 14;
    return (int32_t)(x >> 8) < (int32_t)mask->threshold ? 0.0F : mask->scale;
}

static void mask(size_t n, const mr_cpu_mask *m, uint32_t e, const float *x, float *y)
{
    const mr_cpu_mask k = *m;
    SIMD for (size_t i = 0; i < n; i++) y[i] = x[i] * kept(&k, e + (uint32_t)i);
}

static void add(size_t n, const float *a, const float *b, float *sum)
{
    SIMD for (size_t i = 0; i < n; i++) sum[i] = a[i] + b[i];
}

static void widen(size_t n, const uint16_t *x, float *y)
{
    SIMD for (size_t i = 0; i < n; i++) y[i] = mr_bf16_float(x[i]);
}

static void narrow(size_t n, const float *x, uint16_t *y)
{
    SIMD for (size_t i = 0; i < n; i++) y[i] = mr_bf16_of(x[i]);
}

/* ---- layer norm ----------------------------------------------------------------------------------------------- */

/* The total, which may be stored over x or the residual; returns where it is. */
static const float *add_up(size_t n, const mr_cpu_norm_row *r, const mr_cpu_mask *m, uint32_t e)
{
    const mr_cpu_mask k = *m;
    const float *x = r->x, *residual = r->residual;
    float *total = r->total;
    if (!total)
        return x;
    if (k.threshold && residual) {
        SIMD for (size_t i = 0; i < n; i++) total[i] = x[i] * kept(&k, e + (uint32_t)i) + residual[i];
    } else if (k.threshold) {
        mask(n, m, e, x, total);
    } else if (residual) {
        add(n, x, residual, total);
    } else if (total != x) {
        SIMD for (size_t i = 0; i < n; i++) total[i] = x[i];
    }
    return total;
}

static void norm(size_t n, mr_cpu_norm_row *r, const mr_cpu_mask *m, uint32_t e)
{
    const float *x = add_up(n, r, m, e);
    if (!r->y)
        return;
    float sum = 0, squares = 0;
    SIMD_SUM(sum)
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    const float mean = sum / (float)n;
    SIMD_SUM(squares)
    for (size_t i = 0; i < n; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    const float rstd = (float)(1 / sqrt((double)squares / (double)n + (double)r->eps));
    const float *gain = r->gain, *bias = r->bias;
    float *y = r->y;
    SIMD for (size_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * gain[i] + bias[i];
    r->mean = mean;
    r->rstd = rstd;
}

/* With g = d_y gain and h = (total - mean) rstd:  d_total = rstd (g - mean(g) - h mean(g h)). */
static void norm_back(size_t n, const mr_cpu_norm_row *r, const float *d_y, const float *d_residual, float *d_total,
                      float *d_gain, float *d_bias)
{
    const float mean = r->mean, rstd = r->rstd, *x = r->x, *gain = r->gain;
    float sum = 0, product = 0;
    SIMD_SUM(sum, product)
    for (size_t i = 0; i < n; i++) {
        float g = d_y[i] * gain[i];
        sum += g;
        product += g * ((x[i] - mean) * rstd);
    }
    sum /= (float)n;
    product /= (float)n;
    SIMD for (size_t i = 0; i < n; i++)
    {
        float h = (x[i] - mean) * rstd, d = d_y[i];
        d_gain[i] += d * h;
        d_bias[i] += d;
        float t = rstd * (d * gain[i] - sum - h * product);
        d_total[i] = d_residual ? t + d_residual[i] : t;
    }
}

/* ---- activations ---------------------------------------------------------------------------------------------- */

static const float root_half = 0.70710678118654752440F; /* 1 / sqrt(2) */
static const float density = 0.39894228040143267794F;   /* 1 / sqrt(2 pi) */

static inline float sigmoid(float x)
{
    return 1 / (1 + expf(x > least_exponent ? -x : -least_exponent));
}

static void activate(size_t n, mr_activation kind, const float *x, float *y)
{
    if (kind == MR_GELU) {
        SIMD for (size_t i = 0; i < n; i++) y[i] = x[i] * (0.5F + 0.5F * erff(x[i] * root_half));
    } else if (kind == MR_QUICK_GELU) {
        SIMD for (size_t i = 0; i < n; i++) y[i] = x[i] * sigmoid(1.702F * x[i]);
    } else {
        SIMD for (size_t i = 0; i < n; i++) y[i] = tanhf(x[i]);
    }
}

static void activate_back(size_t n, mr_activation kind, const float *x, const float *d_y, float *d_x)
{
    if (kind == MR_GELU) {
        SIMD for (size_t i = 0; i < n; i++)
        {
            float power = -0.5F * x[i] * x[i];
            float slope = x[i] * density * expf(power > least_exponent ? power : least_exponent);
            d_x[i] = d_y[i] * (0.5F + 0.5F * erff(x[i] * root_half) + slope);
        }
    } else if (kind == MR_QUICK_GELU) {
        SIMD for (size_t i = 0; i < n; i++)
        {
            float s = sigmoid(1.702F * x[i]);
            d_x[i] = d_y[i] * (s + 1.702F * x[i] * s * (1 - s));
        }
    } else {
        SIMD for (size_t i = 0; i < n; i++)
        {
            float t = tanhf(x[i]);
            d_x[i] = d_y[i] * (1 - t * t);
        }
    }
}

/* ---- softmax -------------------------------------------------------------------------------------------------- */

static float softmax(size_t n, float *s, const uint8_t *seen)
{
    float max = -FLT_MAX, sum = 0;
    if (seen) {
        SIMD for (size_t i = 0; i < n; i++) s[i] = seen[i] ? s[i] : -FLT_MAX;
    }
    SIMD_MAX(max)
    for (size_t i = 0; i < n; i++)
        max = s[i] > max ? s[i] : max;
    SIMD_SUM(sum)
    for (size_t i = 0; i < n; i++) {
        float power = s[i] - max;
        s[i] = expf(power > least_exponent ? power : least_exponent);
        sum += s[i];
    }
    const float part = 1 / sum;
    SIMD for (size_t i = 0; i < n; i++) s[i] *= part;
    if (seen) {
        SIMD for (size_t i = 0; i < n; i++) s[i] = seen[i] ? s[i] : 0;
    }
    return max + logf(sum);
}

static void softmax_again(size_t n, float *s, const uint8_t *seen, float log_sum)
{
    SIMD for (size_t i = 0; i < n; i++)
    {
        float power = s[i] - log_sum;
        power = power < 0 ? power : 0;
        s[i] = expf(power > least_exponent ? power : least_exponent);
    }
    if (seen) {
        SIMD for (size_t i = 0; i < n; i++) s[i] = seen[i] ? s[i] : 0;
    }
}

static void softmax_back(size_t n, const float *p, float *d_p)
{
    float sum = 0;
    SIMD_SUM(sum)
    for (size_t i = 0; i < n; i++)
        sum += p[i] * d_p[i];
    SIMD for (size_t i = 0; i < n; i++) d_p[i] = p[i] * (d_p[i] - sum);
}

/* ---- sums and updates ----------------------------------------------------------------------------------------- */

static double sum_squares(size_t n, const float *x)
{
    double sum = 0;
    SIMD_SUM(sum)
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

static void sgd(size_t n, float *w, const float *g, float *m, float g_scale, float lr, float decay, float momentum)
{
    SIMD for (size_t i = 0; i < n; i++)
    {
        float moved = momentum * m[i] + (g[i] * g_scale + decay * w[i]);
        m[i] = moved;
        w[i] -= lr * moved;
    }
}

static void adamw(size_t n, float *w, const float *g, float *m, float *v, const mr_cpu_adam *adam)
{
    const mr_cpu_adam k = *adam;
    SIMD for (size_t i = 0; i < n; i++)
    {
        float d = g[i] * k.g_scale;
        float first = k.beta1 * m[i] + k.rest1 * d, second = k.beta2 * v[i] + k.rest2 * d * d;
        m[i] = first;
        v[i] = second;
        w[i] = w[i] * k.keep - k.step * first / (sqrtf(second) * k.root + k.eps);
    }
}

const mr_cpu_kernels MR_CPU_TABLE = {
    .name = MR_CPU_NAME,
    .mask = mask,
    .norm = norm,
    .norm_back = norm_back,
    .activate = activate,
    .activate_back = activate_back,
    .softmax = softmax,
    .softmax_again = softmax_again,
    .softmax_back = softmax_back,
    .widen = widen,
    .narrow = narrow,
    .add = add,
    .sum_squares = sum_squares,
    .sgd = sgd,
    .adamw = adamw,
};
