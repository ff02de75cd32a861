// The record layouts as JSON, for the front of every spool.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace warplens {

//! `"records": {…}, "slot": {…}`: the members of the spool's JSON that describe its records.
std::string schema_json();

//! The member "wide" of the same: the records of wide chunks.
std::string wide_schema_json();

//! Appends pieces of text, one behind the other: each process writes this JSON, and printf takes five times as long.
void append_pieces(std::string &out, std::initializer_list<std::string_view> pieces);

//! Appends `text` as a JSON string; bytes above 0x7f pass as they are.
void append_json_string(std::string &out, std::string_view text);

}  // namespace warplens
