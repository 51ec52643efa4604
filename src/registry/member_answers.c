/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of ClientMetaService in each process of a cluster: the content of ZooKeeper as the member has last read
 * it. Unknown parts are left out; the client then asks another server. */
#include "registry/zk_member.h"

/* *ret NULL: no name is known, or `text` is no ServerName. */
static rq_err name_of(const char *text, rq_arena *arena, const rq_server_name **ret)
{
    *ret = NULL;
    if (text == NULL) return RQ_OK;
    rq_server_name *name = rq_arena_alloc(arena, sizeof *name);
    if (name == NULL) return RQ_E_NO_MEMORY;
    if (rq_member_name_of(text, arena, name)) *ret = name;
    return RQ_OK;
}

static rq_err names_of(const char *const *texts, size_t count, rq_arena *arena,
                       const rq_server_name **ret, size_t *ret_count)
{
    *ret_count = 0;
    rq_server_name *list = rq_arena_calloc(arena, count + 1, sizeof *list);
    if (list == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (rq_member_name_of(texts[i], arena, &list[*ret_count])) (*ret_count)++;
    *ret = list;
    return RQ_OK;
}

/* hbase:meta is in the active master's process. */
static rq_err look_at_member(const rq_meta_answers *a, rq_arena *arena, rq_meta_view *ret)
{
    const rq_member_answers *own = RQ_CONTAINER_OF(a, const rq_member_answers, answers);
    rq_member *m = atomic_load(&own->member);
    rq_member_view v = {.active = ""};
    if (m != NULL) RQ_TRY(rq_member_look(m, arena, &v));
    ret->cluster_id = own->cluster_id;
    ret->meta_copies = 1;
    RQ_TRY(name_of(v.active, arena, &ret->active));
    RQ_TRY(name_of(rq_member_active_server(&v), arena, &ret->meta_server));
    RQ_TRY(names_of(v.backups, v.backup_count, arena, &ret->backups, &ret->backup_count));
    return names_of(v.servers, v.server_count, arena, &ret->servers, &ret->server_count);
}

void rq_member_answers_init(rq_member_answers *a, const char *cluster_id)
{
    a->answers.look = look_at_member;
    a->cluster_id = cluster_id;
}
