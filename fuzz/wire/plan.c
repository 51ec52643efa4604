/* SPDX-License-Identifier: Apache-2.0 */
/* The order of requests; see plan.h. */
#include "plan.h"

#include "base/macros.h"
#include "proto/access_control.pb-c.h"
#include "proto/admin.pb-c.h"
#include "proto/client.pb-c.h"
#include "proto/logs.pb-c.h"
#include "proto/master.pb-c.h"
#include "proto/quota.pb-c.h"
#include "proto/region_server_status.pb-c.h"
#include "proto/registry.pb-c.h"
#include "proto/replication.pb-c.h"
#include "proto/rsgroup.pb-c.h"
#include "rpc/cell_codec.h"

#include <string.h>

#define LIFE 300 /* requests, over all connections, between two lives of a slot */

/* ---- methods */

static const plan_method methods[] = {
#define X(service, method, request, response)                                                      \
    {#service, #method, &pb__##request##__descriptor, &pb__##response##__descriptor, 0},
#include "rpc/methods.def"
#undef X
};

/* Other methods have weight 2. The server refuses calls that would stop it (rorqual.stop.by.call). */
static const struct {
    const char *name;
    unsigned weight;
} weights[] = {
    {"Get", 24},
    {"Mutate", 28},
    {"Scan", 44},
    {"Multi", 32},
    {"ExecService", 8},
    {"FlushRegion", 10},
    {"CompactRegion", 8},
    {"CreateTable", 6},
    {"ModifyTable", 6},
    {"SplitRegion", 6},
    {"MergeTableRegions", 5},
    {"EnableTable", 8},
    {"Snapshot", 5},
    {"DeleteTable", 1},
    {"DisableTable", 1},
    {"DeleteNamespace", 1},
    {"CompactionSwitch", 1},
    {"SetSplitOrMergeEnabled", 1},
    {"getProcedureResult", 6},
    {"Shutdown", 1},
    {"StopMaster", 1},
    {"StopServer", 1},
};

const plan_method *plan_method_find(const char *service, const char *name)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].service, service) == 0 && strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static unsigned weight_of(const char *method)
{
    for (size_t i = 0; i < RQ_ARRAY_LEN(weights); i++)
        if (strcmp(weights[i].name, method) == 0) return weights[i].weight;
    return 2;
}

void plan_init(plan *p, uint64_t seed)
{
    _Static_assert(RQ_ARRAY_LEN(methods) <= PLAN_METHODS_MAX, "a weight for each");
    *p = (plan){.seed = seed};
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++)
        p->weights[i] = weight_of(methods[i].name);
}

static const plan_method *draw_method(const plan *p, rq_random *r, const char *service)
{
    uint64_t sum = 0;
    bool of_service[RQ_ARRAY_LEN(methods)];
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        of_service[i] = strcmp(methods[i].service, service) == 0;
        if (of_service[i]) sum += p->weights[i];
    }
    uint64_t at = rq_random_below(r, sum);
    for (size_t i = 0; i < RQ_ARRAY_LEN(methods); i++) {
        if (!of_service[i]) continue;
        if (at < p->weights[i]) return &methods[i];
        at -= p->weights[i];
    }
    RQ_ASSERT(false);
}

/* ---- connections */

/* The services of each port, and two that the port lacks. */
static const struct {
    plan_port port;
    const char *service;
    unsigned slots;
} slots[] = {
    {PORT_REGION_SERVER, "ClientService", 14},
    {PORT_MASTER, "MasterService", 4},
    {PORT_REGION_SERVER, "AdminService", 3},
    {PORT_MASTER, "AdminService", 1},
    {PORT_MASTER, "ClientMetaService", 1},
    {PORT_MASTER, "LockService", 1},
    {PORT_ZOOKEEPER, NULL, 2},
};

static const char *const codecs[] = {
    [RQ_CODEC_NONE] = NULL,
    [RQ_CODEC_KEYVALUE] = "org.apache.hadoop.hbase.codec.KeyValueCodec",
    [RQ_CODEC_KEYVALUE_TAGS] = "org.apache.hadoop.hbase.codec.KeyValueCodecWithTags",
    [RQ_CODEC_CELL] = "org.apache.hadoop.hbase.codec.CellCodec",
    [RQ_CODEC_CELL_TAGS] = "org.apache.hadoop.hbase.codec.CellCodecWithTags",
};

