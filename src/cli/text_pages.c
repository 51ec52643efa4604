/* SPDX-License-Identifier: Apache-2.0 */
/* See text_pages.h. The linker places the code segment on a huge page boundary. A copy of it, in
 * anonymous memory for which huge pages were requested, is moved over it.
 *
 * Of code longer than a huge page only whole ones are moved: memory for the rest of the last would cost
 * more than it gains. The rest is the shell and the transfers, which the linker places behind the
 * server's code, because they are compiled without link-time optimisation. */
#include "cli/text_pages.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE ((uintptr_t)2 << 20)

typedef struct text {
    uintptr_t begin, end;
} text;

/* The program is the first entry; it has one executable segment. */
static int find_text(struct dl_phdr_info *info, size_t size, void *arg)
{
    text *t = arg;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || (p->p_flags & PF_X) == 0) continue;
        t->begin = info->dlpi_addr + p->p_vaddr;
        t->end = t->begin + p->p_memsz;
    }
    return 1;
}

static uintptr_t round_up(uintptr_t n, uintptr_t to)
{
    return (n + to - 1) & ~(to - 1);
}

/* Whether the memory between the code's last page and the next boundary is unused. */
static bool rest_is_free(const text *t, uintptr_t end)
{
    uintptr_t rest = round_up(t->end, 4096);
    if (rest == end) return true;
    void *wanted = (void *)rest;
    void *got = mmap(wanted, end - rest, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return false;
    if (got == wanted) return true;
    munmap(got, end - rest);
    return false;
}

bool rq__text_to_huge_pages(void)
{
    text t = {0, 0};
    dl_iterate_phdr(find_text, &t);
    if (t.begin == 0 || t.begin % HUGE != 0) return false;
    if (t.end - t.begin > HUGE) t.end -= (t.end - t.begin) % HUGE;
    size_t size = round_up(t.end, HUGE) - t.begin;
    uint8_t *room =
        mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return false;
    uint8_t *copy = (uint8_t *)round_up((uintptr_t)room, HUGE);
    bool moved = false;
    if (madvise(copy, size, MADV_HUGEPAGE) == 0 && rest_is_free(&t, t.begin + size)) {
        memcpy(copy, (const void *)t.begin, t.end - t.begin);
        moved =
            mprotect(copy, size, PROT_READ | PROT_EXEC) == 0 &&
            mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)t.begin) != MAP_FAILED;
    }
    if (!moved) {
        munmap(room, size + HUGE);
        return false;
    }
    if (copy > room) munmap(room, (size_t)(copy - room));
    uint8_t *behind = copy + size;
    if (room + size + HUGE > behind) munmap(behind, (size_t)(room + size + HUGE - behind));
    return true;
}
