// Copies memory in batches.
// A page that cannot be read ends a batch, and the next batch begins behind it.
#include "snapshot.h"

#include <algorithm>
#include <cstring>

namespace warplens::agent {
namespace {

constexpr size_t kPage = 4096;  // or a part of one: what counts is that all of it can be read, or nothing

}  // namespace

void Snapshot::Pages::clear() {
  places.clear();
  bytes.clear();
}

void Snapshot::Pages::add(std::vector<uintptr_t> &numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  const size_t first = bytes.size();
  bytes.resize(first + numbers.size() * kPage);
  std::vector<Piece> batch(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    batch[i] = {bytes.data() + first + i * kPage, numbers[i] * kPage, kPage};
  }
  for (size_t done = 0; done < batch.size(); ++done) {
    size_t complete = copy_pieces(batch.data() + done, batch.size() - done);
    for (size_t i = done; i < done + complete; ++i) {
      places[numbers[i]] = first + i * kPage;
    }
    done += complete;
  }
}

bool Snapshot::Pages::copy(char *to, uintptr_t from, size_t size) const {
  while (size != 0) {
    auto page = places.find(from / kPage);
    size_t part = std::min(size, kPage - from % kPage);
    if (page == places.end()) {
      return false;
    }
    std::memcpy(to, bytes.data() + page->second + from % kPage, part);
    to += part;
    from += part;
    size -= part;
  }
  return true;
}

void Snapshot::clear() {
  pieces_.clear();
  pages_.clear();
  used_ = 0;
  read_ = 0;
}

uint32_t Snapshot::want(uintptr_t from, size_t size, uint32_t owner) {
  pieces_.push_back({from, static_cast<uint32_t>(size), owner, used_, false});
  used_ += size;
  return static_cast<uint32_t>(pieces_.size() - 1);
}

void Snapshot::read() {
  if (bytes_.size() < used_) {
    bytes_.resize(used_ + used_ / 2);
  }
  numbers_.clear();
  for (size_t i = read_; i < pieces_.size(); ++i) {
    uintptr_t first = pieces_[i].from / kPage, last = (pieces_[i].from + pieces_[i].size - 1) / kPage;
    for (uintptr_t number : {first, last}) {
      if ((numbers_.empty() || numbers_.back() != number) && !pages_.places.contains(number)) {
        numbers_.push_back(number);
      }
    }
  }
  pages_.add(numbers_);
  for (; read_ < pieces_.size(); ++read_) {
    Own &piece = pieces_[read_];
    piece.is_read = pages_.copy(bytes_.data() + piece.offset, piece.from, piece.size);
  }
}

void Snapshot::compare(std::vector<bool> &changed) {
  numbers_.clear();
  for (const auto &[number, place] : pages_.places) {
    numbers_.push_back(number);
  }
  again_.clear();
  again_.add(numbers_);
  std::vector<char> now;
  for (const Own &piece : pieces_) {
    now.resize(std::max<size_t>(now.size(), piece.size));
    if (piece.is_read && (!again_.copy(now.data(), piece.from, piece.size) ||
                          std::memcmp(now.data(), bytes_.data() + piece.offset, piece.size) != 0)) {
      changed[piece.owner] = true;
    }
  }
}

}  // namespace warplens::agent
