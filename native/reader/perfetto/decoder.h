// Decodes a Perfetto trace (protobuf) into columns: events, their annotations and arrows, samples of counters, tracks and texts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "state.h"
#include "wire.h"

namespace warplens::perfetto {

// What a row of events is. A `kWhole` is followed by its `kWholeEnd`.
enum Type : uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kWhole = 5, kWholeEnd = 7, kStage = 6 };
// What a track is known by: uuid; pid and tid; pid, id and scope; sequence, queue, context (with pid) and GPU; pid and name.
enum TrackKind : uint8_t { kUuid = 0, kThread = 1, kAsync = 2, kQueue = 3, kNamed = 4 };
enum NoteKind : uint8_t { kInt = 0, kUint = 1, kDouble = 2, kBool = 3, kText = 4, kJson = 5 };

struct Events {
  std::vector<int64_t> time;
  std::vector<uint32_t> track;
  std::vector<int32_t> name;
  std::vector<int32_t> category;
  std::vector<uint8_t> type;
  std::vector<uint8_t> clock;
};
struct Notes {
  std::vector<uint32_t> event;
  std::vector<int32_t> name;
  std::vector<uint8_t> kind;
  std::vector<uint64_t> value;
};
struct Flows {
  std::vector<uint32_t> event;
  std::vector<uint64_t> id;
  std::vector<uint8_t> ends;
};
struct Samples {
  std::vector<int64_t> time;
  std::vector<uint32_t> track;
  std::vector<int64_t> whole;
  std::vector<double> real;
  std::vector<uint8_t> is_float;
  std::vector<uint8_t> clock;
};
struct Tracks {
  std::vector<uint8_t> kind;
  std::vector<uint64_t> first;
  std::vector<uint64_t> second;
  std::vector<uint64_t> third;
  std::vector<int32_t> name;
};
// Packets that the caller reads itself, for there are few of them: a copy of their payload.
struct Others {
  std::vector<uint32_t> field;
  std::vector<uint32_t> sequence;
  std::vector<int64_t> time;
  std::vector<uint8_t> clock;
  std::vector<uint64_t> offset;
  std::string bytes;
};

// Annotations as JSON objects: of which events, where each begins and the last one ends, and the texts.
struct Objects {
  std::vector<uint32_t> events;
  std::vector<int64_t> offsets;
  std::string bytes;
};

// What was not taken over.
struct Lost {
  uint64_t without_state = 0;  // events whose texts were lost before the trace begins
  uint64_t broken = 0;         // packets that are no message
  uint64_t phases = 0;         // legacy events of a kind that is not known
  uint64_t dropped = 0;        // times that the recorder says it dropped packets
  uint64_t deep = 0;           // annotations nested too deep
};

struct TrackEvent;

// What a packet says about itself.
struct Packet {
  uint64_t timestamp = 0;
  bool timed = false;
  uint64_t clock_id = 0;
  bool cleared = false;
  bool needs = false;
  bool dropped = false;
  uint32_t sequence = 0;  // as in the file
  int64_t time = 0;
  uint8_t clock = 0;
  uint32_t index = 0;  // of the sequence
};

class Decoder {
 public:
  // Reads whole packets until `most` bytes were read; returns how many. `packed` is set to a compressed packet that must be fed
  // before what follows it, and its kind (50 or 133).
  uint64_t feed(std::string_view data, uint64_t most, std::string_view &packed, uint32_t &kind, bool &cut);

  // The annotations of each event that has some whose name is not skipped.
  const Objects &objects(const uint8_t *skipped);

  Events events;
  Notes notes;
  Flows flows;
  Samples samples;
  Tracks tracks;
  Others others;
  Texts texts;
  Lost lost;
  std::vector<uint64_t> clocks;  // what each number of a clock stands for
  std::array<uint64_t, 1024> left_out{};
  std::array<uint64_t, 1024> ftrace_left_out{};  // by field of FtraceEvent; 0: switches of threads in columns

 private:
  void packet(std::string_view bytes);
  void interned(Sequence &sequence, std::string_view bytes);
  void defaults(Sequence &sequence, std::string_view bytes);
  void snapshot(Sequence &sequence, std::string_view bytes);
  void thread(Sequence &sequence, std::string_view bytes);
  void track_event(Sequence &sequence, const Packet &packet, std::string_view bytes);
  void legacy(Sequence &sequence, TrackEvent &event);
  void render_stage(Sequence &sequence, const Packet &packet, std::string_view bytes);
  void other(const Packet &packet, uint32_t field, std::string_view bytes);
  void ftrace(std::string_view bytes);
  bool printed(int64_t time, uint8_t clock, uint64_t tid, std::string_view text);
  void annotation(const Sequence &sequence, std::string_view bytes);
  void json(const Sequence &sequence, std::string_view bytes, std::string &out, int depth, int32_t &name);
  void nested_value(const Sequence &sequence, std::string_view bytes, std::string &out, int depth);
  void extra_counters(const Sequence &sequence, int64_t time, uint8_t clock);
  int32_t joined();
  void note(int32_t name, NoteKind kind, uint64_t value);
  void sample(int64_t time, uint8_t clock, uint32_t track, int64_t whole, double real, bool is_float);
  void add(int64_t time, uint8_t clock, uint32_t track, int32_t name, int32_t category, Type type);
  uint32_t track(TrackKind kind, uint64_t first, uint64_t second = 0, uint64_t third = 0,
                 int32_t name = kNoText);
  uint32_t default_track(const Sequence &sequence);
  uint8_t clock(uint64_t key);
  void when(Sequence &sequence, Packet &packet);

  struct TrackKey {
    uint64_t first, second, third;
    uint8_t kind;
    bool operator==(const TrackKey &) const = default;
  };
  struct TrackHash {
    size_t operator()(const TrackKey &key) const {
      uint64_t mixed = key.first * 0x9E3779B97F4A7C15;
      mixed = (mixed ^ mixed >> 29 ^ key.second) * 0xC2B2AE3D27D4EB4F;
      mixed = (mixed ^ mixed >> 31 ^ key.third ^ key.kind) * 0x165667B19E3779F9;
      return static_cast<size_t>(mixed ^ mixed >> 30);
    }
  };
  std::unordered_map<TrackKey, uint32_t, TrackHash> known_tracks_;
  std::unordered_map<uint64_t, uint32_t> plain_tracks_;  // by uuid
  uint64_t last_uuid_ = 0;
  uint32_t last_track_ = UINT32_MAX;
  std::unordered_map<uint64_t, uint8_t> known_clocks_;
  std::unordered_map<uint32_t, Sequence> sequences_;
  std::string scratch_;
  Objects objects_;
  // Of the event that is being read; kept, for there are many.
  std::vector<std::string_view> spans_;
  std::vector<wire::Field> flow_spans_;
  std::vector<wire::Field> counts_;
  std::vector<int32_t> category_ids_;
  std::unordered_map<uint64_t, int32_t> joined_;  // two categories
  int32_t axis_names_[6] = {kNoText, kNoText, kNoText, kNoText, kNoText, kNoText};
  int32_t submission_ = kNoText;
  std::unordered_map<uint64_t, int64_t> ftrace_pids_;  // the process of each thread that wrote marks
};

// Finds the other half of each BEGIN and END of a track: `partner` gets its row, -1 where there is none. Returns how many ENDs have none.
uint64_t pair(const Events &events, const int64_t *time, int64_t *partner);

}  // namespace warplens::perfetto
