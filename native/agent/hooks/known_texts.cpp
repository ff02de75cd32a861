// Counts the paths and addresses of a process.
#include "known_texts.h"

#include "agent/source.h"
#include "spool/names.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kMost = 500'000;
KnownTexts g_known;
std::atomic<uint32_t> g_count{0};
std::atomic<uint32_t> g_last{0};

// Numbers rise: one that is higher than all before is of a text that is new here.
uint32_t number_of(std::string_view text) {
  if (g_count.load(std::memory_order_relaxed) >= kMost) {
    return 0;
  }
  uint32_t number = text_number(text);
  if (number > g_last.load(std::memory_order_relaxed)) {
    g_last.store(number, std::memory_order_relaxed);
    g_count.fetch_add(1, std::memory_order_relaxed);
  }
  return number;
}

}  // namespace

uint32_t any_text_number(std::string_view text) {
  return g_known.get(hash_text(text.data(), text.size()), [&] { return number_of(text); });
}

}  // namespace warplens::agent
