#include "watch_display.h"

#include <fmt/core.h>
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string>

#include "watch_json.h"
#include "watch_text.h"
#include "watch_view.h"

namespace plimsoll::cli {
namespace {

class JsonDisplay : public Display {
 public:
  void show(const WatchHistory& history) override {
    output_.add_or_drop(json_line(sample_object(history.samples.back())));
  }
  void pass_output(std::string_view text) override { error_.add(text); }
  void finish(const WatchHistory& history) override { output_.add(json_line(verdict_object(history))); }
  void replay(const WatchHistory& history) override {
    for (const Sample& sample : history.samples) output_.add(json_line(sample_object(sample)));
    finish(history);
  }
};

class LineDisplay : public Display {
 public:
  void show(const WatchHistory& history) override {
    output_.add_or_drop(sample_line(history.samples.back(), history.verdict) + "\n");
  }
  void pass_output(std::string_view text) override { error_.add(text); }
  void finish(const WatchHistory& history) override { output_.add(report_text(history)); }
  void replay(const WatchHistory& history) override {
    for (const Sample& sample : history.samples) output_.add(sample_line(sample, std::nullopt) + "\n");
    finish(history);
  }
};

int positive_number(const char* text, int otherwise) {
  const int number = text ? std::atoi(text) : 0;
  return number > 0 ? number : otherwise;
}

Screen terminal_screen() {
  Screen screen;
  struct winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  } else {
    screen.columns = positive_number(std::getenv("COLUMNS"), 80);
    screen.rows = positive_number(std::getenv("LINES"), 24);
  }
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const std::string_view kind = terminal ? terminal : "dumb";
  screen.colour = !(no_colour && *no_colour) && kind != "dumb";
  screen.utf8 = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  return screen;
}

class TerminalDisplay : public Display {
 public:
  TerminalDisplay() {
    std::setlocale(LC_CTYPE, "");
    screen_ = terminal_screen();
  }

  // A view that nobody has seen yet is not drawn over.
  void show(const WatchHistory& history) override {
    output_.flush();
    if (!output_.is_behind()) draw(history);
  }

  // Kept until the next drawing, or until it is much.
  void pass_output(std::string_view text) override {
    constexpr size_t kMuch = 65536;
    if (text.empty()) return;
    pending_ += text;
    at_line_start_ = pending_.back() == '\n';
    if (pending_.size() > kMuch) {
      output_.add(erased() + pending_);
      pending_.clear();
    }
  }
  bool is_ready_for_output() const override { return !output_.is_behind(); }

  void finish(const WatchHistory& history) override {
    draw(history);
    output_.add("\n");
    output_.add(report_text(history));
  }
  void replay(const WatchHistory& history) override { finish(history); }

  // A narrower terminal has wrapped what we drew: where it begins is not known any more.
  void resized(const WatchHistory& history) override {
    screen_ = terminal_screen();
    output_.add("\x1b[H\x1b[2J");
    drawn_ = 0;
    if (!history.samples.empty()) show(history);
  }
  void resumed() override { drawn_ = 0; }
  bool wants_output() const override { return true; }

 private:
  void draw(const WatchHistory& history) {
    std::string text = erased();
    text += pending_;
    pending_.clear();
    if (!at_line_start_) text += '\n';
    at_line_start_ = true;
    const std::vector<std::string> lines = view_lines(history, screen_);
    for (const std::string& line : lines) text += line + "\x1b[K\n";
    drawn_ = static_cast<int>(lines.size());
    output_.add(text);
  }

  std::string erased() {
    if (drawn_ == 0) return "";
    return fmt::format("\x1b[{}A\r\x1b[J", std::exchange(drawn_, 0));
  }

  Screen screen_;
  std::string pending_;
  bool at_line_start_ = true;
  int drawn_ = 0;
};

}  // namespace

std::unique_ptr<Display> make_display(bool json) {
  if (json) return std::make_unique<JsonDisplay>();
  const char* terminal = std::getenv("TERM");
  const bool dumb = !terminal || std::string_view(terminal) == "dumb" || !*terminal;
  if (::isatty(STDOUT_FILENO) == 1 && !dumb) return std::make_unique<TerminalDisplay>();
  return std::make_unique<LineDisplay>();
}

}  // namespace plimsoll::cli
