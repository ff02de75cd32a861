// The tree of stacks: numbers each distinct stack once.
#include "stacks.h"

#include <cstring>
#include <mutex>
#include <new>

#include "spool/system/memory.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kMost = 4'000'000;  // frames: some 300 MiB of spool
constexpr uint32_t kKnown =
    1u << 18;  // of them that are known again: 20 MiB; of days others are written twice

struct Node {
  uint32_t parent;
  Frame frame;
};

struct Tree {
  std::mutex mutex;
  uint32_t generation = 0;  // of the recording that has it
  uint32_t count = 0;
  uint32_t forgotten = 0;  // how many of the first were dropped; numbers in the index start behind them
  BlockArray<Node> nodes;
  HashIndex index;
};

alignas(Tree) char g_storage[sizeof(Tree)];
Tree *g_tree = new (g_storage) Tree;

bool same(const Frame &a, const Frame &b) {
  return a.kind == b.kind && a.flags == b.flags && a.name == b.name && a.file == b.file && a.line == b.line &&
         a.first_line == b.first_line && a.module == b.module && a.address == b.address &&
         a.offset == b.offset;
}

uint64_t hash_of(uint32_t parent, const Frame &frame) {
  uint64_t hash = parent;
  for (uint64_t word :
       {static_cast<uint64_t>(frame.kind) << 8 | frame.flags, uint64_t{frame.name} << 32 | frame.file,
        uint64_t{frame.line} << 32 | frame.first_line, uint64_t{frame.module}, frame.address}) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

bool write(ProcessLog &log, uint32_t number, uint32_t parent, const Frame &frame) {
  CpuFrameRecord record{};
  record.head = {RecordType::cpu_frame, frame.flags, static_cast<uint16_t>(frame.kind), frame.name};
  record.node = number;
  record.parent = parent;
  record.address = frame.address;
  record.offset = frame.offset;
  record.file = frame.file;
  record.line = frame.line;
  record.first_line = frame.first_line;
  record.module = frame.module;
  return WideLog::Writer(log.wide()).append(record, now_ns(log.clock()));
}

}  // namespace

uint32_t stack_node(ProcessLog &log, uint32_t parent, const Frame &frame) {
  Tree &tree = *g_tree;
  std::lock_guard lock(tree.mutex);
  if (tree.generation != log.generation()) {
    tree.index.clear();
    tree.count = tree.forgotten = 0;
    tree.generation = log.generation();
  }
  uint64_t hash = hash_of(parent, frame);
  uint32_t known = tree.index.find(hash, [&](uint32_t number) {
    const Node &node = *tree.nodes.at(number);
    return node.parent == parent && same(node.frame, frame);
  });
  if (known != 0) {
    return tree.forgotten + known;
  }
  if (tree.count == kMost) {
    return 0;
  }
  if (tree.count - tree.forgotten == kKnown) {
    tree.index.clear();
    tree.forgotten = tree.count;
  }
  uint32_t number = tree.count + 1;
  uint32_t place = number - tree.forgotten;
  Node *node = tree.nodes.make(place);
  bool room = node != nullptr && tree.index.reserve([&](uint32_t other) {
    const Node &its = *tree.nodes.at(other);
    return hash_of(its.parent, its.frame);
  });
  if (!room || !write(log, number, parent, frame)) {
    return 0;
  }
  *node = {parent, frame};
  tree.count = number;
  tree.index.add(hash, place);
  return number;
}

void renew_stacks() {
  g_tree = new (g_storage) Tree;  // what was there is left to nobody
}

}  // namespace warplens::agent
