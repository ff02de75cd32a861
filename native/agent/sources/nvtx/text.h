// Converts texts of NVTX calls to numbers or JSON.
// The texts are valid only during the call.
#pragma once

#include <string>
#include <string_view>

#include "agent/source.h"
#include "drivers/nvtx.h"

namespace warplens::agent {

std::string utf8(const wchar_t *text);

//! [HOT] The number of a text; 0 for a null pointer.
inline uint32_t name_of(ThreadLog &log, const char *text) {
  return text == nullptr ? 0 : log.intern(text, std::strlen(text));
}
uint32_t name_of(ThreadLog &log, const wchar_t *text);

//! The text of a message; false when there is none. May throw.
bool message_text(int32_t type, const nvtxMessageValue_t &message, std::string &out);

//! A JSON object, written member by member. May throw.
class Json {
 public:
  explicit Json(const char *kind) { member("kind", kind); }
  Json() = default;
  void member(const char *name, std::string_view text);
  void member(const char *name, const char *text);  // null when it is a null pointer
  void member(const char *name, uint64_t number) { word(name, std::to_string(number)); }
  void member(const char *name, int64_t number) { word(name, std::to_string(number)); }
  void member(const char *name, uint32_t number) { word(name, std::to_string(number)); }
  void member(const char *name, double number);
  //! A member whose JSON is there already.
  void word(const char *name, std::string_view json);
  size_t size() const { return text_.size(); }
  std::string close() { return std::move(text_ += text_.empty() ? "{}" : "}"); }

 private:
  std::string text_;
};

//! Runs what may run out of memory: the program must not see that.
template <typename Result, typename Body>
Result guarded(Result otherwise, const Body &body) {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}
template <typename Body>
void guarded(const Body &body) {
  try {
    body();
  } catch (...) {
    return;
  }
}

}  // namespace warplens::agent
