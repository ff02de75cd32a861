// The door of the library: a table of its functions with their types, which Python reads (warplens.native). The compiler derives the
// types from the definitions, so that no second list of signatures exists. Nothing throws across.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <typeinfo>

#if defined(_WIN32)
#define WARPLENS_API extern "C" __declspec(dllexport)
#else
#define WARPLENS_API extern "C" __attribute__((visibility("default")))
#endif

namespace warplens::reader {

// An array: one of Python's, to read where T is const, else to fill; it lives as long as the call. Null where Python passes None.
// As a result: memory of a handle, which lives until the next call with it.
template <typename T>
struct Array {
  T *data = nullptr;
  uint64_t size = 0;

  T &operator[](uint64_t index) const { return data[index]; }
  T *begin() const { return data; }
  T *end() const { return data + size; }
};

// Throws unless each array that was given has `size` values.
template <typename... T>
void require_size(uint64_t size, const Array<T> &...arrays) {
  if (((arrays.data != nullptr && arrays.size != size) || ...)) {
    throw std::invalid_argument("the arrays differ in length");
  }
}

// Why a call failed.
struct Failure {
  enum Kind : int32_t { none, no_memory, wrong_argument };
  int32_t kind;
  char text[124];
};

// A function of the library. `types`: of the result, then of the arguments, with blanks between: `i8`, `u4`, … as NumPy has them; `i8[]`
// an array that is read, `i8[]=` one that is filled; `*NAME` a handle; `table` columns by name that are read,
// `table=` those that come back (arrow.h). `free` frees a handle that the function makes.
struct Function {
  const char *name;
  const char *types;
  const void *address;
  void (*free)(void *handle);
};

//! Adds to the table: for static objects.
void add_function(const Function &function);
//! Writes down the exception that is being handled.
void note_failure(Failure &failure) noexcept;

namespace door {

template <typename T>
std::string value_type() {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, char>) {
    return "u1";
  } else if constexpr (std::is_arithmetic_v<Value>) {
    static_assert(!std::is_same_v<Value, bool>, "Python passes bool as int32_t or uint8_t");
    const char kind = std::is_floating_point_v<Value> ? 'f' : std::is_signed_v<Value> ? 'i' : 'u';
    return std::string(1, kind).append(std::to_string(sizeof(Value)));
  } else {
    static_assert(std::is_trivially_copyable_v<Value>);
    return std::string("V").append(std::to_string(sizeof(Value)));
  }
}

template <typename T>
std::string handle_type() {
  std::string type = "*";
  type.append(typeid(T).name());
  return type;
}

// How a type crosses. By default: a number, as it is.
template <typename T>
struct Crossing {
  static_assert(std::is_arithmetic_v<T>, "pass numbers, Array<T>, a handle T & or GivenColumns");
  using Raw = T;
  static T in(Raw raw) { return raw; }
  static Raw out(T value) { return value; }
  static std::string type() { return value_type<T>(); }
  static constexpr void (*free)(void *) = nullptr;
};

template <>
struct Crossing<void> {
  using Raw = int64_t;
  static std::string type() { return "i8"; }
  static constexpr void (*free)(void *) = nullptr;
};

template <typename T>
struct Crossing<Array<T>> {
  using Raw = Array<T>;
  static Array<T> in(Raw raw) { return raw; }
  static Raw out(Array<T> value) { return value; }
  static std::string type() { return value_type<T>().append(std::is_const_v<T> ? "[]" : "[]="); }
  static constexpr void (*free)(void *) = nullptr;
};

// A handle that Python has.
template <typename T>
struct Crossing<T &> {
  using Raw = T *;
  static T &in(Raw raw) { return *raw; }
  static std::string type() { return handle_type<T>(); }
};

// A handle that Python gets, and frees.
template <typename T>
struct Crossing<std::unique_ptr<T>> {
  using Raw = T *;
  static Raw out(std::unique_ptr<T> value) { return value.release(); }
  static std::string type() { return handle_type<T>(); }
  static void free(void *handle) { delete static_cast<T *>(handle); }
};

template <auto function, typename Type>
struct Door;

template <auto function, typename Result, typename... Arguments>
struct Door<function, Result (*)(Arguments...)> {
  using Raw = typename Crossing<Result>::Raw;

  static Raw call(Failure *failure, typename Crossing<Arguments>::Raw... arguments) noexcept {
    try {
      if constexpr (std::is_void_v<Result>) {
        function(Crossing<Arguments>::in(arguments)...);
      } else {
        return Crossing<Result>::out(function(Crossing<Arguments>::in(arguments)...));
      }
    } catch (...) {
      note_failure(*failure);
    }
    return Raw{};
  }

  static std::string types() {
    std::string all = Crossing<Result>::type();
    ((all += ' ', all += Crossing<Arguments>::type()), ...);
    return all;
  }
};

// Adds a function to the table when the library is loaded.
template <auto function>
class Registered {
 public:
  explicit Registered(const char *name) : types_(Door::types()) {
    add_function({name, types_.c_str(), reinterpret_cast<const void *>(&Door::call), free_of()});
  }

 private:
  template <typename Type>
  struct ResultOf;
  template <typename Result, typename... Arguments>
  struct ResultOf<Result (*)(Arguments...)> {
    using Type = Result;
  };
  using Door = door::Door<function, decltype(function)>;
  using Result = typename ResultOf<decltype(function)>::Type;

  static constexpr void (*free_of())(void *) { return Crossing<Result>::free; }

  std::string types_;
};

}  // namespace door
}  // namespace warplens::reader

//! Behind the definition of a function, in its file: Python can call it by this name.
#define WARPLENS_FUNCTION(name) const warplens::reader::door::Registered<&name> kFunction_##name(#name)
