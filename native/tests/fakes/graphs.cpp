// Graphs: captured from a stream, instantiated, launched; their work is recorded node by node, or each launch as a whole.
#include <unistd.h>

#include <algorithm>

#include "session.h"

namespace fake {

struct Node {
  enum class What { kernel, copy, memset } what;
  Function *function = nullptr;
  Dims dims{};
  Copy copy{};
  uint32_t value = 0;
  uint64_t id = 0;
};
struct Graph {
  uint32_t id;
  std::vector<Node> nodes;
};
struct GraphExec {
  uint32_t id;
  uint32_t launches = 0;
  std::vector<Node> nodes;
};

namespace {

std::atomic<uint32_t> g_next_graph{1};
std::atomic<uint64_t> g_next_node{1};

// What CUPTI says of a graph and its nodes.
struct GraphData {
  Graph *graph, *original_graph;
  Node *node, *original_node;
  int type;
  Node *dependency;
  GraphExec *exec;
};
constexpr uint32_t kNodeCreated = 13, kNodeCloned = 20;

void number(Node &node, uint32_t graph) {
  node.id = (static_cast<uint64_t>(graph) << 32) + g_next_node.fetch_add(1);
}

void add(Graph *graph, Node node) {
  number(node, graph->id);
  graph->nodes.push_back(std::move(node));
  GraphData data{graph, nullptr, &graph->nodes.back(), nullptr, 0, nullptr, nullptr};
  resource_callback(kNodeCreated, current_context(), nullptr, &data);
}

// The nodes of `from`, as those of another graph.
std::vector<Node> copied(Graph *from, uint32_t to, Graph *graph, GraphExec *exec) {
  std::vector<Node> nodes = from->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    number(nodes[i], to);
    GraphData data{graph, from, &nodes[i], &from->nodes[i], 0, nullptr, exec};
    resource_callback(kNodeCloned, current_context(), nullptr, &data);
  }
  return nodes;
}

// CUPTI 13.0 numbers launches of graphs wrongly once kernels have been enabled, disabled and enabled again.
uint32_t as_cupti_says(uint32_t correlation) {
  bool broken = trap("graph-ids") != 0 && kVersion.cupti < 130101;
  return broken && session(0).episodes.load() > 1 ? correlation + 1000 : correlation;
}

}  // namespace

void launch_or_capture(Stream *stream, Function *function, const Dims &dims, uint32_t correlation) {
  if (stream->capture != nullptr) {
    add(stream->capture, {.what = Node::What::kernel, .function = function, .dims = dims});
  } else {
    run_kernel(stream, function, dims, correlation);
  }
}

void copy_or_capture(Stream *stream, const Copy &copy, uint32_t correlation) {
  if (stream->capture != nullptr) {
    add(stream->capture, {.what = Node::What::copy, .copy = copy});
  } else {
    run_copy(stream, copy, correlation);
  }
}

void memset_or_capture(Stream *stream, uint32_t value, uint64_t bytes, bool asynchronous,
                       uint32_t correlation) {
  if (stream->capture != nullptr) {
    add(stream->capture,
        {.what = Node::What::memset,
         .copy = {.bytes = bytes, .kind = 0, .source = 0, .destination = 0, .asynchronous = asynchronous},
         .value = value});
  } else {
    run_memset(stream, value, bytes, asynchronous, correlation);
  }
}

}  // namespace fake

using namespace fake;  // NOLINT: from here on nothing but exports

FAKE_EXPORT int cuStreamBeginCapture_v2(void *handle, int) {
  USABLE();
  Call call(kDriverApi, 539, "cuStreamBeginCapture_v2");
  Stream *stream = stream_of(handle);
  if (stream == &stream->context->null_stream) {
    return call.give(900);
  }
  stream->capture = new Graph{g_next_graph.fetch_add(1), {}};
  return 0;
}

FAKE_EXPORT int cuStreamEndCapture(void *handle, Graph **graph) {
  USABLE();
  Call call(kDriverApi, 497, "cuStreamEndCapture");
  Stream *stream = stream_of(handle);
  *graph = stream->capture;
  stream->capture = nullptr;
  return call.give(*graph == nullptr ? 901 : 0);
}

FAKE_EXPORT int cuStreamIsCapturing(void *handle, int *status) {
  USABLE();
  Call call(kDriverApi, 499, "cuStreamIsCapturing");
  *status = stream_of(handle)->capture != nullptr ? 1 : 0;
  return 0;
}

FAKE_EXPORT int cuGraphInstantiateWithFlags(GraphExec **exec, Graph *graph, uint64_t) {
  USABLE();
  Call call(kDriverApi, 643, "cuGraphInstantiateWithFlags");
  auto *made = new GraphExec{g_next_graph.fetch_add(1), 0, {}};
  made->nodes = copied(graph, made->id, nullptr, made);
  *exec = made;
  return 0;
}

FAKE_EXPORT int cuGraphClone(Graph **clone, Graph *graph) {
  USABLE();
  Call call(kDriverApi, 523, "cuGraphClone");
  auto *made = new Graph{g_next_graph.fetch_add(1), {}};
  made->nodes = copied(graph, made->id, made, nullptr);
  *clone = made;
  return 0;
}

FAKE_EXPORT int cuGraphLaunch(GraphExec *exec, void *handle) {
  USABLE();
  Call call(kDriverApi, 514, "cuGraphLaunch");
  Stream *stream = stream_of(handle);
  ++exec->launches;
  uint32_t correlation = as_cupti_says(call.correlation());
  uint64_t first = 0;
  for (const Node &node : exec->nodes) {
    InGraph in{node.id, exec->id};
    uint64_t start = 0;
    switch (node.what) {
      case Node::What::kernel:
        start = run_kernel(stream, node.function, node.dims, correlation, in);
        break;
      case Node::What::copy:
        start = run_copy(stream, node.copy, correlation, in);
        break;
      case Node::What::memset:
        start = run_memset(stream, node.value, node.copy.bytes, node.copy.asynchronous, correlation, in);
        break;
    }
    first = first == 0 ? start : first;
  }
  truth(R"({"what": "graph", "pid": %d, "correlation": %u, "graph": %u, "nodes": %zu, "stream": %u})",
        getpid(), correlation, exec->id, exec->nodes.size(), stream->id);
  if (graph_as_a_whole() && first != 0) {
    Record record(kGraphTrace);
    record.put<uint32_t>(4, correlation);
    record.put<uint32_t>(24, stream->context->device);
    record.put<uint32_t>(28, exec->id);
    record.put<uint32_t>(32, stream->context->id);
    record.put<uint32_t>(36, stream->id);
    record.put<uint32_t>(48, stream->context->device);
    record.put<uint32_t>(52, stream->context->id);
    deliver_later(record, first, stream->tail, stream->context, 8);
  }
  return 0;
}

FAKE_EXPORT int cuGraphExecDestroy(GraphExec *exec) {
  USABLE();
  Call call(kDriverApi, 516, "cuGraphExecDestroy");
  delete exec;
  return 0;
}

FAKE_EXPORT int cuGraphDestroy(Graph *graph) {
  USABLE();
  Call call(kDriverApi, 517, "cuGraphDestroy");
  delete graph;
  return 0;
}

FAKE_EXPORT int cuptiGetGraphExecId(GraphExec *exec, uint32_t *id) {
  *id = exec->id;
  return 0;
}

FAKE_EXPORT int cuptiGetGraphId(Graph *graph, uint32_t *id) {
  *id = graph->id;
  return 0;
}

FAKE_EXPORT int cuptiGetGraphNodeId(Node *node, uint64_t *id) {
  *id = node->id;
  return 0;
}
