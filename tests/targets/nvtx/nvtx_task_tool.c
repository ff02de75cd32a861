/* nvtx_tool.c that also takes tasks, as our agent does: it logs their making, every switch, and the task and parent of ranges.
 * gcc -shared -fPIC -O2 nvtx_task_tool.c -o tool.so -lpthread */
#include "nvtx_tool.c"

typedef struct {
  uint64_t size;
  uint32_t (*create)(const char *, const char *, uint64_t);
  void (*enter)(uint32_t);
  uint64_t (*start)(void *, const attributes *, uint32_t, uint64_t);
  const uint32_t *recording;
} tasks;

static uint32_t task_count;
static uint32_t recording_number = 1;

static uint32_t create_task(const char *name, const char *library, uint64_t parent) {
  const uint32_t id = __sync_add_and_fetch(&task_count, 1);
  if (out) {
    begin("task", NULL);
    fprintf(out, ", \"id\": %u, \"library\": \"%s\", \"parent\": %llu, \"name\": ", id, library,
            (unsigned long long)parent);
    put_hex(name);
    end();
  }
  return id;
}

static void enter_task(uint32_t task) {
  if (out) {
    begin("enter", NULL);
    fprintf(out, ", \"task\": %u", task);
    end();
  }
}

static uint64_t start_in_task(void *domain, const attributes *a, uint32_t task, uint64_t parent) {
  const uint64_t id = __sync_add_and_fetch(&next_range, 1);
  ++events;
  if (out) {
    begin("start", domain);
    put_attributes(a);
    fprintf(out, ", \"id\": %llu, \"task\": %u, \"parent\": %llu", (unsigned long long)id, task,
            (unsigned long long)parent);
    end();
  }
  return id;
}

static const tasks table = {sizeof(tasks), create_task, enter_task, start_in_task, &recording_number};

/* As when recording ends and begins anew: numbers handed out before are void. */
__attribute__((visibility("default"))) void nvtx_tool_begin_anew(void) {
  __sync_add_and_fetch(&recording_number, 1);
}

__attribute__((visibility("default"))) const tasks *warplens_tasks(void) {
  return &table;
}