static const char *const compressors[] = {
    "org.apache.hadoop.io.compress.GzipCodec",    "org.apache.hadoop.io.compress.SnappyCodec",
    "org.apache.hadoop.io.compress.Lz4Codec",     "org.apache.hadoop.io.compress.ZStandardCodec",
    "org.apache.hadoop.io.compress.DefaultCodec", "org.apache.hadoop.io.compress.BZip2Codec",
};

static plan_temper draw_temper(rq_random *r)
{
    static const struct {
        unsigned percent;
        plan_temper temper;
    } tempers[] = {{72, READS},      {8, READS_LATE}, {5, READS_SLOWLY},
                   {6, NEVER_READS}, {5, LEAVES},     {4, LEAVES_HALF}};
    uint64_t at = rq_random_below(r, 100);
    for (size_t i = 0; i < RQ_ARRAY_LEN(tempers); i++) {
        if (at < tempers[i].percent) return tempers[i].temper;
        at -= tempers[i].percent;
    }
    return READS;
}

static void draw_header(rq_random *r, plan_life *life)
{
    static const plan_port ports[] = {PORT_MASTER, PORT_REGION_SERVER};
    life->codec = (unsigned)rq_random_below(r, RQ_ARRAY_LEN(codecs));
    if (chance(r, 40)) life->codec = RQ_CODEC_KEYVALUE;
    life->codec_class = codecs[life->codec];
    if (life->codec != RQ_CODEC_NONE && chance(r, 30))
        life->compressor_class = compressors[rq_random_below(r, RQ_ARRAY_LEN(compressors))];
    life->user_len = once_in(r, 10) ? 250000 : 4;
    life->old_client = chance(r, 20);
    life->odd_header = once_in(r, 40);
    if (once_in(r, 60)) life->crowd = once_in(r, 4) ? CROWD_MAX : 100;
    if (strcmp(life->service, "LockService") != 0) return;
    life->service = methods[rq_random_below(r, RQ_ARRAY_LEN(methods))].service;
    life->port = ports[rq_random_below(r, 2)];
}

void plan_life_of(const plan *p, unsigned slot, uint64_t number, plan_life *ret)
{
    rq_random r;
    size_t i = 0;
    draw_seed(&r, p->seed ^ 0x11fe, number * PLAN_SLOTS + slot);
    for (unsigned at = slot; at >= slots[i].slots; i++)
        at -= slots[i].slots;
    *ret = (plan_life){.port = slots[i].port, .service = slots[i].service};
    ret->temper = draw_temper(&r);
    if (ret->service != NULL) draw_header(&r, ret);
}

/* ---- requests */

void plan_make(const plan *p, uint64_t number, plan_request *ret)
{
    rq_random r;
    plan_life life;
    draw_seed(&r, p->seed ^ 0x9e9, number);
    *ret = (plan_request){.number = number, .repeats = 1};
    ret->slot = (unsigned)rq_random_below(&r, PLAN_SLOTS);
    ret->life = (number + ret->slot * 97) / LIFE;
    plan_life_of(p, ret->slot, ret->life, &life);
    if (life.service == NULL) return;
    ret->method = draw_method(p, &r, life.service);
    if (strcmp(ret->method->name, "Scan") == 0)
        ret->scan = chance(&r, 50) ? SCAN_OPENS : SCAN_CONTINUES;
    bool reads = strcmp(ret->method->name, "Scan") == 0 || strcmp(ret->method->name, "Get") == 0;
    if (once_in(&r, reads ? 80 : 250))
        ret->repeats = 2 + (unsigned)rq_random_below(&r, once_in(&r, 3) ? 1000 : 50);
    if (ret->scan == SCAN_OPENS && once_in(&r, 400)) ret->repeats = 5000;
    ret->same_id = ret->repeats > 1 && once_in(&r, 4);
    ret->huge = ret->repeats == 1 && once_in(&r, 300);
    ret->bomb = ret->repeats == 1 && once_in(&r, 100);
}

static bool opens(const plan *p, uint64_t number)
{
    plan_request request;
    plan_make(p, number, &request);
    return request.method != NULL && strcmp(request.method->name, "Scan") == 0 &&
           request.scan == SCAN_OPENS;
}

uint64_t plan_opener(plan *p, uint64_t number, unsigned n)
{
    for (; p->seen < number; p->seen++)
        if (opens(p, p->seen)) p->openers[p->opener_count++ % PLAN_OPENERS] = p->seen;
    if (p->opener_count == 0) return number;
    if (n >= p->opener_count) n = (unsigned)p->opener_count - 1;
    return p->openers[(p->opener_count - 1 - n) % PLAN_OPENERS];
}
