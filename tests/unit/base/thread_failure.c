/* SPDX-License-Identifier: Apache-2.0 */
/* Failures on threads that a test has started. cmocka keeps a failure's text for the thread that reports it and
 * prints it when that thread's test ends: on any other thread the program would end with code 255
 * and no message. These two functions override cmocka's functions of the same names: on other
 * threads they print at once and abort. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED void cm_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
EXPORTED void _fail(const char *file, int line);

static bool on_main_thread(void)
{
    return gettid() == getpid();
}

void cm_print_error(const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    void (*next)(const char *, ...) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "cm_print_error");
    if (on_main_thread() && next != NULL)
        next("%s", text);
    else
        fputs(text, stderr);
}

void _fail(const char *file, int line)
{
    void (*next)(const char *, int) = NULL;
    *(void **)&next = dlsym(RTLD_NEXT, "_fail");
    if (on_main_thread() && next != NULL) next(file, line);
    fprintf(stderr, "%s:%d: failed on a thread of the test\n", file, line);
    abort();
}
