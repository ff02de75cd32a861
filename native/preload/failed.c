/* Notes a program that does not exist.
 * Notes a program that is not there. A child tries path after path, then ends; it notes its last try, and only at its end: most succeed. */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "stub.h"
#include "system.h"

enum { MOST_TEXT = 1024, MOST_WORDS = 16 };

/* A child of vfork leaves it in its parent's memory, so it says whose it is. The words are copies: they may lie on a stack that is gone. */
static struct {
  int32_t pid;
  int error;
  char *words[MOST_WORDS + 1];
  char text[MOST_TEXT];
} g_failed;

void remember_failed(const char *path, char *const *arguments, int error) {
  g_failed.pid = 0;
  char *at = g_failed.text;
  unsigned count = 0;
  for (const char *word = path; word != NULL && count < MOST_WORDS;
       word = arguments != NULL ? arguments[count - 1] : NULL) {
    size_t length = strlen(word) + 1;
    if (length > (size_t)(g_failed.text + MOST_TEXT - at)) {
      break;
    }
    g_failed.words[count++] = memcpy(at, word, length);
    at += length;
  }
  g_failed.words[count] = NULL;
  g_failed.error = error;
  if (count != 0) {
    g_failed.pid = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0);
  }
}

void note_failed(void) {
  if (g_failed.pid != 0 && g_failed.pid == (int32_t)system_call(SYS_getpid, 0, 0, 0, 0)) {
    g_failed.pid = 0;
    append_own(WARPLENS_PROCESS_EXEC, WARPLENS_FOREIGN_NONE, g_failed.words[0], g_failed.words + 1);
    append_own(WARPLENS_PROCESS_EXEC, g_failed.error, NULL, NULL);
  }
}
