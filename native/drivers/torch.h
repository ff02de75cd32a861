// PyTorch's observers of operators, declared by us: libtorch_cpu.so exports their functions under C++ names. Layouts are those of
// ATen/record_function.h; tools/torch_abi.py compares them with the headers of wheels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <variant>

namespace warplens {

struct TorchRecord;  // at::RecordFunction
struct TorchSchema;  // c10::FunctionSchema

// at::ObserverContext: what a start callback gives to its end callback. PyTorch deletes it.
struct TorchContext {
  virtual ~TorchContext() = default;
};

// at::RecordScope: what a record is about. Those that are left out are internal to PyTorch, and off in its builds.
enum class TorchScope : uint8_t { function = 0, backward = 1, torchscript = 2, custom_class = 4, user = 7 };
inline constexpr size_t kTorchScopes = 10;

// at::RecordFunctionCallback. PyTorch takes it by value and reads the members that it knows: those that it may get later are 0.
struct TorchCallback {
  std::unique_ptr<TorchContext> (*start)(const TorchRecord &record) = nullptr;
  void (*end)(const TorchRecord &record, TorchContext *context) = nullptr;
  double sampling = 1.0;
  bool scopes[kTorchScopes] = {};
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
  char later[64] = {};
};
inline constexpr size_t kTorchCallbackSize = 40;  // of PyTorch's own
static_assert(offsetof(TorchCallback, scopes) == 24 && offsetof(TorchCallback, needs_inputs) == 34 &&
              offsetof(TorchCallback, later) <= kTorchCallbackSize);

// The name of a record since 2.9: a text, or an operator's schema.
using TorchName = std::variant<std::string_view, std::reference_wrapper<const TorchSchema>>;

// As PyTorch's libstdc++ lays them out. Their memory is PyTorch's, to be given back with its `operator delete`.
template <typename T>
struct TorchVector {
  T *first;
  T *last;
  T *limit;
};
struct TorchString {
  char *text;
  size_t size;
  char inside[16];
};

// A version whose headers were compared, by its major and minor number; where its records have their sequence number.
struct TorchAbi {
  uint16_t major;
  uint16_t minor;
  uint16_t sequence_at;
  uint16_t
      sequence_at_old;  // of builds with the strings of libstdc++ before GCC 5, as the wheels of 2.6 for x86-64
};

}  // namespace warplens
