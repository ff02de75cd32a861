// FAKE_CUDA_SCRIPT: calls that need no program.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "fake_cuda.h"
#include "session.h"

namespace fake {
namespace {

constexpr unsigned kStreams = 16;

void *play(void *path) {
  CUcontext context = nullptr;
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxSetCurrent(context);
  CUstream streams[kStreams] = {};
  auto stream = [&](unsigned number) {
    number %= kStreams;
    if (number != 0 && streams[number] == nullptr) {
      cuStreamCreate(&streams[number], 1);
    }
    return streams[number];
  };
  std::FILE *file = std::fopen(static_cast<const char *>(path), "r");
  if (file == nullptr) {
    note("no script %s", static_cast<const char *>(path));
    return nullptr;
  }
  char what[32], name[200];
  unsigned long number = 0;
  unsigned on = 0;
  while (std::fscanf(file, "%31s", what) == 1) {
    if (std::strcmp(what, "kernel") == 0 && std::fscanf(file, "%199s %lu %u", name, &number, &on) == 3) {
      CUfunction function = nullptr;
      std::string full = std::string(name) + "@" + std::to_string(number);
      cuModuleGetFunction(&function, nullptr, full.c_str());
      cuLaunchKernel(function, 128, 1, 1, 256, 1, 1, 0, stream(on), nullptr, nullptr);
    } else if (std::strcmp(what, "h2d") == 0 && std::fscanf(file, "%lu %u", &number, &on) == 2) {
      cuMemcpyHtoDAsync_v2(0, nullptr, number, stream(on));
    } else if (std::strcmp(what, "sync") == 0 && std::fscanf(file, "%u", &on) == 1) {
      cuStreamSynchronize(stream(on));
    } else if (std::strcmp(what, "sleep") == 0 && std::fscanf(file, "%lu", &number) == 1) {
      usleep(static_cast<useconds_t>(number * 1000));
    } else {
      note("script: what is %s?", what);
      break;
    }
  }
  std::fclose(file);
  note("script is done");
  return nullptr;
}

}  // namespace

void play_script() {
  const char *path = setting("FAKE_CUDA_SCRIPT");
  pthread_t thread;
  if (*path != 0 && pthread_create(&thread, nullptr, play, const_cast<char *>(path)) == 0) {
    pthread_detach(thread);
  }
}

}  // namespace fake
