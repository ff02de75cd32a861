// Traces the functions that the user named.
// With sys.monitoring the interpreter reports calls of their code. In earlier versions a wrapper
// replaces the function after the import of its module.
#include <new>
#include <string>

#include "agent/python/hooks/bootstrap.h"
#include "agent/python/hooks/wrapper.h"
#include "agent/python/memory/objects.h"
#include "calls.h"
#include "wanted.h"

namespace warplens::agent::python {
namespace {

constexpr int kGenerator = 0x20 | 0x80 | 0x200;  // CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR

CodeFacts *meet(Interpreter &interpreter, Object *code, Wanted &wanted) {
  CodeFacts *facts = meet_code(interpreter, code, wanted.shown);
  if (facts != nullptr && wanted.has_color) {
    facts->color = wanted.color;
    facts->flags = kSpanColor;
  }
  return facts;
}

// What wraps a function stands for it: the code of a decorator may be that of many functions.
Object *code_of(Object *object) {
  Held at(held(object));
  for (int steps = 0; steps < 16; ++steps) {
    Object *inner = nullptr;
    for (const char *name : {"__wrapped__", "__func__", "fget", "func"}) {
      Held found(inner == nullptr ? attribute(at.get(), name) : nullptr);
      if (found && found.get() != g_python.none) {
        inner = found.release();
      }
    }
    if (inner == nullptr) {
      break;
    }
    at = Held(inner);
  }
  Held code(attribute(at.get(), "__code__"));
  return code && is_exactly(code.get(), g_python.code_type) ? code.release() : nullptr;
}

// The object that holds the last name of a dotted one, and that name's place in it.
Object *holder_of(Object *module, const std::string &name, std::string &last) {
  Held at(held(module));
  size_t begin = 0;
  for (size_t dot = name.find('.'); at && dot != std::string::npos; dot = name.find('.', begin)) {
    Object *next = static_attribute(at.get(), name.substr(begin, dot - begin).c_str());
    at = Held(next);
    begin = dot + 1;
  }
  last = name.substr(begin);
  return at.release();
}

Object *timed(Object *function, void *data, Object *arguments, Object *keywords) {
  Thread *thread = this_thread();
  const auto &facts = *static_cast<const CodeFacts *>(data);
  if (thread == nullptr) {
    return g_python.PyObject_Call(function, arguments, keywords);
  }
  enter_call(*thread, facts);
  Object *result = g_python.PyObject_Call(function, arguments, keywords);
  leave_call(*thread, facts, result == nullptr);
  return result;
}

// Puts a wrapper in the place of a function, or into the classmethod or staticmethod that is there.
bool replace(Interpreter &interpreter, Object *holder, const std::string &name, Object *there,
             Wanted &wanted) {
  Held inner(is_exactly(there, g_python.function_type) ? held(there) : attribute(there, "__func__"));
  Held code(inner && is_exactly(inner.get(), g_python.function_type) ? attribute(inner.get(), "__code__")
                                                                     : nullptr);
  if (!code || (number_attribute(code.get(), "co_flags") & kGenerator) != 0) {
    return false;
  }
  CodeFacts *facts = meet(interpreter, code.get(), wanted);
  Object *wrapper_type = own_type(interpreter.wrapper_type, make_wrapper_type);
  // Beside the code it would go with it; a caller that kept the wrapper may call it.
  auto *kept = facts != nullptr ? new (std::nothrow) CodeFacts(*facts) : nullptr;
  Held wrapper(kept != nullptr && wrapper_type != nullptr ? wrap(wrapper_type, inner.get(), timed, kept)
                                                          : nullptr);
  Held type(g_python.PyObject_Type(there));
  Held whole(!wrapper               ? nullptr
             : inner.get() == there ? wrapper.release()
                                    : call(type.get(), {wrapper.get()}));
  bool done = whole && g_python.PyObject_SetAttrString(holder, name.c_str(), whole.get()) == 0;
  g_python.PyErr_Clear();
  return done;
}

void look_for(Interpreter &interpreter, Object *module, Wanted &wanted) {
  std::string last;
  Held holder(holder_of(module, wanted.name, last));
  Held there(holder ? static_attribute(holder.get(), last.c_str()) : nullptr);
  if (!there) {
    return;
  }
  bool done = false;
  if (has_monitoring()) {
    Held code(code_of(there.get()));
    done =
        code && meet(interpreter, code.get(), wanted) != nullptr && listen_to_code(interpreter, code.get());
  } else {
    done = replace(interpreter, holder.get(), last, there.get(), wanted);
  }
  if (!wanted.found.exchange(true) && !done) {
    cpu_notice(
        CpuNotice::bootstrap, 0,
        wanted.module + "." + wanted.name +
            (has_monitoring() ? " is no Python function"
                              : " is no plain Python function: generators, coroutines and properties are "
                                "traced from Python 3.12 on"));
  }
}

std::string without_locals(std::string name) {
  constexpr std::string_view kLocals = ".<locals>";
  for (size_t at = name.find(kLocals); at != std::string::npos; at = name.find(kLocals)) {
    name.erase(at, kLocals.size());
  }
  return name;
}

void look_in_code(Interpreter &interpreter, Object *code, std::string_view module, int depth) {
  Held inner(attribute(code, "co_consts"));
  Size count = inner ? g_python.PyTuple_Size(inner.get()) : 0;
  for (Size i = 0; i < count && depth < 32; ++i) {
    Object *one = g_python.PyTuple_GetItem(inner.get(), i);
    if (!is_exactly(one, g_python.code_type)) {
      continue;
    }
    Held qualified(attribute(one, "co_qualname"));
    std::string name = without_locals(std::string(text_of(qualified.get())));
    for_each_wanted(module, [&](Wanted &wanted) {
      if (wanted.name == name && meet(interpreter, one, wanted) != nullptr &&
          listen_to_code(interpreter, one)) {
        wanted.found.store(true, std::memory_order_relaxed);
      }
    });
    look_in_code(interpreter, one, module, depth + 1);
  }
}

}  // namespace

void functions_in(Interpreter &interpreter, std::string_view module_name, Object *module) {
  for_each_wanted(module_name, [&](Wanted &wanted) { look_for(interpreter, module, wanted); });
}

void functions_of_code(Interpreter &interpreter, Object *code) {
  Held name(attribute(code, "co_name"));
  const Thread *thread = this_thread();
  if (interpreter.tool < 0 || thread == nullptr || text_of(name.get()) != "<module>") {
    return;
  }
  Held file(attribute(code, "co_filename"));
  if (std::string_view path = text_of(file.get()); path == "<frozen site>" || path.ends_with("/site.py")) {
    return;  // its import began before we were there
  }
  std::string_view module = thread->import != nullptr ? thread->import->name : "__main__";
  bool wanted = false;
  for_each_wanted(module, [&](const Wanted &) { wanted = true; });
  if (wanted) {
    look_in_code(interpreter, code, module, 0);
  }
}

bool install_functions(Interpreter &interpreter) {
  if (has_monitoring()) {
    return listen_to_calls(interpreter);
  }
  for_each_wanted("__main__", [&](Wanted &wanted) {
    if (!wanted.found.exchange(true)) {
      cpu_notice(CpuNotice::bootstrap, 0,
                 "functions of __main__ are traced from Python 3.12 on: " + wanted.name);
    }
  });
  return true;
}

void end_functions() {
  for (Wanted *wanted = wanted_functions(); wanted != nullptr; wanted = wanted->next) {
    if (!wanted->found.load(std::memory_order_relaxed)) {
      cpu_notice(CpuNotice::function, 0, wanted->module + "." + wanted->name);
    }
  }
}

}  // namespace warplens::agent::python
