/* SPDX-License-Identifier: Apache-2.0 */
/* Random keys and lengths. */
#include "load/draw.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_BYTES (64U << 20)
#define EXPONENTIAL_CUT 10
#define HOT_KEYS_MAX 16

/* 0 ≤ x < 1 */
static double random_unit(rq_random *r)
{
    return (double)(rq_random_next(r) >> 11) * 0x1p-53;
}

/* The finaliser of splitmix64, its multipliers' inverses modulo 2^64 for the way back. */
uint64_t rq__mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t rq__unmix64(uint64_t x)
{
    x ^= (x >> 31) ^ (x >> 62);
    x *= UINT64_C(0x319642b2d24d8ec3);
    x ^= (x >> 27) ^ (x >> 54);
    x *= UINT64_C(0x96de1b173f119089);
    return x ^ (x >> 30) ^ (x >> 60);
}

/* --- zipf ------------------------------------------------------------------------------------- */

/* The integral of x^-theta from 1, and its inverse. expm1 and log1p keep it exact around theta = 1.
 */
static double integral(double theta, double x)
{
    double e = (1 - theta) * log(x);
    return fabs(e) < 1e-8 ? log(x) * (1 + e / 2) : expm1(e) / (1 - theta);
}

static double integral_inverse(double theta, double y)
{
    double t = y * (1 - theta);
    if (t < -1) t = -1;
    return exp(fabs(t) < 1e-8 ? y * (1 - t / 2) : log1p(t) / (1 - theta));
}

static double density(double theta, double x)
{
    return exp(-theta * log(x));
}

void rq_zipf_init(rq_zipf *z, uint64_t n, double theta)
{
    z->theta = theta;
    z->low = integral(theta, 1.5) - 1;
    z->squeeze = 2 - integral_inverse(theta, integral(theta, 2.5) - density(theta, 2));
    rq__zipf_grow(z, n);
}

void rq__zipf_grow(rq_zipf *z, uint64_t n)
{
    z->n = n;
    z->high = integral(z->theta, (double)n + 0.5);
}

uint64_t rq_zipf_draw(const rq_zipf *z, rq_random *r)
{
    for (;;) {
        double u = z->high + random_unit(r) * (z->low - z->high);
        double x = integral_inverse(z->theta, u);
        double k = floor(x + 0.5);
        if (k < 1) k = 1;
        if (k > (double)z->n) k = (double)z->n;
        if (k - x <= z->squeeze || u >= integral(z->theta, k + 0.5) - density(z->theta, k))
            return (uint64_t)k - 1;
    }
}

/* --- keys ------------------------------------------------------------------------------------- */

void rq__keys_init(rq_keys *k, rq_key_draw kind, uint64_t n, double theta)
{
    *k = (rq_keys){.kind = kind};
    rq_zipf_init(&k->zipf, n > 0 ? n : 1, theta);
}

static uint64_t draw_hot(uint64_t n, rq_random *r)
{
    uint64_t hot = n / 100 + 1;
    if (hot > HOT_KEYS_MAX) hot = HOT_KEYS_MAX;
    return rq_random_below(r, 100) == 0 ? rq_random_below(r, n) : rq_random_below(r, hot);
}

uint64_t rq__keys_draw(rq_keys *k, uint64_t n, rq_random *r)
{
    switch (k->kind) {
    case RQ_KEYS_UNIFORM:
        return rq_random_below(r, n);
    case RQ_KEYS_ZIPFIAN:
        return rq__mix64(rq_zipf_draw(&k->zipf, r) + 1) % k->zipf.n;
    case RQ_KEYS_LATEST:
        if (k->zipf.n != n) rq__zipf_grow(&k->zipf, n);
        return n - 1 - rq_zipf_draw(&k->zipf, r);
    case RQ_KEYS_SEQUENTIAL:
        return k->next++ % n;
    case RQ_KEYS_HOT:
        return draw_hot(n, r);
    }
    return 0;
}

/* --- lengths ---------------------------------------------------------------------------------- */

bool rq_sizes_parse(const char *text, rq_sizes *ret)
{
    char tail;
    unsigned low;
    unsigned high;
    if (sscanf(text, "exp:%u%c", &low, &tail) == 1)
        *ret = (rq_sizes){RQ_SIZES_EXPONENTIAL, low, low * EXPONENTIAL_CUT};
    else if (sscanf(text, "%u-%u%c", &low, &high, &tail) == 2)
        *ret = (rq_sizes){RQ_SIZES_UNIFORM, low, high};
    else if (sscanf(text, "%u%c", &low, &tail) == 1)
        *ret = (rq_sizes){RQ_SIZES_FIXED, low, low};
    else
        return false;
    return ret->low <= ret->high && ret->high <= SIZE_MAX_BYTES;
}

uint32_t rq__sizes_of(const rq_sizes *s, uint64_t hash)
{
    double unit = (double)(hash >> 11) * 0x1p-53;
    double v;
    switch (s->kind) {
    case RQ_SIZES_UNIFORM:
        return s->low + (uint32_t)(unit * ((double)(s->high - s->low) + 1));
    case RQ_SIZES_EXPONENTIAL:
        v = -log1p(-unit) * (double)s->low;
        return v < (double)s->high ? (uint32_t)v : s->high;
    case RQ_SIZES_FIXED:
        break;
    }
    return s->low;
}

uint32_t rq__sizes_max(const rq_sizes *s)
{
    return s->high;
}

double rq__sizes_mean(const rq_sizes *s)
{
    return s->kind == RQ_SIZES_UNIFORM ? ((double)s->low + (double)s->high) / 2 : (double)s->low;
}
