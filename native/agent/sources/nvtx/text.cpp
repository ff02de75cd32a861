// Converts wide texts, messages and JSON of NVTX calls.
#include "text.h"

#include <cmath>
#include <cstdio>

#include "spool/schemas/schema.h"

namespace warplens::agent {

std::string utf8(const wchar_t *text) {
  std::string out;
  for (; *text != L'\0'; ++text) {
    auto c = static_cast<uint32_t>(*text);
    if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) {
      c = 0xfffd;
    }
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 63));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    } else {
      out += static_cast<char>(0xf0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 63));
      out += static_cast<char>(0x80 | (c >> 6 & 63));
      out += static_cast<char>(0x80 | (c & 63));
    }
  }
  return out;
}

uint32_t name_of(ThreadLog &log, const wchar_t *text) {
  return text == nullptr ? 0 : guarded(uint32_t{0}, [&] {
    std::string narrow = utf8(text);
    return log.intern(narrow.data(), narrow.size());
  });
}

bool message_text(int32_t type, const nvtxMessageValue_t &message, std::string &out) {
  if (type == NVTX_MESSAGE_TYPE_ASCII && message.ascii != nullptr) {
    out = message.ascii;
    return true;
  }
  if (type == NVTX_MESSAGE_TYPE_UNICODE && message.unicode != nullptr) {
    out = utf8(message.unicode);
    return true;
  }
  if (type == NVTX_MESSAGE_TYPE_REGISTERED) {
    if (const Names *all = names()) {
      out = all->text(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(message.registered)));
    }
    return true;
  }
  return false;
}

void Json::word(const char *name, std::string_view json) {
  text_ += text_.empty() ? "{\"" : ", \"";
  text_ += name;
  text_ += "\": ";
  text_ += json;
}

void Json::member(const char *name, std::string_view text) {
  std::string quoted;
  append_json_string(quoted, text);
  word(name, quoted);
}

void Json::member(const char *name, const char *text) {
  if (text == nullptr) {
    word(name, "null");
  } else {
    member(name, std::string_view(text));
  }
}

void Json::member(const char *name, double number) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.17g", number);
  word(name, std::isfinite(number) ? text : "null");
}

}  // namespace warplens::agent
