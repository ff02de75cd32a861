/* Sets the environment of a new program: adds our missing variables, removes harmful ones. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>

#include "stub.h"
#include "system.h"

#define PRELOAD_IS "LD_PRELOAD="

static const char *after(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) == 0 ? text + length : NULL;
}

static int is_entry(const char *at, size_t size) {
  return strlen(g_stub.entry) == size && memcmp(at, g_stub.entry, size) == 0;
}

static int has_entry(const char *list) {
  for (;; ++list) {
    size_t size = strcspn(list, ": ");
    if (is_entry(list, size)) {
      return 1;
    }
    list += size;
    if (*list == '\0') {
      return 0;
    }
  }
}

/* Copies the list without our entry; returns the end of the copy, whose NUL is not yet there. */
static char *copy_others(char *out, const char *list) {
  const char *begin = out;
  for (char separator = '\0';; separator = *list++) {
    size_t size = strcspn(list, ": ");
    if (!is_entry(list, size)) {
      if (separator != '\0' && out != begin) {
        *out++ = separator;
      }
      memcpy(out, list, size);
      out += size;
    }
    list += size;
    if (*list == '\0') {
      return out;
    }
  }
}

const struct Way g_ways[WAYS] = {{"NVTX_INJECTION64_PATH=", "WARPLENS_NVTX_CHAIN="},
                                 {"CUDA_INJECTION64_PATH=", "WARPLENS_CUDA_CHAIN="}};

/* Which of ours the variable is, by its name; 0 where it is none. */
static unsigned which(const char *variable) {
  if (variable[0] != 'W' && variable[0] != 'N' && variable[0] != 'C') {
    return 0;
  }
  for (unsigned k = 1; k < g_stub.kept; ++k) {
    size_t name = strcspn(g_stub.keep[k], "=") + 1;
    if (strncmp(variable, g_stub.keep[k], name) == 0) {
      return k;
    }
  }
  return 0;
}

/* How the variable makes the agent be loaded; null where it does not: another tool's library there is none of our business. */
static const struct Way *way_of(const char *variable) {
  for (unsigned i = 0; i < WAYS && g_stub.agent != NULL; ++i) {
    const char *value = after(variable, g_ways[i].agent_is);
    if (value != NULL) {
      return strcmp(value, g_stub.agent) == 0 ? &g_ways[i] : NULL;
    }
  }
  return NULL;
}

static int is_way(const char *variable) {
  int found = 0;
  for (unsigned i = 0; i < WAYS; ++i) {
    found |= after(variable, g_ways[i].agent_is) != NULL;
  }
  return found;
}

/* The tool that the agent took the place of, or null. */
static const char *earlier_tool(const struct Way *way) {
  for (unsigned k = 1; k < g_stub.kept; ++k) {
    const char *value = after(g_stub.keep[k], way->tool_is);
    if (value != NULL) {
      return value;
    }
  }
  return NULL;
}

/* Another root directory, other rights, or nothing installed any more: the loader would say so on stderr. */
int can_be_loaded(void) {
  int file = (int)system_open(AT_FDCWD, g_stub.entry, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file >= 0) {
    system_close(file);
  }
  return file >= 0;
}

void survey(struct Variables *out, char *const *given, unsigned wishes) {
  *out = (struct Variables){given, wishes, 0, SIZE_MAX, 0, 0};
  int agent = 0;
  int leaves = 0;
  for (; given != NULL && given[out->count] != NULL; ++out->count) {
    const char *variable = given[out->count];
    if (variable[0] == 'L' && after(variable, PRELOAD_IS) != NULL) {
      out->preload = out->count; /* of several, the loader takes the last */
      continue;
    }
    if (variable[0] == 'L' && after(variable, "LD_TRACE_LOADED_OBJECTS=") != NULL) {
      out->wishes = TAKE_STUB; /* it will not run, but print the libraries that it would load */
    }
    unsigned mine = which(variable);
    out->seen |= 1u << mine;
    agent |= mine != 0 && way_of(variable) != NULL;
    if (mine != 0 && after(variable, "WARPLENS_SPOOL=") != NULL && strcmp(variable, g_stub.keep[mine]) != 0) {
      out->wishes &= ~(unsigned)(ADD_STUB | PUT_BACK); /* another recording's child */
    }
    if (variable[0] == 'W' && strcmp(variable, "WARPLENS_FOLLOW=0") == 0) {
      leaves = 1;
    }
  }
  if (leaves) {
    out->wishes = TAKE_STUB | TAKE_AGENT | TAKE_REST;
  }
  const unsigned all = (1u << g_stub.kept) - 2;
  out->seen &= all;
  int loads = out->preload != SIZE_MAX && has_entry(given[out->preload] + sizeof(PRELOAD_IS) - 1);
  out->wishes &= ~(unsigned)(loads ? ADD_STUB : TAKE_STUB);
  out->wishes &= agent ? ~0u : ~(unsigned)TAKE_AGENT;
  out->wishes &= out->seen == all ? ~(unsigned)PUT_BACK : ~0u;
  out->wishes &= out->seen == 0 ? ~(unsigned)TAKE_REST : ~0u;
  if (out->wishes != 0) {
    size_t list = out->preload != SIZE_MAX ? strlen(given[out->preload]) : 0;
    out->room = (out->count + g_stub.kept + 2) * sizeof(char *) + list + strlen(g_stub.entry) + 2 +
                sizeof(PRELOAD_IS);
    for (unsigned i = 0; i < WAYS; ++i) {
      const char *tool = earlier_tool(&g_ways[i]);
      out->room += tool != NULL ? LONGEST_WAY + strlen(tool) + 1 : 0;
    }
  }
}

char *const *arrange(const struct Variables *in, void *room) {
  const char **out = room;
  char *text = (char *)(out + in->count + g_stub.kept + 2);
  for (size_t i = 0; i < in->count; ++i) {
    const char *variable = in->given[i];
    const char *instead = variable;
    const struct Way *way = (in->wishes & TAKE_AGENT) != 0 ? way_of(variable) : NULL;
    if (i == in->preload && (in->wishes & (ADD_STUB | TAKE_STUB)) != 0) {
      const char *list = variable + sizeof(PRELOAD_IS) - 1;
      char *begin = text;
      text = stpcpy(text, PRELOAD_IS);
      char *end = copy_others(text, list);
      if ((in->wishes & ADD_STUB) != 0) {
        *end = ':';
        end = stpcpy(end + (end != text), g_stub.entry);
      }
      *end = '\0';
      instead = end != text ? begin : NULL;
      text = end + 1;
    } else if (way != NULL) {
      const char *tool = earlier_tool(way);
      instead = tool != NULL ? text : NULL;
      text = tool != NULL ? stpcpy(stpcpy(text, way->agent_is), tool) + 1 : text;
    } else if ((in->wishes & TAKE_REST) != 0 && which(variable) != 0 && !is_way(variable)) {
      instead = NULL;
    }
    if (instead != NULL) {
      *out++ = instead;
    }
  }
  if ((in->wishes & ADD_STUB) != 0 && in->preload == SIZE_MAX) {
    *out++ = g_stub.keep[PRELOAD];
  }
  for (unsigned k = 1; (in->wishes & PUT_BACK) != 0 && k < g_stub.kept; ++k) {
    if ((in->seen & 1u << k) == 0) {
      *out++ = g_stub.keep[k];
    }
  }
  *out = NULL;
  return room;
}
