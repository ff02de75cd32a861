/* Table: functions of stdio.
 * Functions on single characters are left out: they are called too often, and mostly do nothing.
 * `object` is the number of requested bytes. */
#ifndef WARPLENS_PRELOAD_OSRT_STDIO_H
#define WARPLENS_PRELOAD_OSRT_STDIO_H

#include <stdio.h>
#include <wchar.h>

int os_number(FILE *file);

#define OSRT_STDIO(X)                                                                                        \
  X(int, fflush, (FILE * file), (file), FILE, MINUS, .fd = os_number(file))                                  \
  X(int, fflush_unlocked, (FILE * file), (file), FILE, MINUS, .fd = os_number(file))                         \
  X(size_t, fread, (void *to, size_t size, size_t count, FILE *file), (to, size, count, file), FILE, NEVER,  \
    .result = (int64_t)(result * size), .fd = os_number(file), .object = size * count)                       \
  X(size_t, fread_unlocked, (void *to, size_t size, size_t count, FILE *file), (to, size, count, file),      \
    FILE, NEVER, .result = (int64_t)(result * size), .fd = os_number(file), .object = size * count)          \
  X(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *file),                     \
    (to, room, size, count, file), FILE, NEVER, .name = "fread", .result = (int64_t)(result * size),         \
    .fd = os_number(file), .object = size * count)                                                           \
  X(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *file), (from, size, count, file),    \
    FILE, NEVER, .result = (int64_t)(result * size), .fd = os_number(file), .object = size * count)          \
  X(size_t, fwrite_unlocked, (const void *from, size_t size, size_t count, FILE *file),                      \
    (from, size, count, file), FILE, NEVER, .result = (int64_t)(result * size), .fd = os_number(file),       \
    .object = size * count)                                                                                  \
  X(char *, fgets, (char *to, int size, FILE *file), (to, size, file), FILE, NEVER,                          \
    .result = result != NULL, .fd = os_number(file))                                                         \
  X(char *, fgets_unlocked, (char *to, int size, FILE *file), (to, size, file), FILE, NEVER,                 \
    .result = result != NULL, .fd = os_number(file))                                                         \
  X(char *, __fgets_chk, (char *to, size_t room, int size, FILE *file), (to, room, size, file), FILE, NEVER, \
    .name = "fgets", .result = result != NULL, .fd = os_number(file))                                        \
  X(wchar_t *, fgetws, (wchar_t * to, int size, FILE *file), (to, size, file), FILE, NEVER,                  \
    .result = result != NULL, .fd = os_number(file))                                                         \
  X(int, fputs, (const char *from, FILE *file), (from, file), FILE, MINUS, .fd = os_number(file))            \
  X(int, fputs_unlocked, (const char *from, FILE *file), (from, file), FILE, MINUS, .fd = os_number(file))   \
  X(int, fputws, (const wchar_t *from, FILE *file), (from, file), FILE, MINUS, .fd = os_number(file))        \
  X(ssize_t, getdelim, (char **to, size_t *room, int end, FILE *file), (to, room, end, file), FILE, MINUS,   \
    .fd = os_number(file))                                                                                   \
  X(ssize_t, __getdelim, (char **to, size_t *room, int end, FILE *file), (to, room, end, file), FILE, MINUS, \
    .name = "getdelim", .fd = os_number(file))                                                               \
  X(ssize_t, getline, (char **to, size_t *room, FILE *file), (to, room, file), FILE, MINUS,                  \
    .fd = os_number(file))                                                                                   \
  X(int, ftrylockfile, (FILE * file), (file), CALL, NEVER, .fd = os_number(file))                            \
  X(int, fcloseall, (void), (), FILE, MINUS)

#define OSRT_STDIO_BY_HAND(X)                                            \
  X(FILE *, fopen, (const char *path, const char *mode))                 \
  X(FILE *, fopen64, (const char *path, const char *mode))               \
  X(FILE *, freopen, (const char *path, const char *mode, FILE *file))   \
  X(FILE *, freopen64, (const char *path, const char *mode, FILE *file)) \
  X(int, fclose, (FILE * file))                                          \
  X(void, flockfile, (FILE * file))

#endif
