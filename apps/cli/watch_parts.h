// The parts that the two views are made of, in the order in which bars and charts stack them.
#pragma once

#include <plimsoll/observe.h>

#include <span>
#include <string_view>

namespace plimsoll::cli {

template <typename View>
struct Part {
  const char* key;     // in JSON, without "_bytes"
  const char* label;   // for people
  char letter;         // where there is no colour
  int ansi;            // of the 256 colours of a terminal
  const char* colour;  // on a page, light or dark
  int64_t View::*member;
};

std::span<const Part<ProcessView>> process_parts();
std::span<const Part<ContainerView>> container_parts();

// What the kernel counts and the parts do not explain; may be negative.
inline int64_t unexplained(const ProcessView& view) {
  return view.kernel_bytes - view.sum_bytes;
}
inline int64_t unexplained(const ContainerView& view) {
  return view.kernel_bytes - view.sum_bytes;
}

}  // namespace plimsoll::cli
