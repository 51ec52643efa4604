/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that wait, oldest first or by rank: what the executors (on threads, simulated) have in
 * common. The caller keeps it from being used by two threads at once.
 */
#ifndef RQ_BASE_TASK_QUEUE_H
#define RQ_BASE_TASK_QUEUE_H

#include "base/executor.h"

typedef struct rq_task_queue {
    rq_task *head;
    rq_task **tail;
    size_t count;
} rq_task_queue;

static inline void rq_task_queue_init(rq_task_queue *q)
{
    *q = (rq_task_queue){.tail = &q->head};
}

static inline void rq_task_queue_push(rq_task_queue *q, rq_task *task)
{
    task->next = NULL;
    *q->tail = task;
    q->tail = &task->next;
    q->count++;
}

/* REQUIRES: index < q->count. */
static inline rq_task *rq_task_queue_take(rq_task_queue *q, size_t index)
{
    rq_task **at = &q->head;
    while (index-- > 0)
        at = &(*at)->next;
    rq_task *task = *at;
    *at = task->next;
    if (task->next == NULL) q->tail = at;
    task->next = NULL;
    q->count--;
    return task;
}

/* NULL: none. */
static inline rq_task *rq_task_queue_pop(rq_task_queue *q)
{
    return q->head == NULL ? NULL : rq_task_queue_take(q, 0);
}

/* Of a task in a queue by rank. */
static inline int32_t rq_task_rank(const rq_task *task)
{
    return RQ_CONTAINER_OF(task, rq_ranked_task, task)->rank;
}

/* In front of what has a higher rank, behind what has the same. All tasks of `q` have ranks. */
static inline void rq_task_queue_insert(rq_task_queue *q, rq_ranked_task *task, int32_t rank)
{
    rq_task **at = &q->head;
    task->rank = rank;
    while (*at != NULL && rq_task_rank(*at) <= rank)
        at = &(*at)->next;
    task->task.next = *at;
    *at = &task->task;
    if (task->task.next == NULL) q->tail = &task->task.next;
    q->count++;
}

/* As executor.h says of raise: the task need not be in the queue, nor exist any more. */
static inline void rq_task_queue_raise(rq_task_queue *q, const rq_ranked_task *task, int32_t rank)
{
    size_t index = 0;
    const rq_task *t = q->head;
    for (; t != NULL && t != &task->task; t = t->next)
        index++;
    if (t == NULL || rq_task_rank(t) <= rank) return;
    rq_task *found = rq_task_queue_take(q, index);
    rq_task_queue_insert(q, RQ_CONTAINER_OF(found, rq_ranked_task, task), rank);
}

#endif
