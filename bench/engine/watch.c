/* SPDX-License-Identifier: Apache-2.0 */
/* Samples the size of the database's folder once per second, on a separate thread during a step. */
#include "driver.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

static uint64_t folder_bytes(const char *path)
{
    DIR *d = opendir(path);
    uint64_t bytes = 0;
    if (d == NULL) return 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char name[4096];
        struct stat st;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (lstat(name, &st) != 0) continue;
        bytes += S_ISDIR(st.st_mode) ? folder_bytes(name) : (uint64_t)st.st_blocks * 512;
    }
    closedir(d);
    return bytes;
}

#define LOOKS_MAX 100000

static void *watch_main(void *arg)
{
    watch *w = arg;
    struct timespec next;
    clock_gettime(CLOCK_REALTIME, &next);
    pthread_mutex_lock(&w->lock);
    while (!w->over && w->count < LOOKS_MAX) {
        next.tv_sec++;
        while (!w->over && pthread_cond_timedwait(&w->over_now, &w->lock, &next) == 0)
            ;
        if (!w->over) w->looks[w->count++] = folder_bytes(run.db.folder);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void watch_begin(watch *w)
{
    *w = (watch){.looks = calloc(LOOKS_MAX, sizeof *w->looks)};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->over_now, NULL);
    if (w->looks == NULL || pthread_create(&w->thread, NULL, watch_main, w) != 0) exit(1);
}

void watch_end(watch *w, uint64_t *ret_mean, uint64_t *ret_most)
{
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_signal(&w->over_now);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    uint64_t sum = 0;
    *ret_most = 0;
    if (w->count == 0) w->looks[w->count++] = folder_bytes(run.db.folder);
    size_t from = w->count / 2;
    for (size_t i = from; i < w->count; i++) {
        sum += w->looks[i];
        if (w->looks[i] > *ret_most) *ret_most = w->looks[i];
    }
    *ret_mean = sum / (w->count - from);
    free(w->looks);
    pthread_cond_destroy(&w->over_now);
    pthread_mutex_destroy(&w->lock);
}
