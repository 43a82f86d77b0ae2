// Standard output or error, written without ever waiting for whoever reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::cli {

class Outlet {
 public:
  enum class Trouble : uint8_t { kThrown, kIgnored };  // when nobody can read any more

  Outlet(int descriptor, Trouble trouble);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // Writes what can be written now and keeps the rest. All of these throw kIo.
  void add(std::string_view text);
  // As add, but where much is kept already, the text is dropped, as a whole.
  void add_or_drop(std::string_view text);
  void flush();
  bool is_behind() const { return sent_ < waiting_.size(); }
  int64_t bytes_behind() const { return static_cast<int64_t>(waiting_.size() - sent_); }
  int64_t dropped() const { return dropped_; }
  // Writable when flush() is worth trying.
  int descriptor() const { return own_ >= 0 ? own_ : descriptor_; }

 private:
  int64_t write_some(std::string_view text) const;  // -1: errno

  const int descriptor_;
  const Trouble trouble_;
  int own_ = -1;  // opened again, so that it does not block and whoever shares it does not notice
  bool is_socket_ = false, may_block_ = false, broken_ = false;
  std::string waiting_;
  size_t sent_ = 0;  // of `waiting_`
  int64_t dropped_ = 0;
};

}  // namespace plimsoll::cli
