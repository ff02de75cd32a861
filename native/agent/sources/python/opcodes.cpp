// Reads the names of an interpreter's instructions.
// They come from its own module `opcode`, as the numbers differ between versions. It is imported
// once, before the program begins, and removed from sys.modules again.
#include "opcodes.h"

#include <cstring>

#include "agent/python/memory/objects.h"
#include "parts.h"

namespace warplens::agent {
namespace {

std::atomic<const char *> g_names{nullptr};

}  // namespace

const char *opcode_names() {
  return g_names.load(std::memory_order_acquire);
}

namespace python {
namespace {

// A module of the program's by that name is not imported: only what lies beside the standard library is looked at.
// 3.11 and 3.12 give the specialised forms the numbers that are free, in order; later versions say them. Two instructions in one and
// those that only lack a check for the first run are no specialised forms. 3.11 calls a general form that counts its runs adaptive.
constexpr char kQuestion[] = R"(
import sys
before, writes, path = set(sys.modules), sys.dont_write_bytecode, sys.path
sys.dont_write_bytecode = True
try:
    home = sys._stdlib_dir or ""
    sys.path = [folder for folder in path if folder.startswith(home)]
    import opcode
    names = dict(enumerate(opcode.opname[:256]))
    free = [number for number, name in names.items() if name[0] == "<"]
    special = getattr(opcode, "_specialized_opmap", None) or dict(zip(opcode._specialized_instructions, free))
    names.update({number: name for name, number in special.items()})
    forms = {}
    for family, members in opcode._specializations.items():
        for name in members:
            if "__" not in name and not name.endswith("_QUICK"):
                forms[family] = 1
                forms[name] = 1 if name.endswith("_ADAPTIVE") else 2
    text = "".join(f"{number + 256 * forms.get(name, 0)} {name}\n" for number, name in names.items() if name[0] != "<")
finally:
    sys.dont_write_bytecode, sys.path = writes, path
    for name in set(sys.modules) - before:
        del sys.modules[name]
)";

}  // namespace

bool install_opcodes(Interpreter &interpreter) {
  if (interpreter.number != 0 || opcode_names() != nullptr) {
    return true;
  }
  if (g_python.version < 0x030b) {
    cpu_notice(CpuNotice::older, 0,
               "the instructions of Python samples are not available before CPython 3.11");
    return false;
  }
  Held builtins(g_python.PyImport_ImportModule("builtins"));
  Held scope(builtins ? call_method(builtins.get(), "dict", {}) : nullptr);
  Held question(scope ? g_python.PyUnicode_FromStringAndSize(kQuestion, sizeof(kQuestion) - 1) : nullptr);
  Held done(question ? call_method(builtins.get(), "exec", {question.get(), scope.get()}) : nullptr);
  Held text(done ? g_python.PyMapping_GetItemString(scope.get(), "text") : nullptr);
  std::string_view names = text_of(text.get());
  char *kept = names.empty() ? nullptr : strndup(names.data(), names.size());
  if (kept == nullptr) {
    tell_failure("names of instructions");
    return false;
  }
  g_names.store(kept, std::memory_order_release);
  return true;
}

}  // namespace python
}  // namespace warplens::agent
