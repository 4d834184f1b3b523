/* Calls the cases of cross_ops on an emulated board; input and output are files of the host, by semihosting. With RUNS
   it prints the ticks of so many calls of nothing, and of each case. */
#include <stdint.h>

#include "board.h"

extern void (*const cases[])(void *);
static unsigned char *const heap = (unsigned char *)HEAP;

static int opened(const char *name, int size, int mode) {
    const int arguments[3] = {(int)name, mode, size};
    return host(SYS_OPEN, arguments);
}

static int moved(int operation, int file, void *data, int size) {
    const int arguments[3] = {file, (int)data, size};
    return size ? host(operation, arguments) : 0;
}

int main(void) {
    int in = opened("in", 2, 1), out = opened("out", 3, 5);
    int64_t count, words, head[2];
    if (in < 0 || out < 0 || moved(SYS_READ, in, &count, 8)) return 1;
    for (int i = 0; i < count; i++) {
        if (moved(SYS_READ, in, &words, 8)) return 1;
        int64_t *table = (int64_t *)heap, *sizes = table + words + 1, *results = sizes + words;
        unsigned char *end = (unsigned char *)(results + words);
        for (int k = 0; k < words; k++) {
            if (moved(SYS_READ, in, head, 16)) return 1;
            end = (unsigned char *)(((uintptr_t)end + 63) & ~63u);
            table[k] = (uintptr_t)end, sizes[k] = head[0], results[k] = head[1];
            if (moved(SYS_READ, in, end, (int)head[0])) return 1;
            end += head[0];
        }
#ifdef RUNS
        if (!i) print(timed(nothing, table, RUNS));
        print(timed(cases[i], table, RUNS));
#endif
        cases[i](table);
        for (int k = 0; k < words; k++)
            if (results[k] && moved(SYS_WRITE, out, (void *)(uintptr_t)table[k], (int)sizes[k])) return 1;
    }
    return 0;
}
