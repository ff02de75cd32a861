// What a launch wrote comes out of the pieces as it went in, and what others wrote does not.
#include "agent/sources/intrakernel/pack.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "spool/blob_log.h"
#include "tests/check.h"

namespace warplens::test {
namespace {

using agent::IntrakernelPacker;
using agent::is_intrakernel_buffer;

struct Written {
  uint32_t cursor;
  uint32_t generation = 3;
  bool ended = true;
};

IntrakernelHead head_for(uint32_t units, uint32_t slots, uint32_t mode = 0) {
  IntrakernelHead head{};
  head.magic = kIntrakernelMagic;
  head.version = 1;
  head.header_bytes = sizeof(head);
  head.mode = mode;
  head.units = units;
  head.slots = slots;
  head.stride = static_cast<uint32_t>(sizeof(IntrakernelUnit)) + slots * (mode == 2 ? 8 : 16);
  head.generation = 9;
  head.claimed = 77;
  return head;
}

std::vector<char> units_of(const IntrakernelHead &head, const std::vector<Written> &written) {
  std::vector<char> bytes(size_t{head.stride} * written.size());
  for (size_t i = 0; i < written.size(); ++i) {
    char *at = bytes.data() + i * head.stride;
    IntrakernelUnit unit{};
    unit.magic = kIntrakernelUnitMagic;
    unit.version = 1;
    unit.flags = written[i].ended ? 1 : 0;
    unit.generation = written[i].generation;
    unit.cta = static_cast<uint32_t>(i);
    unit.cursor = written[i].ended ? written[i].cursor : 0;
    unit.begin_ns = 1000 + i;
    unit.end_ns = written[i].ended ? 5000 + i : 0;
    std::memcpy(at, &unit, sizeof(unit));
    uint32_t size = head.mode == 2 ? 8 : 16;
    for (uint32_t slot = 0; slot < std::min(written[i].cursor, head.slots); ++slot) {
      std::memset(at + sizeof(unit) + size_t{slot} * size, static_cast<int>(1 + (i + slot) % 250), size);
    }
  }
  return bytes;
}

std::vector<std::string> pack(const IntrakernelHead &head, const std::vector<char> &units,
                              IntrakernelPacker &packer, size_t stop_after = ~size_t{0}) {
  std::vector<std::string> pieces;
  auto put = [&](const char *bytes, size_t size) {
    pieces.emplace_back(bytes, size);
    return pieces.size() < stop_after;
  };
  if (packer.take(units.data(), units.size() / head.stride, put)) {
    packer.flush(put);
  }
  return pieces;
}

IntrakernelHead head_of(const std::string &piece) {
  IntrakernelHead head;
  std::memcpy(&head, piece.data(), sizeof(head));
  return head;
}

void test_whole_units_with_what_they_used() {
  IntrakernelHead head = head_for(6, 64);
  std::vector<char> units = units_of(head, {{5}, {0}, {3, 2}, {7}, {3, 3, false}, {100}});
  units[size_t{5} * head.stride] = 0;  // no unit at all
  IntrakernelPacker packer(head, 3);
  std::vector<std::string> pieces = pack(head, units, packer);
  CHECK(pieces.size() == 1);
  IntrakernelHead stored = head_of(pieces[0]);
  CHECK(is_intrakernel_buffer(stored, pieces[0].size()));
  CHECK(stored.units == 4 && stored.slots == 7 && stored.generation == 3 && stored.claimed == 0);
  CHECK(pieces[0].size() == sizeof(stored) + size_t{4} * (sizeof(IntrakernelUnit) + size_t{7} * 16));
  const uint32_t from[] = {0, 1, 3, 4};
  const uint32_t used[] = {5, 0, 7, 3};
  for (int i = 0; i < 4; ++i) {
    const char *is = pieces[0].data() + sizeof(stored) + size_t(i) * stored.stride;
    CHECK(std::memcmp(is, units.data() + size_t{from[i]} * head.stride,
                      sizeof(IntrakernelUnit) + size_t{used[i]} * 16) == 0);
  }
  CHECK(packer.found().units == 4 && packer.found().blocks == 5);
  CHECK(packer.found().first_ns == 1000 && packer.found().last_ns == 5003);
}

void test_what_was_dropped_keeps_its_count() {
  IntrakernelHead head = head_for(2, 8);
  IntrakernelPacker packer(head, 3);
  std::vector<std::string> pieces = pack(head, units_of(head, {{20}, {1}}), packer);
  CHECK(pieces.size() == 1 && head_of(pieces[0]).slots == 8);
  IntrakernelUnit unit;
  std::memcpy(&unit, pieces[0].data() + sizeof(head), sizeof(unit));
  CHECK(unit.cursor == 20);
}

void test_rings_keep_a_power_of_two() {
  IntrakernelHead head = head_for(3, 32, 2);
  IntrakernelPacker packer(head, 3);
  CHECK(head_of(pack(head, units_of(head, {{5}, {3}}), packer)[0]).slots == 8);
  IntrakernelPacker round(head, 3);
  CHECK(head_of(pack(head, units_of(head, {{5}, {40}}), round)[0]).slots == 32);
  IntrakernelPacker empty(head, 3);
  CHECK(head_of(pack(head, units_of(head, {{0}}), empty)[0]).slots == 1);
}

// One long unit among many short ones must not make them all long.
void test_pieces_are_small_and_not_empty() {
  IntrakernelHead head = head_for(3000, 4096);
  std::vector<Written> written(3000, Written{2});
  written[1500].cursor = 4096;
  IntrakernelPacker packer(head, 3);
  std::vector<std::string> pieces = pack(head, units_of(head, written), packer);
  size_t bytes = 0;
  uint32_t units = 0;
  for (const std::string &piece : pieces) {
    CHECK(piece.size() <= BlobLog::kLargest);
    CHECK(is_intrakernel_buffer(head_of(piece), piece.size()));
    bytes += piece.size();
    units += head_of(piece).units;
  }
  CHECK(units == 3000 && pieces.size() == 3);
  CHECK(bytes < 2 * (3000 * (sizeof(IntrakernelUnit) + 32) + 4096 * 16));
}

void test_one_unit_larger_than_a_blob() {
  IntrakernelHead head = head_for(1, 100'000);
  IntrakernelPacker packer(head, 3);
  std::vector<std::string> pieces = pack(head, units_of(head, {{100'000}}), packer);
  CHECK(pieces.size() == 1 && pieces[0].size() > BlobLog::kLargest);
}

void test_it_can_be_stopped() {
  IntrakernelHead head = head_for(100, 4096);
  IntrakernelPacker packer(head, 3);
  CHECK(pack(head, units_of(head, std::vector<Written>(100, Written{4096})), packer, 2).size() == 2);
}

void test_heads() {
  IntrakernelHead head = head_for(10, 8);
  uint64_t size = sizeof(head) + uint64_t{10} * head.stride;
  CHECK(is_intrakernel_buffer(head, size) && !is_intrakernel_buffer(head, size - 1));
  auto with = [&](auto change) {
    IntrakernelHead other = head;
    change(other);
    return is_intrakernel_buffer(other, size);
  };
  CHECK(!with([](IntrakernelHead &other) { other.magic = 0; }));
  CHECK(!with([](IntrakernelHead &other) { other.version = 2; }));
  CHECK(!with([](IntrakernelHead &other) { other.mode = 3; }));
  CHECK(!with([](IntrakernelHead &other) { other.slots = 9; }));
  CHECK(!with([](IntrakernelHead &other) { other.slots = 0xffffffff; }));
  CHECK(!with([](IntrakernelHead &other) { other.stride = 0; }));
  CHECK(!with([](IntrakernelHead &other) { other.units = 0xffffffff; }));
}

}  // namespace
}  // namespace warplens::test

int main() {
  using namespace warplens::test;
  test_whole_units_with_what_they_used();
  test_what_was_dropped_keeps_its_count();
  test_rings_keep_a_power_of_two();
  test_pieces_are_small_and_not_empty();
  test_one_unit_larger_than_a_blob();
  test_it_can_be_stopped();
  test_heads();
  std::printf("intrakernel_pack: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
