/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of ClientMetaService in each process of a cluster: the content of ZooKeeper as the member has last read
 * it. Unknown parts are left out; the client then asks another server. */
#include "registry/zk_member.h"

#include "registry/znodes.h"

/* NULL: the text is no ServerName, or there is no memory. */
static Pb__ServerName *message_of(rq_call *call, const char *text)
{
    rq_server_name name;
    if (text == NULL || !rq_member_name_of(text, &call->arena, &name)) return NULL;
    Pb__ServerName *m = rq_arena_alloc(&call->arena, sizeof *m);
    if (m != NULL) *m = rq__server_message(&name);
    return m;
}

static rq_err messages_of(rq_call *call, const char *const *texts, size_t count,
                          Pb__ServerName ***ret, size_t *ret_count)
{
    *ret_count = 0;
    *ret = rq_arena_alloc(&call->arena, (count + 1) * sizeof **ret);
    if (*ret == NULL) return RQ_E_NO_MEMORY;
    for (size_t i = 0; i < count; i++) {
        Pb__ServerName *m = message_of(call, texts[i]);
        if (m != NULL) (*ret)[(*ret_count)++] = m;
    }
    return RQ_OK;
}

/* hbase:meta is in the active master's process. */
static rq_err look_at_member(const rq_meta_answers *a, rq_call *call, rq_meta_view *ret)
{
    const rq_member_answers *own = RQ_CONTAINER_OF(a, const rq_member_answers, answers);
    rq_member *m = atomic_load(&own->member);
    rq_member_view v = {.active = ""};
    if (m != NULL) RQ_TRY(rq_member_look(m, &call->arena, &v));
    ret->cluster_id = own->cluster_id;
    ret->active = message_of(call, v.active);
    ret->meta_server = message_of(call, rq_member_active_server(&v));
    ret->meta_copies = 1;
    RQ_TRY(messages_of(call, v.backups, v.backup_count, &ret->backups, &ret->backup_count));
    return messages_of(call, v.servers, v.server_count, &ret->servers, &ret->server_count);
}

void rq_member_answers_init(rq_member_answers *a, const char *cluster_id)
{
    a->answers.look = look_at_member;
    a->cluster_id = cluster_id;
}
