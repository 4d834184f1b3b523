/* Loader of macOS libraries for tests on Linux: maps segments, rebases words, finds exports, as dyld does. It knows the
   format from Apple's headers alone and shares nothing with the linker. Libraries that import symbols are refused. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__aarch64__)
#define MACHO_CPU 0x0100000cu
#else
#define MACHO_CPU 0x01000007u
#endif

typedef struct {
    uint32_t cmd, cmdsize;
    char segname[16];
    uint64_t vmaddr, vmsize, fileoff, filesize;
    uint32_t maxprot, initprot, nsects, flags;
} macho_segment_t;

typedef struct {
    char *base;                      /* where the address 0 of the library lies */
    const uint8_t *trie, *trie_end;
} macho_library_t;

static const char *macho_error = "";

static uint64_t macho_uleb(const uint8_t **p, const uint8_t *end) {
    uint64_t value = 0;
    int shift = 0;
    while (*p < end) {
        const uint8_t byte = *(*p)++;
        value |= (uint64_t)(byte & 127) << shift;
        shift += 7;
        if (!(byte & 128)) break;
    }
    return value;
}

static int macho_rights(uint32_t macho) {
    return (macho & 1 ? PROT_READ : 0) | (macho & 2 ? PROT_WRITE : 0) | (macho & 4 ? PROT_EXEC : 0);
}

static int macho_rebase(const macho_library_t *library, const macho_segment_t *const *segments, int count,
                        const uint8_t *p, uint32_t bytes) {
    const uint8_t *end = p + bytes;
    const macho_segment_t *segment = NULL;
    uint64_t offset = 0;
    int type = 0;
    while (p < end) {
        const uint8_t opcode = *p & 0xf0, low = *p & 0x0f;
        uint64_t times = 0;
        p++;
        switch (opcode) {
        case 0x00: return 1;
        case 0x10: type = low; break;
        case 0x20:
            if (low >= count) return 0;
            segment = segments[low];
            offset = macho_uleb(&p, end);
            break;
        case 0x30: offset += macho_uleb(&p, end); break;
        case 0x40: offset += 8u * low; break;
        case 0x50: times = low; break;
        case 0x60: times = macho_uleb(&p, end); break;
        default: return 0;
        }
        for (; times; times--, offset += 8) {
            if (type != 1 || !segment || !(segment->initprot & 2) || offset % 8 || offset + 8 > segment->vmsize) return 0;
            *(uint64_t *)(void *)(library->base + segment->vmaddr + offset) += (uint64_t)library->base;
        }
    }
    return 1;
}

/* Returns the library, or NULL with macho_error set. The memory of a library is never released. */
static macho_library_t *macho_open(const char *path) {
    static macho_library_t libraries[16];
    static int opened;
    const macho_segment_t *segments[16];
    const uint32_t *tables = NULL;
    struct stat facts;
    int count = 0;
    const int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &facts) || opened == 16) return macho_error = "the file cannot be read", NULL;
    const char *bytes = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    const uint32_t *head = (const uint32_t *)(const void *)bytes;
    if (bytes == MAP_FAILED || facts.st_size < 32 || head[0] != 0xfeedfacf || head[1] != MACHO_CPU || head[3] != 6)
        return macho_error = "not a library for this processor", NULL;
    macho_library_t *library = &libraries[opened];
    const char *command = bytes + 32;
    for (uint32_t i = 0; i < head[4]; i++) {
        const uint32_t *words = (const uint32_t *)(const void *)command;
        if (words[0] == 0x19 && count < 16) segments[count++] = (const macho_segment_t *)(const void *)command;
        if (words[0] == 0x80000022) tables = words;
        if (words[1] % 8 || command + words[1] > bytes + 32 + head[5]) return macho_error = "damaged commands", NULL;
        command += words[1];
    }
    if (!tables || !count) return macho_error = "no table of exports", NULL;
    if (tables[5] || tables[7] || tables[9]) return macho_error = "it imports symbols", NULL;
    const macho_segment_t *last = segments[count - 1];
    library->base = mmap(NULL, last->vmaddr + last->vmsize, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (library->base == MAP_FAILED) return macho_error = "no memory", NULL;
    for (int i = 0; i < count; i++) {
        const macho_segment_t *s = segments[i];
        const int rights = macho_rights(s->initprot);
        char *where = library->base + s->vmaddr;
        if ((s->initprot & 6) == 6 || s->vmaddr % 4096 || s->fileoff % 4096 || s->fileoff + s->filesize > (uint64_t)facts.st_size)
            return macho_error = "a segment cannot be mapped", NULL;
        if (s->vmsize && mmap(where, s->vmsize, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
            return macho_error = "no memory for a segment", NULL;
        if (s->filesize && mmap(where, s->filesize, rights, MAP_PRIVATE | MAP_FIXED, file, (off_t)s->fileoff) == MAP_FAILED)
            return macho_error = "a segment of the file cannot be mapped", NULL;
    }
    if (!macho_rebase(library, segments, count, (const uint8_t *)bytes + tables[2], tables[3]))
        return macho_error = "a rebase is wrong", NULL;
    for (int i = 0; i < count; i++)
        if (segments[i]->flags & 0x10 && mprotect(library->base + segments[i]->vmaddr, segments[i]->vmsize, PROT_READ))
            return macho_error = "a segment cannot be protected", NULL;
    library->trie = (const uint8_t *)bytes + tables[10];
    library->trie_end = library->trie + tables[11];
    close(file);
    opened++;
    return library;
}

/* Returns the address of an export by its name in C, or NULL. */
static void *macho_symbol(const macho_library_t *library, const char *name) {
    char symbol[256];
    const char *rest = symbol;
    const uint8_t *p = library->trie;
    snprintf(symbol, sizeof symbol, "_%s", name);
    while (p < library->trie_end) {
        const uint64_t terminal = macho_uleb(&p, library->trie_end);
        const uint8_t *node = p, *next = NULL;
        if (!*rest) {
            if (!terminal || macho_uleb(&p, library->trie_end)) break;
            return library->base + macho_uleb(&p, library->trie_end);
        }
        p = node + terminal;
        for (int edges = *p++; edges; edges--) {
            const char *label = (const char *)p;
            const size_t length = strlen(label);
            p += length + 1;
            const uint64_t offset = macho_uleb(&p, library->trie_end);
            if (!strncmp(rest, label, length)) {
                next = library->trie + offset;
                rest += length;
                break;
            }
        }
        if (!next) break;
        p = next;
    }
    macho_error = "no such export";
    return NULL;
}
