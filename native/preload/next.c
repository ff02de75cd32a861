/* Finds the functions behind ours in the libraries loaded after us, as dlsym(RTLD_NEXT) would. Not with dlsym: it is in a separate library
 * before glibc 2.34, and needing that one would cost every process of the tree more than all else that we do. */
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <string.h>

#include "stub.h"

#define NAME(result, name, ...) #name "\0"
static const char g_names[] = WRAPPED(NAME);
#undef NAME
#define ONE(...) +1
enum { COUNT = 0 WRAPPED(ONE) };
#undef ONE

struct Next g_next;
static int g_searched;
static const char *g_own_path;

struct Search {
  void **slots;
  uint32_t hashes[COUNT];
};

struct Symbols {
  const ElfW(Sym) * symbols;
  const char *names;
  const ElfW(Dyn) * entries;
  const uint16_t *versions;
  const uint32_t *hash;
};

static uint32_t gnu_hash(const char *name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; ++name) {
    hash = hash * 33 + (unsigned char)*name;
  }
  return hash;
}

static int is_within(const struct dl_phdr_info *object, const void *address) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && (uintptr_t)address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz) {
      return 1;
    }
  }
  return 0;
}

static int read_symbols(const struct dl_phdr_info *object, struct Symbols *out) {
  memset(out, 0, sizeof(*out));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) {
      continue;
    }
    const ElfW(Dyn) *entry = (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    out->entries = entry;
    for (; entry->d_tag != DT_NULL; ++entry) {
      /* glibc has added the object's address already, where the table can be written. */
      uintptr_t value =
          entry->d_un.d_ptr < object->dlpi_addr ? object->dlpi_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) {
        out->symbols = (const ElfW(Sym) *)value;
      } else if (entry->d_tag == DT_STRTAB) {
        out->names = (const char *)value;
      } else if (entry->d_tag == DT_VERSYM) {
        out->versions = (const uint16_t *)value;
      } else if (entry->d_tag == DT_GNU_HASH) {
        out->hash = (const uint32_t *)value;
      }
    }
  }
  return out->symbols != NULL && out->names != NULL && out->hash != NULL && out->hash[0] != 0;
}

/* The symbol's default version, or null. */
static const ElfW(Sym) * look_up(const struct Symbols *in, const char *name, uint32_t hash) {
  uint32_t buckets = in->hash[0];
  uint32_t first = in->hash[1];
  uint32_t words = in->hash[2];
  const ElfW(Addr) *bloom = (const ElfW(Addr) *)(in->hash + 4);
  const uint32_t *bucket = (const uint32_t *)(bloom + words);
  const uint32_t *chain = bucket + buckets;
  const uint32_t bits = 8 * sizeof(ElfW(Addr));
  ElfW(Addr) word = bloom[hash / bits & (words - 1)];
  if ((word >> (hash % bits) & word >> ((hash >> in->hash[3]) % bits) & 1) == 0) {
    return NULL;
  }
  for (uint32_t i = bucket[hash % buckets]; i >= first; ++i) {
    uint32_t its = chain[i - first];
    const ElfW(Sym) *symbol = &in->symbols[i];
    int is_old = in->versions != NULL && (in->versions[i] & 0x8000) != 0;
    if ((its | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
        ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && !is_old &&
        strcmp(in->names + symbol->st_name, name) == 0) {
      return symbol;
    }
    if (its & 1) {
      break;
    }
  }
  return NULL;
}

/* Calls `each` for every object behind us until it returns 1. */
struct Walk {
  int (*each)(const struct dl_phdr_info *object, const struct Symbols *symbols, void *opaque);
  void *opaque;
  int behind_us;
};

static int step(struct dl_phdr_info *object, size_t size, void *opaque) {
  (void)size;
  struct Walk *walk = opaque;
  struct Symbols symbols;
  if (walk->behind_us) {
    return read_symbols(object, &symbols) ? walk->each(object, &symbols, walk->opaque) : 0;
  }
  if (is_within(object, g_names)) {
    walk->behind_us = 1;
    g_own_path = object->dlpi_name;
  }
  return 0;
}

static int fill_in(const struct dl_phdr_info *object, const struct Symbols *symbols, void *opaque) {
  struct Search *search = opaque;
  const char *name = g_names;
  int lacking = 0;
  for (int i = 0; i < COUNT; ++i, name += strlen(name) + 1) {
    if (search->slots[i] == NULL) {
      const ElfW(Sym) *symbol = look_up(symbols, name, search->hashes[i]);
      search->slots[i] = symbol != NULL ? (void *)(object->dlpi_addr + symbol->st_value) : NULL;
      lacking += symbol == NULL;
    }
  }
  return lacking == 0;
}

const struct Next *next(void) {
  if (!__atomic_load_n(&g_searched, __ATOMIC_ACQUIRE)) {
    struct Next found = {0};
    struct Search search = {(void **)&found, {0}};
    const char *name = g_names;
    for (int i = 0; i < COUNT; ++i, name += strlen(name) + 1) {
      search.hashes[i] = gnu_hash(name);
    }
    dl_iterate_phdr(step, &(struct Walk){fill_in, &search, 0});
    g_next = found;
    __atomic_store_n(&g_searched, 1, __ATOMIC_RELEASE);
  }
  return &g_next;
}

const char *own_path(void) {
  next();
  return g_own_path;
}

struct Find {
  const char *name;
  uint32_t hash;
  const char *library; /* only in the one that is called so, or null */
  void *found;
};

static int find_in(const struct dl_phdr_info *object, const struct Symbols *symbols, void *opaque) {
  struct Find *find = opaque;
  if (find->library != NULL) {
    const char *name = strrchr(object->dlpi_name, '/');
    if (strcmp(name != NULL ? name + 1 : object->dlpi_name, find->library) != 0) {
      return 0;
    }
  }
  const ElfW(Sym) *symbol = look_up(symbols, find->name, find->hash);
  find->found = symbol != NULL ? (void *)(object->dlpi_addr + symbol->st_value) : NULL;
  return symbol != NULL;
}

static void *find_function(const char *name, const char *library) {
  struct Find find = {name, gnu_hash(name), library, NULL};
  dl_iterate_phdr(step, &(struct Walk){find_in, &find, 0});
  return find.found;
}

enum { MOST_NEEDED = 64 };

struct Caller {
  const void *address;
  const char *needed[MOST_NEEDED];
  unsigned count;
};

static int read_needed(struct dl_phdr_info *object, size_t size, void *opaque) {
  (void)size;
  struct Caller *caller = opaque;
  struct Symbols symbols;
  if (!is_within(object, caller->address)) {
    return 0;
  }
  read_symbols(object, &symbols);
  for (const ElfW(Dyn) *entry = symbols.entries; entry != NULL && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED && symbols.names != NULL && caller->count < MOST_NEEDED) {
      caller->needed[caller->count++] = symbols.names + entry->d_un.d_val;
    }
  }
  return 1;
}

void *next_function(const char *name, const void *caller) {
  struct Caller found = {.address = caller};
  dl_iterate_phdr(read_needed, &found);
  for (unsigned i = 0; i < found.count; ++i) {
    void *function = find_function(name, found.needed[i]);
    if (function != NULL) {
      return function;
    }
  }
  return find_function(name, NULL);
}
