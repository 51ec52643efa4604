/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of tasks, FIFO or ordered by rank, shared by the real and the simulated executor. Not
 * thread-safe: the caller serializes access.
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

/* NULL: the queue is empty. */
static inline rq_task *rq__task_queue_pop(rq_task_queue *q)
{
    return q->head == NULL ? NULL : rq_task_queue_take(q, 0);
}

/* REQUIRES: the task is in a queue ordered by rank. */
static inline int32_t rq_task_rank(const rq_task *task)
{
    return RQ_CONTAINER_OF(task, rq_ranked_task, task)->rank;
}

/* Inserts in order of rank, after tasks of the same rank. REQUIRES: all tasks of `q` have ranks. */
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

/* rq_executor.raise: lowers the task's rank if it is in the queue; the task may be freed
 * already. */
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
