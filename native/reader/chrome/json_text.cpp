// Steps over JSON text that may be cut off anywhere.
#include "json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace warplens::reader::json {

const char *value_end(const char *at, const char *end, const char *&bad) {
  bad = nullptr;
  size_t depth = 0;
  for (;;) {
    at = space(at);
    if (at >= end) {
      return nullptr;
    }
    const char letter = *at;
    if (letter == '"') {
      at = string_end(at + 1, end);
      if (at == nullptr) {
        return nullptr;
      }
      ++at;
    } else if (letter == '{' || letter == '[') {
      ++depth;
      ++at;
      continue;
    } else if (letter == '}' || letter == ']') {
      if (depth == 0) {
        bad = at;
        return nullptr;
      }
      --depth;
      ++at;
    } else if (letter == ',' || letter == ':') {
      if (depth == 0) {
        bad = at;
        return nullptr;
      }
      ++at;
      continue;
    } else {
      const char *behind = bare_end(at);
      if (behind == at) {
        bad = at;
        return nullptr;
      }
      at = behind;
      if (at >= end) {  // it may go on in the next piece
        return nullptr;
      }
    }
    if (depth == 0) {
      return at;
    }
  }
}

bool any_decimal(std::string_view text, int shift, int64_t &out) {
  const char *at = text.data();
  const char *const end = at + text.size();
  bool negative = false;
  if (at < end && (*at == '-' || *at == '+')) {
    negative = *at++ == '-';
  }
  uint64_t digits = 0;
  int64_t exponent = shift;
  bool any = false;
  bool half = false;     // the first digit that did not fit was 5 or more
  bool dropped = false;  // there was one
  const auto take = [&](char letter, int64_t fits, int64_t lost) {
    any = true;
    if (!dropped && digits < UINT64_MAX / 10 - 1) {
      digits = digits * 10 + static_cast<uint64_t>(letter - '0');
      exponent += fits;
    } else {
      half = dropped ? half : letter >= '5';
      dropped = true;
      exponent += lost;
    }
  };
  for (; at < end && *at >= '0' && *at <= '9'; ++at) {
    take(*at, 0, 1);
  }
  if (at < end && *at == '.') {
    for (++at; at < end && *at >= '0' && *at <= '9'; ++at) {
      take(*at, -1, 0);
    }
  }
  if (!any) {
    return false;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    bool down = false;
    if (at < end && (*at == '-' || *at == '+')) {
      down = *at++ == '-';
    }
    if (at == end) {
      return false;
    }
    int64_t power = 0;
    for (; at < end && *at >= '0' && *at <= '9'; ++at) {
      power = power < 100'000 ? power * 10 + (*at - '0') : power;
    }
    exponent += down ? -power : power;
  }
  if (at != end) {
    return false;
  }
  if (digits != 0) {
    for (; exponent > 0; --exponent) {
      if (digits > UINT64_MAX / 10) {
        return false;
      }
      digits *= 10;
      half = false;
    }
    for (; exponent < 0 && (digits != 0 || half); ++exponent) {
      half = digits % 10 >= 5;
      digits /= 10;
    }
    digits += half ? 1 : 0;
  }
  if (digits > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return false;
  }
  out = negative ? -static_cast<int64_t>(digits) : static_cast<int64_t>(digits);
  return true;
}

bool real(std::string_view text, double &out) {
  if (text.empty() || !((text[0] >= '0' && text[0] <= '9') || text[0] == '-' || text[0] == '.')) {
    return false;
  }
  const std::string copy(text);
  char *end = nullptr;
  out = std::strtod(copy.c_str(), &end);
  return end == copy.c_str() + copy.size() && std::isfinite(out);
}

namespace {

int digit(char letter) {
  if (letter >= '0' && letter <= '9') {
    return letter - '0';
  }
  const char lower = static_cast<char>(letter | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Four hexadecimal digits; -1 where there are none.
int32_t unit(std::string_view text) {
  if (text.size() < 4) {
    return -1;
  }
  int32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    const int one = digit(text[i]);
    if (one < 0) {
      return -1;
    }
    value = value * 16 + one;
  }
  return value;
}

void encode(uint32_t code, std::string &out) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

constexpr uint32_t kReplacement = 0xFFFD;

// How many bytes at the begin of `text` are one valid character; 0: none are.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint32_t>(static_cast<unsigned char>(text[i])) : 0U;
  };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const uint32_t first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  if (first >= 0xC2 && first < 0xE0) {
    return follows(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first < 0xF0) {
    const uint32_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint32_t high = first == 0xED ? 0x9F : 0xBF;  // no surrogates
    return byte(1) >= low && byte(1) <= high && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const uint32_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint32_t high = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= low && byte(1) <= high && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void repair(std::string_view text, std::string &out) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character(text.substr(at));
    if (length == 0) {
      encode(kReplacement, out);
    } else {
      out.append(text, at, length);
    }
    at += length == 0 ? 1 : length;
  }
}

void unescape(std::string_view text, std::string &out) {
  for (size_t at = 0; at < text.size();) {
    const size_t plain = std::min(text.find('\\', at), text.size());
    repair(text.substr(at, plain - at), out);
    at = plain;
    if (at == text.size()) {
      return;
    }
    if (at + 1 == text.size()) {
      out.push_back('\\');
      return;
    }
    const char letter = text[at + 1];
    at += 2;
    switch (letter) {
      case 'n':
        out.push_back('\n');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case '"':
      case '\\':
      case '/':
        out.push_back(letter);
        break;
      case 'u': {
        int32_t code = unit(text.substr(at));
        if (code < 0) {
          out.append("\\u");
          break;
        }
        at += 4;
        if (code >= 0xD800 && code < 0xDC00 && text.substr(at, 2) == "\\u") {
          const int32_t low = unit(text.substr(at + 2));
          if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
          }
        }
        encode(code >= 0xD800 && code < 0xE000 ? kReplacement : static_cast<uint32_t>(code), out);
        break;
      }
      default:  // a path of Windows, say, that was not escaped
        out.push_back('\\');
        --at;
        break;
    }
  }
}

}  // namespace warplens::reader::json
