/* Calls the cases of cross_ops and windows_ops in the working directory. The file "in" holds the number of cases and,
   for each, the number of words of its table; a word is the bytes of a block and whether it is a result, then the block.
   Results are written to the file "out" in order. On Linux one library has all entries; on Windows each case is a DLL.
   With MACHO, the library is one for macOS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void (*entry_t)(void **);

#ifdef _WIN32
#include <malloc.h>
#include <windows.h>

static HMODULE library;

static entry_t open_case(int64_t number) {
    char name[32];
    snprintf(name, sizeof name, "case_%lld.dll", (long long)number);
    library = LoadLibraryA(name);
    if (!library) fprintf(stderr, "%s: error %lu\n", name, GetLastError());
    return library ? (entry_t)(void *)GetProcAddress(library, "graphc_entry") : NULL;
}

static void close_case(void) { FreeLibrary(library); }
static void *block(size_t bytes) { return _aligned_malloc(bytes, 64); }
static void release(void *memory) { _aligned_free(memory); }
#else
#ifdef MACHO
#include "macho_loader.h"
#define OPEN() macho_open("libcases.dylib")
#define FIND macho_symbol
#define REASON() macho_error
#else
#include <dlfcn.h>
#define OPEN() dlopen("./libcases.so", RTLD_NOW | RTLD_LOCAL)
#define FIND dlsym
#define REASON() dlerror()
#endif

static entry_t open_case(int64_t number) {
    static void *library;
    char name[32];
    if (!library) library = OPEN();
    snprintf(name, sizeof name, "case_%lld", (long long)number);
    void *entry = library ? FIND(library, name) : NULL;
    if (!entry) fprintf(stderr, "%s\n", REASON());
    return (entry_t)entry;
}

static void close_case(void) {}
static void *block(size_t bytes) { return aligned_alloc(64, bytes); }
static void release(void *memory) { free(memory); }
#endif

int main(void) {
    FILE *in = fopen("in", "rb"), *out = fopen("out", "wb");
    int64_t cases, words, head[2];
    if (!in || !out || fread(&cases, 8, 1, in) != 1) return 3;
    for (int64_t i = 0; i < cases; i++) {
        const entry_t entry = open_case(i);
        if (!entry) return 2;
        if (fread(&words, 8, 1, in) != 1) return 4;
        void **table = calloc(words + 1, sizeof(void *));
        int64_t *bytes = calloc(words + 1, sizeof(int64_t)), *results = calloc(words + 1, sizeof(int64_t));
        for (int64_t k = 0; k < words; k++) {
            if (fread(head, 8, 2, in) != 2) return 5;
            bytes[k] = head[0], results[k] = head[1];
            table[k] = block((head[0] / 64 + 1) * 64);
            if (head[0] && fread(table[k], head[0], 1, in) != 1) return 6;
        }
        entry(table);
        for (int64_t k = 0; k < words; k++) {
            if (results[k]) fwrite(table[k], 1, bytes[k], out);
            release(table[k]);
        }
        free(table), free(bytes), free(results);
        close_case();
    }
    fclose(in);
    return fclose(out) ? 7 : 0;
}
